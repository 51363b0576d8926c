package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestSmallModel: a real model answers through the whole service. What it answers is not looked at: it is far too small,
// and now and then talks until it is cut off.
func TestSmallModel(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MODELS=near/smollm2-135m", "QUERN_MODEL_NEAR_KIND=openai", "QUERN_MODEL_NEAR_LOCAL=true", "QUERN_MODEL_NEAR_TIMEOUT=5m",
		"QUERN_MODEL_NEAR_URL="+stack.Env(t, "QUERN_TEST_MODEL_URL"))
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	postRows(t, s, d.bearer, d.path(), `{"data": [{"n": 1}, {"n": 2}]}`)

	var run concluded

	for tries := 0; tries < 3 && run.Status != "completed"; tries++ {
		body := fmt.Sprintf(`{"username": "ada", "namespace": %q, "agent": "nl2ql", "query": "How many rows are there?"}`, d.namespace)
		answer := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, body, "Prefer: respond-async")
		require.Equal(t, http.StatusAccepted, answer.status, answer.body)
		answer.json(t, &run)

		awaitFor(t, 5*time.Minute, "the run ends", func() bool {
			call(t, http.MethodGet, s.url+"/query/runs/"+run.RunID, d.bearer, "").json(t, &run)

			return run.Status != "running"
		})

		t.Logf("%+v", run)
	}

	require.Equal(t, "completed", run.Status)
	require.Equal(t, "smollm2-135m", run.Result.Model)
	require.Positive(t, run.Result.Usage.OutputTokens)
}
