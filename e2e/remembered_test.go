package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type choices struct {
	Chosen   []struct{ Words, As, Column string }
	Proposed []struct {
		Words, Column string
		People        int
	}
}

func (d *filled) choices() (found choices) {
	d.t.Helper()

	got := call(d.t, http.MethodGet, d.s.url+"/data/"+d.owner+"/"+d.namespace+"/budgets/choices", d.bearer, "")
	require.Equal(d.t, http.StatusOK, got.status, got.body)
	got.json(d.t, &found)

	return found
}

// number returns the number of the option whose statement contains a text.
func (c concluded) number(t *testing.T, text string) int {
	t.Helper()

	at := slices.IndexFunc(c.Result.Clarification.Options, func(o option) bool { return strings.Contains(o.Query, text) })
	require.GreaterOrEqual(t, at, 0, "%+v", c.Result.Clarification)

	return at + 1
}

// TestRememberedChoice checks that Quern asks a person once what words mean in a dataset, that this holds for no one else,
// and that an editor can make it valid for everybody.
func TestRememberedChoice(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))
	postRows(t, s, d.bearer, d.path(), `{"data": [{"id": 1}]}`)

	var rows []string
	for i := range 40 {
		rows = append(rows, fmt.Sprintf(`{"region": %q, "planned_cost": %d.5, "actual_cost": %d.5}`, []string{"north", "south"}[i%2], 1000+i, 2000+i))
	}

	d.beside("budgets", `{"data": [`+strings.Join(rows, ", ")+`]}`)

	d.indexed()

	bob, eve := d.by(key.token("ubob")), d.by(key.token("ueve"))
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "ubob", "viewer")
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "ueve", "viewer")

	const question = "What is the highest cost?"

	run := bob.asks(question, "")
	require.Equal(t, "waiting", run.Status, "%+v", run)
	require.InDelta(t, 2039.5, bob.chosen(run.RunID, run.number(t, "actual_cost")).cells(t)["highest actual_cost"], 0)

	// The same words decide other questions of the same person.
	for _, asked := range []string{question, "What is the highest COST?"} {
		again := bob.asks(asked, "")
		require.Equal(t, "completed", again.Status, "%+v", again)
		require.InDelta(t, 2039.5, again.cells(t)["highest actual_cost"], 0)
		require.True(t, slices.ContainsFunc(again.Result.Explained, func(e explained) bool { return e.Column == "actual_cost" && e.How == "confirmed" }), "%+v", again)
		require.Contains(t, again.Result.Steps[0].Reasoning, `You chose before that "`)
	}

	require.InDelta(t, 2000.5, bob.asks("Lowest cost in the north", "").cells(t)["lowest actual_cost"], 0)

	// Nobody else is affected, and a viewer does not see what others chose.
	mine := bob.choices()
	require.Len(t, mine.Chosen, 1)
	require.Equal(t, "actual_cost", mine.Chosen[0].Column)
	require.Nil(t, mine.Proposed)
	require.Empty(t, eve.choices().Chosen)
	require.Equal(t, "waiting", eve.asks(question, "").Status)
	require.Equal(t, "waiting", d.asks(question, "").Status)

	// Somebody else can choose otherwise, and choose anew after forgetting.
	run = eve.asks(question, "")
	eve.chosen(run.RunID, run.number(t, "planned_cost"))
	require.InDelta(t, 1039.5, eve.asks(question, "").cells(t)["highest planned_cost"], 0)

	forgotten := call(t, http.MethodDelete, s.url+"/data/ada/"+d.namespace+"/budgets/choices", eve.bearer, "")
	require.Equal(t, http.StatusNoContent, forgotten.status, forgotten.body)

	run = eve.asks(question, "")
	require.Equal(t, "waiting", run.Status)
	eve.chosen(run.RunID, run.number(t, "actual_cost"))

	// The owner sees a proposal, and accepts it for everybody.
	seen := d.choices()
	require.Empty(t, seen.Chosen)
	require.Len(t, seen.Proposed, 1)
	require.Equal(t, "actual_cost", seen.Proposed[0].Column)
	require.Equal(t, 2, seen.Proposed[0].People)

	c := s.signedIn(t, d.apiToken())
	shown := c.run("dataset", "choices", "ada/"+d.namespace+"/budgets")
	require.Contains(t, shown, "--synonym 'actual_cost=cost'")
	c.run("dataset", "semantics", "ada/"+d.namespace+"/budgets", "--synonym", "actual_cost=cost")

	require.InDelta(t, 2039.5, d.asks(question, "").cells(t)["highest actual_cost"], 0)
	require.Empty(t, d.choices().Proposed)
	require.Contains(t, c.run("dataset", "choices", "ada/"+d.namespace+"/budgets", "--forget"), "forgotten")

	// Who may no longer read the dataset sees neither it nor what they chose.
	revoke := call(t, http.MethodDelete, s.url+"/permissions/namespaces/self/"+d.namespace+"/shares", d.bearer, `{"username": "ubob"}`)
	require.Equal(t, http.StatusOK, revoke.status, revoke.body)

	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		got := call(t, method, s.url+"/data/ada/"+d.namespace+"/budgets/choices", bob.bearer, "")
		require.Equal(t, http.StatusNotFound, got.status, got.body)
	}
}

