package duckdb

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	duckdb "github.com/duckdb/duckdb-go-bindings"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

// inProcess returns the program without a sandbox, for one statement.
func inProcess(tb testing.TB) *program {
	tb.Helper()

	folder := sandbox.Folder{In: filepath.Join(tb.TempDir(), "in"), Tmp: filepath.Join(tb.TempDir(), "tmp")}
	require.NoError(tb, os.Mkdir(folder.In, 0o700))
	require.NoError(tb, os.MkdirAll(filepath.Join(folder.Tmp, spill), 0o700))

	db, err := open(folder.In, folder.Tmp)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		duckdb.Disconnect(&db.conn)
		duckdb.Close(&db.db)
	})

	return &program{db: db, in: folder.In, tmp: folder.Tmp}
}

// asked returns a statement with the limits of a test.
func asked(statement string, form engine.Form) engine.Query {
	return engine.Query{Statement: statement, Form: form, Memory: 1 << 30, Threads: 2, Disk: 1 << 30}
}

// rowsOf runs a statement and returns its rows.
func (p *program) rowsOf(q engine.Query) (d described, lines []string, ran engine.Ran, err error) {
	var out bytes.Buffer

	conn := &sandbox.Conn{Data: &out}

	if d, err = p.prepareQuery(q); err == nil && q.Explain {
		ran, err = p.plan(conn)
	} else if err == nil {
		ran, err = p.stream(d, q, conn)
	}

	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}

	return d, lines, ran, refuse(err)
}

// fileOf runs a statement and returns the path of its file.
func (p *program) fileOf(tb testing.TB, q engine.Query) (path string, ran engine.Ran) {
	tb.Helper()

	d, err := p.prepareQuery(q)
	require.NoError(tb, err)
	ran, err = p.file(d, q)
	require.NoError(tb, err)

	return filepath.Join(p.tmp, ran.File), ran
}

// value is a value of a DuckDB type: its SQL, the name of its type, its JSON and CSV cells, the Parquet type that
// DuckDB reads back, and the Arrow type.
type value struct {
	sql, kind, json, csv, parquet, arrow string
}

