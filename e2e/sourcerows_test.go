package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// rowsOf is a source of rows with its database.
type rowsOf struct {
	*sourceOf

	from *other
}

// newRows makes a source of the database for a dataset that does not exist.
func newRows(t *testing.T, s *service, bearer, connection string, from *other, rows string) *rowsOf {
	t.Helper()

	o := &rowsOf{&sourceOf{filled: &filled{t, s, bearer, "ada", "n-" + uuid.NewString(), "orders"}}, from}

	var made sourced

	answer := call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": %q, "datasetName": "orders", "postgresql": %s}`, uuid.NewString(), connection, o.namespace, rows))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)
	o.id = made.ID

	return o
}

// requireSame compares the dataset with the table.
func (o *rowsOf) requireSame() {
	o.t.Helper()

	want, got := map[string]int{}, map[string]int{}

	withDatabase(o.t, o.from.admin, func(ctx context.Context, connection *pgx.Conn) {
		rows, err := connection.Query(ctx, `SELECT id || ' ' || coalesce(name, '-') || ' ' || total::text FROM orders`)
		require.NoError(o.t, err)

		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(o.t, err)

		for _, text := range texts {
			want[text]++
		}
	})

	for _, row := range o.rows(`SELECT id || ' ' || coalesce(name, '-') || ' ' || total AS v FROM orders`) {
		got[fmt.Sprint(row["v"])]++
	}

	require.Equal(o.t, want, got)
}

// rows returns the rows of a statement in the namespace of the dataset.
func (o *rowsOf) rows(statement string) []map[string]any {
	o.t.Helper()

	return o.result(statement, "").Data
}

const ordersTable = `CREATE TABLE orders (id bigint PRIMARY KEY, name text, total numeric(12,2) NOT NULL, updated_at timestamptz NOT NULL DEFAULT clock_timestamp())`

// grant lets the role of the connection read.
func (o *other) grant() {
	o.run("GRANT USAGE ON SCHEMA public TO "+o.name, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+o.name)
}

func TestSourcePostgres(t *testing.T) {
	t.Parallel()

	there := newOther(t)
	there.run(ordersTable, "INSERT INTO orders (id, name, total) SELECT i, 'n' || i, i * 0.01 FROM generate_series(1, 200) i", "CREATE TABLE secret (a int)")
	there.grant()

	s := start(t, there.hosts(), "QUERN_SOURCE_PAGE_ROWS=37", "QUERN_SOURCE_STATEMENT_TIMEOUT=3s")
	owner := s.newKey().token("ada")
	connection := s.connectTo(t, owner, there)

	full := newRows(t, s, owner, connection, there, `{"table": "orders", "mode": "full"}`)
	merged := newRows(t, s, owner, connection, there, `{"table": "orders", "mode": "growing", "cursorColumn": "updated_at", "overlap": "1h", "key": ["id"]}`)
	appended := newRows(t, s, owner, connection, there, `{"query": null, "table": "orders", "mode": "growing", "cursorColumn": "id"}`)
	all := []*rowsOf{full, merged, appended}

	for _, o := range all {
		run := o.refresh()
		require.Equal(t, "completed", run.Status, run.Reason)
		require.EqualValues(t, 200, run.Rows)
		o.requireSame()
	}

	next := 200

	for range loops(50) {
		for range 1 + rand.N(20) {
			next++
			there.run(fmt.Sprintf("INSERT INTO orders (id, name, total) VALUES (%d, NULL, %d)", next, rand.N(1000)))
		}

		run := appended.refresh()
		require.Equal(t, "completed", run.Status, run.Reason)

		there.run(fmt.Sprintf("UPDATE orders SET total = total + 1, updated_at = clock_timestamp() WHERE id %% 7 = %d", rand.N(7)))

		run = merged.refresh()
		require.Equal(t, "completed", run.Status, run.Reason)
		merged.requireSame()
		require.Len(t, appended.rows("SELECT DISTINCT id FROM orders"), next)
		require.Len(t, appended.rows("SELECT id FROM orders"), next)
	}

	there.run("DELETE FROM orders WHERE id % 3 = 0")

	run := full.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	full.requireSame()

	// Nothing is new, and all rows are gone.
	run = appended.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Zero(t, run.Rows)
	there.run("DELETE FROM orders")

	run = full.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Empty(t, full.rows("SELECT id FROM orders"))

	// What cannot be loaded stops the source, with the reason; afterwards it goes on.
	there.run("DROP TABLE orders")

	run = full.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, "no such table")
	there.run(ordersTable, "INSERT INTO orders (id, name, total) VALUES (1, 'again', 1)")
	there.grant()
	full.set(true)

	run = full.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	full.requireSame()

	// What is refused when a source is made.
	there.run("REVOKE ALL ON secret FROM " + there.name)

	for _, c := range []struct{ rows, reason string }{
		{`{"mode": "full"}`, "either table or query"},
		{`{"mode": "full", "table": "orders", "query": "SELECT 1"}`, "either table or query"},
		{`{"mode": "growing", "table": "orders"}`, "is required"},
		{`{"mode": "full", "table": "orders", "key": ["id"]}`, "only in the mode growing"},
		{`{"mode": "growing", "table": "orders", "cursorColumn": "id", "overlap": "5"}`, "needs a key"},
		{`{"mode": "growing", "table": "orders", "cursorColumn": "updated_at"}`, "unique index"},
		{`{"mode": "full", "table": "secret"}`, "may not read"},
		{`{"mode": "full", "query": "SELECT 1 AS a; SELECT 2 AS b"}`, "SQLSTATE 42601"},
		{`{"mode": "full", "query": "DELETE FROM orders RETURNING id"}`, "must be one SELECT"},
	} {
		answer := call(t, http.MethodPost, s.url+"/sources", owner, fmt.Sprintf(`{"name": "x", "connectionId": %q, "namespace": "n", "datasetName": "d", "postgresql": %s}`, connection, c.rows))
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
		require.Contains(t, answer.body, c.reason)
	}

	answer := call(t, http.MethodPost, s.url+"/sources", owner, fmt.Sprintf(`{"name": "x", "connectionId": %q, "namespace": "n", "datasetName": "d"}`, connection))
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)

	// A statement that takes too long ends, and is told.
	slow := newRows(t, s, owner, connection, there, `{"mode": "full", "query": "SELECT pg_sleep(60)::text AS a"}`)
	run = slow.refresh()
	require.Equal(t, "failed", run.Status)
	require.Contains(t, run.Reason, "did not answer in time")
	require.NotContains(t, s.log(), there.password)
}

