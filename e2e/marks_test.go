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

type marks struct {
	Response, Outcome string
	Checks            struct {
		Claims, Verified int
		Unverified       []string
		Places           []struct {
			Claim      string
			Start, End int
			Verified   bool
		}
	}
}

// TestMarks checks that what the rows do not confirm is marked where it stands, in the text and as data, and that every door
// says so: REST, the stored run, the stream, A2A, MCP and the command line.
func TestMarks(t *testing.T) {
	t.Parallel()

	const question = "How do the regions compare?"

	plays := map[string]play{question: {
		plan:    parts(part("Revenue by region")),
		queries: map[string][]string{"Revenue by region": {`SELECT "region", sum("revenue") AS revenue FROM "orders" GROUP BY ALL ORDER BY ALL`}},
		answers: []string{"Übersicht: north made 320.5 [[0:0:revenue]], south 181 [[0:1:revenue]]. south has the highest revenue."},
	}}
	m := newModel(t, func(said conversation) any { return says(plays, said) })
	s := start(t, m.settings()...)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north", "year": 2025, "revenue": 120.5}, {"region": "north", "year": 2026, "revenue": 200}, {"region": "south", "year": 2025, "revenue": 180}]}`).status)

	const want = "Übersicht: north made 320.5, south 181 (?). south has the highest (?) revenue.\n\n(?) The rows do not confirm this."

	requireMarks := func(door string, got marks) {
		require.Equal(t, want, got.Response, door)
		require.Equal(t, "answer_unverified", got.Outcome, door)
		require.Equal(t, []string{"181", "highest"}, got.Checks.Unverified, door)
		require.Len(t, got.Checks.Places, got.Checks.Claims, door)

		runes := []rune(got.Response)

		for _, p := range got.Checks.Places {
			require.Equal(t, p.Claim, string(runes[p.Start:p.End]), door)
			require.Equal(t, !p.Verified, strings.HasPrefix(string(runes[p.End:]), " (?)"), door)
		}
	}

	asked := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("assistant", question, ""), "Accept: application/json", "Prefer: wait=60")
	require.Equal(t, http.StatusOK, asked.status, asked.body)

	var run struct {
		RunID  string
		Result marks
	}

	asked.json(t, &run)
	requireMarks("REST", run.Result)

	stored := call(t, http.MethodGet, s.url+"/query/runs/"+run.RunID, d.bearer, "")
	stored.json(t, &run)
	requireMarks("stored", run.Result)

	for _, e := range follow(t, newRequest(t, http.MethodGet, s.url+"/query/runs/"+run.RunID+"/events", d.bearer, ""), 100) {
		var body struct {
			marks

			Result marks
		}

		switch require.NoError(t, json.Unmarshal([]byte(e.data), &body)); e.name {
		case "answer":
			requireMarks("event", body.marks)
		case "runCompleted":
			requireMarks("last event", body.Result)
		}
	}

	told := newPeer(d, "assistant").call("SendMessage", newPeer(d, "assistant").ask(uuid.NewString(), question, ""))

	var task struct {
		Result struct {
			Task struct {
				Status struct {
					Message struct {
						Parts    []struct{ Text string }
						Metadata marks
					}
				}
			}
		}
	}

	told.json(t, &task)

	message := task.Result.Task.Status.Message
	message.Metadata.Response = message.Parts[0].Text
	requireMarks("A2A", message.Metadata)

	var tool marks

	d.tool("ask", fmt.Sprintf(`{"namespace": %q, "question": %q}`, d.namespace, question), &tool)
	require.Equal(t, want, tool.Response, "MCP")
	require.Equal(t, "answer_unverified", tool.Outcome, "MCP")
	require.Equal(t, []string{"181", "highest"}, tool.Checks.Unverified, "MCP")

	c := s.signedIn(t, d.bearer)
	printed := c.try("ask", "-n", d.namespace, "-q", question)
	require.Zero(t, printed.code, printed.err)
	require.Contains(t, printed.out, "south 181 (?). south has the highest (?) revenue.")
	require.Contains(t, printed.out, "(?) The rows do not confirm this.")

	var result marks

	require.NoError(t, json.Unmarshal([]byte(c.run("ask", "-n", d.namespace, "-o", "json", question)), &result))
	requireMarks("command line", result)
}
