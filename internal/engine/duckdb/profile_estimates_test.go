package duckdb

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

// TestProfileEstimates checks that, above the bounds, estimates are within the error that docs/profile.md states, and
// all other facts are exact. The full size uses the bounds of the service.
func TestProfileEstimates(t *testing.T) {
	t.Parallel()

	// many: about three distinct values for every four rows. heavy: a quarter of the rows have the same value. unique:
	// a key.
	table := profiledTable{
		columns: []string{"unique bigint", "many bigint", "heavy varchar", "few varchar", "x double"},
		rows: `SELECT range, (hash(range) % (rows * 3 // 2))::BIGINT, CASE WHEN range % 4 = 0 THEN 'the same' WHEN range % 100 = 1 THEN NULL ELSE 'Value ' || hash(range) % rows END,
			'f' || range % 1000, (range * 7919 % rows)::DOUBLE FROM range(300000), (SELECT 300000 AS rows)`,
	}
	bounds := engine.ProfileBounds{Rows: 200_000, Values: 50_000, Sample: 100_000, Picked: 50_000}
	full := os.Getenv("QUERN_TEST_LOOPS") == "full"

	if full {
		table.rows = strings.ReplaceAll(table.rows, "300000", "3000000")
	}

	dir := t.TempDir()
	view, rows := table.write(t, dir, 3)

	var columns []engine.ColumnProfile

	if full {
		made := profileOf(t, dir, view, rows)
		columns = made.Columns
		require.Equal(t, [][]string{{"unique"}}, made.Keys)
		require.True(t, columns[0].DistinctExact)
		require.Equal(t, rows, columns[0].Distinct)
	} else {
		p := inProcess(t)
		for _, file := range view.Files {
			require.NoError(t, os.Link(filepath.Join(dir, file), filepath.Join(p.in, file)))
		}

		answer, err := p.profile(engine.ProfileRequest{View: view, Rows: rows, Count: len(view.Columns), Text: 200, Bounds: bounds, Memory: 1 << 30, Threads: 2, Disk: 1 << 30})
		require.NoError(t, err)

		columns = answer.Profiled.Columns
	}

	want := estimated(t, dir, view)

	for i, c := range columns {
		w := want[i]
		what := view.Columns[i].Name

		require.Equal(t, w.Nulls, c.Nulls, what)
		require.Equal(t, orNull(w.Min), orNull(c.Min), what)
		require.Equal(t, orNull(w.Max), orNull(c.Max), what)
		require.Equal(t, encoded(t, w.Longest), encoded(t, c.Longest), what)
		require.InEpsilon(t, w.Distinct, c.Distinct, 0.01, what)
		require.Equal(t, what == "few" || full && what == "unique", c.DistinctExact, what)
		t.Logf("%s: %d values, said to be %d", what, w.Distinct, c.Distinct)

		for _, top := range c.TopValues { // the counts are exact, whichever values are listed
			require.Equal(t, max(w.Counts[string(top.Value)], 1), top.Count, what)
		}

		for part, value := range c.Quartiles {
			var number float64
			require.NoError(t, json.Unmarshal(value, &number))
			require.InDelta(t, float64(part+1)*0.25*float64(rows), w.below(number), 0.01*float64(rows), what)
		}
	}

	requireEstimatedBins(t, rows, columns)

	heavy := columns[2]
	require.JSONEq(t, `"the same"`, string(heavy.TopValues[0].Value))
	require.Equal(t, rows/4, heavy.TopValues[0].Count)
	require.InDelta(t, 1.0/4/0.99, heavy.Shapes[slices.IndexFunc(heavy.Shapes, func(s engine.Shape) bool { return s.Shape == "aaa aaaa" })].Share, 0.01)
	require.Len(t, columns[3].TopValues, engine.ProfileTop)
	require.EqualValues(t, 1000, columns[3].Distinct)
}

// requireEstimatedBins checks columns whose values are spread evenly: each bin has a twentieth of the rows, within one percentage point.
func requireEstimatedBins(t *testing.T, rows int64, columns []engine.ColumnProfile) {
	t.Helper()

	for _, i := range []int{0, 4} {
		c := columns[i]
		require.Len(t, c.Bins, engine.ProfileBins)
		require.Equal(t, string(c.Min), string(c.Bins[0].From), "the range is that of all rows")
		require.Equal(t, string(c.Max), string(c.Bins[len(c.Bins)-1].To))

		for _, bin := range c.Bins {
			require.InDelta(t, float64(rows)/engine.ProfileBins, bin.Count, 0.01*float64(rows))
		}
	}
}

type estimate struct {
	expected

	Counts map[string]int64 // row counts of the values that more than one row has
	Ranks  [][2]float64     // some values, each with the number of rows up to it
}

// below returns the approximate number of rows with a value up to this one. The error is at most 1/500 of the rows.
func (e estimate) below(value float64) (rank float64) {
	for _, known := range e.Ranks {
		if known[0] <= value {
			rank = max(rank, known[1])
		}
	}

	return rank
}

func estimated(t *testing.T, dir string, view engine.View) (list []estimate) {
	t.Helper()

	for _, c := range view.Columns {
		p := inProcess(t)
		for _, file := range view.Files {
			require.NoError(t, os.Link(filepath.Join(dir, file), filepath.Join(p.in, file)))
		}

		column := name(c.Name)
		longest, ranks := `NULL`, `NULL`

		if c.Type == engine.Varchar {
			longest = `max(length(` + column + `))`
		} else {
			ranks = fmt.Sprintf(`(SELECT list([v, upto]) FROM (SELECT max(%[1]s)::DOUBLE AS v, max(r)::DOUBLE AS upto FROM (SELECT %[1]s, row_number() OVER (ORDER BY %[1]s) AS r FROM t) GROUP BY r * 500 // (SELECT count(*) FROM t)))`, column)
		}

		q := asked(fmt.Sprintf(`SELECT count(*) FILTER (WHERE %[1]s IS NULL) AS Nulls, count(DISTINCT %[1]s) AS "Distinct", min(%[1]s) AS "Min", max(%[1]s) AS "Max", %[2]s AS Longest,
			(SELECT map_from_entries(list((to_json(v)::VARCHAR, n))) FROM (SELECT %[1]s AS v, count(*) AS n FROM t WHERE v IS NOT NULL GROUP BY v HAVING n > 1)) AS Counts, %[3]s AS Ranks FROM t`, column, longest, ranks), engine.Rows)
		q.Views, q.Memory = []engine.View{view}, 4<<30

		_, lines, _, err := p.rowsOf(q)
		require.NoError(t, err)

		var one estimate
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &one))

		list = append(list, one)
	}

	return list
}
