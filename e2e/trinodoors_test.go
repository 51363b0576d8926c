//go:build trino

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// seen returns how many statements of an owner Trino has in its log, in some states.
func (c *cluster) seen(d *filled, states ...string) int {
	c.t.Helper()

	account, _ := c.s.tableName(d.owner, d.namespace, d.name)
	statement := "SELECT count(*) FROM system.runtime.queries WHERE \"user\" = " + literal(account)

	if len(states) > 0 {
		statement += " AND state IN ('" + strings.Join(states, "', '") + "')"
	}

	count, ok := c.query(statement)[0][0].(int64)
	require.True(c.t, ok, "a count is a number")

	return int(count)
}

// TestTrinoDoors asks a dataset on Trino through every door, and checks by Trino's log that each statement ran there, and that none does for
// a dataset on DuckDB.
func TestTrinoDoors(t *testing.T) {
	t.Parallel()

	c := startOnTrino(t)
	orders, _ := c.shop()
	before := 0

	doors := map[string]func() string{
		"rows": func() string { return fmt.Sprint(orders.result("SELECT count(*) AS n FROM orders", "").Data[0]["n"]) },
		"parameters": func() string {
			return fmt.Sprint(orders.result("SELECT count(*) AS n FROM orders WHERE status <> $1 AND id < $2", `"parameters": ["x' OR 1=1 --", 100]`).Data[0]["n"])
		},
		"csv": func() string {
			return strings.Fields(orders.ask("SELECT count(*) AS n FROM orders", "", "Accept: text/csv").body)[1]
		},
		"parquet": func() string {
			answer := orders.ask("SELECT count(*) AS n FROM orders", "", "Accept: application/vnd.apache.parquet")
			require.True(t, strings.HasPrefix(answer.body, "PAR1"), answer.body)

			return "8"
		},
		"other namespace": func() string {
			answer := call(t, http.MethodPost, c.s.url+"/query", orders.bearer, fmt.Sprintf(`{"query": %s}`, encode(t, fmt.Sprintf("SELECT count(*) AS n FROM %s.orders", quoted(orders.namespace)))))

			return fmt.Sprint(orders.resultOf(answer).Data[0]["n"])
		},
		"export": func() string {
			exported := orders.call(http.MethodGet, "/export?format=ndjson", "")
			require.Equal(t, http.StatusOK, exported.status, exported.body)

			return strconv.Itoa(strings.Count(exported.body, "\n"))
		},
		"question": func() string {
			run := orders.asks("How many orders are there?", "")
			require.Equal(t, "answer", run.Result.Outcome, run.Result.Response)

			return fmt.Sprint(run.cells(t)["count"])
		},
		"mcp": func() string {
			var found toolRows

			orders.tool("query", `{"sql": "SELECT count(*) FROM orders", "namespace": "`+orders.namespace+`"}`, &found)

			return string(found.Rows[0][0])
		},
		"a2a": func() string {
			answer := newPeer(orders, "nl2ql").call("SendMessage", `{"message": {"messageId": "`+uuid.NewString()+`", "role": "ROLE_USER", "parts": [{"text": "How many orders are there?"}], "metadata": {"namespace": "`+orders.namespace+`"}}}`)
			require.Contains(t, answer.body, `8`)
			require.Contains(t, answer.body, "TASK_STATE_COMPLETED")

			return "8"
		},
	}

	for name, ask := range doors {
		require.Equal(t, "8", ask(), name)
	}

	require.Zero(t, c.seen(orders), "a dataset on DuckDB does not touch Trino")

	c.on("trino", orders)

	var described struct{ Metadata struct{ Engine string } }
	orders.call(http.MethodGet, "", "").json(t, &described)
	require.Equal(t, "trino", described.Metadata.Engine)
	require.Equal(t, orders.path()+"\ttrino\n", c.s.quernd("engine", "list"))

	for name, ask := range doors {
		require.Equal(t, "8", ask(), name)

		now := c.seen(orders)
		require.Greater(t, now, before, name)

		before = now
	}

	require.Contains(t, call(t, http.MethodGet, c.s.url+"/audit", orders.bearer, "").body, `"dataset.engine"`)

	long := orders.start("SELECT id, status FROM orders ORDER BY id", "").await("completed")
	require.EqualValues(t, 8, long.pieces().Data[0].Rows)

	// What only DuckDB reads stays there.
	before = c.seen(orders)
	require.NotEmpty(t, orders.result("SHOW TABLES", "").Data)
	require.NotEmpty(t, orders.result("SELECT * FROM information_schema.columns", "").Data)
	require.Equal(t, http.StatusOK, orders.call(http.MethodGet, "/rows?limit=2", "").status)
	require.Equal(t, before, c.seen(orders))

	refused := orders.ask("SELECT regexp_matches(note, 'a+') FROM orders", "")
	require.Equal(t, http.StatusUnprocessableEntity, refused.status, refused.body)
	require.Contains(t, refused.body, "The function regexp_matches is not supported for a dataset that Trino reads.")

	unknown := orders.ask("SELECT nme FROM orders", "")
	require.Contains(t, unknown.body, `There is no column \"nme\".`)
}

