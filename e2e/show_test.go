package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShow checks the statements that describe datasets: they show exactly what the caller may see, and nothing of the
// engine.
func TestShow(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_QUERY_MAX_PER_USER=100", "QUERN_QUERY_WAIT_TIMEOUT=1m", "QUERN_QUERY_DEFAULT_ROWS=20")
	key := s.newKey()
	d := newSQLNames(t, s, key)

	for name, play := range map[string]func(*testing.T, *sqlNames, *signer){
		"found":     showFound,
		"seen":      showSeen,
		"refused":   showRefused,
		"plans":     showPlans,
		"truncated": showTruncated,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, d, key)
		})
	}
}

func showFound(t *testing.T, d *sqlNames, _ *signer) {
	t.Helper()

	const (
		shop = "a-b.c shop ada; items shop ada; orders shop ada; shop shop ada" //nolint:dupword // names of datasets
		bobs = "leads sales bob; orders shop bob"
	)

	for _, c := range []struct{ request, statement, want string }{
		{inShop, "SHOW TABLES", shop},
		{"", "show tables from shop;", shop},
		{"", "SHOW TABLES FROM SHOP", shop},
		{"", "SHOW TABLES FROM ada.shop", shop},
		{"", "SHOW TABLES FROM self.shop", shop},
		{"", `SHOW TABLES FROM "my.shop"`, "orders my.shop ada"},
		{"", "SHOW TABLES FROM bob.sales", "leads sales bob"},
		{`"username": "bob"`, "SHOW TABLES FROM sales", "leads sales bob"},
		{inShop, "SELECT table_catalog, table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'bob' ORDER BY ALL", "bob sales leads; bob shop orders"},
		{"", "SELECT tables.table_name FROM information_schema.tables WHERE information_schema.tables.table_schema = 'lab'", "orders"},
		{"", "SELECT count(*), count(DISTINCT table_schema) FROM INFORMATION_SCHEMA.TABLES", "15 11"},
		{"", "SELECT table_type, table_rows FROM information_schema.tables WHERE table_catalog = 'ada' AND table_schema = 'lab'", "BASE TABLE 1"},
		{"", "SELECT count(*) FROM information_schema.tables WHERE table_catalog = 'ada' AND table_schema = 'nothing'", "0"},
		{"", "SELECT count(*) FROM information_schema.columns WHERE table_catalog = 'bob' AND table_schema = 'private'", "0"},
		{"", "SELECT count(*) FROM (SELECT * FROM information_schema.tables LIMIT 3)", "3"},
		{"", "SELECT column_name, ordinal_position, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'lab' ORDER BY 2", "id 1 BIGINT YES; is 2 VARCHAR YES; st 3 JSON YES"},
		{"", "SELECT c.column_name FROM information_schema.tables t JOIN information_schema.columns c USING (table_catalog, table_schema, table_name) WHERE t.table_schema = 'lab' ORDER BY 1", "id; is; st"},
		{"", `SELECT o."is", n FROM shop.orders o, (SELECT count(*) AS n FROM information_schema.tables WHERE table_catalog = 'bob')`, "ada/shop/orders 2"},
		{"", `WITH tables AS (SELECT 7 AS n) SELECT n, table_name FROM tables, information_schema.tables WHERE table_schema = 'lab'`, "7 orders"},
		{"", "SELECT column_name FROM (DESCRIBE information_schema.tables)", "table_catalog; table_schema; table_name; table_type; table_rows; table_comment"},
	} {
		t.Run(c.request+c.statement, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, d.rows(t, d.ada, c.statement, c.request))
		})
	}

	for _, statement := range []string{"SHOW TABLES", "SHOW ALL TABLES", "DESCRIBE"} {
		rows := d.rows(t, d.ada, statement, "")
		require.Equal(t, 15, strings.Count(rows, ";")+1, statement)
		require.Contains(t, rows, shop)
		require.Contains(t, rows, bobs)
	}

	for _, statement := range []string{"DESCRIBE shop.orders", "DESC ada.shop.orders", "SHOW shop.orders", "DESCRIBE TABLE shop.orders", "DESCRIBE bob.sales.leads", "DESCRIBE SELECT * FROM main.orders"} {
		require.Equal(t, "id BIGINT; is VARCHAR; st JSON", showDescribed(t, d, statement), statement)
	}
}

