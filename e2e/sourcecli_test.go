package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestSourceCommands uses sources as a person at a terminal does.
func TestSourceCommands(t *testing.T) {
	t.Parallel()

	s := start(t)
	bearer := value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "terminal", "role": "owner"}`))
	c := s.signedIn(t, bearer)
	there := newBucket(t)

	var begun struct{ LastEventID string }

	call(t, http.MethodGet, s.url+"/events", bearer, "").json(t, &begun)

	made := c.feed(stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")+"\n", "connection", "create", "nightly", "--endpoint", there.endpoint, "--region", stack.Env(t, "QUERN_TEST_S3_REGION"),
		"--bucket", there.bucket, "--prefix", there.prefix, "--path-style", "--access-key-id", stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"))
	require.Zero(t, made.code, made.err)

	refused := c.try("source", "add", "orders", "shop/orders", "--connection", "daily")
	require.Equal(t, 5, refused.code)
	require.Contains(t, refused.err, `you have no connection with the name or id "daily"`)
	require.Contains(t, refused.err, "quern connection list")
	require.Equal(t, 2, c.try("source", "add", "orders", "shop/orders").code)
	require.Contains(t, c.run("source", "list"), "No sources.")

	require.Contains(t, c.run("source", "add", "orders", "shop/orders", "--connection", "Nightly", "--prefix", "in/", "--pattern", "*.csv", "--delimiter", ";"), "`quern source run orders`")
	there.put("in/a.csv", "id;total\n1;5\n2;7\n")
	require.Equal(t, "Loaded 1 file with 2 rows.\n", c.run("source", "run", "orders"))
	require.Equal(t, "Found no new file among in/*.csv.\n", c.run("source", "run", "ORDERS"))
	require.Contains(t, c.run("query", "-n", "shop", "SELECT sum(total) AS s FROM orders", "-o", "ndjson"), `{"s":12}`)

	// A file that waits: the reason and the next command are told.
	there.put("in/b.csv", "id;total\n1;5\n2;7\n")
	there.put("in/a.csv", "id;total\n1;6\n")

	stopped := c.try("source", "run", "orders")
	require.Equal(t, 9, stopped.code, stopped.err)
	require.Contains(t, stopped.out, "changed in/a.csv")
	require.Contains(t, stopped.err, `"in/b.csv" waits`)
	require.Contains(t, stopped.err, "quern ingestion show ada/shop/orders")

	shown := c.run("source", "show", "orders")
	require.Contains(t, shown, "orders loads in/*.csv into ada/shop/orders: stopped")
	require.Contains(t, shown, "Connection: nightly, which leads to "+there.endpoint+"/"+there.bucket+"/"+strings.TrimSuffix(there.prefix, "/"))
	require.Contains(t, shown, "\nFiles: under in/, those that match *.csv\nOptions: delimiter \";\"\n")
	require.Contains(t, shown, "Changed files: keep rows. Deleted files: keep rows.\nSchedule: none, it runs only when somebody asks.\n")
	require.Contains(t, c.run("source", "list"), "stopped")

	// An event says which source it is, and which dataset.
	told := c.run("watch", "--type", "source.stopped", "--after", begun.LastEventID, "--count", "1")
	require.Contains(t, told, "ada/shop/orders  doubt  ")
	require.Contains(t, told, "  source orders\n")
	require.Contains(t, c.run("watch", "--type", "source.stopped", "--after", begun.LastEventID, "--count", "1", "-o", "ndjson"), `"source":"orders"`)

	// The files that a source with a pattern would load.
	there.put("in/b.txt", "x")
	there.put("in/empty.csv", "")
	there.put("in/2026/c.csv", "x")

	for pattern, want := range map[string][]string{"*.csv": {"in/2026/c.csv", "in/a.csv", "in/b.csv"}, "2026/*": {"in/2026/c.csv"}, "?.*": {"in/2026/c.csv", "in/a.csv", "in/b.csv", "in/b.txt"}, "*.parquet": {}} {
		var listed []string

		for line := range strings.Lines(c.run("connection", "files", "nightly", "--prefix", "in/", "--pattern", pattern, "-o", "ndjson")) {
			listed = append(listed, regexp.MustCompile(`"path":"([^"]+)"`).FindStringSubmatch(line)[1])
		}

		require.ElementsMatch(t, want, listed, pattern)
	}

	require.Contains(t, c.run("connection", "files", "nightly", "--pattern", "*.parquet"), "No file matches.")
	require.Equal(t, 2, c.try("connection", "files", "nightly", "--pattern", "[").code)
	there.remove("in/b.txt", "in/empty.csv", "in/2026/c.csv")
	require.Contains(t, c.run("ingestion", "list", "shop/orders"), "b.csv")

	require.Equal(t, 2, c.try("source", "change", "orders").code)
	require.Equal(t, 7, c.try("source", "change", "orders", "--changed", "remove").code)
	require.Contains(t, c.run("source", "change", "orders", "--changed", "replace", "--deleted", "remove", "--pattern", "a*"), "It is stopped: `quern source resume orders`")
	require.Contains(t, c.run("source", "show", "orders"), "Changed files: replace rows. Deleted files: remove rows.")
	require.Contains(t, shown, "in/b.csv waits for somebody to decide: `quern ingestion show ada/shop/orders ")

	resumed := c.run("source", "resume", "orders")
	require.Contains(t, resumed, "its next run stops again")
	require.Contains(t, resumed, "in/b.csv waits")
	waiting := regexp.MustCompile(`show ada/shop/orders ([0-9a-f-]{36})`).FindStringSubmatch(stopped.err)
	require.Len(t, waiting, 2, stopped.err)
	c.run("ingestion", "cancel", "shop/orders", waiting[1])
	ran := c.run("source", "run", "orders")
	require.Contains(t, ran, "Loaded 1 file with 1 row.\nReplaced 2 rows of 1 file.\n")
	require.Contains(t, ran, "replaced in/a.csv")
	require.Contains(t, c.run("query", "-n", "shop", "SELECT sum(total) AS s FROM orders", "-o", "ndjson"), `{"s":6}`)
	require.Contains(t, c.run("source", "change", "orders", "--changed", "keep", "--deleted", "keep", "--pattern", "*.csv"), "The next run uses it.")
	require.Contains(t, c.run("source", "schedule", "orders", "--schedule", "0 3 * * *", "--time-zone", "Europe/Vienna", "--jitter", "10m"), "The source runs next at ")
	shown = c.run("source", "show", "orders")
	require.Contains(t, shown, "Schedule: 0 3 * * * in Europe/Vienna, up to 10 minutes later\nNext run: ")
	require.Equal(t, 2, c.try("source", "schedule", "orders", "--time-zone", "UTC").code)
	require.Equal(t, 2, c.try("source", "schedule", "orders", "--schedule", "0 3 * * *", "--jitter", "90s").code)
	require.Equal(t, 2, c.try("source", "schedule", "orders").code)
	require.Equal(t, 2, c.try("source", "schedule", "orders", "--none", "--schedule", "0 3 * * *").code)
	require.NotZero(t, c.try("source", "schedule", "orders", "--schedule", "0 25 * * *").code)
	require.Contains(t, c.run("source", "schedule", "orders", "--none"), "only when somebody asks")
	require.Contains(t, c.run("source", "show", "orders"), "Schedule: none")
	require.Contains(t, c.run("source", "add", "daily", "shop/daily", "--connection", "nightly", "--schedule", "30 4 * * 1-5"), "It loads into ")
	require.Contains(t, c.run("dataset", "show", "shop/orders"), "refreshed")
	require.Contains(t, c.run("source", "pause", "orders"), "Paused")
	require.Equal(t, 6, c.try("source", "run", "orders").code)
	require.Contains(t, c.run("source", "delete", "orders"), "What it loaded stays.")
	require.Equal(t, 5, c.try("source", "show", "orders").code)
}
