package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cliMistakes are usual mistakes on the command line, by their names. The caller is ada, who owns shop/orders and may only read
// bob/stock/items.
func cliMistakes() [][2]string {
	return [][2]string{
		{"a misspelt command", "quern uplaod orders.csv shop/orders"},
		{"a command of another program", "quern dataset ls"},
		{"a flag that does not exist", "quern rows shop/orders --where \"region = 'north'\""},
		{"a missing argument", "quern share shop/orders"},
		{"a file that does not exist", "quern upload order.csv shop/orders"},
		{"not signed in", "env -u QUERN_TOKEN quern dataset list"},
		{"a token that is not valid", "QUERN_TOKEN=qrn_0123456789 quern dataset list"},
		{"no server", "QUERN_SERVER=http://127.0.0.1:9 quern dataset list"},
		{"a dataset without its namespace", "quern dataset show orders"},
		{"the name of a dataset with a typo", "quern dataset show shop/order"},
		{"an upload to a dataset that one may only read", "quern upload orders.csv bob/stock/items"},
		{"an upload to a namespace of somebody else", "quern upload orders.csv bob/private/items"},
		{"a column with a typo", "echo 'SELECT regoin FROM orders;' | quern sql -n shop"},
		{"a dataset with a typo in a query", "quern query -n shop 'SELECT * FROM order_s'"},
		{"a statement without a namespace", "quern query 'SELECT * FROM orders'"},
		{"a role that does not exist", "quern share shop/orders bob --role reader"},
		{"an export format that does not exist", "quern export shop/orders --format xlsx"},
		{"a rating of a run that does not exist", "quern rate 0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70 up"},
	}
}

// tellCLIMistakes makes the mistakes and returns them with the exit codes and the messages.
func tellCLIMistakes(t *testing.T, s *service, key *signer) string {
	t.Helper()

	bob := key.token("bob")
	for _, dataset := range []string{"stock/items", "private/items"} {
		require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/ingest/new/"+dataset, bob, "").status)
	}

	share(t, s, bob, "datasets/bob/stock/items", "ada", "viewer")

	c := s.signedIn(t, key.token("ada"))
	require.NoError(t, os.WriteFile(filepath.Join(c.home, "orders.csv"), []byte("region\nnorth\n"), 0o600))

	session := &goldenSession{cli: c, s: s, names: map[string]string{}, values: map[string]string{}}

	var told strings.Builder

	for _, m := range cliMistakes() {
		stdout, stderr, code := session.shell(t, m[1])
		require.NotZero(t, code, m[1])
		fmt.Fprintf(&told, "# %s\n$ %s\n", m[0], m[1])

		for line := range strings.Lines(strings.ReplaceAll(session.normal(stdout+stderr), s.root, "https://quern.example.org")) {
			told.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
		}

		fmt.Fprintf(&told, "exit %d\n\n", code)
	}

	return told.String()
}
