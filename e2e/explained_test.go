package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestExplained checks that every door returns what the statement was made from and what each word was taken for: REST,
// the stream, A2A and the command line.
func TestExplained(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	const question = "How many late orders are in the north?"

	want := []explained{
		{Words: "How many", As: "count"},
		{Words: "late", As: "value", Dataset: "orders", Column: "status"},
		{Words: "orders", As: "rows", Dataset: "orders"},
		{Words: "north", As: "value", Dataset: "orders", Column: "region"},
	}

	run := d.asks(question, "")
	require.Equal(t, "rules", run.Result.Basis)
	require.Equal(t, want, run.Result.Explained)
	require.Equal(t, "rules", run.Result.Steps[0].Basis)
	require.Equal(t, want, run.Result.Steps[0].Explained)
	require.Equal(t, run, d.run(run.RunID), "the stored run has the same")

	for _, e := range follow(t, newRequest(t, http.MethodGet, s.url+"/query/runs/"+run.RunID+"/events", d.bearer, ""), 100) {
		var body struct {
			Basis     string
			Explained []explained
			Result    struct {
				Basis     string
				Explained []explained
			}
		}

		require.NoError(t, json.Unmarshal([]byte(e.data), &body))

		switch e.name {
		case "queryExecuting", "step":
			require.Equal(t, "rules", body.Basis, e.name)
			require.Equal(t, want, body.Explained, e.name)
		case "runCompleted":
			require.Equal(t, "rules", body.Result.Basis)
			require.Equal(t, want, body.Result.Explained)
		default:
			require.Empty(t, body.Basis, e.name)
		}
	}

	for _, agent := range []string{"nl2ql", "assistant"} {
		told := newPeer(d, agent).call("SendMessage", newPeer(d, agent).ask(uuid.NewString(), question, ""))
		require.Contains(t, told.body, `"basis":"rules","explained":[{"words":"How many","as":"count"},{"words":"late","as":"value","dataset":"orders","column":"status"}`, agent)
	}

	// Words that were not understood are explained, too.
	refused := d.asks("What is the profit by region?", "")
	require.Equal(t, "refused", refused.Result.Outcome)
	require.Empty(t, refused.Result.Basis)
	require.Equal(t, []explained{{Words: "profit", As: "unused"}}, refused.Result.Explained)

	// A typing error is asked about. The choice keeps the explanation.
	asks := d.choosing("How many orders are in the nroth?")
	option := asks.Result.Clarification.Options[0]
	require.True(t, slices.ContainsFunc(option.Explained, func(e explained) bool { return e.Column == "region" && e.How == "guessed" }), "%+v", option)
	require.Empty(t, asks.Result.Explained)

	chosen := d.chosen(asks.RunID, 1)
	require.Equal(t, "rules", chosen.Result.Basis)
	require.Equal(t, option.Explained, chosen.Result.Explained)

	c := s.signedIn(t, d.apiToken())
	require.NotContains(t, c.run("ask", "-n", d.namespace, question), "taken for")

	out := c.run("ask", "-n", d.namespace, "--explain", question)
	require.Regexp(t, `(?m)^words +taken for +dataset +column +how$`, out)
	require.Regexp(t, `(?m)^How many +count$`, out)
	require.Regexp(t, `(?m)^late +value +orders +status$`, out)
}
