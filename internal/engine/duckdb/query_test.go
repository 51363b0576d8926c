package duckdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

var update = flag.Bool("update", false, "rewrite the recorded trees")

// TestRecordedTrees checks that the trees used in the tests of other packages are the trees that this version of DuckDB
// produces.
func TestRecordedTrees(t *testing.T) {
	t.Parallel()

	paths, err := filepath.Glob("../../*/testdata/trees/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)

	p := inProcess(t)

	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)

		var recorded map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(content, &recorded))

		var current bytes.Buffer

		current.WriteString("{\n")

		for i, statement := range slices.Sorted(maps.Keys(recorded)) {
			tree, err := p.tree(statement)
			require.NoError(t, err, statement)

			key, err := json.Marshal(statement)
			require.NoError(t, err)

			if i > 0 {
				current.WriteString(",\n")
			}

			current.Write(key)
			current.WriteString(": ")
			require.NoError(t, json.Compact(&current, tree))
		}

		current.WriteString("\n}\n")

		if *update {
			require.NoError(t, os.WriteFile(path, current.Bytes(), 0o600))
		}

		require.JSONEq(t, current.String(), string(content), "%s: run with -update and look at what changed", path)
	}
}

// numbered writes Parquet files for a view: ids that continue from file to file, and the same number as text.
func numbered(tb testing.TB, dir string, rows ...int) (files []string) {
	tb.Helper()

	db, err := unlocked()
	require.NoError(tb, err)

	begin := 0

	for i, count := range rows {
		files = append(files, strconv.Itoa(i)+".parquet")
		require.NoError(tb, db.exec(fmt.Sprintf(`COPY (SELECT range::BIGINT AS id, 'n' || range AS name FROM range(%d, %d)) TO %s (FORMAT parquet, FIELD_IDS {id: 1, name: 2})`,
			begin, begin+count, text(filepath.Join(dir, files[i])))))

		begin += count
	}

	return files
}

func numberedView(name string, files []string) engine.View {
	return engine.View{Name: name, Files: files, Columns: []engine.Column{{ID: 1, Name: "id", Type: engine.Bigint}, {ID: 2, Name: "name", Type: engine.Varchar}}}
}

// traced returns the provenance tree of a statement over the view "n", as internal/query builds it.
func (p *program) traced(tb testing.TB, columns, rest string) json.RawMessage {
	tb.Helper()

	if columns == "*" {
		columns = `* EXCLUDE (__file, __row)`
	}

	tree, err := p.tree(`SELECT ` + columns + `, n.__file, n.__row FROM __source AS n ` + rest)
	require.NoError(tb, err)

	return tree
}

func TestTracedRows(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		columns, rest string
		want          []string
	}{
		{"*", "WHERE id % 5 = 0", []string{`0 0 {"id":0,"name":"n0"}`, `1 2 {"id":5,"name":"n5"}`, `3 3 {"id":10,"name":"n10"}`}},
		{"id", "ORDER BY id DESC LIMIT 3", []string{`3 4 {"id":11}`, `3 3 {"id":10}`, `3 2 {"id":9}`}},
		{"name, id + 1 AS next", "WHERE id IN (SELECT max(id) FROM n)", []string{`3 4 {"name":"n11","next":12}`}},
		{"n.id", "LIMIT 2 OFFSET 2", []string{`0 2 {"id":2}`, `1 0 {"id":3}`}},
	} {
		for _, mapped := range []bool{false, true} {
			p := inProcess(t)
			view := numberedView("n", numbered(t, p.in, 3, 4, 0, 5))
			view.Mapped = mapped

			q := asked(`SELECT `+c.columns+` FROM n `+c.rest, engine.Rows)
			q.Views, q.ProvenanceTree = []engine.View{view}, p.traced(t, c.columns, c.rest)

			d, lines, ran, err := p.rowsOf(q)
			require.NoError(t, err)
			require.True(t, d.traced, q.Statement)
			require.Equal(t, c.want, lines, "%s, mapped: %t", q.Statement, mapped)
			require.EqualValues(t, len(c.want), ran.Rows)
		}
	}
}

// TestUntracedRows checks that the statement itself runs if the provenance tree is wrong.
func TestUntracedRows(t *testing.T) {
	t.Parallel()

	for name, tree := range map[string]func(*program) json.RawMessage{
		"none":               func(*program) json.RawMessage { return nil },
		"no tree":            func(*program) json.RawMessage { return json.RawMessage(`{"statements":7}`) },
		"no JSON":            func(*program) json.RawMessage { return json.RawMessage(`"`) },
		"of an aggregate":    func(p *program) json.RawMessage { return p.traced(t, "count(*)", "") },
		"of unknown columns": func(p *program) json.RawMessage { return p.traced(t, "nothing", "") },
	} {
		p := inProcess(t)

		q := asked(`SELECT count(*) AS n FROM n`, engine.Rows)
		q.Views, q.ProvenanceTree = []engine.View{numberedView("n", numbered(t, p.in, 3, 4))}, tree(p)

		d, lines, _, err := p.rowsOf(q)
		require.NoError(t, err, name)
		require.False(t, d.traced, name)
		require.Equal(t, []string{`{"n":7}`}, lines, name)
	}
}

