package query

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
)

// TestSourceRow compares the computed rows of the uploaded file with rows that were found by counting.
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

		// The uploaded file became two parts.
		cut := random.IntN(len(kept) + 1)

		var files origins

		for _, part := range []lake.Part{{Rows: int64(cut)}, {First: int64(cut), Rows: int64(len(kept) - cut)}} {
			part.FirstRow, part.Skipped = part.First+1, skipped

			from, err := newOrigin(part.First, part.Rows, part.Source)
			require.NoError(t, err)

			files = append(files, from)
		}

		for i, want := range kept {
			require.Equal(t, want, files.find(int64(i)).row(int64(i)), "kept %v, skipped %v", kept, skipped)
		}

		require.Nil(t, files.find(int64(len(kept))))
	}
}

func TestMark(t *testing.T) {
	t.Parallel()

	asked := 0
	s := &sources{
		files: []lake.File{{Rows: 5}, {Rows: 5}, {Rows: 5}, {Rows: 5}, {Rows: 100, Compacted: true}},
		parts: func(_ lake.File, row int64) ([]lake.Part, error) {
			asked++

			if row < 60 {
				return []lake.Part{
					{First: 10, Rows: 20, Source: lake.Source{Name: "posted", FirstRow: 1}},
					{First: 30, Rows: 30, Source: lake.Source{File: uuid.New(), Name: "b.csv", FirstRow: 1, Places: lake.Places{Skipped: []int64{2}, Pages: []int64{1, 3, 3}}}},
				}, nil
			}

			return nil, errNoParts
		},
	}

	for _, source := range []lake.Source{
		{File: uuid.New(), Name: `a "b".csv`, FirstRow: 1}, {FirstRow: 1}, {File: uuid.New(), Name: "ä.csv", FirstRow: 101, Places: lake.Places{Skipped: []int64{1, 2, 103}}},
	} {
		from, err := newOrigin(0, 5, source)
		require.NoError(t, err)

		s.known = append(s.known, []origins{{from}})
	}

	s.known = append(s.known, nil, nil)

	for _, c := range []struct {
		sources *sources
		row     engine.Row
		want    string
	}{
		{nil, engine.Row{JSON: json.RawMessage(`{"a":1}`)}, `{"a":1,"__metadata":{"score":1}}`},
		{nil, engine.Row{JSON: json.RawMessage(`{}`)}, `{"__metadata":{"score":1}}`},
		{nil, engine.Row{JSON: json.RawMessage(`{"a":{"__metadata":1}}`)}, `{"a":{"__metadata":1},"__metadata":{"score":1}}`},
		{nil, engine.Row{JSON: json.RawMessage(`{"a":",\"__metadata\":"}`)}, `{"a":",\"__metadata\":","__metadata":{"score":1}}`},
		{s, engine.Row{JSON: json.RawMessage(`{"a":1}`), File: 0, Number: 4}, `{"a":1,"__metadata":{"score":1,"source":{"file":"a \"b\".csv","row":5}}}`},
		{s, engine.Row{JSON: json.RawMessage(`{"a":1}`), File: 1, Number: 4}, `{"a":1,"__metadata":{"score":1}}`}, // rows that were posted without a file
		{s, engine.Row{JSON: json.RawMessage(`{}`), File: 2, Number: 0}, `{"__metadata":{"score":1,"source":{"file":"ä.csv","row":104}}}`},
		{s, engine.Row{JSON: json.RawMessage(`{"a":1}`), File: 3}, `{"a":1,"__metadata":{"score":1}}`},
		{s, engine.Row{JSON: json.RawMessage(`{}`), File: 4, Number: 30}, `{"__metadata":{"score":1,"source":{"file":"b.csv","row":1,"page":1}}}`},
		{s, engine.Row{JSON: json.RawMessage(`{}`), File: 4, Number: 31}, `{"__metadata":{"score":1,"source":{"file":"b.csv","row":3,"page":3}}}`},
		{s, engine.Row{JSON: json.RawMessage(`{}`), File: 4, Number: 29}, `{"__metadata":{"score":1}}`},
		{s, engine.Row{JSON: json.RawMessage(`{}`), File: 4, Number: 100}, `{"__metadata":{"score":1}}`}, // a sealed process that reports a wrong position
		{s, engine.Row{JSON: json.RawMessage(`{}`), File: 5}, `{"__metadata":{"score":1}}`},
		{s, engine.Row{JSON: json.RawMessage(`{"a":1}`), File: -1}, `{"a":1,"__metadata":{"score":1}}`},
	} {
		before := slices.Clone(c.row.JSON)
		marked, err := c.sources.mark(c.row)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(marked))
		require.Equal(t, before, c.row.JSON, "the line is read on into the same buffer")
		require.Equal(t, string(before), string(Unmark(marked)))
	}

	require.Equal(t, 1, asked, "what was read is known")

	_, err := s.mark(engine.Row{JSON: json.RawMessage(`{}`), File: 4, Number: 60})
	require.ErrorIs(t, err, errNoParts)
}

var errNoParts = errors.New("no parts")