// TestSourcePostgresTypes compares values in the database with those that the service returns.
func TestSourcePostgresTypes(t *testing.T) {
	t.Parallel()

	there := newOther(t)
	there.run(`CREATE TYPE mood AS ENUM ('sad', 'glad')`, `CREATE TABLE v (i bigint, d numeric(38,10), n numeric, f double precision, r real, t text, u uuid, j jsonb, m mood, b boolean, da date, ts timestamp, tz timestamptz,
		ti time, iv interval, by bytea, ar int[])`,
		`INSERT INTO v VALUES (9223372036854775807, -1234567890123456789012345678.0123456789, 'NaN', 5e-324, 0.1, E'é\n"', '0199c0f5-3c4d-7e5f-8061-7c8d9e0f1a21', '{"a": [1, 2.50]}', 'glad', true, '0001-01-01',
			'9999-12-31 23:59:59.999999', '2026-03-29 01:30:00.5+02', '23:59:59.999999', '1 mon 2 days', '\x00ff', '{1,NULL,3}')`, `INSERT INTO v (i) VALUES (NULL)`)
	there.grant()

	s := start(t, there.hosts())
	owner := s.newKey().token("ada")
	o := newRows(t, s, owner, s.connectTo(t, owner, there), there, `{"query": "TABLE v ORDER BY i -- all", "mode": "full"}`)
	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.EqualValues(t, 2, run.Rows)
	require.Equal(t, "asText", run.Notes[0].Event)
	require.Equal(t, "n (numeric)", run.Notes[0].Path)

	row := o.rows(`SELECT CAST(i AS VARCHAR) AS i, CAST(d AS VARCHAR) AS d, n, CAST(f AS VARCHAR) AS f, t, u, CAST(j AS VARCHAR) AS j, m, b, CAST(da AS VARCHAR) AS da, CAST(ts AS VARCHAR) AS ts, CAST(tz AS VARCHAR) AS tz,
		CAST(ti AS VARCHAR) AS ti, iv, "by", ar FROM orders WHERE i IS NOT NULL`)[0]
	delete(row, "__metadata")

	want := map[string]any{
		"i": "9223372036854775807", "d": "-1234567890123456789012345678.0123456789", "n": "NaN", "f": "5e-324", "t": "é\n\"", "u": "0199c0f5-3c4d-7e5f-8061-7c8d9e0f1a21", "j": `{"a": [1, 2.50]}`, "m": "glad",
		"b": true, "da": "0001-01-01", "ts": "9999-12-31 23:59:59.999999", "tz": "2026-03-28 23:30:00.5", "ti": "23:59:59.999999", "iv": "P1M2D", "by": `\x00ff`, "ar": "{1,NULL,3}",
	}
	require.Equal(t, want, row)
	require.Len(t, o.rows(`SELECT t FROM orders WHERE i IS NULL AND d IS NULL AND da IS NULL AND tz IS NULL AND b IS NULL`), 1)

	// A value without an exact counterpart stops the source; the dataset stays as it is.
	there.run(`UPDATE v SET da = 'infinity' WHERE i IS NULL`)

	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, `"da" (date) has infinity`)
	require.Len(t, o.rows("SELECT i FROM orders"), 2)
}

