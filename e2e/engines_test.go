//go:build trino

package e2e

import (
	"encoding/json"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// cluster is the stack's Trino as the cluster of one service: a catalog of its own that reads the catalog of the service.
type cluster struct {
	*trino

	s              *service
	listen, secret string // of the catalog of the service
}

// startOnTrino starts a service whose datasets can be on Trino.
func startOnTrino(t *testing.T, settings ...string) *cluster {
	t.Helper()

	c := &cluster{trino: &trino{t: t, catalog: "quern_" + strings.ReplaceAll(uuid.NewString(), "-", "")}, listen: freeAddress(t), secret: strings.Repeat("s", 40)}
	c.create()
	t.Cleanup(func() { c.query("DROP CATALOG " + c.catalog) })

	c.s = start(t, append([]string{
		"QUERN_CATALOG_LISTEN=" + c.listen, "QUERN_CATALOG_SECRET=" + c.secret, "QUERN_TRINO_URL=" + stack.Env(t, "QUERN_TEST_TRINO_URL"),
		"QUERN_TRINO_CATALOG=" + c.catalog, "QUERN_TRINO_MEMORY=512MiB", "QUERN_TRINO_TIMEOUT=20s",
	}, settings...)...)

	return c
}

// create creates the catalog. A coordinator forgets it when it ends.
func (c *cluster) create() {
	c.t.Helper()

	c.query("CREATE CATALOG " + c.catalog + " USING iceberg WITH (" + strings.Join([]string{
		property("iceberg.catalog.type", "rest"), property("iceberg.rest-catalog.uri", "http://"+c.listen),
		property("iceberg.rest-catalog.security", "OAUTH2"), property("iceberg.rest-catalog.oauth2.token", c.secret),
		property("iceberg.rest-catalog.oauth2.token-refresh-enabled", "false"), property("iceberg.rest-catalog.session", "USER"),
		property("iceberg.rest-catalog.session-timeout", "1m"), property("iceberg.rest-catalog.view-endpoints-enabled", "false"),
		property("iceberg.security", "read_only"), property("iceberg.metadata-cache.enabled", "false"),
		property("fs.native-s3.enabled", "true"), property("s3.path-style-access", "true"),
		property("s3.endpoint", stack.Env(c.t, "QUERN_TEST_S3_ENDPOINT")), property("s3.region", stack.Env(c.t, "QUERN_TEST_S3_REGION")),
		property("s3.aws-access-key", stack.Env(c.t, "QUERN_TEST_S3_ACCESS_KEY")), property("s3.aws-secret-key", stack.Env(c.t, "QUERN_TEST_S3_SECRET_KEY")),
	}, ", ") + ")")
}

// on sets the engine of a dataset.
func (c *cluster) on(engine string, datasets ...*filled) {
	c.t.Helper()

	for _, d := range datasets {
		command := exec.CommandContext(c.t.Context(), binary(), "engine", "set", d.path(), engine)
		command.Env = []string{"QUERN_DATABASE_URL=" + c.s.databaseURL, "QUERN_TRINO_URL=" + stack.Env(c.t, "QUERN_TEST_TRINO_URL")}

		printed, err := command.CombinedOutput()
		require.NoError(c.t, err, string(printed))
		require.Equal(c.t, "the engine of "+d.path()+" is "+engine+"\n", string(printed))
	}
}

// agreement returns the statements for which both engines must return the same rows, in the same order if they have an ORDER BY.
func agreement(t *testing.T) (statements []string) {
	t.Helper()

	content, err := os.ReadFile(filepath.Join("..", "internal", "query", "testdata", "trees", "dialect.json"))
	require.NoError(t, err)

	var trees map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(content, &trees))

	for statement := range trees {
		statements = append(statements, statement)
	}

	require.GreaterOrEqual(t, len(statements), 100)

	return statements
}

// plain is what a statement gives, without its provenance.
func (d *filled) plain(statement string) (found queried) {
	d.t.Helper()

	found = d.result(statement, "")
	for _, row := range found.Data {
		delete(row, "__metadata")
	}

	return found
}

