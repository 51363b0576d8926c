package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// doubtful is a question that two datasets of newDoubtful answer.
	doubtful = "What is the highest amount?"
	// whichYear is a script that asks back. After the choice it answers with a step.
	whichYear = `{"outcome": "clarification", "response": "Which year?", "clarification": {"question": "Which year?", "options": ["2025", "2026"]},
		"then": {"pause": 1500, "response": "It is <chosen>.", "steps": [{"instruction": "read", "queries": ["SELECT count(*) AS n FROM refunds"]}, {"instruction": "read", "queries": ["SELECT 2 AS n"]}]}}`
)

// newDoubtful returns a namespace in which rules find two interpretations of a question.
func newDoubtful(t *testing.T, s *service, owner, bearer string) *filled {
	t.Helper()

	d := newFilled(t, s, owner, bearer)
	postRows(t, s, bearer, d.path(), `{"data": [{"id": 1}]}`)

	for name, amount := range map[string]int{"invoices": 5, "refunds": 2} {
		var rows []string
		for i := range 40 {
			rows = append(rows, fmt.Sprintf(`{"region": %q, "amount": %d.5}`, []string{"north", "south"}[i%2], amount+i))
		}

		d.beside(name, `{"data": [`+strings.Join(rows, ", ")+`]}`)
	}

	return d
}

// refunds is the highest amount of the dataset with this name.
const refunds = 41.5

// forgets removes what the caller chose before, so that the same question is asked back again.
func (d *filled) forgets() {
	d.t.Helper()

	for _, name := range []string{"invoices", "refunds"} {
		got := call(d.t, http.MethodDelete, d.s.url+"/data/"+d.owner+"/"+d.namespace+"/"+name+"/choices", d.bearer, "")
		require.Contains(d.t, []int{http.StatusNoContent, http.StatusNotFound}, got.status, got.body)
	}
}

// choosing asks a question that has several interpretations, and returns the run, which waits.
func (d *filled) choosing(question string) (run concluded) {
	d.t.Helper()
	d.forgets()

	run = d.asks(question, "")
	require.Equal(d.t, "waiting", run.Status, "%+v", run)
	require.Equal(d.t, "clarification", run.Result.Outcome)

	return run
}

func (d *filled) choose(run, body string, headers ...string) *answer {
	d.t.Helper()

	return call(d.t, http.MethodPost, d.s.url+"/query/runs/"+run+"/choose", d.bearer, body, headers...)
}

// chosen chooses an option and returns the run when it has ended.
func (d *filled) chosen(run string, option int) (found concluded) {
	d.t.Helper()

	got := d.choose(run, fmt.Sprintf(`{"option": %d}`, option))
	require.Equal(d.t, http.StatusOK, got.status, got.body)
	got.json(d.t, &found)
	require.Equal(d.t, run, found.RunID)

	return found
}

func (d *filled) run(id string) (found concluded) {
	d.t.Helper()

	got := call(d.t, http.MethodGet, d.s.url+"/query/runs/"+id, d.bearer, "")
	require.Equal(d.t, http.StatusOK, got.status, got.body)
	got.json(d.t, &found)

	return found
}

// eventNames returns the names of the events of a run after one of them.
func (d *filled) eventNames(run string, after int) (names []string) {
	d.t.Helper()

	for i, e := range follow(d.t, newRequest(d.t, http.MethodGet, d.s.url+"/query/runs/"+run+"/events", d.bearer, "", fmt.Sprintf("Last-Event-ID: %d", after)), 1000) {
		require.Equal(d.t, after+i+1, e.id)
		names = append(names, e.name)
	}

	return names
}

// TestChooseOption checks that a run that asks which interpretation is meant waits, and that a choice continues it: over REST, on the command
// line and over A2A.
func TestChooseOption(t *testing.T) {
	t.Parallel()

	rules := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_RUN_MAX_PER_USER=2")
	key := rules.newKey()
	d := newDoubtful(t, rules, "ada", key.token("ada"))
	d.indexed()

	for name, play := range map[string]func(*testing.T, *filled, *signer){
		"by rules":             chooseByRules,
		"one choice":           chooseOnce,
		"other callers":        chooseForeign,
		"the end of a wait":    chooseEnds,
		"data that is hidden":  chooseHidden,
		"at a terminal":        chooseOnScreen,
		"over A2A":             chooseOverA2A,
		"streams over A2A":     chooseOverA2AStreams,
		"other words over A2A": chooseOtherWords,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			// Each part has a user of its own, because a user may have only two questions in progress.
			name := "u" + strings.NewReplacer(" ", "", "2", "").Replace(strings.ToLower(name))
			share(t, rules, d.bearer, "namespaces/self/"+d.namespace, name, "viewer")
			on := *d
			on.t, on.bearer = t, key.token(name)
			play(t, &on, key)
		})
	}

	t.Run("a model", chooseOfModel)
	t.Run("killed workers", chooseKilled)
	t.Run("one option at a terminal", chooseYes)
}

