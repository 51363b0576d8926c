package e2e

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

const (
	lateByRegion = `{"dataset": "orders", "measures": [{"function": "count"}], "groups": [{"column": "region"}], "where": [{"column": "status", "is": "is", "values": ["Late"]}]}`
	bySegment    = `{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount"}}], "groups": [{"dataset": "customers", "column": "segment"}]}`
	lateOrders   = `{"dataset": "orders", "measures": [{"function": "count"}], "where": [{"column": "status", "is": "is", "values": ["Late"]}]}`
	allOrders    = `{"dataset": "orders", "measures": [{"function": "count"}]}`
)

// TestModelForms checks that a model may fill a form instead of writing SQL: the service compiles and explains it, the
// model may correct a form that cannot be used once, and the planner's form is the second opinion.
func TestModelForms(t *testing.T) {
	t.Parallel()

	replies := map[string][]drafted{ // by the word after "Task"
		"form":    {fills(lateByRegion)},
		"joined":  {fills(bySegment)},
		"name":    {fills(strings.ReplaceAll(lateByRegion, `"region"`, `"area"`)), fills(lateByRegion)},
		"twice":   {fills(`{"dataset": "customers", "measures": [{"function": "sum", "of": {"dataset": "orders", "column": "amount"}}]}`), selects(`SELECT sum("amount") AS n FROM "orders"`)},
		"text":    {fills(`SELECT 1`), fills(`{"dataset": "orders", "colour": "red"}`)},
		"hostile": {fills(`{"dataset": "orders", "show": [{"column": "id"}], "where": [{"column": "status", "is": "is", "values": ["x' OR 1=1 --"]}]}`)},
		"sql":     {selects(`SELECT max("amount") AS n FROM "orders"`)},
	}

	m := newModel(t, func(said conversation) any {
		answered := 0
		for _, message := range said {
			if message.Role == "assistant" {
				answered++
			}
		}

		task := strings.Fields(said.question())
		list := replies[task[1]]

		return list[min(answered, len(list)-1)]
	})
	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	before := 0
	ask := func(task string, requests int) concluded {
		before = len(m.requests())
		run := d.asks("Task "+task, "")
		require.Len(t, m.requests()[before:], requests, task)

		return run
	}
	told := func() string { return m.requests()[len(m.requests())-1] }

	run := ask("form", 1)
	require.Equal(t, "answer", run.Result.Outcome, "%+v", run)
	require.Equal(t, "form", run.Result.Basis)
	require.Equal(t, "number of *orders* where *status* is 'Late', by *region*", run.Result.Interpretation, "it comes from the form, not from the model")
	require.Equal(t, []explained{
		{Words: "*orders*", As: "rows", Dataset: "orders"},
		{Words: "number of *orders*", As: "measure", Dataset: "orders"},
		{Words: "*region*", As: "group", Dataset: "orders", Column: "region"},
		{Words: "*status* is 'Late'", As: "condition", Dataset: "orders", Column: "status"},
	}, run.Result.Explained)
	require.Equal(t, run.Result.Explained, run.Result.Steps[0].Explained)
	require.Len(t, run.Result.Steps[0].Data, 2)
	require.Contains(t, m.requests()[before], `\"role\":\"amount\"`, "the model sees the roles of columns")

	// Datasets are joined by the compiler.
	joined := ask("joined", 1)
	require.Equal(t, "form", joined.Result.Basis, "%+v", joined)
	require.Contains(t, joined.Result.Steps[0].Query, "JOIN")
	require.Len(t, joined.Result.Steps[0].Data, 2)

	// A form that cannot be used is corrected once.
	corrected := ask("name", 2)
	require.Equal(t, "form", corrected.Result.Basis)
	require.Contains(t, told(), "The form cannot be used: the dataset orders has no column area.")

	// Where no form fits, the model writes SQL, and the result says so.
	free := ask("twice", 2)
	require.Equal(t, "sql", free.Result.Basis)
	require.Empty(t, free.Result.Explained)
	require.Contains(t, told(), "has many rows of orders")
	require.Equal(t, "sql", ask("sql", 1).Result.Basis)

	refused := ask("text", 2)
	require.Equal(t, "refused", refused.Result.Outcome)
	require.Contains(t, refused.Result.Response, `No statement was found that answers the question. The form cannot be used: `)
	require.Empty(t, refused.Result.Basis)

	// A value is never anything but a value.
	require.Equal(t, "no_data", ask("hostile", 1).Result.Outcome)

	body := newPeer(d, "nl2ql").call("SendMessage", newPeer(d, "nl2ql").ask(uuid.NewString(), "Task form", "")).body
	require.Contains(t, body, `"basis":"form","explained":[{"words":"*orders*","as":"rows","dataset":"orders"}`)

	c := s.signedIn(t, d.apiToken())
	out := c.run("ask", "-n", d.namespace, "--agent", "nl2ql", "--explain", "Task form")
	require.Contains(t, out, "answered by: small, with a form")
	require.Regexp(t, `(?m)^\*region\* +group +orders +region$`, out)
	require.Contains(t, c.run("ask", "-n", d.namespace, "--agent", "nl2ql", "Task sql"), "answered by: small, with SQL of its own")
}

// TestFormsCompared checks that the planner's form is held against that of the model.
func TestFormsCompared(t *testing.T) {
	t.Parallel()

	m := newModel(t, func(said conversation) any {
		thinks()

		if strings.Contains(said.question(), "late") {
			return fills(lateOrders)
		}

		return fills(allOrders)
	})
	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	same := inTime(func() concluded { return d.asks("How many orders are late?", "") })
	require.Equal(t, "It says so. The planner fills the same form.", same.Result.Steps[0].Reasoning)

	before := len(m.requests())
	other := inTime(func() concluded { return d.asks("How many orders are in the north?", "") })
	require.Equal(t, "It says so. "+otherResult+"number of *orders* where *region* is 'north'.", other.Result.Steps[0].Reasoning)
	require.Equal(t, "form", other.Result.Basis)

	told := m.requests()[len(m.requests())-1]
	require.Greater(t, len(m.requests()), before+1)
	require.Contains(t, told, `{\"dataset\":\"orders\",\"measures\":[{`, "the form of the rules")
	require.Contains(t, told, `\"values\":[\"north\"]`)
}

// TestFormsOfSchema checks that a model that sees only names can fill a form over several datasets: the compiler knows
// keys and joins that the model does not see.
func TestFormsOfSchema(t *testing.T) {
	t.Parallel()

	models := map[string]*model{"schema": newModel(t, func(conversation) any { return fills(bySegment) })}
	s := start(t, append(external(models), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_RUN_SECOND_OPINION=false")...)
	d := newTrade(t, s, "bea", s.newKey().token("bea"))

	run := d.asks("Revenue by segment", "")
	require.Equal(t, "form", run.Result.Basis, "%+v", run)
	require.Len(t, run.Result.Steps[0].Data, 2)

	for _, heard := range models["schema"].requests() {
		for _, value := range []string{"wholesale", "Cancelled", "Vienna"} {
			require.NotContains(t, heard, value)
		}
	}
}