// TestSourcePostgresKillLoop loads rows on two replicas while processes die. In the end the dataset must have the rows of the table.
func TestSourcePostgresKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	there := newOther(t)
	there.run(ordersTable)
	there.grant()

	store, settings := newStoreProxy(t)
	shared := []string{"QUERN_SOURCE_KEY=" + strings.Repeat("the key of both ", 4), there.hosts(), "QUERN_SOURCE_PAGE_ROWS=10"}
	one := start(t, append(settings, shared...)...)
	two := another(t, one, shared...)
	bearer := value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "loader"}`))
	connection := one.connectTo(t, bearer, there)
	l := &sourceLoop{loadLoop: &loadLoop{t: t, store: store, replicas: []*service{one, two}, killed: map[string]int{}}}
	all := []*rowsOf{
		newRows(t, one, bearer, connection, there, `{"table": "orders", "mode": "growing", "cursorColumn": "id"}`),
		newRows(t, one, bearer, connection, there, `{"table": "orders", "mode": "growing", "cursorColumn": "updated_at", "overlap": "10m", "key": ["id"]}`),
		newRows(t, one, bearer, connection, there, `{"table": "orders", "mode": "full"}`),
	}

	dying, enough := context.WithCancel(t.Context())

	var killing sync.WaitGroup

	killing.Go(func() { l.kill(dying) })

	next := 0

	for range loops(100) {
		kill.Round(t)
		there.run(fmt.Sprintf("INSERT INTO orders (id, name, total) SELECT i, NULL, 1 FROM generate_series(%d, %d) i", next+1, next+15))

		next += 15

		for _, o := range all {
			l.tryRun(o.sourceOf)
		}

		time.Sleep(rand.N(time.Second))
	}

	enough()
	killing.Wait()

	for _, o := range all {
		awaitFor(t, longEnough, "the last run has ended", func() bool { last := o.get().LastRun; return last == nil || last.FinishedAt != "" })

		for range 10 {
			if o.get().Status == "stopped" { // a process that died may have failed an ingestion: its rows are read again
				o.set(true)
			}

			run := o.refresh()
			if run.Status == "completed" {
				break
			}
		}

		o.requireSame()
	}

	t.Logf("%d rows, %d runs; killed: %v", next, l.runs, l.killed)
}

// TestSourcePostgresCommands uses a source of rows as a person at a terminal does.
func TestSourcePostgresCommands(t *testing.T) {
	t.Parallel()

	there := newOther(t)
	there.run(ordersTable, "INSERT INTO orders (id, total) VALUES (1, 5), (2, 7)")
	there.grant()

	s := start(t, there.hosts())
	c := s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "terminal", "role": "owner"}`)))
	made := c.feed(there.password, "connection", "create", "erp", "--postgres-host", there.host, "--postgres-port", strconv.Itoa(there.port), "--database", there.name, "--user", there.name, "--ssl-mode", "disable")
	require.Zero(t, made.code, made.err)

	file := filepath.Join(t.TempDir(), "q.sql")
	require.NoError(t, os.WriteFile(file, []byte("SELECT id, total FROM orders;\n"), 0o600))

	require.Contains(t, c.run("source", "add", "orders", "shop/orders", "--connection", "erp", "--table", "public.orders", "--cursor-column", "updated_at", "--overlap", "10m", "--key", "id"), "`quern source run orders`")
	require.Contains(t, c.run("source", "add", "totals", "shop/totals", "--connection", "erp", "--query-file", file), "`quern source run totals`")
	require.Contains(t, c.run("source", "run", "orders"), "2 rows")
	require.Contains(t, c.run("source", "run", "totals"), "2 rows")
	require.Contains(t, c.run("query", "-n", "shop", "SELECT sum(total) AS s FROM totals", "-o", "ndjson"), `12`)

	shown := c.run("source", "show", "orders")
	require.Contains(t, shown, "Connection: erp, which leads to "+there.name+"@")
	require.Contains(t, shown, "\nTable: public.orders\nMode: growing. Each run loads the rows whose updated_at has grown, and those up to 10m before. The highest value that is loaded is ")
	require.Contains(t, shown, "\nKey: id. A row replaces those with the same key.\n")
	require.Contains(t, c.run("source", "show", "totals"), "\nQuery: SELECT id, total FROM orders;\nMode: full. Each run replaces all rows of the dataset.\n")

	require.Contains(t, c.run("source", "list"), "a query")

	refused := c.try("source", "change", "orders", "--connection", "erp")
	require.Equal(t, 7, refused.code)
	require.Contains(t, refused.err, "connectionId")
}