func chooseByRules(t *testing.T, d *filled, _ *signer) {
	t.Helper()

	run := d.choosing(doubtful)
	options := run.Result.Clarification.Options
	require.Len(t, options, 2)
	require.Equal(t, []int{1, 2}, []int{options[0].Number, options[1].Number})
	require.Contains(t, options[0].Query+options[1].Query, `FROM "refunds"`)

	third := d.choosing(doubtful)
	require.Equal(t, "waiting", d.choosing(doubtful).Status, "a run that waits is not in progress: two more are possible")

	// It is listed as waiting, and cannot be rated.
	require.Contains(t, d.runs("&status=waiting"), run.RunID)
	require.Empty(t, d.runs("&status=running"))
	requireFault(t, "a rating", d.rate(run.RunID, `{"thumbsUp": true}`), http.StatusUnprocessableEntity, "RUN_NOT_COMPLETED")

	got := d.choose(run.RunID, `{"option": 3}`)
	require.Equal(t, []string{"option"}, requireFault(t, "an option that does not exist", got, http.StatusUnprocessableEntity, "VALIDATION_FAILED"))
	require.Contains(t, got.body, "must be a number from 1 to 2")
	require.Equal(t, []string{"option"}, requireFault(t, "no option", d.choose(run.RunID, `{"option": 0}`), http.StatusUnprocessableEntity, "VALIDATION_FAILED"))

	// The answer is that of the statement, and no model is needed.
	number := 1 + slices.IndexFunc(options, func(o option) bool { return strings.Contains(o.Query, "refunds") })
	answered := d.chosen(run.RunID, number)
	require.Equal(t, "completed", answered.Status)
	require.Equal(t, "answer", answered.Result.Outcome)
	require.Equal(t, map[string]any{"highest amount": refunds}, answered.cells(t))
	require.Equal(t, "planner", answered.Result.Model)
	require.Equal(t, options[number-1].Interpretation, answered.Result.Interpretation)
	require.Equal(t, options[number-1].Query, answered.Result.Steps[0].Query)
	require.Len(t, answered.Result.AsOf, 1, "the other dataset was quoted, not read")
	require.Equal(t, []string{"runStarted", "runWaiting", "optionChosen", "stepStarted", "queryExecuting", "step", "runCompleted"}, d.eventNames(run.RunID, 0))
	require.Equal(t, []string{"optionChosen", "stepStarted", "queryExecuting", "step", "runCompleted"}, d.eventNames(run.RunID, 2))
	d.rated(run.RunID, `{"thumbsUp": true}`)

	// A stream begins with the choice.
	events := follow(t, newRequest(t, http.MethodPost, d.s.url+"/query/runs/"+third.RunID+"/choose", d.bearer, `{"option": 1}`), 1000)
	require.Equal(t, "optionChosen", events[0].name)
	require.Equal(t, 3, events[0].id)
	require.Contains(t, events[0].data, `{"number":1,"interpretation":"highest *amount* of *`)
	require.Equal(t, "runCompleted", events[len(events)-1].name)

	async := d.choose(d.choosing(doubtful).RunID, `{"option": 1}`, "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, async.status, async.body)
	require.Contains(t, async.body, `"status":"running"`)

	chooseAssistant(t, d)
}

// chooseAssistant checks the events of the assistant, and what a conversation shows.
func chooseAssistant(t *testing.T, d *filled) {
	t.Helper()

	d.forgets()

	ask := newRequest(t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script("assistant", doubtful, ""))
	events := follow(t, ask, 1000)

	var run asked
	(&answer{body: events[0].data}).json(t, &run)

	last := events[len(events)-1]
	require.Equal(t, "runWaiting", last.name)
	require.Contains(t, last.data, `"options":[{"number":1,"interpretation":"highest *amount* of *`)
	require.Equal(t, []string{"runStarted", "planningStarted", "plan", "answerStarted", "answer", "runWaiting"}, d.eventNames(run.RunID, 0))
	require.Empty(t, d.eventNames(run.RunID, 6))
	require.Contains(t, call(t, http.MethodGet, d.s.url+"/query/conversations/"+run.ConversationID, d.bearer, "").body, `"options":[{"number":1`)

	d.chosen(run.RunID, 1)
	require.Equal(t, []string{"optionChosen", "planningStarted", "plan", "stepStarted", "queryExecuting", "step", "answerStarted", "answer", "runCompleted"}, d.eventNames(run.RunID, 6))
}

func chooseOnce(t *testing.T, d *filled, _ *signer) {
	t.Helper()

	for range 5 {
		run := d.choosing(doubtful)

		var (
			group sync.WaitGroup
			mutex sync.Mutex
			got   = map[string]int{}
		)

		for i := range 8 {
			group.Go(func() {
				answer := d.choose(run.RunID, fmt.Sprintf(`{"option": %d}`, i%2+1))

				mutex.Lock()
				defer mutex.Unlock()

				got[fmt.Sprintf("%d %d", i%2+1, answer.status)]++
			})
		}

		group.Wait()

		require.Contains(t, []map[string]int{{"1 200": 4, "2 409": 4}, {"1 409": 4, "2 200": 4}}, got, "one of the options is chosen, and a repeat gives the same")

		chosen, other := 1, 2
		if got["2 200"] > 0 {
			chosen, other = 2, 1
		}

		done := d.chosen(run.RunID, chosen)
		require.Equal(t, "completed", done.Status)
		require.Equal(t, run.Result.Clarification.Options[chosen-1].Interpretation, done.Result.Interpretation)

		late := d.choose(run.RunID, fmt.Sprintf(`{"option": %d}`, other))
		requireFault(t, "the other option", late, http.StatusConflict, "CONFLICT")
		require.Contains(t, late.body, fmt.Sprintf("Option %d was chosen before.", chosen))

		names := d.eventNames(run.RunID, 0)
		require.Len(t, slices.DeleteFunc(names, func(name string) bool { return name != "optionChosen" }), 1)
	}

	plain := d.asks("How many refunds are there?", "")
	require.Equal(t, "completed", plain.Status)

	never := d.choose(plain.RunID, `{"option": 1}`)
	requireFault(t, "a run that did not ask", never, http.StatusConflict, "CONFLICT")
	require.Contains(t, never.body, "The run does not wait for a choice. Its status is completed.")
}

func chooseForeign(t *testing.T, d *filled, key *signer) {
	t.Helper()

	run := d.choosing(doubtful)

	const nobodys = "0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70"

	nothing := d.choose(nobodys, `{"option": 1}`)
	require.Equal(t, http.StatusNotFound, nothing.status)

	own := d.by(restrictedToken(t, d.s, d.bearer, target("ada", d.namespace, "")))

	for name, other := range map[string]*filled{"another user": d.by(key.token("ada")), "a restricted token": own} {
		got := other.choose(run.RunID, `{"option": 1}`)
		require.Equal(t, nothing.body, strings.ReplaceAll(got.body, run.RunID, nobodys), name)
		require.Equal(t, http.StatusNotFound, got.status, name)
	}

	require.Equal(t, "waiting", d.run(run.RunID).Status)

	// A restricted token chooses in its own runs. The account may choose for it; from then on the run has the rights of the account.
	mine := own.choosing(doubtful)
	require.Equal(t, "completed", own.chosen(mine.RunID, 1).Status)

	mine = own.choosing(doubtful)
	require.Equal(t, "completed", d.chosen(mine.RunID, 1).Status)
	require.Equal(t, "completed", own.run(mine.RunID).Status, "it may read all that the run read")

	// Too many questions in progress: the run still waits afterwards.
	set := `UPDATE runs SET status = $2, deadline_at = now() + interval '1 hour' WHERE id = $1`
	first, second := d.asks("How many refunds are there?", ""), d.asks("How many refunds are there?", "")

	for _, busy := range []concluded{first, second} {
		d.s.exec(set, busy.RunID, "running")
	}

	requireFault(t, "too many", d.choose(run.RunID, `{"option": 1}`), http.StatusTooManyRequests, "RATE_LIMITED")
	require.Equal(t, "waiting", d.run(run.RunID).Status)

	for _, busy := range []concluded{first, second} {
		d.s.exec(set, busy.RunID, "completed")
	}

	require.Equal(t, "completed", d.chosen(run.RunID, 1).Status)
}

func chooseEnds(t *testing.T, d *filled, _ *signer) {
	t.Helper()

	// A new question in the conversation.
	first := d.choosing(doubtful)
	second := d.asks("How many refunds are there?", fmt.Sprintf(`"conversationId": %q`, first.ConversationID))
	require.Equal(t, "answer", second.Result.Outcome)

	closed := d.run(first.RunID)
	require.Equal(t, "completed", closed.Status)
	require.Equal(t, "clarification", closed.Result.Outcome)
	require.Len(t, closed.Result.Clarification.Options, 2)
	require.Equal(t, []string{"runStarted", "runWaiting", "runCompleted"}, d.eventNames(first.RunID, 0))
	requireFault(t, "a choice that comes too late", d.choose(first.RunID, `{"option": 1}`), http.StatusConflict, "CONFLICT")

	// Cancelled, deleted.
	cancelled := d.choosing(doubtful)
	require.Equal(t, http.StatusOK, call(t, http.MethodPost, d.s.url+"/query/runs/"+cancelled.RunID+"/cancel", d.bearer, "").status)
	require.Equal(t, "cancelled", d.run(cancelled.RunID).Status)
	requireFault(t, "a choice after a cancellation", d.choose(cancelled.RunID, `{"option": 1}`), http.StatusConflict, "CONFLICT")

	deleted := d.choosing(doubtful)
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.s.url+"/query/runs/"+deleted.RunID, d.bearer, "").status)

	// After a day.
	expired := d.choosing(doubtful)
	d.s.exec(`UPDATE runs SET deadline_at = deadline_at - interval '23 hours 59 minutes' WHERE id = $1 AND deadline_at > now() + interval '23 hours 59 minutes'`, expired.RunID)
	require.Equal(t, "waiting", d.run(expired.RunID).Status, "there is a minute left")
	d.s.exec(`UPDATE runs SET deadline_at = now() - interval '1 second' WHERE id = $1`, expired.RunID)
	requireFault(t, "a choice after a day", d.choose(expired.RunID, `{"option": 1}`), http.StatusConflict, "CONFLICT")
	await(t, "the wait is over", func() bool { return d.run(expired.RunID).Status == "expired" })

	over := d.run(expired.RunID)
	require.Equal(t, "TIMEOUT", over.Error.Code)
	require.Equal(t, "No option was chosen within 24 hours. Ask again.", over.Error.Message)
	require.Equal(t, []string{"runStarted", "runWaiting", "runFailed"}, d.eventNames(expired.RunID, 0))
}

