package extract

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres/pgtest"
)

// newTarget returns a database of the stack after the statements have run in it, and runs further ones.
func newTarget(t *testing.T, statements ...string) (Target, func(statements ...string)) {
	t.Helper()

	text := pgtest.Empty(t)
	address, err := url.Parse(text)
	require.NoError(t, err)

	run := func(statements ...string) {
		t.Helper()

		conn, err := pgx.Connect(t.Context(), text)
		require.NoError(t, err)

		defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()

		for _, statement := range statements {
			_, err := conn.Exec(t.Context(), statement)
			require.NoError(t, err, statement)
		}
	}
	run(statements...)

	port, err := strconv.ParseUint(address.Port(), 10, 16)
	require.NoError(t, err)

	password, _ := address.User.Password()

	return Target{
		Host: address.Hostname(), Port: uint16(port), Database: address.Path[1:], User: address.User.Username(), Password: password, Dial: (&net.Dialer{}).DialContext,
		Timeout: 10 * time.Second, Limits: Limits{Statement: 2 * time.Second, Page: 7, Rows: 1e6, Bytes: 1 << 30, Duration: time.Minute},
	}, run
}

// read returns what was read, and the values of the file by column.
func read(t *testing.T, from Target, rows Rows) (Found, map[string][]string) {
	t.Helper()

	var content bytes.Buffer

	found, err := from.Read(t.Context(), rows, &content)
	require.NoError(t, err)

	values := map[string][]string{}
	if content.Len() == 0 {
		return found, values
	}

	table, err := pqarrow.ReadTable(t.Context(), bytes.NewReader(content.Bytes()), parquet.NewReaderProperties(memory.DefaultAllocator), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	defer table.Release()

	require.Equal(t, table.NumRows(), found.Rows)

	for i := range int(table.NumCols()) {
		list := []string{}

		for _, chunk := range table.Column(i).Data().Chunks() {
			for j := range chunk.Len() {
				list = append(list, chunk.DataType().Name()+" "+chunk.ValueStr(j))
			}
		}

		values[table.Column(i).Name()] = list
	}

	return found, values
}

// TestTypes checks that each value is in the file as it is in the database.
func TestTypes(t *testing.T) {
	t.Parallel()

	cases := []struct{ kind, value, want string }{
		{"smallint", "-32768", "int64 -32768"},
		{"int", "2147483647", "int64 2147483647"},
		{"bigint", "-9223372036854775808", "int64 -9223372036854775808"},
		{"oid", "4294967295", "int64 4294967295"},
		{"numeric(38,0)", strings.Repeat("9", 38), "decimal " + strings.Repeat("9", 38)},
		{"numeric(38,0)", "-" + strings.Repeat("9", 38), "decimal -" + strings.Repeat("9", 38)},
		{"numeric(12,4)", "-0.0001", "decimal -0.0001"},
		{"numeric(3,3)", "0.125", "decimal 0.125"},
		{"numeric(39,1)", "1.5", "utf8 1.5"},
		{"numeric", "0.10000000000000000000000000000000000000000000001", "utf8 0.10000000000000000000000000000000000000000000001"},
		{"numeric", "NaN", "utf8 NaN"},
		{"real", "0.1", "float64 " + strconv.FormatFloat(float64(float32(0.1)), 'g', -1, 64)},
		{"double precision", "5e-324", "float64 " + strconv.FormatFloat(math.SmallestNonzeroFloat64, 'g', -1, 64)},
		{"double precision", "NaN", "float64 NaN"},
		{"double precision", "-Infinity", "float64 -Inf"},
		{"text", "é\n\t\"'", "utf8 é\n\t\"'"},
		{"text", "", "utf8 "},
		{"varchar(5)", " a ", "utf8  a "},
		{"char(4)", "ab", "utf8 ab  "},
		{"uuid", "0199c0f5-3c4d-7e5f-8061-7c8d9e0f1a21", "utf8 0199c0f5-3c4d-7e5f-8061-7c8d9e0f1a21"},
		{"json", `{"b": 1,  "a": 1.50}`, "binary eyJiIjogMSwgICJhIjogMS41MH0="},
		{"jsonb", `{"b": 1, "a": 1.50}`, "binary eyJhIjogMS41MCwgImIiOiAxfQ=="},
		{"mood", "glad", "utf8 glad"},
		{"positive", "7.25", "decimal 7.25"},
		{"boolean", "true", "bool true"},
		{"boolean", "false", "bool false"},
		{"date", "0001-01-01", "date32 0001-01-01"},
		{"date", "9999-12-31", "date32 9999-12-31"},
		{"date", "1969-12-31", "date32 1969-12-31"},
		{"timestamp", "1900-01-01 00:00:00.000001", "timestamp 1900-01-01T00:00:00.000001"},
		{"timestamptz", "2026-03-29 01:30:00.5+02", "timestamp 2026-03-28T23:30:00.5Z"},
		{"time", "23:59:59.999999", "time64 23:59:59.999999"},
		{"timetz", "12:00:00+02", "utf8 12:00:00+02"},
		{"interval", "1 mon 2 days 03:04:05.000006", "utf8 P1M2DT3H4M5.000006S"},
		{"bytea", `\x00ff`, `utf8 \x00ff`},
		{"int[]", "{1,NULL,3}", "utf8 {1,NULL,3}"},
		{"inet", "10.0.0.1/8", "utf8 10.0.0.1/8"},
	}

	columns, inserted := make([]string, len(cases)), make([]string, len(cases))
	for i, c := range cases {
		columns[i], inserted[i] = fmt.Sprintf("v%d %s", i, c.kind), "'"+strings.ReplaceAll(c.value, "'", "''")+"'"
	}

	target, _ := newTarget(t, "CREATE TYPE mood AS ENUM ('sad', 'glad')", "CREATE DOMAIN positive AS numeric(6,2) CHECK (VALUE > 0)",
		"CREATE TABLE v (i int, "+strings.Join(columns, ", ")+")", "INSERT INTO v VALUES (1, "+strings.Join(inserted, ", ")+")", "INSERT INTO v (i) VALUES (2)")
	found, values := read(t, target, Rows{Schema: "public", Table: "v"})

	for i, c := range cases {
		kind, _, _ := strings.Cut(c.want, " ")
		require.Equal(t, []string{c.want, kind + " (null)"}, values[fmt.Sprintf("v%d", i)], "%s %s", c.kind, c.value)
	}

	told := strings.Join(found.Texts, ", ")
	for _, kind := range []string{"(numeric)", "(interval)", "(bytea)", "(integer[])", "(time with time zone)"} {
		require.Contains(t, told, kind)
	}

	require.NotContains(t, told, "mood")
}

// TestInexact checks that a value without an exact counterpart ends the load, and can be loaded as text.
func TestInexact(t *testing.T) {
	t.Parallel()

	for kind, values := range map[string][]string{
		"date": {"infinity", "-infinity", "0044-03-15 BC", "10000-01-01"}, "timestamp": {"infinity", "0044-03-15 12:00 BC", "20000-01-01"}, "timestamptz": {"-infinity"}, "time": {"24:00:00"}, "numeric(6,2)": {"NaN"},
	} {
		target, run := newTarget(t, "CREATE TABLE v (v "+kind+")")

		for _, value := range values {
			run("TRUNCATE v", "INSERT INTO v VALUES ('"+value+"')")

			_, err := target.Read(t.Context(), Rows{Schema: "public", Table: "v"}, io.Discard)
			require.ErrorAs(t, err, new(*UnfitError), "%s %s: %v", kind, value, err)
			require.NotContains(t, err.Error(), "0044")

			_, got := read(t, target, Rows{Schema: "public", Table: "v", AsText: []string{"v"}})
			require.Len(t, got["v"], 1)
		}
	}
}

// TestGrowing checks which rows are read after others were, and what is refused.
func TestGrowing(t *testing.T) {
	t.Parallel()

	target, run := newTarget(t, `CREATE TABLE "Or ""ders" (id bigint PRIMARY KEY, at timestamptz NOT NULL, maybe int, name text)`, `INSERT INTO "Or ""ders" SELECT i, '2026-01-01'::timestamptz + i * interval '1 minute', NULL, i FROM generate_series(1, 100) i`)
	rows := Rows{Schema: "public", Table: `Or "ders`, Cursor: "id", Unique: true}

	found, values := read(t, target, rows)
	require.Equal(t, Found{Rows: 100, Cursor: "100"}, found)
	require.Len(t, values["id"], 100)

	rows.From = found.Cursor
	found, values = read(t, target, rows)
	require.Equal(t, Found{Cursor: "100"}, found)
	require.Empty(t, values)

	run(`INSERT INTO "Or ""ders" VALUES (101, '2026-01-01', 1, ''), (9223372036854775807, '2026-01-01', 1, '')`)

	found, values = read(t, target, rows)
	require.Equal(t, Found{Rows: 2, Cursor: "9223372036854775807"}, found)
	require.Equal(t, []string{"int64 101", "int64 9223372036854775807"}, values["id"])

	rows.From, rows.Overlap, rows.Unique = "100", "10", false
	found, _ = read(t, target, rows)
	require.EqualValues(t, 13, found.Rows)

	times := Rows{Query: `SELECT id, at FROM "Or ""ders" -- all;`, Cursor: "at", From: "2026-01-01 01:00:00+00", Overlap: "10m"}
	found, _ = read(t, target, times)
	require.Equal(t, Found{Rows: 51, Cursor: "2026-01-01 01:40:00+00"}, found)

	for reason, r := range map[string]Rows{
		"no column":            {Schema: "public", Table: `Or "ders`, Cursor: "ID"},
		"without a value":      {Schema: "public", Table: `Or "ders`, Cursor: "maybe"},
		"not a whole number":   {Schema: "public", Table: `Or "ders`, Cursor: "name"},
		"must be NOT NULL":     {Schema: "public", Table: `Or "ders`, Cursor: "at", Unique: true},
		"unique in a query":    {Query: "SELECT 1 AS id", Cursor: "id", Unique: true},
		"must be a duration":   {Schema: "public", Table: `Or "ders`, Cursor: "at", Overlap: "10"},
		"must be a number":     {Schema: "public", Table: `Or "ders`, Cursor: "id", Overlap: "10m"},
		"no such table":        {Schema: "public", Table: `or "ders`},
		"must be one SELECT":   {Query: "DELETE FROM v"},
		"SQLSTATE 42601":       {Query: "SELECT 1) AS x; DROP TABLE v; --"},
		"has parameters":       {Query: "SELECT $1::text AS a"},
		"two columns":          {Query: "SELECT 1 AS a, 2 AS a"},
		"The query writes":     {Query: "SELECT nextval('s')"},
		"to be loaded as text": {Query: "SELECT 1 AS a", AsText: []string{"b"}},
		"fails on a value":     {Query: "SELECT 1 / (i - 5) AS a FROM generate_series(1, 9) i"},
	} {
		if reason == "The query writes" {
			run("CREATE SEQUENCE IF NOT EXISTS s")
		}

		_, err := target.Read(t.Context(), r, io.Discard)
		require.ErrorAs(t, err, new(*UnfitError), "%s: %v", reason, err)
		require.ErrorContains(t, err, reason)
	}
}

// TestHarmless checks that a query cannot write, run programs or hold the server.
func TestHarmless(t *testing.T) {
	t.Parallel()

	target, run := newTarget(t, "CREATE TABLE v (i int)", "INSERT INTO v VALUES (1)", "CREATE FUNCTION sneak() RETURNS int LANGUAGE sql AS 'INSERT INTO v VALUES (2) RETURNING i'")
	for _, query := range []string{
		"INSERT INTO v VALUES (3) RETURNING i", "WITH w AS (DELETE FROM v RETURNING i) SELECT i FROM w", "SELECT sneak() AS a", "COPY v TO PROGRAM 'true'", "COPY (SELECT 1) TO '/tmp/x'",
		"SELECT 1; DELETE FROM v", "SELECT 1 AS a; COMMIT; DELETE FROM v", "SELECT set_config('transaction_read_only', 'off', true) AS a, sneak() AS b",
		"SELECT pg_terminate_backend(pg_backend_pid()) AS a", "SELECT i FROM v FOR UPDATE", "SELECT dblink('', '') AS a", "DO $$ BEGIN END $$", "SELECT pg_sleep(60)::text AS a",
		"SELECT 1 AS a FROM generate_series(1, 1000000000) i",
	} {
		limited := target
		limited.Limits.Statement, limited.Limits.Rows = 500*time.Millisecond, 1000
		began := time.Now()
		_, err := limited.Read(t.Context(), Rows{Query: query}, io.Discard)
		require.Error(t, err, query)
		require.Less(t, time.Since(began), 30*time.Second, query)
	}

	_, values := read(t, target, Rows{Schema: "public", Table: "v"})
	require.Equal(t, []string{"int64 1"}, values["i"])

	// All pages are of one snapshot.
	run("INSERT INTO v SELECT 1 FROM generate_series(1, 99)")

	changing := target
	changing.Limits.Wait = 20 * time.Millisecond
	began := make(chan struct{})

	go func() {
		defer close(began)

		time.Sleep(60 * time.Millisecond)
		run("DELETE FROM v WHERE ctid >= '(0,50)'", "INSERT INTO v VALUES (5)")
	}()

	_, values = read(t, changing, Rows{Schema: "public", Table: "v"})
	require.Len(t, values["i"], 100)
	<-began
}

// TestEnvironment checks that nothing of the environment takes part in a connection.
func TestEnvironment(t *testing.T) { //nolint:paralleltest // it changes the environment
	target, _ := newTarget(t)

	file := filepath.Join(t.TempDir(), "service")
	require.NoError(t, os.WriteFile(file, []byte("[elsewhere]\nhost=127.0.0.9\nport=1\nuser=mallory\noptions=-c work_mem=1MB\n"), 0o600))
	pass := filepath.Join(t.TempDir(), "pass")
	require.NoError(t, os.WriteFile(pass, []byte("*:*:*:*:leaked\n"), 0o600))

	for name, value := range map[string]string{
		"PGHOST": "127.0.0.9", "PGPORT": "x", "PGUSER": "mallory", "PGPASSWORD": "leaked", "PGDATABASE": "other", "PGSERVICE": "elsewhere", "PGSERVICEFILE": file, "PGPASSFILE": pass,
		"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "/nowhere", "PGSSLNEGOTIATION": "direct", "PGOPTIONS": "-c work_mem=1MB", "PGAPPNAME": "leaked", "PGTARGETSESSIONATTRS": "standby",
		"PGCONNECT_TIMEOUT": "x", "PGTZ": "Asia/Tokyo", "PGMINPROTOCOLVERSION": "9.9", "PGMAXPROTOCOLVERSION": "9.9", "PGCHANNELBINDING": "require", "PGREQUIREAUTH": "none",
	} {
		t.Setenv(name, value)
	}

	require.NoError(t, target.Try(t.Context()))

	_, values := read(t, target, Rows{Query: "SELECT current_setting('application_name') AS a, current_setting('timezone') AS z, current_user::text AS u, current_setting('work_mem') AS w"})
	require.Equal(t, []string{"utf8 quern"}, values["a"])
	require.Equal(t, []string{"utf8 UTC"}, values["z"])
	require.Equal(t, []string{"utf8 " + target.User}, values["u"])
	require.NotEqual(t, []string{"utf8 1MB"}, values["w"])

	empty := target
	empty.Password = ""
	config, err := empty.config()
	require.NoError(t, err)
	require.Empty(t, config.Password)
	require.Empty(t, config.Fallbacks)
}
