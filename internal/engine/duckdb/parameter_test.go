package duckdb

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

func bound(name, kind, value string) engine.Parameter {
	return engine.Parameter{Name: name, Type: kind, Value: &value}
}

// TestBoundValues checks that a value of each type comes back as itself, in rows and in files.
func TestBoundValues(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ kind, value, json string }{
		{engine.Varchar, "", `""`},
		{engine.Varchar, `it's; DROP TABLE "x" -- \ /* $1 ? é 𝄞`, `"it's; DROP TABLE \"x\" -- \\ /* $1 ? é 𝄞"`},
		{engine.Varchar, strings.Repeat("x", 1<<20), `"` + strings.Repeat("x", 1<<20) + `"`},
		{engine.Boolean, "true", "true"},
		{engine.Boolean, "false", "false"},
		{engine.Integer, "-2147483648", "-2147483648"},
		{engine.Bigint, "-9223372036854775808", `"-9223372036854775808"`},
		{engine.Double, "0.1", "0.1"},
		{engine.Double, "NaN", `"NaN"`},
		{engine.Double, "-Infinity", `"-Infinity"`},
		{"decimal(38,0)", strings.Repeat("9", 38), `"` + strings.Repeat("9", 38) + `"`},
		{"decimal(38,0)", "-" + strings.Repeat("9", 38), `"-` + strings.Repeat("9", 38) + `"`},
		{"decimal(4,2)", "-12.34", "-12.34"},
		{"decimal(2,2)", "0.05", "0.05"},
		{"decimal(20,2)", "-123456789012345678.90", `"-123456789012345678.90"`},
		{engine.Date, "0001-01-01", `"0001-01-01"`},
		{engine.Date, "9999-12-31", `"9999-12-31"`},
		{engine.Date, "1969-12-31", `"1969-12-31"`},
		{engine.Time, "23:59:59.999999", `"23:59:59.999999"`},
		{engine.Timestamp, "1969-12-31T23:59:59.999999", `"1969-12-31T23:59:59.999999"`},
		{engine.Timestamp, "9999-12-31T00:00:00", `"9999-12-31T00:00:00"`},
	} {
		q := asked(`SELECT $1 AS v`, engine.Rows)
		q.Parameters = []engine.Parameter{bound("1", test.kind, test.value)}

		d, lines, _, err := inProcess(t).rowsOf(q)
		require.NoError(t, err, test.value)
		require.Equal(t, test.kind, d.columns[0].kind.name)
		require.Equal(t, []string{`{"v":` + test.json + `}`}, lines)

		q.Form, q.Rows = engine.CSV, 5
		_, ran := inProcess(t).fileOf(t, q)
		require.EqualValues(t, 1, ran.Rows)

		q.Form, q.Rows = engine.Arrow, 0
		_, ran = inProcess(t).fileOf(t, q)
		require.EqualValues(t, 1, ran.Rows)
	}
}

// TestBoundStatements checks that a statement with parameters gives what the same statement gives with its values in the
// text.
func TestBoundStatements(t *testing.T) {
	t.Parallel()

	null := engine.Parameter{Name: "1"}

	for _, test := range []struct {
		with, without string
		values        []engine.Parameter
	}{
		{`SELECT 1 AS a, 2 AS a, ? AS a`, `SELECT 1 AS a, 2 AS a, 'x' AS a`, []engine.Parameter{bound("1", engine.Varchar, "x")}},
		{"SELECT ? AS a -- ; $9\n ;; -- done; really", `SELECT 'x' AS a`, []engine.Parameter{bound("1", engine.Varchar, "x")}},
		{"SELECT i, i > $From AS more FROM range(1000) r(i) WHERE i IN ($to, $from) ORDER BY i DESC;", `SELECT i, i > 3 AS more FROM range(1000) r(i) WHERE i IN (5, 3) ORDER BY i DESC`, []engine.Parameter{bound("from", engine.Integer, "3"), bound("to", engine.Bigint, "5")}},
		{`SELECT i FROM range(100) r(i) LIMIT $2 OFFSET $1`, `SELECT i FROM range(100) r(i) LIMIT 3 OFFSET 2`, []engine.Parameter{bound("1", engine.Integer, "2"), bound("2", engine.Integer, "3")}},
		{`SELECT i FROM range(100) r(i) LIMIT $1`, `SELECT i FROM range(100) r(i) LIMIT '3'`, []engine.Parameter{bound("1", engine.Varchar, "3")}},
		{`SELECT DATE '2026-01-31' + $1 AS d`, `SELECT DATE '2026-01-31' + 1 AS d`, []engine.Parameter{bound("1", engine.Integer, "1")}},
		{`SELECT DATE '2026-01-31' > $1 AS d`, `SELECT DATE '2026-01-31' > '2026-01-30' AS d`, []engine.Parameter{bound("1", engine.Varchar, "2026-01-30")}},
		{`WITH RECURSIVE r AS (SELECT $1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 5) FROM r`, `WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 5) FROM r`, []engine.Parameter{bound("1", engine.Integer, "1")}},
		{`FROM (DESCRIBE SELECT $1 AS z)`, `FROM (DESCRIBE SELECT 1.5 AS z)`, []engine.Parameter{bound("1", "decimal(2,1)", "1.5")}},
		{`SELECT coalesce($1, 'none') AS v, $1 IS NULL AS missing`, `SELECT coalesce(NULL, 'none') AS v, NULL IS NULL AS missing`, []engine.Parameter{null}},
		{`SELECT columns(*) FROM (SELECT ` + strings.Repeat(`$1 AS c, `, 150) + `1 AS d)`, `SELECT columns(*) FROM (SELECT ` + strings.Repeat(`'x' AS c, `, 150) + `1 AS d)`, []engine.Parameter{bound("1", engine.Varchar, "x")}},
	} {
		q := asked(test.with, engine.Rows)
		q.Parameters, q.Rows = test.values, 500

		got, lines, _, err := inProcess(t).rowsOf(q)
		require.NoError(t, err, test.with)

		want, expected, _, err := inProcess(t).rowsOf(asked(test.without, engine.Rows))
		require.NoError(t, err, test.without)
		require.Equal(t, expected, lines, test.with)
		require.Equal(t, names(want), names(got), test.with)

		q.Explain = true
		_, lines, _, err = inProcess(t).rowsOf(q)
		require.NoError(t, err, test.with)
		require.NotEmpty(t, lines)
	}
}