func values() []value {
	return []value{
		{`NULL`, "integer", `null`, ``, "INTEGER", "int32"},
		{`true`, "boolean", `true`, `true`, "BOOLEAN", "bool"},
		{`(-128)::TINYINT`, "tinyint", `-128`, `-128`, "TINYINT", "int8"},
		{`(-32768)::SMALLINT`, "smallint", `-32768`, `-32768`, "SMALLINT", "int16"},
		{`2147483647`, "integer", `2147483647`, `2147483647`, "INTEGER", "int32"},
		{`255::UTINYINT`, "utinyint", `255`, `255`, "UTINYINT", "uint8"},
		{`65535::USMALLINT`, "usmallint", `65535`, `65535`, "USMALLINT", "uint16"},
		{`4294967295::UINTEGER`, "uinteger", `4294967295`, `4294967295`, "UINTEGER", "uint32"},
		{`9007199254740991`, "bigint", `9007199254740991`, `9007199254740991`, "BIGINT", "int64"},
		{`9007199254740992`, "bigint", `"9007199254740992"`, `9007199254740992`, "BIGINT", "int64"},
		{`-9007199254740991`, "bigint", `-9007199254740991`, `-9007199254740991`, "BIGINT", "int64"},
		{`(-9223372036854775807-1)::BIGINT`, "bigint", `"-9223372036854775808"`, `-9223372036854775808`, "BIGINT", "int64"},
		{`18446744073709551615::UBIGINT`, "ubigint", `"18446744073709551615"`, `18446744073709551615`, "UBIGINT", "uint64"},
		{`7::UBIGINT`, "ubigint", `7`, `7`, "UBIGINT", "uint64"},
		{`7::HUGEINT`, "hugeint", `7`, `7`, "DECIMAL(38,0)", "decimal(38, 0)"},
		{`-99999999999999999999999999999999999999::HUGEINT`, "hugeint", `"-99999999999999999999999999999999999999"`, `-99999999999999999999999999999999999999`, "DECIMAL(38,0)", "decimal(38, 0)"},
		{`340282366920938463463374607431768211455::UHUGEINT`, "uhugeint", `"340282366920938463463374607431768211455"`, `340282366920938463463374607431768211455`, "VARCHAR", "utf8"},
		{`'123456789012345678901234567890123456789012345'::BIGNUM`, "bignum", `"123456789012345678901234567890123456789012345"`, `123456789012345678901234567890123456789012345`, "VARCHAR", "utf8"},
		{`0.1::FLOAT`, "float", `0.1`, `0.1`, "FLOAT", "float32"},
		{`0.1::DOUBLE`, "double", `0.1`, `0.1`, "DOUBLE", "float64"},
		{`(0.1::DOUBLE + 0.2::DOUBLE)`, "double", `0.30000000000000004`, `0.30000000000000004`, "DOUBLE", "float64"},
		{`'-0.0'::DOUBLE`, "double", `-0.0`, `-0.0`, "DOUBLE", "float64"},
		{`1e300::DOUBLE`, "double", `1e300`, `1e+300`, "DOUBLE", "float64"},
		{`5e-324::DOUBLE`, "double", `5e-324`, `5e-324`, "DOUBLE", "float64"},
		{`'nan'::DOUBLE`, "double", `"NaN"`, `NaN`, "DOUBLE", "float64"},
		{`'inf'::FLOAT`, "float", `"Infinity"`, `Infinity`, "FLOAT", "float32"},
		{`'-inf'::DOUBLE`, "double", `"-Infinity"`, `-Infinity`, "DOUBLE", "float64"},
		{`1.50::DECIMAL(4, 2)`, "decimal(4,2)", `1.5`, `1.50`, "DECIMAL(4,2)", "decimal(4, 2)"},
		{`-0.05::DECIMAL(4, 2)`, "decimal(4,2)", `-0.05`, `-0.05`, "DECIMAL(4,2)", "decimal(4, 2)"},
		{`-999999999999.999::DECIMAL(15, 3)`, "decimal(15,3)", `-999999999999.999`, `-999999999999.999`, "DECIMAL(15,3)", "decimal(15, 3)"},
		{`999999999999.999::DECIMAL(16, 3)`, "decimal(16,3)", `999999999999.999`, `999999999999.999`, "DECIMAL(16,3)", "decimal(16, 3)"},
		{`1000000000000.000::DECIMAL(16, 3)`, "decimal(16,3)", `"1000000000000.000"`, `1000000000000.000`, "DECIMAL(16,3)", "decimal(16, 3)"},
		{`-1000000000000.000::DECIMAL(16, 3)`, "decimal(16,3)", `"-1000000000000.000"`, `-1000000000000.000`, "DECIMAL(16,3)", "decimal(16, 3)"},
		{`99999999999999999999999999999999999999::DECIMAL(38, 0)`, "decimal(38,0)", `"99999999999999999999999999999999999999"`, `99999999999999999999999999999999999999`, "DECIMAL(38,0)", "decimal(38, 0)"},
		{`'0.12345678901234567890123456789012345678'::DECIMAL(38, 38)`, "decimal(38,38)", `"0.12345678901234567890123456789012345678"`, `.12345678901234567890123456789012345678`, "DECIMAL(38,38)", "decimal(38, 38)"},
		{`'-0.5'::DECIMAL(1, 1)`, "decimal(1,1)", `-0.5`, `-.5`, "DECIMAL(1,1)", "decimal(1, 1)"},
		{`'0.0999999999999999'::DECIMAL(16, 16)`, "decimal(16,16)", `0.0999999999999999`, `.0999999999999999`, "DECIMAL(16,16)", "decimal(16, 16)"},
		{`'0.1000000000000001'::DECIMAL(16, 16)`, "decimal(16,16)", `"0.1000000000000001"`, `.1000000000000001`, "DECIMAL(16,16)", "decimal(16, 16)"},
		{`''`, "varchar", `""`, `""`, "VARCHAR", "utf8"},
		{`'a "b",' || chr(10) || 'ä😀'`, "varchar", `"a \"b\",\nä😀"`, "\"a \"\"b\"\",\nä😀\"", "VARCHAR", "utf8"},
		{`chr(0) || chr(127)`, "varchar", "\"\\u0000\x7f\"", "\x00\x7f", "VARCHAR", "utf8"},
		{`'a'::ENUM('a', 'b')`, "varchar", `"a"`, `a`, "VARCHAR", "utf8"},
		{`'{"a": [1, null]}'::JSON`, "json", `{"a":[1,null]}`, `"{""a"": [1, null]}"`, "JSON", "utf8"},
		{`'null'::JSON`, "json", `null`, `null`, "JSON", "utf8"},
		{`'00000000-0000-0000-0000-00000000000a'::UUID`, "uuid", `"00000000-0000-0000-0000-00000000000a"`, `00000000-0000-0000-0000-00000000000a`, "UUID", "extension<arrow.uuid>"},
		{`'\x00\xFFa'::BLOB`, "blob", `"AP9h"`, `AP9h`, "BLOB", "binary"},
		{`''::BLOB`, "blob", `""`, `""`, "BLOB", "binary"},
		{`'01010'::BIT`, "bit", `"01010"`, `01010`, "VARCHAR", "utf8"},
		{`DATE '2026-01-31'`, "date", `"2026-01-31"`, `2026-01-31`, "DATE", "date32"},
		{`DATE '0044-03-15 (BC)'`, "date", `"0044-03-15 (BC)"`, `0044-03-15 (BC)`, "DATE", "date32"},
		{`DATE 'infinity'`, "date", `"infinity"`, `infinity`, "DATE", "date32"},
		{`DATE '-infinity'`, "date", `"-infinity"`, `-infinity`, "DATE", "date32"},
		{`TIME '23:59:59.000001'`, "time", `"23:59:59.000001"`, `23:59:59.000001`, "TIME", "time64[us]"},
		{`TIMETZ '23:59:59+02:30'`, "time with time zone", `"23:59:59+02:30"`, `23:59:59+02:30`, "VARCHAR", "utf8"},
		{`TIMESTAMP '2026-01-31 10:11:12.5'`, "timestamp", `"2026-01-31T10:11:12.5"`, `2026-01-31 10:11:12.5`, "TIMESTAMP", "timestamp[us]"},
		{`TIMESTAMP_S '2026-01-31 10:11:12'`, "timestamp", `"2026-01-31T10:11:12"`, `2026-01-31 10:11:12`, "TIMESTAMP", "timestamp[us]"},
		{`TIMESTAMP_MS '2026-01-31 10:11:12.123'`, "timestamp", `"2026-01-31T10:11:12.123"`, `2026-01-31 10:11:12.123`, "TIMESTAMP", "timestamp[ms]"},
		{`TIMESTAMP_NS '2026-01-31 10:11:12.123456789'`, "timestamp", `"2026-01-31T10:11:12.123456789"`, `2026-01-31 10:11:12.123456789`, "TIMESTAMP_NS", "timestamp[ns]"},
		{`TIMESTAMP '0044-03-15 (BC) 10:00:00'`, "timestamp", `"0044-03-15 (BC)T10:00:00"`, `0044-03-15 (BC) 10:00:00`, "TIMESTAMP", "timestamp[us]"},
		{`TIMESTAMP 'infinity'`, "timestamp", `"infinity"`, `infinity`, "TIMESTAMP", "timestamp[us]"},
		{`TIMESTAMPTZ '2026-01-31 10:11:12+02'`, "timestamp with time zone", `"2026-01-31T08:11:12Z"`, `2026-01-31 08:11:12+00`, "TIMESTAMP WITH TIME ZONE", "timestamp[us, tz=UTC]"},
		{`INTERVAL '1 year 2 days 3 seconds'`, "interval", `"1 year 2 days 00:00:03"`, `1 year 2 days 00:00:03`, "VARCHAR", "utf8"},
		{`union_value(n := 5)`, "union", `"5"`, `5`, "VARCHAR", "utf8"},

		{`[1, NULL, 3]`, "integer[]", `[1,null,3]`, `"[1,null,3]"`, "INTEGER[]", "list<element: int32, nullable>"},
		{`[]::BIGINT[]`, "bigint[]", `[]`, `[]`, "BIGINT[]", "list<element: int64, nullable>"},
		{`NULL::INTEGER[]`, "integer[]", `null`, ``, "INTEGER[]", "list<element: int32, nullable>"},
		{`[9007199254740993, 1]`, "bigint[]", `["9007199254740993",1]`, `"[""9007199254740993"",1]"`, "BIGINT[]", "list<element: int64, nullable>"},
		{`['nan'::DOUBLE, NULL]`, "double[]", `["NaN",null]`, `"[""NaN"",null]"`, "DOUBLE[]", "list<element: float64, nullable>"},
		{`[[1], [], NULL]`, "integer[][]", `[[1],[],null]`, `"[[1],[],null]"`, "INTEGER[][]", "list<element: list<element: int32, nullable>, nullable>"}, //nolint:dupword // Arrow's own words
		{`[1, 2]::INTEGER[2]`, "integer[2]", `[1,2]`, `"[1,2]"`, "INTEGER[]", "list<element: int32, nullable>"},
		{`[DATE '2026-01-31']`, "date[]", `["2026-01-31"]`, `"[""2026-01-31""]"`, "DATE[]", "list<element: date32, nullable>"},
		{`[INTERVAL '1 day']`, "interval[]", `["1 day"]`, `"[""1 day""]"`, "VARCHAR", "utf8"},
		{`{'a': 1, 'b c': NULL, 'd''e': {'f': [2.50]}}`, "struct(a integer, b c integer, d'e struct(f decimal(3,2)[]))", `{"a":1,"b c":null,"d'e":{"f":[2.5]}}`, `"{""a"":1,""b c"":null,""d'e"":{""f"":[2.5]}}"`, `STRUCT(a INTEGER, "b c" INTEGER, "d'e" STRUCT(f DECIMAL(3,2)[]))`, "struct<a: int32 nullable, b c: int32 nullable, d'e: struct<f: list<element: decimal(3, 2), nullable> nullable> nullable>"}, //nolint:dupword // Arrow's own words
		{`{'a': 1, 'b': '2'::BLOB}`, "struct(a integer, b blob)", `{"a":1,"b":"Mg=="}`, `"{""a"":1,""b"":""Mg==""}"`, "STRUCT(a INTEGER, b BLOB)", "struct<a: int32 nullable, b: binary nullable>"},
		{`row(1, 'x')`, "struct(integer, varchar)", `[1,"x"]`, `"[1,""x""]"`, "VARCHAR", "utf8"},
		{`NULL::STRUCT(a INTEGER)`, "struct(a integer)", `null`, ``, "STRUCT(a INTEGER)", "struct<a: int32 nullable>"},
		{`MAP {'a': 1, 'b': NULL}`, "map(varchar, integer)", `{"a":1,"b":null}`, `"{""a"":1,""b"":null}"`, "MAP(VARCHAR, INTEGER)", "map<utf8, int32, items_nullable>"},
		{`MAP {1: 'x', 2: 'y'}`, "map(integer, varchar)", `{"1":"x","2":"y"}`, `"{""1"":""x"",""2"":""y""}"`, "MAP(INTEGER, VARCHAR)", "map<int32, utf8, items_nullable>"},
		{`MAP {DATE '2026-01-31': [9007199254740993]}`, "map(date, bigint[])", `{"2026-01-31":["9007199254740993"]}`, `"{""2026-01-31"":[""9007199254740993""]}"`, "MAP(DATE, BIGINT[])", "map<date32, list<element: int64, nullable>, items_nullable>"},
		{`MAP {}::MAP(VARCHAR, INTEGER)`, "map(varchar, integer)", `{}`, `{}`, "MAP(VARCHAR, INTEGER)", "map<utf8, int32, items_nullable>"},
		{`NULL::MAP(VARCHAR, INTEGER)`, "map(varchar, integer)", `null`, ``, "MAP(VARCHAR, INTEGER)", "map<utf8, int32, items_nullable>"},
		{`[MAP {'a': {'b': [NULL, {'c': 'nan'::FLOAT}]}}]`, "map(varchar, struct(b struct(c float)[]))[]", `[{"a":{"b":[null,{"c":"NaN"}]}}]`, `"[{""a"":{""b"":[null,{""c"":""NaN""}]}}]"`, "MAP(VARCHAR, STRUCT(b STRUCT(c FLOAT)[]))[]", "list<element: map<utf8, struct<b: list<element: struct<c: float32 nullable>, nullable> nullable>, items_nullable>, nullable>"},
	}
}

