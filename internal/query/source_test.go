package query

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
)

// lessBefore is how sources keeps the skipped rows of a file.
func lessBefore(skipped []int64) []int64 {
	kept := slices.Clone(skipped)
	for i := range kept {
		kept[i] -= int64(i)
	}

	return kept
}

// TestSourceRow: the row of the source is what one gets by counting.
func TestSourceRow(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))

	for range 300 {
		const rows = 60

		var skipped, kept []int64

		share := random.Float64()
		for row := int64(1); row <= rows; row++ {
			if random.Float64() < share {
				skipped = append(skipped, row)
			} else {
				kept = append(kept, row)
			}
		}

		// The source became two data files.
		cut := random.IntN(len(kept) + 1)
		s := sources{files: []lake.File{{FirstRow: 1}, {FirstRow: int64(cut) + 1}}, skipped: [][]int64{lessBefore(skipped), lessBefore(skipped)}}

		for i, want := range kept {
			file, number := 0, i
			if i >= cut {
				file, number = 1, i-cut
			}

			require.Equal(t, want, s.row(file, int64(number)), "kept %v, skipped %v", kept, skipped)
		}
	}
}

func TestMark(t *testing.T) {
	t.Parallel()

	s := &sources{
		files:   []lake.File{{Source: uuid.New(), FirstRow: 1}, {FirstRow: 1}, {Source: uuid.New(), FirstRow: 101}},
		skipped: [][]int64{nil, nil, lessBefore([]int64{1, 2, 103})},
		names:   [][]byte{[]byte(`"a \"b\".csv"`), []byte(`""`), []byte(`"ä.csv"`)},
	}

	for _, c := range []struct {
		sources *sources
		row     engine.Row
		want    string
	}{
		{nil, engine.Row{JSON: json.RawMessage(`{"a":1}`)}, `{"a":1,"__metadata":{"score":1}}`},
		{nil, engine.Row{JSON: json.RawMessage(`{}`)}, `{"__metadata":{"score":1}}`},
		{s, engine.Row{JSON: json.RawMessage(`{"a":1}`), File: 0, Number: 4}, `{"a":1,"__metadata":{"score":1,"source":{"file":"a \"b\".csv","row":5}}}`},
		{s, engine.Row{JSON: json.RawMessage(`{"a":1}`), File: 1, Number: 4}, `{"a":1,"__metadata":{"score":1}}`}, // rows that were posted
		{s, engine.Row{JSON: json.RawMessage(`{}`), File: 2, Number: 0}, `{"__metadata":{"score":1,"source":{"file":"ä.csv","row":104}}}`},
		{s, engine.Row{JSON: json.RawMessage(`{"a":1}`), File: 3}, `{"a":1,"__metadata":{"score":1}}`},
		{s, engine.Row{JSON: json.RawMessage(`{"a":1}`), File: -1}, `{"a":1,"__metadata":{"score":1}}`},
	} {
		before := slices.Clone(c.row.JSON)
		marked := c.sources.mark(c.row)
		require.JSONEq(t, c.want, string(marked))
		require.Equal(t, before, c.row.JSON, "the line is read on into the same buffer")
	}
}
