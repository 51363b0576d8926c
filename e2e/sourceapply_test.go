package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestSourceApply exports what one person has, and applies it as another one.
func TestSourceApply(t *testing.T) {
	t.Parallel()

	web := newAddresses(t, "h2")
	s := start(t, web.hosts()+","+strings.TrimPrefix(stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "http://"))
	key := s.newKey()
	terminal := func(name string) *cli {
		return s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token(name), `{"name": "terminal", "role": "owner"}`)))
	}
	ada, bob := terminal("ada"), terminal("bob")
	there := newBucket(t)
	secret := stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))

		return path
	}

	made := ada.feed(secret+"\n", "connection", "create", "nightly", "--endpoint", there.endpoint, "--region", stack.Env(t, "QUERN_TEST_S3_REGION"),
		"--bucket", there.bucket, "--prefix", there.prefix, "--path-style", "--access-key-id", stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"))
	require.Zero(t, made.code, made.err)
	ada.run("source", "add", "orders", "shop/orders", "--connection", "nightly", "--prefix", "in/", "--pattern", "*.csv", "--delimiter", ";", "--accept", "rowsPresent", "--deleted", "remove",
		"--schedule", "0 3 * * *", "--time-zone", "Europe/Vienna")
	ada.run("source", "add", "all", "shop/all", "--connection", "nightly")
	ada.run("source", "pause", "all")

	text := ada.run("source", "export")
	require.NotContains(t, text, secret)
	require.Contains(t, text, "  - name: orders\n    connection: nightly\n    dataset: ada/shop/orders\n    prefix: in/\n    pattern: '*.csv'\n    options:\n      delimiter: ;\n    accept:\n      - rowsPresent\n")
	require.Contains(t, text, "    deleted: remove\n    schedule:\n      cron: 0 3 * * *\n")
	require.Contains(t, text, "    paused: true\n")
	require.NotContains(t, ada.run("source", "export", "ORDERS"), "name: all")
	require.Equal(t, 5, ada.try("source", "export", "other").code)

	// The file of what is there changes nothing.
	file := write("ada.yaml", text)
	require.Contains(t, ada.run("source", "apply", file), "source orders: as in the file\nsource all: as in the file\nNothing differs.\n")

	// Another person needs the secret, and then has the same.
	file = write("bob.yaml", strings.ReplaceAll(text, "ada/shop", "shop"))
	refused := bob.try("source", "apply", file)
	require.Equal(t, 2, refused.code)
	require.Contains(t, refused.err, "QUERN_CONNECTION_SECRET_NIGHTLY")

	given := "nightly=" + write("secret", secret+"\n")
	require.Equal(t, "connection nightly: would be made\nsource orders: would be made\nsource all: would be made\n", bob.run("source", "apply", "--dry-run", file))
	require.Contains(t, bob.run("source", "list"), "No sources.")
	require.Equal(t, "connection nightly: made\nsource orders: made\nsource all: made\n", bob.run("source", "apply", "--secret-file", given, file))
	require.Contains(t, bob.run("source", "apply", file), "Nothing differs.\n")
	require.Equal(t, text, strings.ReplaceAll(bob.run("source", "export"), "bob/shop", "ada/shop"))

	there.put("in/a.csv", "id;total\n1;5\n2;7\n")
	require.Equal(t, "Loaded 1 file with 2 rows.\n", bob.run("source", "run", "orders"))

	// What differs is changed, and nothing that is left out is deleted.
	file = write("changed.yaml", `sources:
  - {name: orders, connection: Nightly, dataset: shop/orders, prefix: in/, changed: replace}
`)
	differs := `
  pattern: *.csv -> *
  options: {"delimiter":";"} -> none
  accept: ["rowsPresent"] -> none
  changed: keep -> replace
  deleted: remove -> keep
  schedule: {"cron":"0 3 * * *","jitterMinutes":0,"timeZone":"Europe/Vienna"} -> none
`
	require.Equal(t, "source orders: would be changed"+differs, bob.run("source", "apply", "--dry-run", file))
	require.Equal(t, "source orders: changed"+differs, bob.run("source", "apply", file))
	require.Contains(t, bob.run("source", "apply", file), "Nothing differs.\n")
	require.Contains(t, bob.run("source", "list"), "all")

	// A source of files can have another connection, also one that the file makes.
	moved := strings.ReplaceAll(text, "nightly", "later")
	file = write("moved.yaml", strings.ReplaceAll(moved, "ada/shop", "shop"))
	require.Contains(t, bob.run("source", "apply", "--secret-file", "later="+write("secret", secret+"\n"), file), "source all: changed\n  connection: nightly -> later\n")
	require.Contains(t, bob.run("source", "apply", file), "Nothing differs.\n")
	require.Equal(t, "Found no new file among in/*.csv.\n", bob.run("source", "run", "orders"))

	// A secret that is given replaces the one of a connection that exists, after a test. It is not ignored.
	refused = bob.try("source", "apply", "--secret-file", "later="+write("wrong", "wrong\n"), file)
	require.Equal(t, 7, refused.code, refused.err)
	require.Contains(t, refused.err, "refused the access key")
	require.Contains(t, bob.run("source", "apply", "--dry-run", "--secret-file", "later="+write("wrong", "wrong\n"), file), "connection later: would be given another secret\n")
	require.Contains(t, bob.run("source", "apply", "--secret-file", "LATER="+write("secret", secret+"\n"), file), "connection later: given another secret\n")
	refused = bob.try("source", "apply", "--secret-file", "other="+write("secret", secret+"\n"), file)
	require.Equal(t, 2, refused.code, refused.err)
	require.Contains(t, refused.err, `--secret-file names "other"`)

	// What cannot be changed, or is wrong, is told before anything is changed.
	for content, code := range map[string]int{
		"sources: [{name: all, connection: nightly, dataset: shop/all}, {name: orders, connection: nightly, dataset: shop/other}]": 6,
		"connections: [{name: nightly, s3: {endpoint: 'https://other.example', region: x, bucket: bucket, accessKeyId: x}}]":       6,
		"sources: [{name: orders, connection: none, dataset: shop/orders}]":                                                        5,
		"sources: [{name: orders, connection: nightly, dataset: shop/orders, colour: red}]":                                        2,
		"sources: [{name: a, connection: nightly, dataset: a/b}, {name: A, connection: nightly, dataset: a/b}]":                    2,
		"connections: [{name: nightly}]": 2,
		"sources: [{name: orders, connection: nightly, dataset: shop/orders, pattern: '['}]":                                                      2,
		"sources: [{name: orders, connection: nightly, dataset: shop/orders, schedule: {cron: '0 25 * * *', timeZone: UTC}}]":                     2,
		"sources: [{name: orders, connection: nightly, dataset: shop/orders, schedule: {cron: '0 3 * * *', timeZone: Mars/Olympus}}]":             2,
		"sources: [{name: orders, connection: nightly, dataset: shop/orders, schedule: {cron: '0 3 * * *', timeZone: UTC, jitterMinutes: 1000}}]": 2,
		"sources: [": 2,
		"connections: [{name: n, s3: {endpoint: 'https://s.example', region: x, bucket: b, accessKeyId: x, secretAccessKey: x}}]": 2,
	} {
		refused := bob.try("source", "apply", "--dry-run", write("wrong.yaml", content))
		require.Equal(t, code, refused.code, "%s: %s", content, refused.err)
	}

	require.Contains(t, bob.run("source", "export", "all"), "paused: true")
	applyAddresses(t, ada, bob, web, write)
}

