package duckdb

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

// profiledTable is a test table: its columns, and SQL for its rows with one column for each.
type profiledTable struct {
	columns []string // name and type
	rows    string
	keys    [][]string
}

// profiledTables returns tables whose whole profile is compared with SQL written for the test.
func profiledTables() map[string]profiledTable {
	orders := `SELECT range AS id, 'ORD-' || lpad((range % 900)::VARCHAR, 3, '0') AS code, (range % 7)::BIGINT AS region,
		DATE '2021-01-01' + (range % 365)::INTEGER AS day, CASE WHEN range % 10 > 0 THEN 'city ' || (range * range % 31) END AS city FROM range(5000)`

	return map[string]profiledTable{
		"orders": {[]string{"id bigint", "code varchar", "region bigint", "day date", "city varchar"}, orders, [][]string{{"id"}}},
		"all types": {
			[]string{"b boolean", "i bigint", "x double", "m decimal(9,2)", "d date", "ts timestamp", "t time", "s varchar", "j json"},
			`SELECT range % 3 = 0, range * 1000003 - 40, range / 7.0, (range % 50) * 1.25, DATE '1999-12-31' + range::INTEGER, TIMESTAMP '2020-02-29 23:59:59.123456' + INTERVAL (range) MINUTE,
				TIME '00:00:01.5' + INTERVAL (range) SECOND, chr(65 + (range % 26)::INTEGER), '{"a": ' || range % 4 || '}' FROM range(300)`,
			[][]string{{"i"}, {"d"}, {"ts"}, {"t"}},
		},
		"empty":   {[]string{"a bigint", "b varchar", "c json"}, `SELECT 1, 'x', '{}' WHERE false`, nil},
		"null":    {[]string{"id bigint", "nothing varchar", "no double", "never date"}, `SELECT range, NULL AS a, NULL AS b, NULL AS c FROM range(100)`, [][]string{{"id"}}},
		"one row": {[]string{"a bigint", "b varchar", "c boolean"}, `SELECT 42, 'Ünïcode', true`, [][]string{{"a"}, {"b"}, {"c"}}},
		"unicode": {
			[]string{`größe "q" varchar`, "s varchar"},
			//nolint:gosmopolitan // letters of all scripts
			`SELECT ['ÄÖÜ', 'äöü', '日本語', '😀👍', 'ǅ', 'a' || chr(769), '١٢٣', '', ' ', e'\t'][(range % 10)::INTEGER + 1], 'Straße ' || range % 12 FROM range(500)`,
			nil,
		},
		"long text": {
			[]string{"id bigint", "body varchar", "same varchar"},
			`SELECT range, repeat('é', 150 + (range % 100)::INTEGER) || range % 40, repeat('x', 300) || range % 3 FROM range(1000)`,
			[][]string{{"id"}},
		},
		"infinite": {
			[]string{"x double", "y double"},
			`SELECT CASE range % 6 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN 'inf'::DOUBLE WHEN 2 THEN '-inf'::DOUBLE WHEN 3 THEN -0.0 WHEN 4 THEN 0.0 ELSE 1.7e308 END, range * 0.1 FROM range(60)`,
			nil,
		},
		"decimals": {
			[]string{"small decimal(3,3)", "money decimal(18,2)", "wide decimal(38,10)", "whole decimal(38,0)"},
			`SELECT (range % 9) * 0.111::DECIMAL(3,3), range * 12345678.91::DECIMAL(18,2), range * 1234567890123456789.0123456789::DECIMAL(38,10), 12345678901234567890123456789 + range FROM range(100)`,
			[][]string{{"money"}, {"wide"}, {"whole"}},
		},
		"dates": {
			[]string{"d date", "ts timestamp"},
			`SELECT ['0044-03-15 (BC)', '0001-01-01', '1969-12-31', '2024-02-29', '9999-12-31', '290000-01-01'][(range % 6)::INTEGER + 1]::DATE,
				['0044-03-15 (BC) 12:00:00', '1970-01-01 00:00:00', '9999-12-31 23:59:59.999999'][(range % 3)::INTEGER + 1]::TIMESTAMP FROM range(30)`,
			nil,
		},
		"pairs": {
			[]string{"store bigint", "day date", "kind varchar", "sold bigint"},
			`SELECT range % 20, DATE '2024-01-01' + (range // 20)::INTEGER, ['a', 'b'][(range % 2)::INTEGER + 1], range * 7919 % 13 FROM range(2000)`,
			[][]string{{"day", "store"}},
		},
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()

	for name, table := range profiledTables() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			view, rows := table.write(t, dir, 2)
			made := profileOf(t, dir, view, rows)

			require.Equal(t, rows, made.Rows)

			for i, c := range made.Columns {
				require.Equal(t, view.Columns[i].Name+" "+view.Columns[i].Type, c.Name+" "+c.Type)
				compareProfile(t, dir, view, c)
				compareBins(t, dir, view, c)
			}

			want := table.keys
			if want == nil {
				want = [][]string{}
			}

			for i := range made.Keys {
				slices.Sort(made.Keys[i])
			}

			require.ElementsMatch(t, want, made.Keys)
		})
	}
}

