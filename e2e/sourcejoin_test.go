package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestSourcesJoined does what docs/sources.md shows: a prefix that grows each night and a table of a database, joined in one question.
func TestSourcesJoined(t *testing.T) {
	t.Parallel()

	erp, there := newOther(t), newBucket(t)
	s := start(t, erp.hosts()+","+strings.TrimPrefix(stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "http://"), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	c := s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("lead"), `{"name": "terminal", "role": "owner"}`)))
	secret := func(text string) string {
		path := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))

		return path
	}

	erp.run(`CREATE TABLE customers (customer_id bigint PRIMARY KEY, region text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now())`,
		`INSERT INTO customers SELECT i, CASE i % 3 WHEN 0 THEN 'North' WHEN 1 THEN 'South' ELSE 'West' END FROM generate_series(1, 60) AS i`,
		"GRANT SELECT ON customers TO "+erp.name)

	// Each customer has one order each night, of 10.
	night := func(day int) {
		lines := []string{"order_id,customer_id,amount"}
		for customer := 1; customer <= 60; customer++ {
			lines = append(lines, fmt.Sprintf("%d,%d,10", day*1000+customer, customer))
		}

		there.put(fmt.Sprintf("orders/2026-11-%02d.csv", day), strings.Join(lines, "\n")+"\n")
	}
	night(1)
	night(2)

	require.Contains(t, c.run("connection", "create", "nightly", "--endpoint", there.endpoint, "--region", stack.Env(t, "QUERN_TEST_S3_REGION"), "--bucket", there.bucket, "--prefix", there.prefix,
		"--path-style", "--access-key-id", stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), "--secret-file", secret(stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"))), "works")
	require.Contains(t, c.run("connection", "create", "erp", "--postgres-host", erp.host, "--postgres-port", strconv.Itoa(erp.port), "--database", erp.name, "--user", erp.name, "--ssl-mode", "disable",
		"--password-file", secret(erp.password)), "works")
	require.Contains(t, c.run("connection", "files", "nightly", "--prefix", "orders/"), "orders/2026-11-02.csv")

	c.run("source", "add", "orders", "shop/orders", "--connection", "nightly", "--prefix", "orders/", "--pattern", "*.csv", "--schedule", "0 3 * * *", "--time-zone", "Europe/Vienna")
	c.run("source", "add", "customers", "shop/customers", "--connection", "erp", "--table", "public.customers", "--cursor-column", "updated_at", "--overlap", "10m", "--key", "customer_id",
		"--schedule", "30 3 * * *", "--time-zone", "Europe/Vienna")
	require.Contains(t, c.run("source", "run", "orders"), "Loaded 2 files with 120 rows.")
	require.Contains(t, c.run("source", "run", "customers"), "Loaded 60 rows.")

	joined := func() string {
		return c.run("query", "-n", "shop", "SELECT region, sum(amount) AS total FROM orders JOIN customers USING (customer_id) GROUP BY region ORDER BY region", "-o", "ndjson")
	}
	require.Contains(t, joined(), `{"region":"North","total":400}`)

	// The planner joins when both datasets have profiles.
	var asked printed

	await(t, "the question is answered", func() bool {
		asked = c.try("ask", "-n", "shop", "total amount by region")

		return asked.code == 0 && strings.Contains(asked.out, "400")
	})
	require.Contains(t, asked.out, "North")

	// The next night.
	night(3)
	erp.run(`UPDATE customers SET region = 'East', updated_at = now() WHERE region = 'West'`)
	require.Contains(t, c.run("source", "run", "orders"), "Loaded 1 file with 60 rows.")
	c.run("source", "run", "customers")
	require.Contains(t, joined(), `{"region":"East","total":600}`)
	require.NotContains(t, joined(), "West")
}