// applyAddresses does the same with addresses, which have a certificate and may have no secret.
func applyAddresses(t *testing.T, ada, bob *cli, web *addresses, write func(name, text string) string) {
	t.Helper()

	ca, token := write("ca.pem", web.ca), "TOKEN"+strings.Repeat("x", 20)
	require.Equal(t, 2, ada.try("connection", "create", "x", "--url", web.server.URL, "--endpoint", "https://s.example").code)
	require.Equal(t, 2, ada.try("connection", "create", "x", "--url", web.server.URL, "--token-file", ca, "--user", "reader").code)
	ada.run("connection", "create", "open", "--url", web.server.URL+"/data", "--ca-file", ca)

	web.wanted = "Bearer " + token
	require.Contains(t, ada.run("connection", "create", "partner", "--url", web.server.URL+"/data/", "--ca-file", ca, "--token-file", write("token", token+"\n")), "works")
	require.Equal(t, 7, ada.try("connection", "rekey", "partner", "--token-file", ca).code)
	require.Contains(t, ada.run("connection", "rekey", "partner", "--token-file", write("token", token)), "works with the new token")
	require.Contains(t, ada.run("connection", "list"), web.server.URL+"/data/")
	require.NotContains(t, ada.run("connection", "list", "-o", "json"), token)

	ada.run("source", "add", "prices", "shop/prices", "--connection", "partner", "--path", "a.csv", "--path", "b,c.csv", "--changed", "replace")
	web.put("a.csv", "id;total\n1;5\n")
	web.put("b,c.csv", "id;total\n2;6\n")
	require.Equal(t, "Loaded 2 files with 2 rows.\n", ada.run("source", "run", "prices"))
	require.Equal(t, "Found no new file among a.csv, b,c.csv.\n", ada.run("source", "run", "prices"))
	require.Contains(t, ada.run("source", "show", "prices"), "prices loads a.csv, b,c.csv into ada/shop/prices: active")
	require.Contains(t, ada.run("source", "change", "prices", "--path", "b,c.csv"), "The next run uses it.")

	text := ada.run("source", "export", "prices")
	require.NotContains(t, text, token)
	require.Contains(t, text, "    paths:\n      - b,c.csv\n")
	require.Contains(t, ada.run("source", "apply", write("prices.yaml", text)), "Nothing differs.")

	file := write("prices.yaml", strings.ReplaceAll(text, "ada/shop", "shop"))
	require.Equal(t, 2, bob.try("source", "apply", file).code)
	require.Equal(t, "connection partner: made\nsource prices: made\n", bob.run("source", "apply", "--secret-file", "partner="+write("token", token), file))
	require.Equal(t, text, strings.ReplaceAll(bob.run("source", "export", "prices"), "bob/shop", "ada/shop"))
	require.Equal(t, "Loaded 1 file with 1 row.\n", bob.run("source", "run", "prices"))

	file = write("prices.yaml", strings.ReplaceAll(strings.ReplaceAll(text, "ada/shop", "shop"), "- b,c.csv", "- a.csv"))
	require.Equal(t, "connection partner: as in the file\nsource prices: changed\n  paths: [\"b,c.csv\"] -> [\"a.csv\"]\n", bob.run("source", "apply", file))

	// Without credentials no secret is asked for. Settings that do not fit are told.
	web.wanted = ""
	open := fmt.Sprintf("connections: [{name: free, https: {baseUrl: '%s', caCertificate: %q}}]", web.server.URL+"/data", web.ca)
	require.Equal(t, "connection free: made\n", bob.run("source", "apply", write("free.yaml", open)))
	require.Contains(t, bob.run("source", "apply", write("free.yaml", open)), "Nothing differs.")

	for _, settings := range []string{"auth: basic", "auth: digest", "auth: bearer, user: reader"} {
		require.Equal(t, 2, bob.try("source", "apply", write("free.yaml", strings.Replace(open, "https: {", "https: {"+settings+", ", 1))).code, settings)
	}
}