func TestViews(t *testing.T) {
	t.Parallel()

	names := []string{`orders`, `ann/sales/orders`, `a"b`, `a'b`, `größe 😀`, `select`, `A`, `x.y-z`, `__source`, `duckdb_views`}
	many := inProcess(t)
	files := numbered(t, many.in, 2, 1)
	all := asked(`SELECT 1`, engine.Rows)

	var want []string

	for _, called := range names {
		mapped := numberedView(called+"2", files)
		mapped.Mapped = true

		all.Views = append(all.Views, numberedView(called, files), mapped, numberedView(called+"3", nil))
		all.Statement += fmt.Sprintf(`, (SELECT count(*) FROM %[1]s), (SELECT count(*) FROM %[2]s JOIN %[1]s USING (id, name)), (SELECT count(*) FROM %[3]s)`, name(called), name(called+"2"), name(called+"3"))

		want = append(want, "3", "3", "0")
	}

	all.Statement = `SELECT [CAST(c AS VARCHAR) FOR c IN [` + strings.TrimPrefix(all.Statement, `SELECT 1, `) + `]] AS a`

	_, lines, _, err := many.rowsOf(all)
	require.NoError(t, err)
	require.Equal(t, []string{`{"a":` + encoded(t, want) + `}`}, lines)

	p := inProcess(t)
	none := numberedView("none", nil)
	none.Columns = append(none.Columns, engine.Column{ID: 3, Name: `j "q`, Type: engine.JSON}, engine.Column{ID: 4, Name: "d", Type: "decimal(9,2)"})

	q := asked(`FROM none`, engine.Rows)
	q.Views = []engine.View{none}

	d, lines, _, err := p.rowsOf(q)
	require.NoError(t, err)
	require.Empty(t, lines)

	var kinds []string
	for _, c := range d.columns {
		kinds = append(kinds, c.name+" "+c.kind.name)
	}

	require.Equal(t, []string{"id bigint", "name varchar", `j "q json`, "d decimal(9,2)"}, kinds)
}

// TestMappedColumns checks that columns are found by id under new names, with other types, and where a file does not
// have them.
func TestMappedColumns(t *testing.T) {
	t.Parallel()

	p := inProcess(t)
	view := engine.View{Name: "n", Files: numbered(t, p.in, 1, 1), Mapped: true, Columns: []engine.Column{
		{ID: 2, Name: "called", Type: engine.Varchar}, {ID: 1, Name: "n'r", Type: "decimal(20,1)"}, {ID: 3, Name: "new", Type: engine.Double},
	}}

	q := asked(`FROM n`, engine.Rows)
	q.Views = []engine.View{view}

	_, lines, _, err := p.rowsOf(q)
	require.NoError(t, err)
	require.Equal(t, []string{`{"called":"n0","n'r":0.0,"new":null}`, `{"called":"n1","n'r":1.0,"new":null}`}, lines)
}

func TestTruncation(t *testing.T) {
	t.Parallel()

	const line = len(`{"a":10}`) + 1

	for _, c := range []struct {
		rows, bytes int64
		want        engine.Ran
	}{
		{0, 0, engine.Ran{Rows: 10}},
		{10, 0, engine.Ran{Rows: 10}},
		{9, 0, engine.Ran{Rows: 9, Truncated: engine.ByRows}},
		{1, 0, engine.Ran{Rows: 1, Truncated: engine.ByRows}},
		{0, 10 * int64(line), engine.Ran{Rows: 10}},
		{0, 10*int64(line) - 1, engine.Ran{Rows: 9, Truncated: engine.ByBytes}},
		{0, int64(line), engine.Ran{Rows: 1, Truncated: engine.ByBytes}},
		{0, int64(line) - 1, engine.Ran{Truncated: engine.ByBytes}},
		{9, 9 * int64(line), engine.Ran{Rows: 9, Truncated: engine.ByRows}},
		{9, 8 * int64(line), engine.Ran{Rows: 8, Truncated: engine.ByBytes}},
	} {
		q := asked(`SELECT range AS a FROM range(10, 20)`, engine.Rows)
		q.Rows, q.Bytes = c.rows, c.bytes

		_, lines, ran, err := inProcess(t).rowsOf(q)
		require.NoError(t, err)
		require.Equal(t, c.want, ran, "%d rows, %d bytes", c.rows, c.bytes)
		require.Len(t, lines, int(ran.Rows))
	}

	for rows, truncated := range map[int64]string{0: "", 11: "", 10: "", 9: engine.ByRows} {
		q := asked(`SELECT range AS a FROM range(10, 20)`, engine.CSV)
		q.Rows = rows

		path, ran := inProcess(t).fileOf(t, q)
		require.Equal(t, truncated, ran.Truncated, rows)

		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, int(ran.Rows)+1, strings.Count(string(content), "\n"))

		if rows == 9 {
			require.EqualValues(t, 9, ran.Rows)
		} else {
			require.EqualValues(t, 10, ran.Rows)
		}
	}
}