// each returns one line for each value with the result of the function of, so that a failure shows all differences.
func each(list []value, of func(int, value) string) (lines []string) {
	for i, v := range list {
		lines = append(lines, v.sql+" → "+of(i, v))
	}

	return lines
}

func selecting(list []value) string {
	columns := make([]string, len(list))
	for i, v := range list {
		columns[i] = fmt.Sprintf(`%s AS c%d`, v.sql, i)
	}

	return `SELECT ` + strings.Join(columns, ", ")
}

func TestKindsAsJSON(t *testing.T) {
	t.Parallel()

	list := values()
	d, lines, ran, err := inProcess(t).rowsOf(asked(selecting(list), engine.Rows))
	require.NoError(t, err)
	require.EqualValues(t, 1, ran.Rows)
	require.Len(t, lines, 1)

	var row map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &row))

	require.Equal(t, each(list, func(_ int, v value) string { return v.kind }), each(list, func(i int, _ value) string { return d.columns[i].kind.name }))
	require.Equal(t, each(list, func(_ int, v value) string { return v.json }), each(list, func(i int, _ value) string { return string(row[fmt.Sprintf("c%d", i)]) }))
}

func TestKindsAsCSV(t *testing.T) {
	t.Parallel()

	list := values()
	path, _ := inProcess(t).fileOf(t, asked(selecting(list), engine.CSV))

	content, err := os.ReadFile(path)
	require.NoError(t, err)

	_, body, _ := strings.Cut(string(content), "\n")

	for i, v := range list {
		require.True(t, strings.HasPrefix(body, v.csv+",") || body == v.csv+"\n", "%s: column %d is %.60s", v.sql, i, body)
		body = strings.TrimPrefix(strings.TrimPrefix(body, v.csv), ",")
	}

	records, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 2)
}