func chooseHidden(t *testing.T, d *filled, key *signer) {
	t.Helper()

	owner := d.by(key.token("ada"))
	name := "uhidden"
	reader := d.by(key.token(name))

	for _, dataset := range []string{"invoices", "refunds"} {
		share(t, d.s, owner.bearer, "datasets/self/"+d.namespace+"/"+dataset, name, "viewer")
	}

	run := reader.choosing(doubtful)
	revoke := call(t, http.MethodDelete, d.s.url+"/permissions/datasets/self/"+d.namespace+"/invoices/shares", owner.bearer, `{"username": "`+name+`"}`)
	require.Equal(t, http.StatusOK, revoke.status, revoke.body)

	hidden := reader.run(run.RunID)
	require.Equal(t, "waiting", hidden.Status)
	require.Equal(t, "withheld", hidden.Result.Outcome)
	require.Empty(t, hidden.Result.Clarification.Options)

	events := follow(t, newRequest(t, http.MethodGet, d.s.url+"/query/runs/"+run.RunID+"/events", reader.bearer, ""), 1000)
	require.JSONEq(t, `{"result":{"response":"","steps":[],"outcome":"withheld"}}`, events[len(events)-1].data)
	require.NotContains(t, newPeer(reader, "nl2ql").call("GetTask", `{"id": "`+run.RunID+`"}`).body, "invoices")

	got := reader.choose(run.RunID, `{"option": 1}`)
	requireFault(t, "hidden options", got, http.StatusConflict, "CONFLICT")
	require.NotContains(t, got.body, "invoices")
}
