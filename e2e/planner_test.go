package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlanner checks the answers without a model, in every outcome.
func TestPlanner(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	for question, cells := range map[string]map[string]any{
		"How many orders are there?":                           {"count": 200.0},
		"How many orders are late?":                            {"count": 67.0},
		"How many late orders are in the north?":               {"count": 34.0},
		"What is the highest price of the products?":           {"highest price": 12.5},
		"How many customers live in Vienna?":                   {"count": 16.0},
		"How many orders have an amount of more than 90?":      {"count": 14.0},
		"What is the total amount of orders in February 2026?": {"total amount": 842.5},
	} {
		run := d.asks(question, "")
		require.Equal(t, "completed", run.Status)
		require.Equal(t, "answer", run.Result.Outcome, "%s: %s", question, run.Result.Response)
		require.Equal(t, cells, run.cells(t), question)
		require.Equal(t, "planner", run.Result.Model)
		require.NotEmpty(t, run.Result.Interpretation)
	}

	byRegion := d.asks("Number of orders by region", "")
	require.Equal(t, "number of *orders*, by *region*", byRegion.Result.Interpretation)
	require.Len(t, byRegion.Result.Steps[0].Data, 2)

	none := d.asks("How many different cities do customers in retail live in?", "")
	require.Equal(t, "answer", none.Result.Outcome)

	for question, part := range map[string]string{
		"What is the profit margin by region?": "profit",
		"How many orders were sent back?":      "back",
		"Wie viele Bestellungen gibt es?":      "German",
	} {
		run := d.asks(question, "")
		require.Equal(t, "refused", run.Result.Outcome, question)
		require.Empty(t, run.Result.Steps)
		require.Contains(t, run.Result.Response, part)
		require.Contains(t, run.Result.Response, "Questions that can be answered, for example:\n- How many ")
		require.Contains(t, run.Result.Response, "SQL always works: `quern query`, or `POST /query`.")
	}

	for _, order := range []string{"Delete all orders", "Please update the status of order 5 to late", "DROP TABLE orders", "insert a row into products"} {
		run := d.asks(order, "")
		require.Equal(t, "not_permitted", run.Result.Outcome, order)
		require.Equal(t, "Questions only read data. They cannot change, share or delete anything.", run.Result.Response)
		require.Equal(t, "planner", run.Result.Model)
	}

	// A question that changes the one before it is read with it, one that can be read on its own is, and the answer says so.
	within := fmt.Sprintf(`"conversationId": %q`, byRegion.ConversationID)
	byStatus := d.asks("And by status?", within)
	require.Equal(t, "number of *orders*, by *status*", byStatus.Result.Interpretation, byStatus.Result.Response)
	require.Equal(t, "number of *orders* where *region* is 'north', by *status*", d.asks("only in the north", within).Result.Interpretation)
	require.Equal(t, "refused", d.asks("And on Mars?", within).Result.Outcome)
	require.Equal(t, "refused", d.asks("And by status?", "").Result.Outcome, "there is no earlier question")
	require.Contains(t, d.asks("How many of those orders are late?", within).Result.Response, "interpreted this question on its own")
	require.Contains(t, d.asks("How many orders are late?", `"helperPrompt": "Only of 2025."`).Result.Response, "`helperPrompt`")
	require.Equal(t, "Number of orders where status is 'Late': 67.", d.asks("How many orders are late?", within).Result.Response)
	require.Equal(t, "Number of orders where status is 'Late': 67.", d.asks("How many of those orders are late?", "").Result.Response, "there is no earlier question")

	// A model that is not configured is refused before a run is made.
	body := fmt.Sprintf(`{"username": "ada", "namespace": %q, "query": "How many orders are there?", "model": "large"}`, d.namespace)
	named := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, body)
	require.Equal(t, []string{"model"}, requireFault(t, "a model", named, http.StatusUnprocessableEntity, "VALIDATION_FAILED"))

	// The events are the same as with a model.
	body = fmt.Sprintf(`{"username": "ada", "namespace": %q, "agent": "assistant", "query": "How many orders are there?"}`, d.namespace)
	stream := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, body, "Accept: text/event-stream")

	last := -1

	for _, event := range []string{"runStarted", "planningStarted", "plan", "stepStarted", "queryExecuting", "step", "answerStarted", "answer", "runCompleted"} {
		at := strings.Index(stream.body, "event: "+event+"\n")
		require.Greater(t, at, last, event)
		last = at
	}
}

