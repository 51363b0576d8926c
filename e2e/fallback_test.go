package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

const byRules = "No model could be reached, so the planner answered.\n\nNumber of orders where status is 'Late': 67."

// TestFallback checks that the assistant and A2A clients get the planner's answer while no model can be reached, and that the
// answer says so. A worker that takes over such a run also uses the planner, even if the model answers by then.
func TestFallback(t *testing.T) {
	t.Parallel()

	m := newModel(t, func(conversation) any { return selects(`SELECT 1 AS wrong`) })
	m.down.Store(true)

	settings := append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_QUERY_MAX_RUNNING=1", "QUERN_QUERY_THREADS=1", "QUERN_QUERY_WAIT_TIMEOUT=1m")
	s := start(t, append(settings, "QUERN_RUN_WORKERS=0")...)
	worker := another(t, s, settings...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	ask := func(question string) (run concluded) {
		answer := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("assistant", question, ""), "Accept: application/json", "Prefer: wait=60")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &run)

		return run
	}

	answered := ask("How many orders are late?")
	require.Equal(t, "planner", answered.Result.Model)
	require.Equal(t, byRules, answered.Result.Response)
	require.Equal(t, map[string]any{"count": 67.0}, answered.cells(t))

	events := follow(t, newRequest(t, http.MethodGet, s.url+"/query/runs/"+answered.RunID+"/events", d.bearer, ""), 100)
	names := []string{}

	for _, e := range events {
		names = append(names, e.name)
	}

	require.Equal(t, []string{"runStarted", "planningStarted", "plan", "stepStarted", "queryExecuting", "step", "answerStarted", "answer", "runCompleted"}, names)

	failed := ask("Why is the profit so low?")
	require.Equal(t, "failed", failed.Status)
	require.Equal(t, "UNAVAILABLE", failed.Error.Code)
	require.Contains(t, failed.Error.Message, "The planner does not understand the question either.")

	told := newPeer(d, "nl2ql").call("SendMessage", newPeer(d, "nl2ql").ask(uuid.NewString(), "How many orders are late?", ""))
	task := rpcResult(t, told).Task
	require.NotNil(t, task, told.body)
	require.Equal(t, "TASK_STATE_COMPLETED", task.Status.State)
	require.Contains(t, told.body, "No model could be reached, so the planner answered")
	require.Contains(t, told.body, `"model":"planner"`)

	for _, agent := range []string{"nl2ql", "assistant"} {
		fallbackKilled(t, d, worker, m, agent)
	}

	require.Zero(t, s.count(`SELECT count(*) FROM model_calls WHERE state = 'done'`))
}

// fallbackKilled kills the worker while its statement waits for a slot, and makes the model available from then on.
func fallbackKilled(t *testing.T, d *filled, worker *service, m *model, agent string) {
	t.Helper()

	m.down.Store(true)

	body := fmt.Sprintf(`{"username": "ada", "namespace": %q, "query": "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e"}`, d.namespace)
	long := newRequest(t, http.MethodPost, worker.url+"/query", d.bearer, body)

	go func() { // this statement holds the only slot
		if response, err := http.DefaultTransport.RoundTrip(long); err == nil {
			_ = response.Body.Close()
		}
	}()

	await(t, "the statement that holds the place", func() bool {
		return strings.Contains(call(t, http.MethodGet, worker.admin+"/metrics", "", "").body, "quern_query_running 1")
	})

	accepted := call(t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script(agent, "How many orders are late?", ""), "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, accepted.status, accepted.body)

	var run concluded

	accepted.json(t, &run)
	await(t, "the statement of the rules", func() bool {
		return d.s.count(`SELECT count(*) FROM run_events WHERE run_id = $1 AND kind = 'queryExecuting'`, run.RunID) == 1
	})

	worker.kill()
	m.down.Store(false)
	worker.restart()

	await(t, "the end", func() bool {
		call(t, http.MethodGet, d.s.url+"/query/runs/"+run.RunID, d.bearer, "").json(t, &run)

		return run.Status != "running"
	})
	require.Equal(t, "completed", run.Status, "%+v", run)
	require.Equal(t, "planner", run.Result.Model)
	require.Equal(t, byRules, run.Result.Response)
	require.Equal(t, map[string]any{"count": 67.0}, run.cells(t))
	require.Equal(t, "rules", run.Result.Basis)
	require.Contains(t, run.Result.Explained, explained{Words: "late", As: "value", Dataset: "orders", Column: "status"}, "the log has it")
	require.Zero(t, run.Result.Usage.InputTokens)
	require.Equal(t, 1, d.s.count(`SELECT count(*) FROM run_events WHERE run_id = $1 AND kind = 'queryExecuting'`, run.RunID))
}