// TestStatementsAsTheyCome checks the ends of statements, comments and names of columns.
func TestStatementsAsTheyCome(t *testing.T) {
	t.Parallel()

	for statement, want := range map[string]string{
		"SELECT 1 AS a;":                                   `{"a":1}`,
		"SELECT 1 AS a ; \n":                               `{"a":1}`,
		"SELECT 1 AS a -- end":                             `{"a":1}`,
		"SELECT 1 AS a; -- end":                            `{"a":1}`,
		"/* first */ SELECT 1 AS a /* last */":             `{"a":1}`,
		"-- first\nSELECT 1 AS a":                          `{"a":1}`,
		"(SELECT 1 AS a)":                                  `{"a":1}`,
		"VALUES (1)":                                       `{"col0":1}`,
		"FROM (VALUES (1)) t(a)":                           `{"a":1}`,
		"WITH x AS (SELECT 1 AS a) FROM x":                 `{"a":1}`,
		"SELECT 1 AS a, 2 AS a, 3 AS A":                    `{"a":1,"a_1":2,"A_2":3}`,
		"SELECT 1, 1 + 1, count(*)":                        `{"1":1,"(1 + 1)":2,"count_star()":1}`,
		`SELECT 1 AS "a ""b'c", 2 AS "ä😀"`:                 `{"a \"b'c":1,"ä😀":2}`,
		"SELECT 1 AS a UNION ALL SELECT 2 ORDER BY a DESC": `{"a":2}{"a":1}`,
		"SELECT 1 AS __file, 2 AS __row":                   `{"__file":1,"__row":2}`,
		"DESCRIBE SELECT 1 AS a":                           "",
		"SELECT ';' AS a":                                  `{"a":";"}`,
		"SELECT 'ein ''Wort''' AS a":                       `{"a":"ein 'Wort'"}`,
		"SELECT 1 AS a LIMIT 0":                            "",
	} {
		_, lines, _, err := inProcess(t).rowsOf(asked(statement, engine.Rows))
		if want == "" {
			require.Empty(t, lines, statement)

			continue
		}

		require.NoError(t, err, statement)
		require.Equal(t, want, strings.Join(lines, ""), statement)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()

	for statement, want := range map[string]engine.StatementError{
		"SELECT nix FROM n":               {Kind: "binder", Subtype: "COLUMN_NOT_FOUND", Name: "nix", Position: 7},
		"SELECT nix(1)":                   {Kind: "catalog", Subtype: "MISSING_ENTRY", Name: "nix", Position: 7},
		"SELECT 'x'::INTEGER":             {Kind: "conversion", Position: 10},
		"SELECT id FROM n GROUP BY name":  {Kind: "binder", Position: 7},
		"SELECT CAST(name AS INT) FROM n": {Kind: "conversion", Position: 7},
	} {
		p := inProcess(t)

		q := asked(statement, engine.Rows)
		q.Views = []engine.View{numberedView("n", numbered(t, p.in, 3))}

		_, _, _, err := p.rowsOf(q)

		refused, ok := errors.AsType[*refusal](err)
		require.True(t, ok, "%s: %v", statement, err)

		said := refused.said
		require.NotEmpty(t, said.Message)
		said.Message, said.Candidates = "", nil
		require.Equal(t, want, said, statement)
	}

	p := inProcess(t)
	for statement, position := range map[string]int{"SELECT FORM x y z": 14, "CREATE TABLE t (a INT)": -1, "SELECT (": 8} {
		_, err := p.tree(statement)

		refused, ok := errors.AsType[*refusal](err)
		require.True(t, ok, "%s: %v", statement, err)
		require.Equal(t, position, refused.said.Position, statement)
	}
}

// opened opens a session with files of the folder mounted.
func opened(t *testing.T, dir string, files []string) *engine.Session {
	t.Helper()

	sessions := engine.New(engine.Config{
		Sandbox: children(t, sandbox.Full), Program: engine.DuckDB, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Sessions: 1, Memory: room, Threads: 2, Disk: 1 << 30, Data: 1 << 40,
	})

	session, err := sessions.Open(t.Context(), time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() })

	for _, file := range files {
		require.NoError(t, session.Mount(filepath.Join(dir, file), file))
	}

	return session
}