func names(d described) (list []string) {
	for _, c := range d.columns {
		list = append(list, c.name+" "+c.kind.name)
	}

	return list
}

// TestBoundErrors checks that an error is at the same position with and without parameters.
func TestBoundErrors(t *testing.T) {
	t.Parallel()

	for _, form := range []engine.Form{engine.Rows, engine.Parquet} {
		for _, end := range []string{`SELECT nosuch`, `SELECT nosuch('x')`, `SELECT CAST(v AS INTEGER) FROM (SELECT 'x' AS v)`} {
			var positions [2]int

			for i, start := range []string{`SELECT  1 AS a UNION ALL `, `SELECT $1 AS a UNION ALL `} {
				q := asked(start+end, form)
				if i == 1 {
					q.Parameters = []engine.Parameter{bound("1", engine.Integer, "1")}
				}

				p := inProcess(t)

				d, err := p.prepareQuery(q)
				if err == nil && form == engine.Rows {
					_, err = p.stream(d, q, &sandbox.Conn{Data: io.Discard})
				} else if err == nil {
					_, err = p.file(d, q)
				}

				refused, ok := errors.AsType[*refusal](refuse(err))
				require.True(t, ok, "%v", err)

				positions[i] = refused.said.Position
			}

			require.Equal(t, positions[0], positions[1], end)
		}
	}
}

// TestBoundProvenance checks that rows of a statement with parameters still have their file and row.
func TestBoundProvenance(t *testing.T) {
	t.Parallel()

	p := inProcess(t)
	files := numbered(t, p.in, 3, 3)

	tree, err := p.tree(`SELECT id, alias.__file, alias.__row FROM __source AS alias WHERE (id >= $least)`)
	require.NoError(t, err)

	q := asked(`SELECT id FROM alias WHERE id >= $least`, engine.Rows)
	q.Views = []engine.View{{Name: "alias", Files: files, Columns: []engine.Column{{Name: "id", Type: engine.Bigint}}}}
	q.ProvenanceTree, q.Parameters = tree, []engine.Parameter{bound("least", engine.Integer, "4")}

	d, lines, _, err := p.rowsOf(q)
	require.NoError(t, err)
	require.True(t, d.traced)
	require.NotEmpty(t, lines)
	require.Regexp(t, `^1 \d \{"id":\d\}$`, lines[0])
}

func TestBadBinding(t *testing.T) {
	t.Parallel()

	for _, value := range []engine.Parameter{
		bound("1", engine.Bigint, "secret"), bound("1", engine.Integer, "2147483648"), bound("1", engine.Date, "secret"), bound("1", "decimal(2,1)", "secret"),
		bound("1", "decimal(2,1)", "123.4"), bound("1", "decimal(39,1)", "1.0"), bound("1", "secret", "1"), bound("2", engine.Bigint, "1"),
	} {
		q := asked(`SELECT $1`, engine.Rows)
		q.Parameters = []engine.Parameter{value}

		_, _, _, err := inProcess(t).rowsOf(q)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret", "a child's error is logged")
	}
}
