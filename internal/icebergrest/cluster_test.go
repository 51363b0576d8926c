//go:build trino

package icebergrest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/trino"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/icebergrest"
	"quern.dev/quern/stack"
)

// cluster is the stack's Trino with a catalog for one place.
type cluster struct {
	*place

	name  string
	trino *trino.Trino
}

func newCluster(t *testing.T) *cluster {
	t.Helper()

	c := &cluster{place: newPlace(t), name: "quern_" + strings.ReplaceAll(uuid.NewString(), "-", "")}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)

	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)

	var err error
	c.trino, err = trino.New(trino.Config{URL: stack.Env(t, "QUERN_TEST_TRINO_URL"), Catalog: c.name, Client: client, Memory: 256 << 20, Scan: 1 << 30})
	require.NoError(t, err)

	properties := []string{}
	for name, value := range map[string]string{
		"iceberg.catalog.type": "rest", "iceberg.rest-catalog.uri": server.URL, "iceberg.rest-catalog.security": "OAUTH2",
		"iceberg.rest-catalog.oauth2.token": secret, "iceberg.rest-catalog.oauth2.token-refresh-enabled": "false",
		"iceberg.rest-catalog.session": "USER", "iceberg.rest-catalog.session-timeout": "1m", "iceberg.rest-catalog.view-endpoints-enabled": "false",
		"iceberg.security": "read_only", "iceberg.metadata-cache.enabled": "false", "fs.native-s3.enabled": "true", "s3.path-style-access": "true",
		"s3.endpoint": stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "s3.region": stack.Env(t, "QUERN_TEST_S3_REGION"),
		"s3.aws-access-key": stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), "s3.aws-secret-key": stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"),
	} {
		properties = append(properties, fmt.Sprintf(`"%s" = '%s'`, name, value))
	}

	operator := func(text string) {
		_, _, err := c.run(context.WithoutCancel(t.Context()), trino.Statement{User: "quern", Source: "test", Text: text})
		require.NoError(t, err)
	}
	operator("CREATE CATALOG " + c.name + " USING iceberg WITH (" + strings.Join(properties, ", ") + ")")
	t.Cleanup(func() { operator("DROP CATALOG " + c.name) })

	return c
}

// run runs a statement and returns all rows.
func (c *cluster) run(ctx context.Context, s trino.Statement) (rows []string, ran engine.Ran, err error) {
	s.Timeout = cmp.Or(s.Timeout, time.Minute)

	result, err := c.trino.Run(ctx, s)
	if err != nil {
		return nil, ran, err
	}
	defer result.Close()

	for {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			ran, err = result.Finish()

			return rows, ran, err
		}

		if err != nil {
			return nil, ran, err
		}

		rows = append(rows, string(row.JSON))
	}
}

// in runs a statement in a schema.
func (c *cluster) in(s icebergrest.Schema, text string, values ...engine.Parameter) ([]string, error) {
	rows, _, err := c.run(c.t.Context(), trino.Statement{User: "ada", Source: s.Name, Schema: s.Name, Token: s.Token, Text: text, Parameters: values})

	return rows, err
}