// corpus returns the statements of the tests of the check, which contain everything that it refuses.
func corpus(t *testing.T) (statements []string) {
	t.Helper()

	for _, name := range []string{"refused", "allowed", "traced", "untraced", "foreign", "bound"} {
		content, err := os.ReadFile(filepath.Join("..", "internal", "query", "testdata", "trees", name+".json"))
		require.NoError(t, err)

		var trees map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(content, &trees))

		for statement := range trees {
			statements = append(statements, statement)
		}
	}

	return append(statements,
		`FROM "orders$files"`, `FROM "orders$snapshots"`, `SELECT "$path" FROM orders`, `FROM system.runtime.queries`, `FROM system.metadata.catalogs`,
		`FROM system.information_schema.tables`, `FROM jmx.current.x`, `SHOW SCHEMAS`, `SHOW CATALOGS`, `SHOW SESSION`, `SHOW FUNCTIONS`, `USE system.runtime`,
		`FROM TABLE(system.table_changes('a', 'b', 1, 2))`, `CALL system.runtime.kill_query('x', 'y')`, `EXECUTE IMMEDIATE 'SELECT 1'`, `PREPARE p FROM SELECT 1`,
		`SET SESSION query_max_run_time = '10h'`, `EXPLAIN ANALYZE FROM orders`, `DESCRIBE INPUT p`, `SELECT current_user FROM orders`, `SELECT current_catalog FROM orders`,
		`FROM orders FOR VERSION AS OF 1`, `FROM orders WHERE note = 'x''; FROM system.runtime.queries --'`, `SELECT 'x' AS "a"" FROM system.runtime.queries --" FROM orders`,
		`WITH "w0 AS (SELECT 1) SELECT" AS (SELECT note FROM orders) FROM "w0 AS (SELECT 1) SELECT"`, `SELECT o.note AS "c0, (SELECT 1)" FROM orders AS "o, system.runtime.queries"`,
		"SELECT 'a\x00"+"0\x00b' FROM orders", `SELECT U&'\0041' FROM orders`, `SELECT E'\'; SELECT 1' FROM orders`, `SELECT $$x'y$$ FROM orders`, `SELECT note FROM orders WHERE note LIKE 'a' ESCAPE ''' OR '`,
		`DELETE FROM orders`, `INSERT INTO orders FROM orders`, `CREATE TABLE x AS FROM orders`, `DROP TABLE orders`, `ALTER TABLE orders EXECUTE optimize`, `GRANT SELECT ON orders TO bob`,
	)
}

// TestTrinoIsolation runs hostile statements on Trino while another user's statements are in flight there.
func TestTrinoIsolation(t *testing.T) {
	t.Parallel()

	c := startOnTrino(t, "QUERN_QUERY_TIMEOUT=5s")
	key := c.s.newKey()
	mine, theirs := newFilled(t, c.s, "ada", key.token("ada")), newFilled(t, c.s, "eve", key.token("eve"))
	secret := "secret-" + uuid.NewString()

	mine.stored(`{"data": [{"id": 1, "note": "mine"}]}`)
	theirs.stored(`{"data": [{"id": 1, "note": "` + secret + `"}]}`)
	c.on("trino", mine, theirs)

	over := make(chan struct{})

	var group sync.WaitGroup

	group.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}

			found := theirs.ask("SELECT note FROM orders", "")
			if found.status == http.StatusOK && !strings.Contains(found.body, secret) {
				t.Error("the other user does not find her row")
			}
		}
	})

	for _, statement := range append(corpus(t),
		"FROM eve."+quoted(theirs.namespace)+".orders", `FROM "eve/`+theirs.namespace+`/orders"`, "SELECT o.id, (SELECT max(note) FROM eve."+quoted(theirs.namespace)+".orders) FROM orders o",
	) {
		answer := mine.ask(statement, "")
		require.NotContains(t, answer.body, secret, statement)
		require.NotRegexp(t, `q_[0-9a-f]{32}`, answer.body, statement)
		require.Less(t, answer.status, 500, "%s: %s", statement, answer.body)
	}

	close(over)
	group.Wait()

	// Trino has seen nothing but queries, of tables with our names.
	account, _ := c.s.tableName(mine.owner, mine.namespace, mine.name)
	for _, row := range c.query(`SELECT query FROM system.runtime.queries WHERE "user" = ` + literal(account)) {
		text, _ := row[0].(string)
		require.Regexp(t, `^(EXECUTE IMMEDIATE '|WITH w0 AS \()?SELECT `, text)
	}

	// A statement that does not end is stopped, and is gone from the cluster.
	var rows []string
	for n := range 400 {
		rows = append(rows, fmt.Sprintf(`{"id": %d, "note": "n"}`, n))
	}

	mine.stored(`{"data": [` + strings.Join(rows, ", ") + `]}`)

	endless := "SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.id * b.id + c.id * d.id = -1"
	stopped := mine.ask(endless, "")
	require.Equal(t, http.StatusGatewayTimeout, stopped.status, stopped.body)
	require.Contains(t, stopped.body, "TIMEOUT")

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()

	_, err := http.DefaultClient.Do(mine.question(endless, "").WithContext(ctx))
	require.Error(t, err, "the client leaves")

	await(t, "no statement of the user runs on the cluster", func() bool { return c.seen(mine, "QUEUED", "PLANNING", "STARTING", "RUNNING", "FINISHING") == 0 })
}