func TestKindsAsParquet(t *testing.T) {
	t.Parallel()

	list := values()
	p := inProcess(t)
	path, _ := p.fileOf(t, asked(selecting(list), engine.Parquet))

	described, err := rows[struct {
		Type string `json:"column_type"`
	}](p.db, `SELECT column_type FROM (DESCRIBE FROM read_parquet(`+text(path)+`))`)
	require.NoError(t, err)
	require.Len(t, described, len(list))

	require.Equal(t, each(list, func(_ int, v value) string { return v.parquet }), each(list, func(i int, _ value) string { return described[i].Type }))

	// The values in the file must be the same too, when they are read again and shown as JSON.
	again := inProcess(t)
	require.NoError(t, os.Rename(path, filepath.Join(again.tmp, "again.parquet")))
	_, lines, _, err := again.rowsOf(asked(`FROM read_parquet(`+text(filepath.Join(again.tmp, "again.parquet"))+`)`, engine.Rows))
	require.NoError(t, err)

	var row map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &row))

	require.Equal(t, each(list, func(_ int, v value) string { return v.json }), each(list, func(i int, v value) string {
		cell := string(row[fmt.Sprintf("c%d", i)])
		if inner, isText := unquoted(cell); v.parquet == "VARCHAR" && isText && !strings.HasPrefix(v.json, `"`) {
			return inner // JSON in a text
		}

		return cell
	}))
}

func unquoted(cell string) (text string, ok bool) {
	err := json.Unmarshal([]byte(cell), &text)

	return text, err == nil && strings.HasPrefix(cell, `"`)
}

func TestKindsAsArrow(t *testing.T) {
	t.Parallel()

	list := values()
	path, ran := inProcess(t).fileOf(t, asked(selecting(list), engine.Arrow))
	require.EqualValues(t, 1, ran.Rows)

	file, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })

	reader, err := ipc.NewReader(file)
	require.NoError(t, err)
	t.Cleanup(reader.Release)

	require.True(t, reader.Next(), reader.Err())
	require.EqualValues(t, 1, reader.RecordBatch().NumRows())

	require.Equal(t, each(list, func(_ int, v value) string { return v.arrow }), each(list, func(i int, _ value) string { return reader.Schema().Field(i).Type.String() }))

	require.False(t, reader.Next())
	require.NoError(t, reader.Err())
}