// write writes the table as Parquet files, and returns a view of them and the number of rows.
func (p profiledTable) write(t *testing.T, dir string, files int) (view engine.View, rows int64) {
	t.Helper()

	view.Name = "t"

	var selected, ids []string

	for i, c := range p.columns {
		at := strings.LastIndexByte(c, ' ')
		view.Columns = append(view.Columns, engine.Column{ID: i + 1, Name: c[:at], Type: c[at+1:]})
		selected = append(selected, fmt.Sprintf(`CAST(c%d AS %s) AS %s`, i, sqlType(c[at+1:]), name(c[:at])))
		ids = append(ids, fmt.Sprintf(`%s: %d`, name(c[:at]), i+1))
	}

	aliases := make([]string, len(p.columns))
	for i := range aliases {
		aliases[i] = fmt.Sprintf("c%d", i)
	}

	db, err := unlocked()
	require.NoError(t, err)
	require.NoError(t, db.exec(`CREATE TABLE made AS SELECT `+strings.Join(selected, ", ")+` FROM (`+p.rows+`) made(`+strings.Join(aliases, ", ")+`)`))

	for i := range files {
		file := fmt.Sprintf("%d.parquet", i)
		written, err := db.change(fmt.Sprintf(`COPY (FROM made WHERE rowid %% %d = %d) TO %s (FORMAT parquet, FIELD_IDS {%s})`,
			files, i, text(filepath.Join(dir, file)), strings.Join(ids, ", ")))
		require.NoError(t, err)

		view.Files, rows = append(view.Files, file), rows+written
	}

	return view, rows
}

// profileOf computes the profile in a sealed child.
func profileOf(t *testing.T, dir string, view engine.View, rows int64) engine.Profile {
	t.Helper()

	sessions := engine.New(engine.Config{
		Sandbox: children(t, sandbox.Full), Program: engine.DuckDB, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Sessions: 1, Memory: 512 << 20, Threads: 1, Disk: 1 << 30,
	})

	opened, err := sessions.Open(t.Context(), 5*time.Minute)
	require.NoError(t, err)

	defer opened.Close()

	for _, file := range view.Files {
		require.NoError(t, opened.Mount(filepath.Join(dir, file), file))
	}

	began := time.Now()
	made, err := opened.Profile(view, rows)
	require.NoError(t, err)
	t.Logf("%d rows of %d columns in %s", rows, len(view.Columns), time.Since(began).Round(time.Millisecond))

	return made
}

// expected is the profile of a column as computed by SQL written for the test.
type expected struct {
	Nulls    int64
	Distinct int64
	Min, Max json.RawMessage
	Shortest *int64
	Longest  *int64
	Average  *float64
	Mean     *float64
	Quarters []json.RawMessage
	Top      []engine.ValueCount
	Values   []string // all values of a text column
	All      []json.RawMessage
}

