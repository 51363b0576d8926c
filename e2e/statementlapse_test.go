package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRevokedStatementEnds checks that a running statement ends when its token is revoked or its account is disabled. It must not
// keep its slot until it times out.
func TestRevokedStatementEnds(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_QUERY_TIMEOUT=30m", "QUERN_REQUEST_TIMEOUT=30m")
	key := s.newKey()

	d := newAsker(t, s, key, "revoked")

	for name, headers := range map[string][]string{"rows": nil, "a file": {"Accept: text/csv"}} {
		id, value := newToken(t, s, d.bearer, "viewer")

		ended := beginEndless(d.by(value), headers...)
		await(t, "it runs", func() bool { return len(s.busy()) == 1 })
		require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/user/tokens/"+id, d.bearer, "").status)
		require.Equal(t, http.StatusUnauthorized, (<-ended).status, name)
		await(t, "its child is gone", func() bool { return len(s.busy()) == 0 && s.gauge("quern_query_running") == 0 })
	}

	ended := beginEndless(newAsker(t, s, key, "disabled"))
	await(t, "it runs", func() bool { return len(s.busy()) == 1 })
	s.quernd("user", "disable", "disabled")
	require.Equal(t, http.StatusUnauthorized, (<-ended).status)
}

// beginEndless sends a statement that does not end by itself, and returns a channel for its answer.
func beginEndless(d *filled, headers ...string) <-chan *answer {
	question, ended := d.question(endless, "", headers...), make(chan *answer, 1)

	go func() {
		got, err := try(question)
		if err != nil {
			got = &answer{body: err.Error()}
		}

		ended <- got
	}()

	return ended
}