// requireAgree checks that two results have the same columns, types and values. Doubles may differ where the order of additions decides.
func requireAgree(t *testing.T, statement string, want, found queried) {
	t.Helper()
	require.Equal(t, want.Columns, found.Columns, statement)

	first, second := want.rows(), found.rows()
	if !strings.Contains(statement, "ORDER BY") {
		first, second = sorted(first), sorted(second)
	}

	require.Len(t, second, len(first), statement)

	for i := range first {
		for column := range first[i] {
			a, b := first[i][column], second[i][column]

			x, isNumber := a.(float64)
			y, alsoNumber := b.(float64)

			if isNumber && alsoNumber && want.Columns[column].Type == "double" && math.Abs(x-y) <= 1e-12*math.Abs(x) {
				continue
			}

			require.Equal(t, a, b, "%s: row %d, column %s", statement, i, want.Columns[column].Name)
		}
	}
}

const shopOrders = `id,customer,status,region,total,weight,day,made,paid,note
1,1,paid,north,19.90,1.5,2026-01-31,2026-01-31 10:11:12.5,true,
2,1,open,north,5.00,0.25,2026-02-01,2026-02-01 00:00:00,false,Ünïcode ☃ text
3,2,paid,south,100.10,12.125,2026-02-28,2026-02-28 23:59:59.999999,true,100% sure
4,3,void,,0.05,-3.5,2025-12-31,2025-12-31 12:00:00.123,false,a_b
5,2,open,south,7.77,,2026-03-15,2026-03-15 08:30:00,,it's "quoted"
6,,paid,east,,2.5,2024-02-29,2024-02-29 01:02:03,true,  spaces  
7,4,paid,east,12345.67,1000000.5,,,true,back\slash
8,9,open,West,33.33,0.1,2026-02-14,2026-02-14 14:00:00,false,north
`

const shopCustomers = `id,name,city,since,score
1,Ada,Vienna,2020-05-01,9007199254740993
2,Bob,Oslo,2021-06-30,5
3,Eve,vienna,2022-01-01,-7
4,Zoë,,2019-12-31,
`

// shop is a namespace with two datasets.
func (c *cluster) shop() (orders, customers *filled) {
	c.t.Helper()

	orders = newFilled(c.t, c.s, "ada", c.s.newKey().token("ada"))
	orders.named(`"options": {"types": {"total": "decimal(9,2)", "weight": "double", "note": "varchar"}}`, "orders.csv", shopOrders)
	customers = orders.beside("customers", "")
	customers.named(`"options": {"types": {"score": "bigint"}}`, "customers.csv", shopCustomers)

	return orders, customers
}

// TestEnginesAgree checks that DuckDB and Trino give the same columns, types and values: after a load, after rows were added, after a
// column was added, and after compaction.
func TestEnginesAgree(t *testing.T) {
	t.Parallel()

	c := startOnTrino(t, "QUERN_MAINTENANCE_INTERVAL=1s")
	orders, customers := c.shop()
	t.Log(orders.table().columns, customers.table().columns)

	for _, change := range []struct {
		name string
		do   func()
	}{
		{"loaded", func() {}},
		{"appended", func() {
			orders.stored(`{"data": [{"id": 9, "customer": 1, "status": "paid", "region": "north", "total": 1.25, "weight": 1e-7, "day": "2026-02-02", "made": "2026-02-02T03:04:05", "paid": true, "note": "späť"}]}`)
		}},
		{"another column", func() {
			orders.stored(`{"data": [{"id": 10, "status": "new", "extra": "more", "total": 99999.99, "weight": 123456789.125}]}`)
		}},
		{"compacted", func() {
			for range 4 {
				orders.stored(`{"data": [{"id": 11, "status": "open", "day": "2023-07-04", "made": "2023-07-04T05:06:07.000008", "customer": 3}]}`)
			}

			orders.awaitCompacted()
		}},
	} {
		change.do()

		statements, expected := agreement(t), map[string]queried{}

		c.on("duckdb", orders)

		for _, statement := range statements {
			expected[statement] = orders.plain(statement)
			require.Equal(t, "duckdb", expected[statement].Metadata.Engine)
		}

		c.on("trino", orders)

		for _, statement := range statements {
			answer := orders.ask(statement, "")
			if answer.status != http.StatusOK {
				t.Errorf("%s: %s: %s", change.name, statement, answer.body)

				continue
			}

			found := orders.resultOf(answer)
			for _, row := range found.Data {
				delete(row, "__metadata")
			}

			require.Equal(t, "trino", found.Metadata.Engine, statement)
			require.Equal(t, expected[statement].Metadata.Snapshots, found.Metadata.Snapshots)
			t.Run(change.name, func(t *testing.T) {
				t.Parallel()
				requireAgree(t, statement, expected[statement], found)
			})
		}

		t.Logf("%s: %d statements", change.name, len(statements))
	}
}
