package duckdb

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

// compareBins counts the rows between the edges of each bin with SQL that knows nothing of widths.
func compareBins(t *testing.T, dir string, view engine.View, c engine.ColumnProfile) {
	t.Helper()

	binned := c.Type == engine.Bigint || c.Type == engine.Double || c.Type == engine.Date || c.Type == engine.Timestamp || strings.HasPrefix(c.Type, engine.Decimal)
	if !binned {
		require.Empty(t, c.Bins, c.Name)

		return
	}

	finite := name(c.Name) + ` IS NOT NULL`

	switch c.Type {
	case engine.Double:
		finite = `abs(` + name(c.Name) + `) < 1e290`
	case engine.Date, engine.Timestamp:
		finite = `isfinite(` + name(c.Name) + `)`
	}

	edge := func(value json.RawMessage) string {
		plain := strings.Trim(string(value), `"`)
		if c.Type == engine.Date || c.Type == engine.Timestamp {
			return fmt.Sprintf(`CAST('%s' AS %s)`, plain, sqlType(c.Type))
		}

		if c.Type == engine.Bigint {
			return plain
		}

		return `CAST('` + plain + `' AS DOUBLE)`
	}

	selected := []string{`count(*) FILTER (WHERE ` + finite + `) AS "all"`}

	for i, bin := range c.Bins {
		within := fmt.Sprintf(`%[1]s >= %[2]s AND %[1]s <= %[3]s`, name(c.Name), edge(bin.From), edge(bin.To))
		if i+1 < len(c.Bins) {
			within = fmt.Sprintf(`%[1]s >= %[2]s AND %[1]s < %[3]s`, name(c.Name), edge(bin.From), edge(c.Bins[i+1].From))
		}

		selected = append(selected, fmt.Sprintf(`count(*) FILTER (WHERE %s AND %s) AS "bin%d"`, within, finite, i))
	}

	var want map[string]int64

	line := oneRow(t, dir, view, `SELECT `+strings.Join(selected, ", ")+` FROM t`)
	require.NoError(t, json.Unmarshal([]byte(line), &want))

	sum := int64(0)

	for i, bin := range c.Bins {
		require.Equal(t, want[fmt.Sprintf("bin%d", i)], bin.Count, "%s: %s to %s", c.Name, bin.From, bin.To)
		sum += bin.Count
	}

	require.Equal(t, want["all"], sum, "%s: all rows are in bins", c.Name)
	require.LessOrEqual(t, len(c.Bins), engine.ProfileBins)
}

// oneRow returns the only row of a statement on a table.
func oneRow(t *testing.T, dir string, view engine.View, statement string) string {
	t.Helper()

	p := inProcess(t)
	for _, file := range view.Files {
		require.NoError(t, os.Link(filepath.Join(dir, file), filepath.Join(p.in, file)))
	}

	q := asked(statement, engine.Rows)
	q.Views = []engine.View{view}

	_, lines, _, err := p.rowsOf(q)
	require.NoError(t, err)
	require.Len(t, lines, 1)

	return lines[0]
}

// TestProfileBins checks the edges of bins, which other tests leave open.
func TestProfileBins(t *testing.T) {
	t.Parallel()

	for what, test := range map[string]struct{ kind, values, first, last string }{
		"few numbers":       {"bigint", `(3), (5), (5), (9)`, `{"from":3,"to":3,"count":1}`, `{"from":9,"to":9,"count":1}`},
		"many numbers":      {"bigint", `(1), (20), (100)`, `{"from":1,"to":5,"count":1}`, `{"from":96,"to":100,"count":1}`},
		"all numbers":       {"bigint", `(-9223372036854775808), (9223372036854775807)`, `{"from":"-9223372036854775808","to":"-8301034833169298228","count":1}`, `{"from":"8301034833169298231","to":"9223372036854775807","count":1}`},
		"one number":        {"bigint", `(7), (7), (NULL)`, `{"from":7,"to":7,"count":2}`, `{"from":7,"to":7,"count":2}`},
		"the same double":   {"double", `(0.5), (0.5)`, `{"from":0.5,"to":0.5,"count":2}`, `{"from":0.5,"to":0.5,"count":2}`},
		"doubles":           {"double", `(0), (10), ('NaN'), ('inf'), (-1e300)`, `{"from":0.0,"to":0.5,"count":1}`, `{"from":9.5,"to":10.0,"count":1}`},
		"not one is finite": {"double", `('NaN'), ('-inf'), (NULL)`, "", ""},
		"money":             {"decimal(9,2)", `(0.10), (2.10)`, `{"from":0.1,"to":0.2,"count":1}`, `{"from":2.0,"to":2.1,"count":1}`},
		"days":              {"date", `('2024-01-01'), ('2024-01-31'), ('2024-02-28')`, `{"from":"2024-01-01","to":"2024-01-03","count":1}`, `{"from":"2024-02-27","to":"2024-02-28","count":1}`},
		"one day":           {"date", `('2024-01-01')`, `{"from":"2024-01-01","to":"2024-01-01","count":1}`, `{"from":"2024-01-01","to":"2024-01-01","count":1}`},
		"moments":           {"timestamp", `('2024-01-01 00:00:00'), ('2024-01-01 20:00:00')`, `{"from":"2024-01-01T00:00:00","to":"2024-01-01T01:00:00","count":1}`, `{"from":"2024-01-01T19:00:00","to":"2024-01-01T20:00:00","count":1}`},
		"texts have none":   {"varchar", `('a')`, "", ""},
		"times have none":   {"time", `('10:00:00')`, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			view, rows := profiledTable{columns: []string{"x " + test.kind}, rows: `FROM (VALUES ` + test.values + `)`}.write(t, dir, 1)
			bins := profileOf(t, dir, view, rows).Columns[0].Bins

			if test.first == "" {
				require.Empty(t, bins)

				return
			}

			require.NotEmpty(t, bins)
			require.Equal(t, test.first, encoded(t, bins[0]))
			require.Equal(t, test.last, encoded(t, bins[len(bins)-1]))
		})
	}
}
