package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNL2QL checks the answers of nl2ql with a model, in every outcome.
func TestNL2QL(t *testing.T) {
	t.Parallel()

	m := newModel(t, func(said conversation) any {
		switch question := said.question(); {
		case strings.HasPrefix(question, "How many"):
			return selects(`SELECT count(*) AS n FROM "orders"`)
		case strings.HasPrefix(question, "And late"):
			return selects(`SELECT count(*) AS n FROM "orders" WHERE "status" = 'Late'`)
		case strings.HasPrefix(question, "None"):
			return selects(`SELECT "id" FROM "orders" WHERE "id" < 0`)
		case strings.HasPrefix(question, "Which"):
			return drafted{Outcome: "clarification", Interpretation: "Either.", Clarification: map[string]any{"question": "Which year?", "options": []string{"2025", "2026"}}}
		case strings.HasPrefix(question, "Delete"):
			return drafted{Outcome: "not_permitted", Interpretation: "To delete."}
		case strings.HasPrefix(question, "Weather"):
			return drafted{Outcome: "no_data", Interpretation: "The weather."}
		case strings.HasPrefix(question, "Hello"):
			return drafted{Outcome: "refused", Interpretation: "A greeting."}
		case strings.HasPrefix(question, "Never"):
			return selects(`SELECT nothing FROM "orders"`)
		default:
			return selects(`SELECT id FROM "orders" ORDER BY id`)
		}
	})
	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	key := s.newKey()
	d := newTrade(t, s, "ada", key.token("ada"))

	saved := d.call(http.MethodPut, "/inferDefinition", `{"dataDescription": "Orders of the wholesale shop.", "schemaDefinition": {"status": "Late means after the promised day."}}`)
	require.Equal(t, http.StatusCreated, saved.status, saved.body)

	last := func() string { return m.requests()[len(m.requests())-1] }

	first := d.asks("How many orders are there?", `"asOf": "2026-03-01T23:30:00Z", "timeZone": "Europe/Vienna", "helperPrompt": "Orders are never counted twice."`)
	require.Equal(t, "answer", first.Result.Outcome)
	require.Equal(t, map[string]any{"n": 200.0}, first.cells(t))
	require.Equal(t, "As it was asked: 200.", first.Result.Response)
	require.Equal(t, "As it was asked.", first.Result.Interpretation)
	require.Equal(t, 100, first.Result.Usage.InputTokens)

	for _, part := range []string{
		"Monday, 2026-03-02 00:30:00", "Europe/Vienna", "Orders are never counted twice.", "How many orders are there?", `\"name\":\"customers\"`, "Cancelled",
		"Orders of the wholesale shop.", "Late means after the promised day.",
	} {
		require.Contains(t, last(), part)
	}

	second := d.asks("And late ones?", fmt.Sprintf(`"conversationId": %q`, first.ConversationID))
	require.Equal(t, map[string]any{"n": 67.0}, second.cells(t))
	require.Contains(t, last(), "How many orders are there?")
	require.Contains(t, last(), `count(*) AS n`)

	// Requests about the same datasets have the same beginning.
	before, after := m.requests()[len(m.requests())-2], last()
	same := 0

	for same < len(before) && before[same] == after[same] {
		same++
	}

	require.Greater(t, same, strings.Index(after, "Datasets:")+1000)

	require.Len(t, d.asks("All ids", "").Result.Steps[0].Data, 200)

	none := d.asks("None at all", "")
	require.Equal(t, "no_data", none.Result.Outcome)
	require.Len(t, none.Result.Steps, 1)

	asked := d.asks("Which of them?", "")
	require.Equal(t, "clarification", asked.Result.Outcome)
	require.Equal(t, "Which year?", asked.Result.Response)
	require.Equal(t, []option{{Number: 1, Interpretation: "2025"}, {Number: 2, Interpretation: "2026"}}, asked.Result.Clarification.Options)

	for question, outcome := range map[string]string{"Delete them": "not_permitted", "Weather?": "no_data", "Hello": "refused", "Never right": "refused"} {
		run := d.asks(question, "")
		require.Equal(t, "completed", run.Status)
		require.Equal(t, outcome, run.Result.Outcome, question)
		require.Empty(t, run.Result.Steps)
		require.NotEmpty(t, run.Result.Response)
	}

	// A run ends after four attempts.
	attempts := 0

	for _, request := range m.requests() {
		if strings.Contains(request, "Never right") {
			attempts++
		}
	}

	require.Equal(t, 4, attempts)

	limited := d.asks("How many orders?", `"datasets": ["orders"]`)
	require.Equal(t, "answer", limited.Result.Outcome)
	require.NotContains(t, last(), `\"name\":\"customers\"`)

	unknown := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, fmt.Sprintf(`{"username": "ada", "namespace": %q, "query": "x", "timeZone": "Europe/Nowhere"}`, d.namespace))
	require.Equal(t, http.StatusUnprocessableEntity, unknown.status, unknown.body)

	// Datasets that the caller may not see are not sent to the model.
	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/products", "eve", "viewer")

	_ = d.by(key.token("eve")).asks("How many orders?", "")
	require.Contains(t, last(), `\"name\":\"products\"`)
	require.NotContains(t, last(), "customer_id")

	m.server.Close()

	down := d.asks("How many orders are late?", "")
	require.Equal(t, "answer", down.Result.Outcome, "%+v", down)
	require.Equal(t, map[string]any{"count": 67.0}, down.cells(t))
	require.Equal(t, "planner", down.Result.Model)
	require.Equal(t, byRules, down.Result.Response)
	require.Zero(t, down.Result.Usage.InputTokens)
	require.Equal(t, 3, s.count(`SELECT count(*) FROM model_calls WHERE run_id = $1 AND state = 'failed'`, down.RunID), "it was tried")

	require.Equal(t, "not_permitted", d.asks("Delete all orders", "").Result.Outcome)

	// Questions that the planner does not understand, that refer to earlier ones, or that name a model still fail.
	for question, more := range map[string]string{
		"What is the profit margin by region?": "", "How many of those orders are late?": fmt.Sprintf(`"conversationId": %q`, first.ConversationID),
		"How many orders are there?": `"model": "small"`,
	} {
		run := d.asks(question, more)
		require.Equal(t, "failed", run.Status, question)
		require.Equal(t, "UNAVAILABLE", run.Error.Code)
		require.Contains(t, run.Error.Message, "model")
		require.Equal(t, more != `"model": "small"`, strings.Contains(run.Error.Message, "does not understand the question either"), run.Error.Message)
	}
}
