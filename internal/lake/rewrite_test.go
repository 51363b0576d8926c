package lake

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestWithout removes rows at random, again and again, and compares the number of every row that is left with its number in the
// uploaded file.
func TestWithout(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(7, 9))

	for range 200 {
		var (
			parts []ingestedPart
			rows  []int64 // numbers in the uploaded files; those of part n begin at n times a million
			file  = uuid.New()
		)

		for n := range int64(1 + random.IntN(4)) {
			part := ingestedPart{Part{First: int64(len(rows)), Source: Source{File: file, FirstRow: 1 + n*1_000_000}}, &file}

			number := part.FirstRow
			for range 1 + random.IntN(2000) {
				for random.IntN(10) == 0 {
					part.Skipped, number = append(part.Skipped, number), number+1
				}

				rows, number, part.Rows = append(rows, number), number+1, part.Rows+1
			}

			parts = append(parts, part)
		}

		require.Equal(t, rows, numbered(parts))

		for range 3 {
			gone, left := NewRowSet(int64(len(rows))), []int64{}
			rare := 1 + random.IntN(20)

			for n, number := range rows {
				if inRun := n > 0 && random.IntN(3) > 0 && gone.Has(int64(n-1)); inRun || random.IntN(rare) == 0 {
					require.True(t, gone.Add(int64(n)))
				} else {
					left = append(left, number)
				}
			}

			require.Equal(t, int64(len(rows)-len(left)), gone.Count())

			parts, rows = without(parts, gone), left
			require.Equal(t, slices.Clip(rows), slices.Clip(numbered(parts)))

			for _, p := range parts {
				require.LessOrEqual(t, len(p.Skipped), mostSkipped)
				require.Equal(t, file, p.File)
				require.Equal(t, &file, p.ingestion)
			}
		}
	}
}

// numbered returns the number of each row of a file as docs/lake.md says.
func numbered(parts []ingestedPart) []int64 {
	numbers := []int64{}

	for _, p := range parts {
		if p.First != int64(len(numbers)) {
			return nil
		}

		for n := range p.Rows {
			number := p.FirstRow + n
			for _, skipped := range p.Skipped {
				if skipped <= number {
					number++
				}
			}

			numbers = append(numbers, number)
		}
	}

	return numbers
}

func TestRowSet(t *testing.T) {
	t.Parallel()

	set := NewRowSet(11)
	require.True(t, set.Add(0))
	require.True(t, set.Add(10))
	require.False(t, set.Add(10))
	require.False(t, set.Add(11))
	require.False(t, set.Add(-1))
	require.True(t, set.Has(10))
	require.False(t, set.Has(9))
	require.Equal(t, int64(0), set.next(0))
	require.Equal(t, int64(10), set.next(1))
	require.Equal(t, int64(10), set.next(10))
	require.Equal(t, int64(11), set.next(11))
	require.Equal(t, int64(64), NewRowSet(64).next(3))
	require.Equal(t, int64(2), set.Count())
	require.Equal(t, []byte{0x80, 0x20}, set.Bytes())
}
