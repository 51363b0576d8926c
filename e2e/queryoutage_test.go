package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dropCache restarts the service, because cached data files do not outlive the process.
func dropCache(t *testing.T, s *service) {
	t.Helper()
	s.stop()
	s.restart()
}

func queryStoreDown(t *testing.T, s *service, key *signer) {
	t.Helper()

	between, settings := newStoreProxy(t)
	cut := start(t, append(settings, "QUERN_S3_TIMEOUT=1s", "QUERN_OIDC_ISSUER="+s.realm.issuer())...)
	d := newFilled(t, cut, "offline", value(t, call(t, http.MethodPost, cut.url+"/user/tokens", key.token("offline"), `{"name": "asker"}`)))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	require.Equal(t, [][]any{{1.0}}, d.result("FROM orders", "").rows())

	between.set(behaviour{refuse: true})
	require.Equal(t, [][]any{{1.0}}, d.result("FROM orders", "").rows(), "its file is here")
	require.Equal(t, [][]any{{1.0}}, d.result("SELECT 1", "").rows())
	require.Equal(t, "n\n1\n", d.call(http.MethodGet, "/export", "").body)

	dropCache(t, cut)

	for _, down := range []behaviour{{refuse: true}, {status: http.StatusServiceUnavailable}, {blackhole: true}} {
		between.set(down)

		began := time.Now()
		requireUnavailable(t, d.ask("FROM orders", ""))
		requireUnavailable(t, d.call(http.MethodGet, "/rows", ""))
		requireUnavailable(t, d.call(http.MethodGet, "/export", ""))
		require.Less(t, time.Since(began), 3*10*time.Second)
		require.Equal(t, [][]any{{1.0}}, d.result("SELECT 1", "").rows())
	}

	between.set(behaviour{})
	require.Equal(t, [][]any{{1.0}}, d.result("FROM orders", "").rows())
}

func queryDatabaseDown(t *testing.T, s *service, key *signer) {
	t.Helper()

	database := newPostgres(t)
	cut := database.serve(t, "QUERN_OIDC_ISSUER="+s.realm.issuer())
	d := newFilled(t, cut, "offline", key.token("offline"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	require.Equal(t, [][]any{{1.0}}, d.result("FROM orders", "").rows())

	database.run("stop")
	requireUnavailable(t, d.ask("FROM orders", ""))
	requireUnavailable(t, d.ask("SELECT 1", ""))
	requireUnavailable(t, d.call(http.MethodGet, "/rows", ""))
	requireUnavailable(t, d.call(http.MethodGet, "/export", ""))

	database.run("up")
	await(t, "the database is found again", func() bool { return d.ask("FROM orders", "").status == http.StatusOK })
}
