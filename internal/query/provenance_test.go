package query

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
)

func TestTrace(t *testing.T) {
	t.Parallel()

	for text, tree := range trees(t, "traced") {
		s, err := check(tree)
		require.NoError(t, err)

		before, err := json.Marshal(s.tree)
		require.NoError(t, err)

		made, of := s.withProvenance()
		require.NotNil(t, made, text)
		require.Contains(t, text, of.name)

		after, err := json.Marshal(s.tree)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), "the statement itself stays")

		var changed object
		require.NoError(t, json.Unmarshal(made, &changed))

		root := child(items(changed["statements"])[0], "node")
		columns := items(root["select_list"])
		require.Len(t, columns, len(list(s.root["select_list"]))+2, text)

		from := child(root, "from_table")
		require.Equal(t, engine.ProvenanceView, from["table_name"])
		require.Equal(t, []any{from["alias"], engine.ProvenanceFile}, columns[len(columns)-2]["column_names"])
		require.Equal(t, []any{from["alias"], engine.ProvenanceRow}, columns[len(columns)-1]["column_names"])

		for _, column := range columns {
			if column["class"] == "STAR" {
				require.Subset(t, column["exclude_list"], []any{engine.ProvenanceFile, engine.ProvenanceRow}, text)
			}
		}
	}
}

func TestTraceOfNoRows(t *testing.T) {
	t.Parallel()

	for text, tree := range trees(t, "untraced") {
		s, err := check(tree)
		require.NoError(t, err)

		made, _ := s.withProvenance()
		require.Empty(t, string(made), text)
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()

	const none = -1

	known := trees(t, "limits")

	for text, want := range map[string]struct{ rows, offset, first int64 }{
		"SELECT * FROM orders LIMIT 5":                               {5, 0, 5},
		"SELECT * FROM orders LIMIT 0":                               {0, 0, 0},
		"SELECT * FROM orders LIMIT 5 OFFSET 7":                      {5, 7, 12},
		"SELECT * FROM orders OFFSET 7":                              {none, 0, none},
		"SELECT id, 1, * EXCLUDE (a) FROM orders LIMIT 3":            {3, 0, 3},
		"SELECT * FROM orders LIMIT 5000000000":                      {5000000000, 0, 5000000000},
		"SELECT * FROM orders LIMIT 9223372036854775807 OFFSET 10":   {math.MaxInt64, 10, none},
		"SELECT * FROM orders LIMIT 9223372036854775808":             {none, 0, none},
		"SELECT * FROM orders LIMIT -1":                              {none, 0, none},
		"SELECT * FROM orders LIMIT 10%":                             {none, 0, none},
		"SELECT * FROM orders LIMIT 2.5":                             {none, 0, none},
		"SELECT * FROM orders LIMIT NULL":                            {none, 0, none},
		"SELECT * FROM orders LIMIT 1 + 1":                           {none, 0, none},
		"SELECT * FROM orders LIMIT '5'":                             {none, 0, none},
		"SELECT * FROM orders ORDER BY id LIMIT 5":                   {5, 0, none},
		"SELECT * FROM orders WHERE true LIMIT 5":                    {5, 0, none},
		"SELECT unnest(l) FROM orders LIMIT 5":                       {5, 0, none},
		"SELECT id + 1 FROM orders LIMIT 5":                          {5, 0, none},
		"SELECT * REPLACE (1 AS a) FROM orders LIMIT 5":              {5, 0, none},
		"SELECT DISTINCT * FROM orders LIMIT 5":                      {5, 0, none},
		"SELECT count(*) FROM orders LIMIT 5":                        {5, 0, none},
		"SELECT * FROM orders, items LIMIT 5":                        {5, 0, none},
		"SELECT * FROM orders UNION ALL SELECT * FROM items LIMIT 5": {5, 0, none},
		"SELECT * FROM orders LIMIT 5 OFFSET (SELECT 1)":             {none, 0, none},
		"SELECT 1 LIMIT 5":                                           {5, 0, none},
		"SELECT (SELECT 1) FROM orders LIMIT 5":                      {5, 0, none},
	} {
		s := checked(t, known, text)

		rows, offset, ok := s.limit()
		require.Equal(t, want.rows != none, ok, text)

		if ok {
			require.Equal(t, want.rows, rows, text)
			require.Equal(t, want.offset, offset, text)
		}

		first, ok := s.firstRows()
		require.Equal(t, want.first != none, ok, text)

		if ok {
			require.Equal(t, want.first, first, text)
		}
	}

	require.Empty(t, known, "recorded, but not expected")
}

func TestFirstFiles(t *testing.T) {
	t.Parallel()

	files := []lake.File{{Rows: 3}, {Rows: 0}, {Rows: 4}}

	for rows, want := range map[int64]int{0: 1, 1: 1, 3: 1, 4: 3, 7: 3, 8: 3, math.MaxInt64: 3} {
		require.Len(t, first(files, rows), want, "%d rows", rows)
	}

	require.Empty(t, first(nil, 5))
}

func TestRowsOfResult(t *testing.T) {
	t.Parallel()

	r := running{Query: New(Config{DefaultRows: 1000, MaxRows: 1_000_000})}
	known := trees(t, "limits")

	for text, want := range map[string]int64{
		"SELECT * FROM orders LIMIT 5":                             1000, // the LIMIT is below the default
		"SELECT * FROM orders OFFSET 7":                            1000,
		"SELECT * FROM orders LIMIT 10%":                           1000,
		"SELECT * FROM orders LIMIT 5000000000":                    1_000_000,
		"SELECT * FROM orders LIMIT 9223372036854775807 OFFSET 10": 1_000_000,
	} {
		require.Equal(t, want, r.rows(checked(t, known, text)), text)
	}
}