// showDescribed returns the names and types of a DESCRIBE.
func showDescribed(t *testing.T, d *sqlNames, statement string) string {
	t.Helper()

	answer := d.ask(t, d.ada, statement, "")
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	var found queried
	answer.json(t, &found)

	var columns []string
	for _, row := range found.Data {
		columns = append(columns, fmt.Sprint(row["column_name"], " ", row["column_type"]))
	}

	return strings.Join(columns, "; ")
}

// showSeen checks what other callers see.
func showSeen(t *testing.T, d *sqlNames, key *signer) {
	t.Helper()

	const everything = "SELECT DISTINCT concat_ws('.', table_catalog, table_schema, table_name) FROM information_schema.%s ORDER BY 1"

	member := key.claims("member")
	member["groups"] = []string{"analysts"}

	for _, c := range []struct{ bearer, want string }{
		{key.token("stranger"), ""},
		{key.sign(member), "bob.group.orders"},
		{restrictedToken(t, d.s, d.ada, `{"username": "self", "namespace": "shop", "dataset": "orders"}`), "ada.shop.orders"},
		{restrictedToken(t, d.s, d.ada, `{"username": "bob", "namespace": "shop"}`), "bob.shop.orders"},
		{restrictedToken(t, d.s, d.ada, `{"username": "self", "namespace": "my.shop"}`), "ada.my.shop.orders"},
	} {
		require.Equal(t, c.want, d.rows(t, c.bearer, fmt.Sprintf(everything, "tables"), ""))
		require.Equal(t, c.want, d.rows(t, c.bearer, fmt.Sprintf(everything, "columns"), ""))

		var shown []string

		for row := range strings.SplitSeq(d.rows(t, c.bearer, "SHOW TABLES", ""), "; ") {
			if parts := strings.Fields(row); len(parts) == 3 {
				shown = append(shown, parts[2]+"."+parts[1]+"."+parts[0])
			}
		}

		require.Equal(t, c.want, strings.Join(shown, "; "))
	}

	// A namespace that the caller may not see looks like one that does not exist.
	hidden, absent := d.ask(t, d.ada, "SHOW TABLES FROM bob.private", ""), d.ask(t, d.ada, "SHOW TABLES FROM bob.nothing", "")
	require.Equal(t, http.StatusUnprocessableEntity, hidden.status)
	require.Equal(t, absent.body, strings.ReplaceAll(hidden.body, "private", "nothing"))
}

