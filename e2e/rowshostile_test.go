package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostileConditions returns conditions that try to read what the caller may not read, to leave the expression, or to exhaust the
// service. others is the path of a dataset of somebody else, in which the text secret occurs.
func hostileConditions(owner, namespace string) (list []string) {
	for _, from := range []string{
		fmt.Sprintf(`"%s/%s/orders"`, owner, namespace), fmt.Sprintf(`"%s"."%s"."orders"`, owner, namespace), fmt.Sprintf(`"%s"."orders"`, namespace),
		fmt.Sprintf(`"%s/orders"`, namespace), "absent", "information_schema.tables", "information_schema.columns", "pg_catalog.pg_class", "sqlite_master",
		"memory.main.orders", "__source", "main.__source", "__result", "temp.orders", "system.information_schema.tables",
		"read_csv('/etc/passwd')", "read_text('/etc/passwd')", "read_blob('/proc/self/environ')", "read_parquet('*.parquet')", "read_parquet('../*/*.parquet')",
		"read_json('/proc/self/maps')", "'/etc/passwd'", `"/etc/passwd"`, "'0.parquet'", "'https://127.0.0.1/x.parquet'", "glob('/*')", "sniff_csv('/etc/passwd')",
		"parquet_metadata('0.parquet')", "parquet_schema('0.parquet')", "duckdb_settings()", "duckdb_secrets()", "duckdb_tables()", "duckdb_views()", "duckdb_databases()",
		"pragma_table_info('__source')", "query('SELECT 1')", "query_table('__source')", "postgres_scan('', '', '')", "sqlite_scan('a', 'b')", "iceberg_scan('x')",
		"repeat_row(1, num_rows = 10)", "summary('orders')", "test_all_types()", "which_secret('x', 's3')", "read_ndjson_objects('/etc/passwd')",
	} {
		list = append(list, "n IN (SELECT 99 FROM "+from+")", "n = 99 AND EXISTS (FROM "+from+")")
	}

	return append(list,
		"true) LIMIT (1", "true) ORDER BY (n", "true) GROUP BY (n", "true) UNION ALL SELECT 1 FROM orders WHERE (true", "true) HAVING (true", "true) QUALIFY (true",
		"true) USING SAMPLE (10", "true); DELETE FROM orders WHERE (true", "true; SELECT 1", "true) --", "true /*", "; SELECT 1", "SELECT 1", "WITH x AS (SELECT 1) SELECT false",
		"__row = 1", "__file >= 0", "orders.__row = 1", "getenv('HOME') = ''", "current_setting('threads') = 1", "getvariable('gone') IS NULL", "set_config('a', 'b')",
		"(PRAGMA database_list)", "(COPY orders TO '/tmp/x')", "(ATTACH 'x')", "(INSTALL httpfs)", "write_log('x') IS NULL", "nextval('x') = 1", "checkpoint()", "force_checkpoint('x')",
		"n = (DELETE FROM orders)", "n = $1", "n = ?", "sum(n) > 1", "row_number() OVER () = 1", "", " ", "-- only a comment", "n", "n;", "COLUMNS(*) IS NULL AND (", "*",
		"(SELECT count(*) FROM range(1000000000) a, range(1000000000) b) = 0", "repeat('x', 1000000000000) = ''", "(SELECT sum(i) FROM range(100000000000) t(i)) = 0",
		strings.Repeat("(", 2000)+"false"+strings.Repeat(")", 2000), strings.Repeat("NOT ", 20000)+"false", "n IN ("+strings.Repeat("1,", 20000)+"1",
	)
}

func conditionOf(condition string, dryRun bool) string {
	text, _ := json.Marshal(map[string]any{"condition": condition, "dryRun": dryRun})

	return string(text)
}

// TestHostileConditions deletes rows by hostile conditions. No row of somebody else is read or changed, and no row at all is
// removed.
func TestHostileConditions(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1h", "QUERN_QUERY_TIMEOUT=2s")
	key := s.newKey()
	ada, eve := newFilled(t, s, "ada", key.token("ada")), newFilled(t, s, "eve", key.token("eve"))
	ada.named("", "secret.csv", "n,name\n1,adassecret\n2,x\n")
	eve.named("", "own.csv", "n,name\n1,a\n2,b\n")

	before, own, count := ada.snapshots(), eve.sourced(), 0
	allowed := map[string]bool{}

	for _, condition := range hostileConditions("ada", ada.namespace) {
		for _, dryRun := range []bool{true, false} {
			answer := call(t, http.MethodPost, eve.url()+"/rows/delete", key.token("eve"), conditionOf(condition, dryRun))
			require.NotContains(t, answer.body, "adassecret", "%.200s", condition)
			require.NotContains(t, answer.body, "root:", "%.200s", condition)
			require.Less(t, answer.status, 600)
			require.NotEqual(t, http.StatusInternalServerError, answer.status, "%.200s: %s", condition, answer.body)

			if answer.status == http.StatusOK { // an ordinary condition that is false for all rows
				require.Contains(t, answer.body, `"rowCount":0`, "%.200s", condition)

				allowed[condition[:min(len(condition), 60)]] = true
			}
		}

		count++
	}

	require.GreaterOrEqual(t, count, 100)
	require.LessOrEqual(t, len(allowed), 8, "%v", allowed)
	t.Logf("%d conditions, allowed: %v", count, allowed)
	require.Equal(t, before, ada.snapshots())
	require.Equal(t, own, eve.sourced())
}
