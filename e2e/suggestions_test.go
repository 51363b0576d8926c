package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSuggestions checks that every suggested question is answered, and that nobody gets one about what they do not see.
func TestSuggestions(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	key := s.newKey()
	d := newTrade(t, s, "ada", key.token("ada"))

	type list struct {
		Data []struct{ Username, Namespace, Dataset, Question, Interpretation string }
	}

	suggest := func(user, query string) (got list) {
		call(t, http.MethodGet, s.url+"/query/suggestions"+query, key.token(user), "").json(t, &got)

		return got
	}

	all := suggest("ada", "?limit=8")
	require.GreaterOrEqual(t, len(all.Data), 4)

	datasets := map[string]bool{}

	for _, one := range all.Data {
		datasets[one.Dataset] = true
		require.Equal(t, "ada", one.Username)

		run := d.asks(one.Question, "")
		require.Equal(t, "answer", run.Result.Outcome, "%s: %s", one.Question, run.Result.Response)
		require.Equal(t, run.Result.Interpretation, one.Interpretation)
	}

	require.Len(t, datasets, 3, "the datasets take turns")

	namespace := "?username=ada&namespace=" + all.Data[0].Namespace
	require.Len(t, suggest("ada", namespace).Data, 4)

	about := suggest("ada", namespace+"&dataset=customers&limit=8")
	require.NotEmpty(t, about.Data)

	for _, one := range about.Data {
		require.Equal(t, "customers", one.Dataset)
	}

	require.Empty(t, suggest("bob", "").Data)

	for _, query := range []string{namespace, namespace + "&dataset=customers", "?username=ada&namespace=nothing"} {
		require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/query/suggestions"+query, key.token("bob"), "").status, query)
	}

	for _, query := range []string{"?namespace=x", "?username=ada", "?dataset=orders", "?limit=0", "?limit=9"} {
		requireFault(t, query, call(t, http.MethodGet, s.url+"/query/suggestions"+query, key.token("ada"), ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED")
	}
}
