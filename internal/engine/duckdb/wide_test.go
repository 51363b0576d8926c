package duckdb

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

// TestWideRows checks that rows assembled in Go are equal to those that DuckDB writes.
func TestWideRows(t *testing.T) {
	t.Parallel()

	list := values()
	for i, sql := range []string{
		`NULL::VARCHAR`, `''`, `'twelve bytes'`, `'thirteen byte'`, `'"\ / ' || chr(10) || chr(13) || chr(9) || chr(1) || chr(31) || 'ü€😀'`,
		`9007199254740991`, `-9007199254740991`, `-9007199254740992`, `170141183460469231731687303715884105727::HUGEINT`,
		`7.5::DECIMAL(12,2)`, `-0.05::DECIMAL(12,2)`, `100::DECIMAL(12,2)`, `0::DECIMAL(5,4)`, `0.0001::DECIMAL(5,4)`, `0.00000001::DECIMAL(15,8)`, `-70::DECIMAL(9,0)`, `.5::DECIMAL(2,2)`, `12345678901234.5::DECIMAL(18,1)`,
		`1e300`, `-1e-300`, `100.0::DOUBLE`, `-0.0::DOUBLE`, `'-nan'::DOUBLE`, `'-inf'::DOUBLE`,
		`TIMESTAMP '0044-03-15 (BC) 12:00:00'`, `TIMESTAMP 'infinity'`, `TIMESTAMPTZ '2026-01-31 10:00:00.5+02'`,
		`TIMESTAMPTZ 'infinity'`, `CAST(NULL AS TIMESTAMP)`,
	} {
		list = append(list, value{sql: sql, kind: strconv.Itoa(i)})
	}

	p := inProcess(t)
	d, err := p.prepareQuery(asked(selecting(list)+`, r AS "a ""name""" FROM range(5000) t(r)`, engine.Rows))
	require.NoError(t, err)

	read := func(lines func(described, int64, func([]byte) bool) error) (rows []string) {
		require.NoError(t, lines(d, 3000, func(line []byte) bool {
			rows = append(rows, string(line))

			return true
		}))

		return rows
	}

	narrow, wide := read(p.narrowLines), read(p.wideLines)
	require.Len(t, wide, 3001)

	for _, row := range []int{0, 2047, 2048, 3000} {
		require.JSONEq(t, narrow[row], wide[row])
	}
}

// TestWideNulls checks that NULLs stay in their columns.
func TestWideNulls(t *testing.T) {
	t.Parallel()

	columns := make([]string, wideColumns+1)
	for i := range columns {
		columns[i] = fmt.Sprintf(`CASE WHEN (r + %[1]d) %% 7 = 0 THEN NULL ELSE r + %[1]d END AS c%[1]d`, i)
	}

	p := inProcess(t)
	_, lines, ran, err := p.rowsOf(asked(`SELECT `+strings.Join(columns, ", ")+` FROM range(100) t(r)`, engine.Rows))
	require.NoError(t, err)
	require.EqualValues(t, 100, ran.Rows)
	require.True(t, strings.HasPrefix(lines[0], `{"c0":null,"c1":1,`), lines[0][:40])
	require.True(t, strings.HasPrefix(lines[69], `{"c0":69,"c1":null,"c2":71,`), lines[69][:40])
}

// TestEscapedCSV checks that no text starts like a formula, and that numbers and times are not changed.
func TestEscapedCSV(t *testing.T) {
	t.Parallel()

	const statement = `SELECT t AS "=name", -5 AS n, -1.5 AS d, '-inf'::DOUBLE AS f, DATE '2026-01-31' AS day, [t] AS l, 'f000'::BLOB AS b FROM (VALUES
		('=1+1'), ('+1'), ('-1'), ('@SUM(A1)'), (chr(9) || '=1'), (chr(13) || '=1'), (chr(10) || '=1'), ('plain = text'), (''), (NULL), ('''=1')) v(t)`

	read := func(form engine.Form) string {
		path, _ := inProcess(t).fileOf(t, asked(statement, form))

		content, err := os.ReadFile(path)
		require.NoError(t, err)

		return string(content)
	}

	require.Contains(t, read(engine.CSV), "=name,n,d,f,day,l,b\n=1+1,-5,-1.5,-Infinity,2026-01-31,\"[\"\"=1+1\"\"]\",")

	escaped := read(engine.EscapedCSV)
	require.True(t, strings.HasPrefix(escaped, "'=name,n,d,f,day,l,b\n'=1+1,-5,-1.5,-Infinity,2026-01-31,\"[\"\"=1+1\"\"]\","), escaped)

	for _, text := range []string{"\n'+1,-5", "\n'-1,-5", "\n'@SUM(A1),-5", "'\t=1", "'\r=1", "'\n=1", "\nplain = text,-5", "\n'=1,-5"} {
		require.Contains(t, escaped, text)
	}
}
