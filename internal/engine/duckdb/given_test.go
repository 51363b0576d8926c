package duckdb

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

// again returns a statement that reads the rows that another statement returned.
func again(t *testing.T, p *program, statement string, form engine.Form) engine.Query {
	t.Helper()

	d, lines, _, err := inProcess(t).rowsOf(asked(statement, engine.Rows))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p.in, "rows.ndjson"), []byte(strings.Join(append(lines, ""), "\n")), 0o600))

	q := asked(`FROM given`, form)
	view := engine.View{Name: "given", Files: []string{"rows.ndjson"}, Lines: true}

	for _, c := range d.columns {
		view.Columns = append(view.Columns, engine.Column{Name: c.name, Type: c.kind.name})
	}

	q.Views = []engine.View{view}

	return q
}

// TestKindsGiven checks that rows that were returned as JSON produce the same files as the statement itself. There are
// two exceptions: nested values are JSON in Parquet, and JSON keeps its value but not its text.
func TestKindsGiven(t *testing.T) {
	t.Parallel()

	for i, v := range values() {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()

			statement := selecting([]value{v}) + ` UNION ALL SELECT NULL`
			_, want, _, err := inProcess(t).rowsOf(asked(statement, engine.Rows))
			require.NoError(t, err)

			p := inProcess(t)
			file, _ := p.fileOf(t, again(t, p, statement, engine.CSV))
			direct, _ := inProcess(t).fileOf(t, asked(statement, engine.CSV))

			if v.kind != engine.JSON {
				require.Equal(t, contentOf(t, direct), contentOf(t, file), v.sql)
			}

			p = inProcess(t)
			file, _ = p.fileOf(t, again(t, p, statement, engine.Parquet))

			kind := v.parquet
			if strings.ContainsAny(v.kind, "[(") && !strings.HasPrefix(v.kind, "decimal") {
				kind = "JSON"
			}

			said, err := p.db.value(`SELECT column_type FROM (DESCRIBE FROM read_parquet(` + text(file) + `))`)
			require.NoError(t, err)
			require.Equal(t, kind, said, v.sql)

			reader := inProcess(t)
			require.NoError(t, os.Rename(file, filepath.Join(reader.tmp, "again.parquet")))
			_, lines, _, err := reader.rowsOf(asked(`FROM read_parquet(`+text(filepath.Join(reader.tmp, "again.parquet"))+`)`, engine.Rows))
			require.NoError(t, err)
			require.Equal(t, want, lines, v.sql)
		})
	}
}

func TestRowsGiven(t *testing.T) {
	t.Parallel()

	for name, statement := range map[string]string{
		"in their order":    `SELECT range AS n, repeat('x', 300) AS x FROM range(50000)`,
		"none":              `SELECT 1 AS n WHERE false`,
		"a long one":        `SELECT repeat('x', 30000000) AS x`,
		"impossible names":  `SELECT 1 AS "a ""b"" 'c'", 3 AS "/~", 4 AS "$.x", 5 AS "x", 6 AS "X", 7 AS "ä{}:"`,
		"like our own name": `SELECT 1 AS __metadata, 2 AS json`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, want, _, err := inProcess(t).rowsOf(asked(statement, engine.Rows))
			require.NoError(t, err)

			p := inProcess(t)
			_, lines, _, err := p.rowsOf(again(t, p, statement, engine.Rows))
			require.NoError(t, err)
			require.Equal(t, want, lines)
		})
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()

	content, err := os.ReadFile(path)
	require.NoError(t, err)

	return string(content)
}