// TestPlannerAccess checks with random grants that no answer comes from a dataset that the caller may not see, and that a
// question about such a dataset gets the same answer as a question about nothing.
func TestPlannerAccess(t *testing.T) {
	t.Parallel()

	t.Run("without a model", func(t *testing.T) {
		t.Parallel()
		plannerAccess(t, 6)
	})

	t.Run("with one that is down", func(t *testing.T) {
		t.Parallel()

		m := newModel(t, func(conversation) any { return "" })
		m.down.Store(true)
		plannerAccess(t, 3, m.settings()...)
	})
}

func plannerAccess(t *testing.T, rounds int, settings ...string) {
	t.Helper()

	s := start(t, append(settings, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_RUN_MAX_PER_USER=100")...)
	key := s.newKey()
	owner := newFilled(t, s, "ada", key.token("ada"))

	// Words that occur nowhere else: names of a dataset, of a column, and a value.
	names := []string{"quolls", "narwhals", "okapis", "tapirs", "wombats"}
	columns := []string{"brim", "plinth", "trundle", "wharf", "sprocket"}
	values := []string{"Xylo", "Yarrow", "Zephyr", "Quince", "Umbra"}

	for i, name := range names {
		var rows []string
		for n := range 40 {
			rows = append(rows, fmt.Sprintf(`{"kind": %q, "%s": %d}`, []string{values[i], "common"}[n%2], columns[i], n))
		}

		owner.beside(name, `{"data": [`+strings.Join(rows, ", ")+`]}`)
	}

	postRows(t, s, owner.bearer, owner.path(), `{"data": [{"id": 1}]}`)
	owner.indexed()

	random := rand.New(rand.NewPCG(13, 13))
	answered := 0

	for round := range rounds {
		asker := fmt.Sprintf("asker%d", round)
		bearer := key.token(asker)
		require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", bearer, "").status)

		seen := map[int]bool{}

		for _, i := range random.Perm(len(names))[:1+random.IntN(len(names)-1)] {
			seen[i] = true
			share(t, s, owner.bearer, "datasets/self/"+owner.namespace+"/"+names[i], asker, "viewer")
		}

		for i := range names {
			for _, question := range []string{"How many %s are there?", "What is the total %[2]s?", "How many are %[3]s?", "Average %[2]s of %[1]s that are %[3]s by kind"} {
				words := []string{names[i], columns[i], values[i]}
				run := owner.by(bearer).asks(fill(question, words), "")
				said := saidOf(t, run)

				for j := range names {
					if seen[j] {
						continue
					}

					for _, word := range []string{names[j], columns[j], values[j]} {
						require.True(t, !strings.Contains(said, word) || strings.Contains(fill(question, words), word), "%s reveals %s: %s", question, word, said)
					}
				}

				if seen[i] {
					if run.Result.Outcome == "answer" {
						answered++
					}

					continue
				}

				require.NotEqual(t, "answer", run.Result.Outcome, said)

				nothing := []string{"yaffles", "dunnage", "Brocken"}
				other := saidOf(t, owner.by(bearer).asks(fill(question, nothing), ""))

				for k, word := range nothing {
					other = strings.ReplaceAll(other, word, words[k])
				}

				require.Equal(t, other, said)
			}
		}
	}

	require.Greater(t, answered, 3*rounds)
}

// fill puts words into the placeholders of a question.
func fill(question string, words []string) string {
	if !strings.Contains(question, "%[") {
		return fmt.Sprintf(question, words[0])
	}

	for i, word := range words {
		question = strings.ReplaceAll(question, fmt.Sprintf("%%[%d]s", i+1), word)
	}

	return question
}

// saidOf returns everything that the run says to the caller, without its ids.
func saidOf(t *testing.T, run concluded) string {
	t.Helper()

	_, byRules, _ := strings.Cut(run.Error.Message, "Try again later.") // the text before that is about the model
	said, err := json.Marshal([]any{run.Status, run.Result, run.Error.Code, byRules})
	require.NoError(t, err)

	return strings.Join(slices.Sorted(strings.SplitSeq(string(said), "\n")), "\n")
}