func expectProfile(t *testing.T, dir string, view engine.View, c engine.ColumnProfile) (want expected) {
	t.Helper()

	column := name(c.Name)
	of := "t"

	if c.Type == engine.JSON {
		of, column = `(SELECT CAST(`+column+` AS VARCHAR) AS c FROM t)`, "c"
	}

	shown := column
	if c.Type == engine.Varchar || c.Type == engine.JSON {
		shown = fmt.Sprintf(`substring(%s, 1, %d)`, column, engine.ProfileText)
	}

	parts := []string{
		`count(*) FILTER (WHERE ` + column + ` IS NULL) AS Nulls`, `count(DISTINCT ` + column + `) AS "Distinct"`,
		`min(` + shown + `) AS "Min"`, `max(` + shown + `) AS "Max"`,
		fmt.Sprintf(`(SELECT list({'value': v, 'count': n} ORDER BY n DESC, v) FROM (SELECT any_value(%[2]s) AS v, count(*) AS n FROM %[3]s WHERE %[1]s IS NOT NULL GROUP BY %[1]s ORDER BY n DESC, v LIMIT 10)) AS "Top"`, column, shown, of),
		fmt.Sprintf(`(SELECT list(DISTINCT %[1]s) FROM %[2]s WHERE %[1]s IS NOT NULL) AS "All"`, shown, of),
	}

	switch {
	case c.Type == engine.Varchar || c.Type == engine.JSON:
		parts = append(parts, `min(length(`+column+`)) AS Shortest`, `max(length(`+column+`)) AS Longest`, `avg(length(`+column+`)) AS Average`, `list(`+shown+`) FILTER (WHERE `+column+` IS NOT NULL) AS "Values"`)
	case c.Type == engine.Double:
		parts = append(parts, fmt.Sprintf(`avg(%[1]s) FILTER (WHERE isfinite(%[1]s) AND abs(%[1]s) < 1e290) AS Mean, quantile_disc(%[1]s, [0.25, 0.5, 0.75]) AS Quarters`, column))
	case c.Type == engine.Bigint || strings.HasPrefix(c.Type, engine.Decimal):
		parts = append(parts, fmt.Sprintf(`CAST(avg(%[1]s) AS DOUBLE) AS Mean, quantile_disc(%[1]s, [0.25, 0.5, 0.75]) AS Quarters`, column))
	}

	p := inProcess(t)
	for _, file := range view.Files {
		require.NoError(t, os.Link(filepath.Join(dir, file), filepath.Join(p.in, file)))
	}

	q := asked(`SELECT `+strings.Join(parts, ", ")+` FROM `+of, engine.Rows)
	q.Views = []engine.View{view}

	_, lines, _, err := p.rowsOf(q)
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &want), lines[0])

	return want
}

func compareProfile(t *testing.T, dir string, view engine.View, c engine.ColumnProfile) {
	t.Helper()

	want := expectProfile(t, dir, view, c)

	require.True(t, c.DistinctExact, c.Name)
	require.Equal(t, want.Nulls, c.Nulls, c.Name)
	require.Equal(t, want.Distinct, c.Distinct, c.Name)
	require.Equal(t, orNull(want.Min), orNull(c.Min), c.Name)
	require.Equal(t, orNull(want.Max), orNull(c.Max), c.Name)
	require.Equal(t, want.Shortest, c.Shortest, c.Name)
	require.Equal(t, want.Longest, c.Longest, c.Name)
	require.Equal(t, want.Average == nil, c.AverageLength == nil, c.Name)

	if want.Average != nil {
		require.InDelta(t, *want.Average, *c.AverageLength, 1e-9, c.Name)
	}

	require.Equal(t, want.Mean == nil, c.Mean == nil, c.Name)

	if want.Mean != nil {
		require.InEpsilon(t, 1+math.Abs(*want.Mean), 1+math.Abs(*c.Mean), 1e-9, c.Name)
	}

	require.Equal(t, encoded(t, want.Quarters), encoded(t, c.Quartiles), c.Name)
	require.Equal(t, encoded(t, want.Top), encoded(t, c.TopValues), c.Name)
	require.Len(t, c.Examples, int(min(want.Distinct, engine.ProfileExamples)), c.Name)

	for _, example := range c.Examples {
		require.Contains(t, texted(want.All), string(example), c.Name)
	}

	if c.Type == engine.Varchar {
		require.Equal(t, shapesOf(want.Values), c.Shapes, c.Name)
	}
}

