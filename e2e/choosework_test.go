package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chooseOfModel checks that the answer to a model continues its turn, also if it asks twice, and that an option of the planner needs no model.
func chooseOfModel(t *testing.T) {
	t.Parallel()

	asks := func(question string, options ...string) drafted {
		return drafted{Outcome: "clarification", Interpretation: "Either.", Clarification: map[string]any{"question": question, "options": options}}
	}

	m := newModel(t, func(said conversation) any {
		switch question := said.question(); {
		case !strings.HasPrefix(question, "How many?"):
			return asks("Of what?", "orders")
		case strings.HasSuffix(question, "You asked: In which region?\nThe answer: south"):
			return selects("SELECT count(*) AS n FROM refunds WHERE region = 'south'")
		case strings.HasSuffix(question, "You asked: Of what?\nThe answer: refunds"):
			return asks("In which region?", "north", "south")
		default:
			return asks("Of what?", "invoices", "refunds")
		}
	})
	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	d := newDoubtful(t, s, "ada", s.newKey().token("ada"))
	d.indexed()

	run := d.choosing("How many?")
	require.Equal(t, []option{{Number: 1, Interpretation: "invoices"}, {Number: 2, Interpretation: "refunds"}}, run.Result.Clarification.Options)

	second := d.chosen(run.RunID, 2)
	require.Equal(t, "waiting", second.Status, "the model asks again")
	require.Equal(t, "In which region?", second.Result.Response)

	done := d.chosen(run.RunID, 2)
	require.Equal(t, map[string]any{"n": 20.0}, done.cells(t))
	require.Equal(t, "small", done.Result.Model)
	require.Equal(t, 330, done.Result.Usage.InputTokens+done.Result.Usage.OutputTokens)
	require.Equal(t, []string{
		"runStarted", "runWaiting", "optionChosen", "runWaiting", "optionChosen", "stepStarted", "queryExecuting", "step", "runCompleted",
	}, d.eventNames(run.RunID, 0))

	// While the model is down, rules ask. The model is not called for the choice, and rows that came since are in the answer.
	m.down.Store(true)

	run = d.choosing(doubtful)
	options := run.Result.Clarification.Options
	number := 1 + slices.IndexFunc(options, func(o option) bool { return strings.Contains(o.Query, "refunds") })

	postRows(t, s, d.bearer, d.owner+"/"+d.namespace+"/refunds", `{"data": [{"region": "north", "amount": 61.5}]}`)

	heard := len(m.requests())
	done = d.chosen(run.RunID, number)
	require.Equal(t, map[string]any{"highest amount": refunds + 20}, done.cells(t))
	require.Equal(t, "planner", done.Result.Model)
	require.Len(t, m.requests(), heard)
}

// chooseKilled checks that a run that waits outlives every process, and that a worker that dies after the choice is replaced.
func chooseKilled(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_WORKERS=0")
	worker := another(t, s, scripted)
	d := newDoubtful(t, s, "ada", s.newKey().token("ada"))

	run := d.choosing(whichYear)

	worker.kill()
	worker.restart()
	require.Equal(t, "waiting", d.run(run.RunID).Status)

	got := d.choose(run.RunID, `{"option": 2}`, "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, got.status, got.body)

	await(t, "the first step is done", func() bool {
		return s.count(`SELECT count(*) FROM run_events WHERE run_id = $1 AND kind = 'step'`, run.RunID) == 1
	})
	worker.kill()

	other := another(t, s, scripted)
	defer other.stop()

	done := d.chosen(run.RunID, 2)
	require.Equal(t, "completed", done.Status)
	require.Equal(t, "It is 2026.", done.Result.Response)
	require.Len(t, done.Result.Steps, 2)
	require.Equal(t, []string{
		"runStarted", "runWaiting", "optionChosen", "stepStarted", "queryExecuting", "step", "stepStarted", "queryExecuting", "step", "runCompleted",
	}, d.eventNames(run.RunID, 0))
	worker.restart()
}