// TestRememberedForm checks a choice between the rows of a dataset and its column of the same name. The choice applies only to questions
// of the same form. The service does not propose it as a synonym.
func TestRememberedForm(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	postRows(t, s, d.bearer, d.path(), `{"data": [{"id": 1}]}`)

	var rows []string
	for i := range 40 {
		rows = append(rows, fmt.Sprintf(`{"Kunde": "Kunde Nr. %d", "Ort": %q, "Umsatz": %d.5}`, min(i%5, 3), []string{"Wien", "Graz"}[i%2], 100+i))
	}

	rows = append(rows, `{"Kunde": "Kunde Nr. 9", "Ort": "Wien", "Umsatz": 99999.5}`)
	d.beside("umsatz", `{"data": [`+strings.Join(rows, ", ")+`]}`)
	d.indexed()

	// The name of the dataset is not the number of its rows where a column has the name, too.
	run := d.asks("Which Kunde has the highest Umsatz?", "")
	require.Equal(t, "waiting", run.Status, "%+v", run)
	require.Len(t, run.Result.Clarification.Options, 2)
	require.Contains(t, d.chosen(run.RunID, run.number(t, "sum(")).Result.Response, "The Kunde with the highest total Umsatz of umsatz: Kunde Nr. 9, ")

	const top, count = "top 3 Ort by Umsatz", "How many umsatz are there?"

	run = d.asks(top, "")
	require.Equal(t, "waiting", run.Status, "%+v", run)
	d.chosen(run.RunID, run.number(t, "sum("))
	require.Equal(t, "completed", d.asks(top, "").Status)

	run = d.asks(count, "")
	require.Equal(t, "waiting", run.Status, "%+v", run)
	require.InDelta(t, 41, d.chosen(run.RunID, run.number(t, "count(")).cells(t)["count"], 0)
	require.InDelta(t, 41, d.asks(count, "").cells(t)["count"], 0)
	require.Contains(t, d.asks(top, "").Result.Steps[0].Query, "sum(")

	var found choices

	got := call(t, http.MethodGet, s.url+"/data/ada/"+d.namespace+"/umsatz/choices", d.bearer, "")
	require.Equal(t, http.StatusOK, got.status, got.body)
	got.json(t, &found)
	require.Len(t, found.Chosen, 2, got.body)
	require.Equal(t, "How many … umsatz", found.Chosen[0].Words)
	require.Equal(t, "top … Umsatz", found.Chosen[1].Words)
	require.Empty(t, found.Proposed)

	// A refusal suggests questions that are answered.
	refused := d.asks("frobnicate the umsatz", "").Result.Response
	require.NotContains(t, refused, count)
	require.Contains(t, refused, "Total Umsatz of umsatz by ")
}
