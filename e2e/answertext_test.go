package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestAnswerText checks that the text of an answer contains the answer, and that REST, the stream, A2A, MCP and the command
// line say the same: one figure, a few rows, more rows than a text shows.
func TestAnswerText(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	d := newTrade(t, s, "ada", s.newKey().token("ada"))
	c := s.signedIn(t, d.bearer)

	for question, want := range map[string]string{
		"How many orders are cancelled?":       "Number of orders where status is 'Cancelled': 66.",
		"How many orders are there by region?": "Number of orders, by region:\n\n| region | count |\n|---|---:|\n| north | 100 |\n| south | 100 |",
		"How many orders are there by id?":     "Number of orders, by id: 200 rows, listed in the table of the answer.",
	} {
		run := d.asks(question, "")
		require.Equal(t, want, run.Result.Response, question)
		require.Equal(t, run, d.run(run.RunID), "the stored run says the same")

		events := follow(t, newRequest(t, http.MethodGet, s.url+"/query/runs/"+run.RunID+"/events", d.bearer, ""), 100)
		require.Contains(t, events[len(events)-1].data, encode(t, want))

		for _, agent := range []string{"nl2ql", "assistant"} {
			told := newPeer(d, agent).call("SendMessage", newPeer(d, agent).ask(uuid.NewString(), question, ""))
			require.Equal(t, want, statusText(t, told), agent)
			require.Contains(t, told.body, `"data":`)

			for _, mode := range []string{"text/plain", "text/*"} {
				plain := newPeer(d, agent).call("SendMessage", newPeer(d, agent).ask(uuid.NewString(), question, `"configuration": {"acceptedOutputModes": ["`+mode+`"]}`))
				require.Equal(t, want, statusText(t, plain), agent)
				require.NotContains(t, plain.body, `"data":`, "only text was accepted")
				require.Equal(t, mode == "text/*" && agent == "assistant", strings.Contains(plain.body, "text/markdown"), plain.body)
			}

			streamed := send(t, newPeer(d, agent).request("SendStreamingMessage", newPeer(d, agent).ask(uuid.NewString(), question, `"configuration": {"acceptedOutputModes": ["text/plain"]}`)))
			require.Contains(t, streamed.body, encode(t, want))
			require.NotContains(t, streamed.body, `"data":`)
		}

		for _, agent := range []string{"nl2ql", "assistant"} {
			require.Equal(t, want+"\n", c.run("ask", "-n", d.namespace, "--agent", agent, "-q", question))
		}

		require.Contains(t, c.run("ask", "-n", d.namespace, "-o", "json", question), encode(t, want))

		var tool toolRun

		d.tool("ask", fmt.Sprintf(`{"namespace": %q, "question": %q}`, d.namespace, question), &tool)
		require.Equal(t, want, tool.Response, "MCP")
	}

	// The unit is that of the semantics.
	d.mean(`{"columns": {"amount": {"role": "amount", "unit": "EUR"}}}`)
	require.Equal(t, "Total amount of orders: 9427.00 €.", d.asks("What is the total amount of the orders?", "").Result.Response)

	// At a terminal the rows are above the text, which does not repeat them.
	shown := c.run("ask", "-n", d.namespace, "How many orders are there by region?")
	require.Contains(t, shown, "Number of orders, by region.\n")
	require.NotContains(t, shown, "| north")
}

func statusText(t *testing.T, told *answer) string {
	t.Helper()

	var body struct {
		Result struct {
			Task struct {
				Status struct {
					Message struct{ Parts []struct{ Text string } }
				}
			}
		}
	}

	require.NoError(t, json.Unmarshal([]byte(told.body), &body))
	require.NotEmpty(t, body.Result.Task.Status.Message.Parts, told.body)

	return body.Result.Task.Status.Message.Parts[0].Text
}