func orNull(value json.RawMessage) string {
	if value == nil {
		return "null"
	}

	return string(value)
}

func texted(values []json.RawMessage) (list []string) {
	for _, value := range values {
		list = append(list, string(value))
	}

	return list
}

// shapesOf computes the expected shapes.
func shapesOf(values []string) (shapes []engine.Shape) {
	counts := map[string]int{}

	for _, value := range values {
		if value == "" || len([]rune(value)) > shapedText {
			continue
		}

		counts[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsUpper(r):
				return 'A'
			case unicode.IsLetter(r):
				return 'a'
			case unicode.IsDigit(r):
				return '9'
			default:
				return r
			}
		}, value)]++
	}

	for shape, count := range counts {
		shapes = append(shapes, engine.Shape{Shape: shape, Share: float64(count) / float64(len(values))})
	}

	slices.SortFunc(shapes, func(a, b engine.Shape) int {
		if a.Share != b.Share {
			return map[bool]int{true: -1, false: 1}[a.Share > b.Share]
		}

		return strings.Compare(a.Shape, b.Shape)
	})

	return shapes[:min(len(shapes), engine.ProfileShapes)]
}

// TestProfileWide checks a table with up to two thousand columns, which is profiled in groups and with shorter texts.
func TestProfileWide(t *testing.T) {
	t.Parallel()

	width := 250
	if os.Getenv("QUERN_TEST_LOOPS") == "full" {
		width = 2000
	}

	var (
		table profiledTable
		parts []string
	)

	for i := range width {
		kind, value := "bigint", fmt.Sprintf("CASE WHEN range %% %d > 0 THEN range %% %d END", i%9+2, i+1)
		if i%4 == 0 {
			kind, value = "varchar", fmt.Sprintf("repeat('w', %d) || range %% %d", i%90, i+1)
		}

		table.columns, parts = append(table.columns, fmt.Sprintf("c%d %s", i, kind)), append(parts, value)
	}

	table.rows = `SELECT ` + strings.Join(parts, ", ") + ` FROM range(500)`
	dir := t.TempDir()
	view, rows := table.write(t, dir, 2)
	made := profileOf(t, dir, view, rows)

	require.Len(t, made.Columns, width)

	const batch = 50

	for first := 0; first < width; first += batch {
		p := inProcess(t)
		for _, file := range view.Files {
			require.NoError(t, os.Link(filepath.Join(dir, file), filepath.Join(p.in, file)))
		}

		parts = nil
		for i := range batch {
			parts = append(parts, fmt.Sprintf(`[500 - count(c%[1]d), count(DISTINCT c%[1]d)]`, first+i))
		}

		q := asked(`SELECT [`+strings.Join(parts, ", ")+`] AS counts FROM t`, engine.Rows)
		q.Views = []engine.View{view}

		_, lines, _, err := p.rowsOf(q)
		require.NoError(t, err)

		var want struct{ Counts [][2]int64 }
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &want))

		for i, c := range made.Columns[first : first+batch] {
			require.Equal(t, want.Counts[i][0], c.Nulls, c.Name)
			require.Equal(t, want.Counts[i][1], c.Distinct, c.Name)
			require.LessOrEqual(t, len(c.Examples[0]), 52, c.Name)
		}
	}
}