func showRefused(t *testing.T, d *sqlNames, _ *signer) {
	t.Helper()

	for _, c := range []struct{ request, statement, want string }{
		{"", "SHOW TABLES FROM shp", "There is no namespace shp that you can see. | shop"},
		{"", "SHOW TABLES FROM bob.sals", "There is no namespace bob.sals that you can see. | bob.sales"},
		{"", "SHOW DATABASES", "This form of SHOW is not supported."},
		{"", "SELECT * FROM (SHOW TABLES)", "read information_schema.tables"},
		{"", "SELECT * FROM information_schema.schemata", "There is no table information_schema.schemata."},
		{"", "SELECT * FROM system.information_schema.tables", "There is no dataset system.information_schema.tables that you can see."},
		{"", "SELECT * FROM pg_catalog.pg_tables", "There is no dataset pg_catalog.pg_tables that you can see."},
		{"", "SELECT * FROM __information_schema.tables", "There is no dataset __information_schema.tables that you can see."},
		{`"namespace": "shop", "dataset": "orders"`, "SELECT * FROM information_schema.tables", "limits the statement to the dataset orders"},
		{`"namespace": "shop", "dataset": "orders"`, "SHOW TABLES", "limits the statement to the dataset orders"},
		{"", "SELECT nothing FROM information_schema.tables", `There is no column "nothing".`},
		{"", "EXPLAIN ANALYZE SELECT 1", "EXPLAIN ANALYZE is not supported"},
		{"", "EXPLAIN (FORMAT json) SELECT 1", "EXPLAIN FORMAT is not supported"},
		{"", "EXPLAIN DELETE FROM shop.orders", "DELETE is not allowed: a statement only reads."},
		{"", "CREATE VIEW v AS SELECT 1", "CREATE VIEW is not allowed: a statement only reads. To name a query, begin the statement with WITH name AS (SELECT …). | line 1, column 1"},
		{"", "-- mine\ncreate or replace view v AS SELECT 1", "CREATE OR REPLACE VIEW is not allowed"},
		{"", "INSERT INTO shop.orders VALUES (1)", "POST /data/{username}/{namespace}/{datasetName}/rows with {\"data\": [{\"column\": \"value\"}]} adds rows"},
		{"", "USE shop", "Name the namespace in the request"},
		{"", "GRANT SELECT ON shop.orders TO bob", "quern share"},
	} {
		answer := d.ask(t, d.ada, c.statement, c.request)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, "%s: %s", c.statement, answer.body)
		require.Contains(t, said(t, answer), c.want, c.statement)
	}

	plan := call(t, http.MethodPost, d.s.url+"/query", d.ada, `{"query": "EXPLAIN SELECT 1"}`, "Accept: text/csv")
	require.Equal(t, http.StatusNotAcceptable, plan.status, plan.body)
}

// showPlans checks that EXPLAIN returns a plan without paths and without internal names.
func showPlans(t *testing.T, d *sqlNames, _ *signer) {
	t.Helper()

	for _, statement := range []string{
		"EXPLAIN SELECT count(*) FROM shop.orders WHERE id = 1",
		"explain select * from ada.main.orders join bob.sales.leads using (id)",
		"EXPLAIN SELECT * FROM information_schema.tables WHERE table_name LIKE 'o%'",
		"/* why */ EXPLAIN\nFROM shop.orders",
		"EXPLAIN (SELECT 1)",
		"EXPLAIN SHOW TABLES",
	} {
		plan := d.rows(t, d.ada, statement, "")
		require.Contains(t, plan, "│", statement)

		for _, hidden := range []string{"/in", "/tmp", "jobs", ".parquet", ".ndjson", "__n", "__information", "hidden"} {
			require.NotContains(t, plan, hidden, statement)
		}
	}

	require.Contains(t, said(t, d.ask(t, d.ada, "EXPLAIN SELECT nothing FROM shop.orders", "")), "line 1, column 16")
}

// showTruncated checks that a list that is cut says so.
func showTruncated(t *testing.T, d *sqlNames, key *signer) {
	t.Helper()

	many := key.token("many")

	for i := range 23 {
		require.Equal(t, http.StatusCreated, call(t, http.MethodPost, fmt.Sprintf("%s/ingest/new/n/d%02d", d.s.url, i), many, "").status)
	}

	for _, statement := range []string{"SHOW TABLES", "SHOW TABLES FROM n"} {
		var found queried

		d.ask(t, many, statement, "").json(t, &found)
		require.True(t, found.Metadata.Truncated, statement)
		require.Equal(t, 20, found.Metadata.Count, statement)
	}

	require.Equal(t, "23", d.rows(t, many, "SELECT count(*) FROM information_schema.tables", ""))
	require.Equal(t, "0", d.rows(t, many, "SELECT count(*) FROM information_schema.columns", ""))
	require.Equal(t, "null", d.rows(t, many, "SELECT DISTINCT coalesce(CAST(table_rows AS VARCHAR), 'null') FROM information_schema.tables", ""), "datasets without rows")
}
