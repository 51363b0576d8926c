package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/fault"
)

// keptAs returns rows of a step as stored in the database and as stored in an object.
func keptAs(rows []json.RawMessage) map[string]stepRows {
	lines := append(bytes.Join(slices.Collect(func(yield func([]byte) bool) {
		for _, row := range rows {
			if !yield(row) {
				return
			}
		}
	}), []byte("\n")), bytes.Repeat([]byte("\n"), min(len(rows), 1))...)

	return map[string]stepRows{
		"event": (&Runs{}).rowsOf(storedStep{Step: agent.Step{Data: rows}}),
		"object": {int64(len(lines)), func(_ context.Context, from, length int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(lines[from:min(from+length, int64(len(lines)))])), nil
		}},
	}
}

func TestStepPages(t *testing.T) {
	t.Parallel()

	many := make([]json.RawMessage, 0, 1000)
	for i := range 1000 {
		many = append(many, json.RawMessage(fmt.Sprintf(`{"n":%d,"x":%q}`, i, strings.Repeat("x", i*7%5000))))
	}

	large := []json.RawMessage{many[3], json.RawMessage(`{"x":"` + strings.Repeat("x", 3*wireBytes) + `"}`), many[999], many[0]}

	for name, rows := range map[string][]json.RawMessage{"none": nil, "one": many[:1], "many": many, "large": large} {
		for place, kept := range keptAs(rows) {
			for _, limit := range []int{1, 7, 100} {
				var (
					seen []json.RawMessage
					at   int64
				)

				for {
					page, next, err := kept.page(t.Context(), at, limit)
					require.NoError(t, err)
					require.LessOrEqual(t, len(page), limit)
					require.True(t, len(page) > 0 || len(rows) == 0)

					seen = append(seen, page...)

					if next == 0 {
						break
					}

					require.Greater(t, next, at)
					at = next
				}

				require.Equal(t, rows, seen, "%s as %s by %d", name, place, limit)
			}
		}
	}
}

// TestStepPlaces checks that only positions where a row begins are accepted.
func TestStepPlaces(t *testing.T) {
	t.Parallel()

	for _, kept := range keptAs([]json.RawMessage{json.RawMessage(`{"a":"\\n"}`), json.RawMessage(`{"a":2}`)}) {
		begins := []int64{0, 12}

		for place := int64(-2); place < 30; place++ {
			rows, _, err := kept.page(t.Context(), place, 10)
			if slices.Contains(begins, place) {
				require.NoError(t, err)
				require.NotEmpty(t, rows)
			} else {
				require.True(t, fault.Is(err, fault.ValidationFailed), "%d: %v", place, err)
			}
		}
	}

	// A store that returns fewer bytes than the recorded size.
	_, _, err := stepRows{100, func(context.Context, int64, int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("{}\n")), nil
	}}.page(t.Context(), 0, 10)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
