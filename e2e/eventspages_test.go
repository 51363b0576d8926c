package e2e

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventCLI kills the service under `quern watch`, which must print what follows.
func eventCLI(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "olga", key.token("olga"))
	three := another(t, one, scripted, "QUERN_LISTEN_ADDR="+freeAddress(t))
	bearer := value(t, call(t, http.MethodPost, one.url+"/user/tokens", d.bearer, `{"name": "watcher"}`))
	before := call(t, http.MethodGet, one.url+"/events", bearer, "")

	var start struct{ LastEventID string }

	before.json(t, &start)

	printed := make(chan string, 1)
	watching := three.signedIn(t, bearer)

	go func() {
		printed <- watching.run("watch", "--type", "dataset.loaded", "--dataset", d.namespace+"/orders", "--after", start.LastEventID, "--count", "2", "-o", "ndjson")
	}()

	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 1}]}`)
	await(t, "the command follows", func() bool { return strings.Contains(three.log(), "listening") })
	pause(3 * time.Second)
	three.kill()
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 2}, {"n": 3}]}`)
	three.restart()

	lines := strings.Split(strings.TrimSpace(<-printed), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"rows":1`)
	require.Contains(t, lines[1], `"rows":2`)
}

// freeAddress returns an address at which nothing listens, for a service that is started again at the same address.
func freeAddress(t *testing.T) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())

	return listener.Addr().String()
}

// eventPages reads events page by page.
func eventPages(t *testing.T, one, two *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "petra", key.token("petra"))

	read := func(s *service, after, query string) (page struct {
		Data        []notice
		LastEventID string
	},
	) {
		answer := call(t, http.MethodGet, s.url+"/events"+query, d.bearer, "", "Last-Event-ID: "+after)
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &page)

		return page
	}

	begin := read(one, "999999999999999999", "")
	require.Empty(t, begin.Data)

	for i := range 5 {
		postRows(t, one, d.bearer, d.path(), fmt.Sprintf(`{"data": [{"n": %d}]}`, i))
	}

	var got []string

	await(t, "all pages", func() bool {
		services := []*service{one, two}
		page := read(services[len(got)%2], begin.LastEventID, "?limit=2&types=dataset.loaded")
		begin.LastEventID = page.LastEventID

		for _, e := range page.Data {
			got = append(got, e.Data.SnapshotID)
		}

		return len(got) >= 5
	})

	slices.Sort(got)
	require.Len(t, slices.Compact(got), 5)
}