func TestTrinoReadsSchemas(t *testing.T) { //nolint:paralleltest // one cluster
	c := newCluster(t)
	old, current := c.open("orders", c.first.ID), c.open("Orders 2026/a+b", c.second.ID)

	rows, err := c.in(old, "SELECT count(*) AS n FROM orders")
	require.NoError(t, err)
	require.Equal(t, []string{`{"n":1}`}, rows)

	rows, err = c.in(current, `SELECT count(*) AS n, sum(o.n) AS s FROM "Orders 2026/a+b" o JOIN "orders 2026/A+B" p ON o.n = p.n`)
	require.NoError(t, err)
	require.Equal(t, []string{`{"n":4,"s":4}`}, rows)

	// A statement that knows the name of another statement's schema cannot read it.
	for _, text := range []string{
		"SELECT n FROM " + old.Name + ".orders", `SELECT n FROM "` + current.Name + `".leads`, "SELECT n FROM " + c.name + "." + old.Name + ".orders",
		`SELECT * FROM "Orders 2026/a+b$files"`, `SELECT * FROM "Orders 2026/a+b$snapshots"`, "SELECT * FROM system.runtime.queries", "SELECT * FROM system.metadata.catalogs",
		`DELETE FROM "Orders 2026/a+b"`, "CREATE TABLE x (a bigint)", "DROP TABLE " + old.Name + ".orders", `ALTER TABLE "Orders 2026/a+b" EXECUTE optimize`,
		"CALL " + c.name + ".system.rollback_to_snapshot('a', 'b', 1)", "SET SESSION query_max_execution_time = '1h'", "SET SESSION " + c.name + ".projection_pushdown_enabled = true",
		"SELECT n FROM TABLE(" + c.name + ".system.table_changes('a', 'b', 1, 2))", "CREATE SCHEMA x", "GRANT SELECT ON x TO ada", "SET ROLE admin",
		"CREATE CATALOG x USING iceberg", "DROP CATALOG " + c.name, "KILL",
	} {
		rows, err := c.in(current, text)
		require.Error(t, err, "%s: %v", text, rows)
		require.NotContains(t, err.Error(), "q_", text)
	}

	rows, err = c.in(current, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'information_schema'")
	require.NoError(t, err)
	require.Empty(t, rows)

	rows, err = c.in(current, "SHOW SCHEMAS")
	if err == nil {
		require.NotContains(t, strings.Join(rows, " "), "q_")
	}

	require.NoError(t, c.Close(t.Context(), old))

	_, err = c.in(old, "SELECT count(*) FROM orders")
	require.Error(t, err)
}

func TestTrinoBindsParameters(t *testing.T) { //nolint:paralleltest // one cluster
	c := newCluster(t)
	s := c.open("orders", c.second.ID)
	value := func(kind, value string) engine.Parameter { return engine.Parameter{Type: kind, Value: &value} }
	hostile := `x' OR 1=1; DROP TABLE orders --\'' ü "`

	rows, err := c.in(s, `SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e, ? AS f, ? AS g, ? AS h, '?' AS i`,
		value("varchar", hostile), value("integer", "7"), value("bigint", "9007199254740993"), value("double", "1e3"), value("decimal(4,2)", "19.90"),
		value("date", "2026-11-01"), value("timestamp", "2026-11-01T12:00:00.5"), engine.Parameter{})
	require.NoError(t, err)
	require.Equal(t, []string{`{"a":"x' OR 1=1; DROP TABLE orders --\\'' ü \"","b":7,"c":"9007199254740993","d":1000.0,"e":19.9,"f":"2026-11-01","g":"2026-11-01T12:00:00.5","h":null,"i":"?"}`}, rows)
}

func TestTrinoStops(t *testing.T) { //nolint:paralleltest // one cluster
	c := newCluster(t)
	s := c.open("orders", c.second.ID)
	endless := "SELECT count(*) FROM UNNEST(sequence(1, 10000)) a(x), UNNEST(sequence(1, 10000)) b(y), UNNEST(sequence(1, 10000)) c(z) WHERE x + y + z = 1"

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()

	_, _, err := c.run(ctx, trino.Statement{User: "ada", Source: s.Name, Schema: s.Name, Token: s.Token, Text: endless})
	require.True(t, fault.Is(err, fault.Timeout), err)

	_, _, err = c.run(t.Context(), trino.Statement{User: "ada", Source: s.Name, Schema: s.Name, Token: s.Token, Text: endless, Timeout: time.Second})
	require.True(t, fault.Is(err, fault.Timeout), err)

	rows, ran, err := c.run(t.Context(), trino.Statement{User: "ada", Source: s.Name, Schema: s.Name, Token: s.Token, Text: "SELECT x FROM UNNEST(sequence(1, 10000)) a(x), UNNEST(sequence(1, 10000)) b(y)", Rows: 10})
	require.NoError(t, err)
	require.Len(t, rows, 10)
	require.Equal(t, engine.Ran{Rows: 10, Truncated: engine.ByRows}, ran)

	// None of them runs any longer.
	require.Eventually(t, func() bool {
		running, _, err := c.run(t.Context(), trino.Statement{User: "quern", Source: "test", Text: "SELECT query_id FROM system.runtime.queries WHERE state NOT IN ('FINISHED', 'FAILED') AND source = '" + s.Name + "'"})

		return err == nil && len(running) == 0
	}, 30*time.Second, 100*time.Millisecond)
}

// TestTrinoAtOnce checks that statements of one user at the same time never see each other's tables or snapshots.
func TestTrinoAtOnce(t *testing.T) { //nolint:paralleltest // one cluster
	c := newCluster(t)

	var group sync.WaitGroup

	for n := range 24 {
		group.Go(func() {
			want, snapshot := `{"n":1}`, c.first.ID
			if n%2 == 1 {
				want, snapshot = `{"n":2}`, c.second.ID
			}

			s := c.open("orders", snapshot)
			rows, err := c.in(s, "SELECT count(*) AS n FROM orders")
			assertEqual(t, []string{want}, rows, err)
		})
	}

	group.Wait()
}

func assertEqual(t *testing.T, want, found []string, err error) {
	t.Helper()

	if err != nil || fmt.Sprint(want) != fmt.Sprint(found) {
		t.Errorf("want %v, found %v, %v", want, found, err)
	}
}
