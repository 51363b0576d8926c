package duckdb

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

// listedValues returns the values of all columns of the rows that a statement returns.
func listedValues(t *testing.T, rows string, columns []string, bounds engine.ValueBounds, profiled bool) (map[string]map[string]int64, []engine.ListedColumn) {
	t.Helper()

	db, err := unlocked()
	require.NoError(t, err)

	ids := make([]string, len(columns))
	view := engine.View{Name: "rows", Files: []string{"0.parquet"}}

	for i, c := range columns {
		ids[i] = name(c) + ": " + strconv.Itoa(i+1)
		view.Columns = append(view.Columns, engine.Column{ID: i + 1, Name: c, Type: engine.Varchar})
	}

	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, db.exec(`COPY (`+rows+`) TO `+text(path)+` (FORMAT parquet, FIELD_IDS {`+strings.Join(ids, ", ")+`})`))

	s := session(t, children(t, sandbox.Full), path, "0.parquet")

	if profiled {
		_, err := s.Profile(view, 70)
		require.NoError(t, err)
	}

	got := map[string]map[string]int64{}

	listed, err := s.Values(view, columns, bounds, func(v engine.Value) bool {
		if got[columns[v.Column]] == nil {
			got[columns[v.Column]] = map[string]int64{}
		}

		require.Zero(t, got[columns[v.Column]][v.Text], "twice")
		got[columns[v.Column]][v.Text] = v.Count

		return true
	})
	require.NoError(t, err)

	return got, listed
}

func roomy() engine.ValueBounds {
	return engine.ValueBounds{Column: 1000, Table: 2000, Bytes: 1 << 20, Length: 100}
}

func TestValues(t *testing.T) {
	t.Parallel()

	for _, profiled := range []bool{false, true} {
		got, listed := listedValues(t, `SELECT ['Zürich', 'say "hi"', e'two\nlines', '', NULL, repeat('é', 101), repeat('é', 100)][(range % 7)::INTEGER + 1] AS a,
			'x' || range % 3 AS "the ""b""", NULL::VARCHAR AS c FROM range(70)`, []string{"a", `the "b"`, "c"}, roomy(), profiled)

		require.Equal(t, map[string]map[string]int64{
			"a":       {"Zürich": 10, `say "hi"`: 10, "two\nlines": 10, strings.Repeat("é", 100): 10},
			`the "b"`: {"x0": 24, "x1": 23, "x2": 23},
		}, got)
		require.Equal(t, []engine.ListedColumn{{Values: 4, Long: 10}, {Values: 3}, {}}, listed)
	}
}

// TestValuesAreSampled checks that, if there are too many values, the frequent ones are listed, and as many others as
// the limits allow.
func TestValuesAreSampled(t *testing.T) {
	t.Parallel()

	rows := `SELECT CASE WHEN range %% 10 = 0 THEN 'often ' || range %% 7 ELSE 'v' || range END AS a, ['p', 'q'][(range %% 2)::INTEGER + 1] AS b FROM range(%d)`

	for _, size := range []int{2000, 100_000} { // slightly above the limit, and far above
		got, listed := listedValues(t, fmt.Sprintf(rows, size), []string{"a", "b"}, roomy(), false)

		require.Len(t, got["b"], 2, "few values come first")
		require.Equal(t, engine.ListedColumn{Values: 2}, listed[1])
		require.True(t, listed[0].Sampled)
		require.Equal(t, int64(len(got["a"])), listed[0].Values)
		require.LessOrEqual(t, len(got["a"]), 1000)
		require.Greater(t, len(got["a"]), 500)

		for i := range 7 {
			require.NotZero(t, got["a"]["often "+strconv.Itoa(i)])
		}
	}

	tight := roomy()
	tight.Bytes = 2000
	got, listed := listedValues(t, fmt.Sprintf(rows, 500), []string{"a", "b"}, tight, false)
	require.True(t, listed[0].Sampled)
	require.Less(t, len(got["a"]), 200)

	tight = roomy()
	tight.Table = 2
	got, listed = listedValues(t, fmt.Sprintf(rows, 500), []string{"a", "b"}, tight, false)
	require.Len(t, got["b"], 2)
	require.Empty(t, got["a"])
	require.Equal(t, []engine.ListedColumn{{Sampled: true}, {Values: 2}}, listed)

	// Free texts have a lower limit.
	got, listed = listedValues(t, `SELECT repeat('word ', 15) || range AS a FROM range(500)`, []string{"a"}, roomy(), false)
	require.Len(t, got["a"], 100)
	require.True(t, listed[0].Sampled)
	require.True(t, slices.Contains(listed, engine.ListedColumn{Values: 100, Sampled: true}))
}
