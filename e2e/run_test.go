package e2e

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// another starts another replica of a service.
func another(t *testing.T, s *service, settings ...string) *service {
	t.Helper()

	return start(t, slices.Concat(s.place.settings(), []string{"QUERN_DATABASE_URL=" + s.databaseURL, "QUERN_OIDC_ISSUER=" + s.realm.issuer()}, settings)...)
}

// asked is a run as the API returns it.
type asked struct {
	RunID, ConversationID, Status string
	Result                        *struct {
		Response, Outcome string
		Steps             []struct {
			Query    string
			Data     []map[string]any
			RowCount int
		}
	}
	Error *struct{ Code, Message string }
}

// accept sends a question and does not wait for the answer.
func (d *filled) accept(agent, script string) (run asked) {
	d.t.Helper()

	accepted := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script(agent, script, ""), "Prefer: respond-async")
	require.Equal(d.t, http.StatusAccepted, accepted.status, accepted.body)
	accepted.json(d.t, &run)

	return run
}

// TestResumeEverywhere disconnects a client after each event and resumes at the other replica. The client must see every event
// once and in order.
func TestResumeEverywhere(t *testing.T) {
	t.Parallel()

	one := start(t, scripted)
	two := another(t, one, scripted)
	d := newFilled(t, one, "ada", one.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)

	script := `{"pause": 20, "response": "Done.", "steps": [` + strings.Join(slices.Repeat([]string{`{"instruction": "count", "queries": ["SELECT count(*) AS n FROM orders"]}`}, 3), ", ") + `]}`
	events := 15 // runStarted, planningStarted, plan, 3 × (stepStarted, queryExecuting, step), answerStarted, answer, runCompleted

	var clients sync.WaitGroup

	for cut := 1; cut < events; cut++ {
		run := d.accept("assistant", script)

		clients.Go(func() {
			first := follow(t, newRequest(t, http.MethodGet, one.url+"/query/runs/"+run.RunID+"/events", d.bearer, ""), cut)
			rest := follow(t, newRequest(t, http.MethodGet, two.url+"/query/runs/"+run.RunID+"/events", d.bearer, "", "Last-Event-ID: "+strconv.Itoa(cut)), 1000)
			seen := slices.Concat(first, rest)

			if len(seen) != events {
				t.Errorf("cut after %d: %d events", cut, len(seen))
			}

			for i, e := range seen {
				if e.id != i+1 {
					t.Errorf("cut after %d: the event %d has the id %d", cut, i, e.id)
				}
			}
		})

		if cut%4 == 0 {
			clients.Wait() // a user may have five runs at once
		}
	}

	clients.Wait()
}

// TestWithheld checks that a caller who loses access to a dataset no longer sees results that were computed from it, in any
// route.
func TestWithheld(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"word": "xylophone"}]}`).status)

	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "viewer")

	reader := d.by(key.token("bob"))
	request := newRequest(t, http.MethodPost, s.url+"/query/ask", reader.bearer,
		reader.script("assistant", `{"reasoning": "it says xylophone", "response": "xylophone", "steps": [{"instruction": "x", "queries": ["SELECT word FROM orders WHERE word <> 'xylophones'"]}]}`, ""))
	events := follow(t, request, 1000)
	require.Contains(t, events[len(events)-1].data, "xylophone")

	var run asked

	(&answer{body: events[0].data}).json(t, &run)

	routes := func() map[string]string {
		bodies := map[string]string{}
		for _, address := range []string{"/query/runs/" + run.RunID, "/query/conversations/" + run.ConversationID} {
			bodies[address] = call(t, http.MethodGet, s.url+address, reader.bearer, "").body
		}

		var stream strings.Builder
		for _, e := range follow(t, newRequest(t, http.MethodGet, s.url+"/query/runs/"+run.RunID+"/events", reader.bearer, ""), 1000) {
			stream.WriteString(e.name + " " + e.data + "\n")
		}

		bodies["events"] = stream.String()

		return bodies
	}

	for route, body := range routes() {
		require.Contains(t, body, `"xylophone"`, route)
	}

	unshare(t, s, d.bearer, "datasets/"+d.path(), "bob")

	for route, body := range routes() {
		// The question itself is the caller's own text.
		body = strings.ReplaceAll(body, strings.Trim(encode(t, `"response": "xylophone"`), `"`), "")
		require.NotContains(t, body, `word":"xylophone`, route)
		require.Contains(t, body, `{"response":"","steps":[],"outcome":"withheld"}`, route)
	}

	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "viewer")

	for route, body := range routes() {
		require.Contains(t, body, `"xylophone"`, route)
	}

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.url(), d.bearer, "").status)

	for route, body := range routes() {
		require.Contains(t, body, `{"response":"","steps":[],"outcome":"withheld"}`, route)
	}
}