// TestErrorInMidStream checks that an error after some rows is reported.
func TestErrorInMidStream(t *testing.T) {
	t.Parallel()

	const bad = 500_000

	session := opened(t, "", nil)
	statement := fmt.Sprintf(`SELECT CASE WHEN range = %d THEN CAST('x' || range AS BIGINT) ELSE range END AS n FROM range(%d)`, bad, 2*bad)

	_, err := session.Parse(statement)
	require.NoError(t, err)

	result, err := session.Run(engine.Query{Statement: statement, Form: engine.Rows})
	require.NoError(t, err)

	count := 0

	for ; ; count++ {
		row, err := result.Next()
		if err == nil {
			require.Equal(t, fmt.Sprintf(`{"n":%d}`, count), string(row.JSON))

			continue
		}

		said, ok := errors.AsType[*engine.StatementError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "conversion", said.Kind)
		require.Contains(t, said.Message, "x500000")

		break
	}

	require.Positive(t, count)
	require.LessOrEqual(t, count, bad)

	_, err = result.Finish()
	require.Error(t, err, "and it stays an error")
}

// TestManyFiles checks that a view can have more files than a child may have open.
func TestManyFiles(t *testing.T) {
	t.Parallel()

	const count = 1000

	dir := t.TempDir()
	first := numbered(t, dir, 2)[0]
	files := []string{first}

	for i := 1; i < count; i++ {
		files = append(files, strconv.Itoa(i)+".parquet")
		require.NoError(t, os.Link(filepath.Join(dir, first), filepath.Join(dir, files[i])))
	}

	session := opened(t, dir, files)
	statement := `SELECT count(*) AS n, sum(id) AS s, max(name) AS m FROM n`

	result, err := session.Run(engine.Query{Statement: statement, Views: []engine.View{numberedView("n", files)}, Form: engine.Rows})
	require.NoError(t, err)

	row, err := result.Next()
	require.NoError(t, err)
	require.JSONEq(t, `{"n":2000,"s":1000,"m":"n1"}`, string(row.JSON))

	_, err = result.Next()
	require.ErrorIs(t, err, io.EOF)
}

func TestHugeCell(t *testing.T) {
	t.Parallel()

	const size = 10 << 20

	session := opened(t, "", nil)

	result, err := session.Run(engine.Query{Statement: fmt.Sprintf(`SELECT repeat('ä', %d) AS a, 1 AS b`, size/2), Form: engine.Rows, Rows: 5, Bytes: 2 * size})
	require.NoError(t, err)

	row, err := result.Next()
	require.NoError(t, err)
	require.Len(t, row.JSON, size+len(`{"a":"","b":1}`))

	_, err = result.Next()
	require.ErrorIs(t, err, io.EOF)

	ran, err := result.Finish()
	require.NoError(t, err)
	require.Equal(t, engine.Ran{Rows: 1}, ran)
}

// TestExplain checks that the plan does not reveal where the files are.
func TestExplain(t *testing.T) {
	t.Parallel()

	for _, rows := range [][]int{{3}, {3, 4}} {
		p := inProcess(t)
		view := numberedView("n", numbered(t, p.in, rows...))
		view.Mapped = len(rows) > 1

		q := asked(`SELECT a.name, count(*) FROM n a JOIN n b USING (id) WHERE a.id > 1 GROUP BY ALL`, engine.Rows)
		q.Views, q.Explain, q.Rows = []engine.View{view}, true, 1

		d, lines, ran, err := p.rowsOf(q)
		require.NoError(t, err)
		require.Equal(t, []resultColumn{{"plan", kind{name: engine.Varchar}}}, d.columns)
		require.EqualValues(t, len(lines), ran.Rows)

		plan := strings.Join(lines, "\n")
		require.Contains(t, plan, "JOIN")
		require.Contains(t, plan, "PARQUET")

		squeezed := strings.Join(strings.FieldsFunc(plan, func(r rune) bool { return strings.ContainsRune(" │\n\"{}:", r) }), "")
		for _, secret := range []string{p.in, p.tmp, "/tmp", t.Name()} {
			require.NotContains(t, plan, secret)
			require.NotContains(t, squeezed, secret, "not broken into lines either")
		}
	}
}
