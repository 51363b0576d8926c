package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// attachedCommands attaches a table as a person at a terminal does, and tries what an operator may not do with it.
func attachedCommands(t *testing.T, s *service, c *tableCatalog, key *signer) {
	t.Helper()

	table, folder := "cli.orders", t.TempDir()
	terminal := s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("typist"), `{"name": "terminal", "role": "owner"}`)))

	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))

		return path
	}
	connect := func(name string, more ...string) printed {
		return terminal.feed(stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")+"\n", append([]string{
			"connection", "create", name, "--catalog", c.server.URL, "--warehouse", "main", "--ca-file", file("ca.pem", c.ca), "--endpoint", c.there.endpoint, "--region", stack.Env(t, "QUERN_TEST_S3_REGION"),
			"--bucket", c.there.bucket, "--prefix", c.there.prefix, "--path-style", "--access-key-id", stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"),
		}, more...)...)
	}

	c.do("create", map[string]any{"table": table, "columns": numberedColumns})
	c.do("append", map[string]any{"table": table, "rows": numberedRows(1, 3)})

	refused := connect("lake", "--token-file", file("wrong", "wrong\n"))
	require.Equal(t, 7, refused.code, refused.err)
	require.Contains(t, refused.err, "refused the credentials")
	made := connect("lake", "--client-id", c.client, "--client-secret-file", file("secret", c.secret+"\n"))
	require.Zero(t, made.code, made.err)
	require.Equal(t, "The connection lake works.\n", made.out)
	require.Contains(t, terminal.run("connection", "test", "lake"), "It works.")
	require.Contains(t, terminal.run("connection", "list"), "iceberg")

	for name, code := range map[string]int{"": 2, "orders": 2, "cli.nothing": 7} {
		arguments := []string{"source", "add", "orders", "lake/orders", "--connection", "lake"}
		if name != "" {
			arguments = append(arguments, "--table", name)
		}

		refused := terminal.try(arguments...)
		require.Equal(t, code, refused.code, refused.err)
	}

	added := terminal.run("source", "add", "orders", "lake/orders", "--connection", "lake", "--table", table, "--schedule", "*/30 * * * *", "--time-zone", "UTC")
	require.Equal(t, "Added the source orders. `quern source run orders` attaches cli.orders as typist/lake/orders.\n", added)
	require.Contains(t, terminal.run("source", "list"), table)

	pinned := func() string { return "the snapshot " + c.read(table).Snapshot }
	require.Equal(t, "Attached "+pinned()+" with 3 rows in 1 file.\n", terminal.run("source", "run", "orders"))

	shown := terminal.run("source", "show", "orders")
	require.Contains(t, shown, "orders attaches cli.orders as typist/lake/orders: active\nConnection: lake, which leads to ")
	require.Contains(t, shown, "\nTable: orders in the namespace cli. Each run attaches its current snapshot.\nThe last run attached "+pinned()+".\nSchedule: */30 * * * * in UTC\n")
	require.NotContains(t, shown, "Changed files")

	var told struct {
		Iceberg struct{ Namespace, Table string }
		LastRun struct{ SnapshotID string }
	}

	require.NoError(t, json.Unmarshal([]byte(terminal.run("source", "show", "orders", "-o", "json")), &told))
	require.Equal(t, []string{"cli", "orders", c.read(table).Snapshot}, []string{told.Iceberg.Namespace, told.Iceberg.Table, told.LastRun.SnapshotID})
	require.Contains(t, terminal.run("query", "-n", "lake", "SELECT count(*) AS n FROM orders", "-o", "ndjson"), `{"n":3}`)

	exported := terminal.run("source", "export")
	require.Contains(t, exported, "iceberg:\n")
	require.NotContains(t, exported, c.secret)
	require.Contains(t, terminal.run("source", "apply", file("sources.yaml", exported)), "Nothing differs.")

	c.do("append", map[string]any{"table": table, "rows": numberedRows(4, 2)})
	require.Equal(t, "Attached "+pinned()+" with 5 rows in 2 files.\n", terminal.run("source", "run", "orders"))

	// Rows are changed in the other catalog, and Trino does not read its files.
	changed := terminal.try("rows", "delete", "lake/orders", "--where", "id = 1", "--yes")
	require.Equal(t, 6, changed.code, changed.err)
	require.Contains(t, changed.err, "is attached")

	for engine, said := range map[string]string{"trino": "typist/lake/orders is attached: Trino does not have the files of the other catalog", "duckdb": "the engine of typist/lake/orders is duckdb"} {
		command := exec.CommandContext(t.Context(), binary(), "engine", "set", "typist/lake/orders", engine)
		command.Env = []string{"QUERN_DATABASE_URL=" + s.databaseURL, "QUERN_TRINO_URL=http://127.0.0.1:1"} // it is not asked

		printed, err := command.CombinedOutput()
		require.Equal(t, engine == "duckdb", err == nil, string(printed))
		require.Contains(t, string(printed), said)
	}

	require.Contains(t, terminal.run("query", "-n", "lake", "SELECT count(*) AS n FROM orders", "-o", "ndjson"), `{"n":5}`)

	// Another table with the name stops the source.
	c.do("drop", map[string]any{"table": table})
	c.do("create", map[string]any{"table": table, "columns": numberedColumns})

	stopped := terminal.try("source", "run", "orders")
	require.Equal(t, 9, stopped.code, stopped.out)
	require.Contains(t, stopped.err, "shows another table")
	require.Contains(t, stopped.err, "`quern source resume orders`")
	require.Contains(t, terminal.run("source", "delete", "orders"), "What it loaded stays.")
	require.Contains(t, terminal.run("query", "-n", "lake", "SELECT count(*) AS n FROM orders", "-o", "ndjson"), `{"n":5}`)
}
