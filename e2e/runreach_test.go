package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// reading returns a script with one statement. If pause is not 0, the agent waits that number of milliseconds before it.
func reading(t *testing.T, statement string, pause int) string {
	t.Helper()

	return encode(t, map[string]any{
		"pause": pause, "response": "Done.", "steps": []map[string]any{{"instruction": "read", "queries": []string{statement}}},
	})
}

// runDoors returns all operations on a run with their bodies. Those that change the run are last.
func runDoors(run asked) []struct{ method, path, body string } {
	at, talk := "/query/runs/"+run.RunID, "/query/conversations/"+run.ConversationID

	return []struct{ method, path, body string }{
		{http.MethodGet, at, ""},
		{http.MethodGet, at + "/events", ""},
		{http.MethodGet, at + "/steps/0/rows", ""},
		{http.MethodGet, at + "/steps/0/export", ""},
		{http.MethodGet, talk, ""},
		{http.MethodGet, at + "/feedback", ""},
		{http.MethodPost, at + "/feedback", `{"thumbsUp": true}`},
		{http.MethodPost, at + "/cancel", ""},
		{http.MethodPost, at + "/choose", `{"option": 1}`},
		{http.MethodPatch, talk, `{"title": "mine"}`},
		{http.MethodDelete, at, ""},
		{http.MethodDelete, talk, ""},
	}
}

// TestRestrictedRuns checks that a token that is limited to one dataset can see the runs that it started, and those of others
// that read only this dataset. Every other run looks absent in all operations.
func TestRestrictedRuns(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	d.beside("notes", `{"data": [{"n": 2}]}`)

	one := d.by(restrictedToken(t, s, d.bearer, target("self", d.namespace, "orders")))
	own := one.answered(reading(t, "SELECT 1 AS n", 0), "")
	same := d.answered(reading(t, "SELECT n FROM orders", 0), "")

	others := map[string]asked{
		"another dataset": d.answered(reading(t, "SELECT n FROM notes", 0), ""),
		"both datasets":   d.answered(reading(t, "SELECT o.n FROM orders o, notes", 0), ""),
		"no dataset":      d.answered(reading(t, "SELECT 1 AS n", 0), ""),
		"still going on":  d.accept("assistant", reading(t, "SELECT n FROM orders", 60_000)),
	}

	mixed := d.answered(reading(t, "SELECT n FROM orders", 0), `"conversationId": "`+others["another dataset"].ConversationID+`"`)
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/query/runs/"+mixed.RunID, one.bearer, "").status, "it read what the token may read")

	d.by(key.token("stranger")).missing("another user", same)

	for name, run := range others {
		one.missing(name, run)

		agent := newPeer(one, "assistant")
		for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
			code, _ := rpcError(t, agent.call(method, `{"id": "`+run.RunID+`"}`))
			require.Equal(t, -32001, code, "%s: %s", name, method)
		}

		require.Contains(t, agent.call("ListTasks", `{"contextId": "`+run.ConversationID+`"}`).body, `"tasks":[]`, name)

		more := one.script("assistant", reading(t, "SELECT 1 AS n", 0), `"conversationId": "`+run.ConversationID+`"`)
		require.Equal(t, http.StatusNotFound, call(t, http.MethodPost, s.url+"/query/ask", one.bearer, more).status, name)
		require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/query/runs/"+run.RunID, d.bearer, "").status, "it is still there: "+name)
	}

	ended := call(t, http.MethodPost, s.url+"/query/runs/"+others["still going on"].RunID+"/cancel", d.bearer, "")
	require.Equal(t, http.StatusOK, ended.status, ended.body)

	require.ElementsMatch(t, []string{own.ConversationID, same.ConversationID}, one.conversations())
	require.Len(t, d.conversations(), 6)

	for _, filter := range []string{"", "&username=self&namespace=" + d.namespace, "&status=completed"} {
		require.Equal(t, []string{mixed.RunID, same.RunID, own.RunID}, one.runs(filter), filter)
	}

	require.Equal(t, []string{mixed.RunID}, one.runs("&conversationId="+mixed.ConversationID))
	require.Empty(t, one.runs("&status=cancelled"))
	require.Len(t, d.runs(""), 7)

	for name, run := range map[string]asked{"its own": own, "the same dataset": same} {
		require.Equal(t, run.RunID, newPeer(one, "assistant").task("GetTask", run.RunID).ID)

		for _, door := range runDoors(run) {
			got := call(t, door.method, s.url+door.path, one.bearer, door.body)

			switch {
			case door.path == "/query/runs/"+run.RunID+"/feedback" && door.method == http.MethodGet: // there is no feedback yet
			case door.path == "/query/runs/"+run.RunID+"/cancel":
				require.Equal(t, http.StatusUnprocessableEntity, got.status, "%s: it has ended: %s", name, got.body)
			case door.path == "/query/runs/"+run.RunID+"/choose":
				require.Equal(t, http.StatusConflict, got.status, "%s: it does not wait: %s", name, got.body)
			case door.method == http.MethodDelete && door.path == "/query/conversations/"+run.ConversationID: // it was deleted with its run
			default:
				require.Less(t, got.status, 300, "%s: %s %s: %s", name, door.method, door.path, got.body)
			}
		}
	}
}

