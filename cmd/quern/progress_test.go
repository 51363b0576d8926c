package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProgressLine checks that the line is never wider than the screen, and that the bar does not move while the
// figures change.
func TestProgressLine(t *testing.T) {
	t.Parallel()

	const name, total = "orders-of-the-last-three-years-with-a-rather-long-name.csv", int64(216_000_000)

	states := []string{
		figures(0, total, "", ""), figures(70_000_000, total, "", ""), figures(151_000_000, total, "120 MB/s", "0 s left"),
		figures(151_000_000, total, "8.2 MB/s", "59:59 min left"), figures(total, total, "9 B/s", "1:05 h left"),
	}

	for _, columns := range []int{20, 40, 60, 80, 120, 200} {
		places := map[int]bool{}

		for _, text := range states[:3] {
			line := drawn(name, text, columns-3, 70_000_000, total)
			require.LessOrEqual(t, textWidth(line), columns-3, line)

			places[strings.IndexByte(line, ']')] = true
		}

		require.Len(t, places, 1, "%d columns", columns)

		for _, text := range states[3:] {
			require.LessOrEqual(t, textWidth(drawn(name, text, columns-3, total, total)), columns-3)
		}
	}

	require.Equal(t, "orders-of-the…  [###.......]   32%   70 MB of 216 MB", drawn(name, states[1], 77, 70_000_000, total))
	require.Contains(t, drawn("o.csv", states[2], 197, 151_000_000, total), "o.csv  [##")
}
