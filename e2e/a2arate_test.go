package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestA2ARate checks that A2A has the rate limit of REST and no other.
func TestA2ARate(t *testing.T) {
	t.Parallel()

	const burst = 50

	s := start(t, scripted, "QUERN_RATE_LIMIT=0.001", fmt.Sprintf("QUERN_RATE_BURST=%d", burst))
	d := &filled{t: t, s: s, bearer: s.newKey().token("ada"), owner: "ada"}

	for i := range burst {
		p := newPeer(d, []string{"nl2ql", "assistant"}[i%2])
		require.Contains(t, p.call("ListTasks", `{}`).body, `"tasks"`, i)
	}

	requireFault(t, "over A2A", newPeer(d, "nl2ql").call("ListTasks", `{}`), http.StatusTooManyRequests, "RATE_LIMITED")
	requireFault(t, "over REST", call(t, http.MethodGet, s.url+"/user/me", d.bearer, ""), http.StatusTooManyRequests, "RATE_LIMITED")
}