// missing requires that no operation on a run and its conversation tells the caller that they exist: every answer has the status,
// the headers and, except for the ids, the bytes of the answer for ids that nobody has.
func (d *filled) missing(name string, run asked) {
	d.t.Helper()

	none := asked{RunID: uuid.NewString(), ConversationID: uuid.NewString()}
	nothing := runDoors(none)

	for i, door := range runDoors(run) {
		got := call(d.t, door.method, d.s.url+door.path, d.bearer, door.body).comparable(run.RunID, none.RunID, run.ConversationID, none.ConversationID)
		absent := call(d.t, door.method, d.s.url+nothing[i].path, d.bearer, door.body).comparable()

		require.Equal(d.t, http.StatusNotFound, got.status, "%s: %s %s: %s", name, door.method, door.path, got.body)
		require.Equal(d.t, absent.body, got.body, "%s: %s %s", name, door.method, door.path)
		require.Equal(d.t, absent.header, got.header, "%s: %s %s", name, door.method, door.path)
	}
}

// conversations returns the ids of the conversations of the namespace, over all pages.
func (d *filled) conversations() (ids []string) {
	d.t.Helper()

	for cursor := ""; ; {
		got := call(d.t, http.MethodGet, d.s.url+"/query/conversations?limit=2&username=self&namespace="+d.namespace+cursor, d.bearer, "")
		require.Equal(d.t, http.StatusOK, got.status, got.body)

		var page struct {
			Data       []struct{ ID string }
			NextCursor string
		}

		got.json(d.t, &page)

		for _, one := range page.Data {
			ids = append(ids, one.ID)
		}

		if page.NextCursor == "" {
			return ids
		}

		cursor = "&cursor=" + page.NextCursor
	}
}

// runs returns the ids of the caller's runs, over all pages.
func (d *filled) runs(filter string) (ids []string) {
	d.t.Helper()

	for cursor := ""; ; {
		got := call(d.t, http.MethodGet, d.s.url+"/query/runs?limit=2"+filter+cursor, d.bearer, "")
		require.Equal(d.t, http.StatusOK, got.status, got.body)

		var page struct {
			Data       []struct{ RunID string }
			NextCursor string
		}

		got.json(d.t, &page)
		require.LessOrEqual(d.t, len(page.Data), 2)

		for _, one := range page.Data {
			ids = append(ids, one.RunID)
		}

		if page.NextCursor == "" {
			return ids
		}

		cursor = "&cursor=" + page.NextCursor
	}
}

// TestKeptRowsAudited checks that each request that reads stored rows of a run, by any route, creates one audit entry with the
// owner of the dataset. A request without access creates none.
func TestKeptRowsAudited(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	key := s.newKey()
	d := newFilled(t, s, "lender", key.token("lender"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	share(t, s, d.bearer, "datasets/"+d.path(), "borrower", "viewer")
	share(t, s, d.bearer, "datasets/"+d.beside("kept", `{"data": [{"n": 1}]}`).path(), "borrower", "viewer") // the namespace stays visible

	reader := d.by(key.token("borrower"))
	agent := newPeer(reader, "assistant")
	run := reader.answered(reading(t, "SELECT n FROM orders", 0), "")

	get := func(path string) func() {
		return func() { require.Less(t, call(t, http.MethodGet, s.url+path, reader.bearer, "").status, 500) }
	}
	rpc := func(method, params string) func() {
		return func() { require.True(t, json.Valid([]byte(agent.call(method, params).body))) }
	}
	at := "/query/runs/" + run.RunID

	doors := map[string]struct {
		action string
		open   func()
	}{
		"run":          {"run.read", get(at)},
		"conversation": {"run.read", get("/query/conversations/" + run.ConversationID)},
		"events":       {"run.read", get(at + "/events")},
		"rows":         {"step.read", get(at + "/steps/0/rows")},
		"export":       {"step.export", get(at + "/steps/0/export")},
		"GetTask":      {"run.read", rpc("GetTask", `{"id": "`+run.RunID+`"}`)},
		"ListTasks":    {"run.read", rpc("ListTasks", `{"contextId": "`+run.ConversationID+`", "includeArtifacts": true}`)},
		"resumed": {"run.read", func() {
			follow(t, newRequest(t, http.MethodGet, s.url+at+"/events", reader.bearer, "", "Last-Event-ID: 5"), 1000)
		}},
	}

	entries := func(action string) int {
		return tally(t, s, `
			SELECT count(*) FROM audit JOIN directory_names n USING (account_id)
			WHERE n.username = 'lender' AND actor = 'borrower' AND action = $1 AND dataset = 'orders' AND kind = 'dataset'`, action)
	}

	for name, door := range doors {
		before := entries(door.action)

		door.open()
		require.Equal(t, before+1, entries(door.action), name)
	}

	// A stream that is followed while the run is in progress, and has delivered rows.
	before := entries("run.read")
	task := agent.begin(`{"pause": 300, "response": "Done.", "steps": [{"instruction": "a", "queries": ["SELECT n FROM orders"]}, {"instruction": "b", "queries": ["SELECT n FROM orders"]}]}`)
	agent.follow(agent.request("SubscribeToTask", `{"id": "`+task.ID+`"}`))
	require.Greater(t, entries("run.read"), before)
	require.LessOrEqual(t, entries("run.read"), before+2, "what there was, and what came")

	unshare(t, s, d.bearer, "datasets/"+d.path(), "borrower")

	for name, door := range doors {
		before := entries(door.action)

		door.open()
		require.Equal(t, before, entries(door.action), name)
	}
}
