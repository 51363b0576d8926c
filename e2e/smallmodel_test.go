package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestSmallModel checks that a real model answers through the whole service. Its answers are not checked: the model is far too
// small, and sometimes generates text until the limit. No other test runs at the same time: the model needs a core of its own,
// and with less it exceeds its time and is asked again.
func TestSmallModel(t *testing.T) { //nolint:paralleltest // see above
	s := start(t, "QUERN_MODELS=near/smollm2-135m", "QUERN_MODEL_NEAR_KIND=openai", "QUERN_MODEL_NEAR_LOCAL=true", "QUERN_MODEL_NEAR_TIMEOUT=1m",
		"QUERN_MODEL_NEAR_URL="+stack.Env(t, "QUERN_TEST_MODEL_URL"))
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	postRows(t, s, d.bearer, d.path(), `{"data": [{"n": 1}, {"n": 2}]}`)

	var run concluded

	// Each question gives the model another prompt. With the same prompt it would repeat itself again, until it is cut off.
	for _, question := range []string{"How many rows are there?", "Count the rows.", "What is the largest n?", "Show all rows.", "Sum of n?", "List n."} {
		if run.Status == "completed" && run.Result.Model != "planner" { // the rules answer what they understand if the model fails
			break
		}

		body := fmt.Sprintf(`{"username": "ada", "namespace": %q, "agent": "nl2ql", "query": %q}`, d.namespace, question)
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
