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

// answeredBy is the verified question that answered.
type answeredBy struct {
	ID, Question, Author, VerifiedAt string
	Parameters                       []struct{ Name, Type, Value string }
}

// values returns the values of the parameters.
func (a *answeredBy) values() map[string]string {
	found := map[string]string{}
	for _, p := range a.Parameters {
		found[p.Name] = p.Value
	}

	return found
}

type verifiedQuestion struct {
	ID, Question, Query, Interpretation, Status, Reason, Author string
	Wordings                                                    []string
	Datasets                                                    []struct {
		Dataset string
		Columns []struct{ Name, Type string }
	}
}

func (d *filled) verified(method, id, body string, headers ...string) *answer {
	d.t.Helper()

	address := d.s.url + "/verified/" + d.owner + "/" + d.namespace
	if id != "" {
		address += "/" + id
	}

	return call(d.t, method, address, d.bearer, body, headers...)
}

// verify keeps a question.
func (d *filled) verify(body string) (made verifiedQuestion) {
	d.t.Helper()

	answer := d.verified(http.MethodPost, "", body)
	require.Equal(d.t, http.StatusCreated, answer.status, answer.body)
	answer.json(d.t, &made)

	return made
}

func (d *filled) listVerified(query string) (list []verifiedQuestion) {
	d.t.Helper()

	var page struct{ Data []verifiedQuestion }

	answer := call(d.t, http.MethodGet, d.s.url+"/verified/"+d.owner+"/"+d.namespace+query, d.bearer, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &page)

	return page.Data
}

const lateIn = `{"question": "How many orders in the $region are late since $year?",
	"query": "SELECT count(*) AS late FROM orders WHERE status = 'Late' AND region = $region AND year(ordered) >= $year",
	"parameters": [{"name": "region", "type": "varchar", "column": "orders.region", "default": "north"}, {"name": "year", "type": "bigint", "period": "year", "default": "2026"}],
	"interpretation": "number of late orders in the $region since $year"}`

func TestVerified(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_RUN_MAX_PER_USER=100")
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"from an answer to an answer": verifiedLoop,
		"every door":                  verifiedDoors,
		"what has changed":            verifiedSuspended,
		"who may":                     verifiedRights,
		"poison":                      verifiedPoison,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

func verifiedLoop(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newTrade(t, s, "veri", key.token("veri"))

	first := d.asks("How many orders are late?", "")
	require.Equal(t, "rules", first.Result.Basis)

	made := d.verify(fmt.Sprintf(`{"runId": %q, "wordings": ["Number of orders that came late"]}`, first.RunID))
	require.Equal(t, first.Result.Steps[0].Query, made.Query)
	require.Equal(t, "How many orders are late?", made.Question)
	require.Equal(t, "veri", made.Author)
	require.Equal(t, "veri/"+d.namespace+"/orders", made.Datasets[0].Dataset)
	require.Equal(t, made.ID, d.listVerified("?question=how+many+ORDERS+are+late")[0].ID)
	require.Empty(t, d.listVerified("?question=How+many+orders+are+early%3F"))

	for _, question := range []string{"How many orders are late?", "how many ORDERS are late", "How many order is late??", "Number of the orders that came late"} {
		run := d.asks(question, "")
		require.Equal(t, "verified", run.Result.Basis, "%s: %+v", question, run.Result)
		require.Equal(t, made.ID, run.Result.Verified.ID)
		require.Equal(t, "veri", run.Result.Verified.Author)
		require.Equal(t, "verified", run.Result.Model)
		require.Equal(t, map[string]any{"count": 67.0}, run.cells(t))
	}

	// A question that is only near is answered as any other, and a refusal suggests.
	require.Equal(t, "rules", d.asks("How many orders are not late?", "").Result.Basis)

	near := d.asks("How many orders are quixotically late?", "")
	require.Equal(t, "refused", near.Result.Outcome)
	require.Contains(t, near.Result.Response, "Verified questions that are similar:\n- How many orders are late?")

	// A caller who names datasets, or who tells a model more, does not get what does not fit.
	require.Equal(t, "verified", d.asks("How many orders are late?", `"datasets": ["orders"]`).Result.Basis)
	require.NotEqual(t, "verified", d.asks("How many orders are late?", `"datasets": ["customers"]`).Result.Basis)
	require.Equal(t, "rules", d.asks("How many orders are late?", `"helperPrompt": "Only of 2025."`).Result.Basis)

	// Parameters.
	late := d.verify(lateIn)
	for question, want := range map[string]struct {
		late   float64
		values map[string]string
	}{
		"How many orders in the south are late since 2026?":      {33, map[string]string{"region": "south", "year": "2026"}},
		"how many ORDERS in the North are late since 2025":       {34, map[string]string{"region": "north", "year": "2025"}},
		"Since 2027, how many orders in the south are late?":     {0, map[string]string{"region": "south", "year": "2027"}},
		"How many orders in the $region are late since $year?  ": {-1, nil},
	} {
		run := d.asks(question, "")

		if want.values == nil {
			require.NotEqual(t, "verified", run.Result.Basis, question)

			continue
		}

		require.Equal(t, "verified", run.Result.Basis, "%s: %+v", question, run.Result)
		require.Equal(t, late.ID, run.Result.Verified.ID)
		require.Equal(t, want.values, run.Result.Verified.values(), question)
		require.Equal(t, map[string]any{"late": want.late}, run.cells(t), question)
	}

	for _, question := range []string{
		"How many orders in the west are late since 2026?", "How many orders not in the south are late since 2026?", "How many orders in the south are late before 2026?",
		"How many orders in the south are cancelled since 2026?", "How many orders in the south are late since 26?",
	} {
		require.NotEqual(t, "verified", d.asks(question, "").Result.Basis, question)
	}

	// A repeated request creates nothing, and a thumbs-up changes nothing.
	key1 := "Idempotency-Key: " + uuid.NewString()
	body := `{"question": "Which regions have orders?", "query": "SELECT DISTINCT region FROM orders ORDER BY region"}`
	one, two := d.verified(http.MethodPost, "", body, key1), d.verified(http.MethodPost, "", body, key1)
	require.Equal(t, http.StatusCreated, one.status, one.body)
	require.Equal(t, one.body, two.body)
	require.NotEmpty(t, one.header.Get("Location"))

	cancelled := d.asks("How many orders are cancelled?", "")
	d.rated(cancelled.RunID, `{"thumbsUp": true}`)
	require.Len(t, d.listVerified(""), 3)
	require.Equal(t, "rules", d.asks("How many orders are cancelled?", "").Result.Basis)

	// A change that is based on another revision is refused. What was retired answers no more, and can be verified again.
	etag := d.verified(http.MethodGet, made.ID, "").header.Get("ETag")
	changed := d.verified(http.MethodPatch, made.ID, `{"wordings": []}`, "If-Match: "+etag)
	require.Equal(t, http.StatusOK, changed.status, changed.body)
	requireFault(t, "stale", d.verified(http.MethodPatch, made.ID, `{"wordings": []}`, "If-Match: "+etag), http.StatusPreconditionFailed, "PRECONDITION_FAILED")
	require.NotEqual(t, "verified", d.asks("Number of orders that came late", "").Result.Basis)

	require.Equal(t, http.StatusNoContent, d.verified(http.MethodDelete, made.ID, "").status)
	require.Equal(t, http.StatusNoContent, d.verified(http.MethodDelete, made.ID, "").status)
	require.Equal(t, "rules", d.asks("How many orders are late?", "").Result.Basis)
	require.Len(t, d.listVerified(""), 2)
	require.Equal(t, made.ID, d.listVerified("?status=retired")[0].ID)
	require.Equal(t, http.StatusOK, d.verified(http.MethodPatch, made.ID, `{"status": "verified"}`).status)
	require.Equal(t, "verified", d.asks("How many orders are late?", "").Result.Basis)
}

func verifiedDoors(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newTrade(t, s, "vera", key.token("vera"))
	c := s.signedIn(t, d.apiToken())
	about := "vera/" + d.namespace

	// The terminal.
	require.Contains(t, c.try("verified", "list", "-n", about).err+c.run("verified", "list", "-n", about), "No verified questions")
	first := c.run("ask", "-n", about, "How many orders are late?")
	run := first[strings.LastIndex(first, "run: ")+5:][:36]
	require.Contains(t, c.run("verified", "add", "--from", run), "status: verified")
	require.Contains(t, c.run("ask", "-n", about, "how many orders are LATE"), "verified by: vera on ")

	made := c.run("verified", "add", "How many orders in the $region are late?", "-n", about, "--query", "SELECT count(*) AS late FROM orders WHERE status = 'Late' AND region = $region",
		"--param", "region=north", "--column", "region=orders.region", "--output", "json")

	var kept verifiedQuestion

	require.NoError(t, json.Unmarshal([]byte(made), &kept))
	require.Contains(t, c.run("ask", "-n", about, "How many orders in the south are late?"), "with region = south")
	require.Contains(t, c.run("verified", "edit", kept.ID, "-n", about, "--wording", "Late orders of region $region"), "Late orders of region $region")
	require.Contains(t, c.run("ask", "-n", about, "late orders of region south"), "with region = south")
	require.Contains(t, c.run("verified", "list", "-n", about), "How many orders in the $region are late?")
	require.Contains(t, c.run("verified", "show", kept.ID, "-n", about), "needs: "+about+"/orders (status, region)")

	// Streams, A2A and MCP.
	stream := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("assistant", "How many orders in the south are late?", ""), "Accept: text/event-stream")
	for _, event := range []string{"queryExecuting", "step", "runCompleted"} {
		at := strings.Index(stream.body, "event: "+event+"\n")
		require.Positive(t, at, event)
		require.Contains(t, strings.SplitN(stream.body[at:], "\n\n", 2)[0], `"verified":{"id":"`+kept.ID, event)
	}

	for _, agent := range []string{"nl2ql", "assistant"} {
		p := newPeer(d, agent)
		told := p.call("SendMessage", p.ask(uuid.NewString(), "How many orders in the south are late?", ""))
		require.Contains(t, told.body, `"basis":"verified"`)
		require.Contains(t, told.body, kept.ID)
	}

	var shown struct {
		Basis    string
		Verified struct {
			ID         string
			Parameters map[string]string
		}
	}

	d.tool("ask", fmt.Sprintf(`{"namespace": %q, "question": "How many orders in the south are late?"}`, about), &shown)
	require.Equal(t, "verified", shown.Basis)
	require.Equal(t, kept.ID, shown.Verified.ID)
	require.Equal(t, map[string]string{"region": "south"}, shown.Verified.Parameters)

	require.Contains(t, c.run("verified", "retire", kept.ID, "-n", about), "Retired.")
	require.NotContains(t, c.run("ask", "-n", about, "How many orders in the south are late?"), "verified by:")
}

func verifiedSuspended(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newTrade(t, s, "vinc", key.token("vinc"))
	late := d.verify(lateIn)
	every := d.verify(`{"question": "How many customers live everywhere?", "query": "SELECT count(*) AS n FROM customers WHERE city IS NOT NULL"}`)
	question := "How many orders in the south are late since 2026?"
	require.Equal(t, "verified", d.asks(question, "").Result.Basis)

	// Other columns may change.
	d.loaded(`"mode": "replace"`, "id,status,region,ordered,more\n1,Late,south,2026-01-01,x\n")
	await(t, "the index", func() bool { return d.asks(question, "").Result.Basis == "verified" })

	// A column that it needs is renamed: no answer is stale, and the owner is told.
	d.loaded(`"mode": "replace"`, "id,state,region,ordered\n1,Late,south,2026-01-01\n")
	require.NotEqual(t, "verified", d.asks(question, "").Result.Basis)

	found := d.listVerified("?status=suspended")
	require.Len(t, found, 1)
	require.Equal(t, late.ID, found[0].ID)
	require.Equal(t, "The column status of vinc/"+d.namespace+"/orders was removed or renamed.", found[0].Reason)
	require.Contains(t, call(t, http.MethodGet, s.url+"/audit", d.bearer, "").body, `"action":"verified.suspend"`)

	// It cannot be verified again before the statement runs, and then it answers again.
	requireFault(t, "no column", d.verified(http.MethodPatch, late.ID, `{"status": "verified"}`), http.StatusUnprocessableEntity, "QUERY_INVALID")
	d.loaded(`"mode": "replace"`, "id,status,region,ordered\n1,Late,south,2026-01-01\n")
	require.NotEqual(t, "verified", d.asks(question, "").Result.Basis, "it stays suspended")
	require.Equal(t, http.StatusOK, d.verified(http.MethodPatch, late.ID, `{"status": "verified"}`).status)
	d.indexed()
	await(t, "the index", func() bool { return d.asks(question, "").Result.Basis == "verified" })

	// Another type.
	d.loaded(`"mode": "replace"`, "id,status,region,ordered\n1,Late,south,soon\n")
	require.NotEqual(t, "verified", d.asks(question, "").Result.Basis)
	require.Contains(t, d.listVerified("?status=suspended")[0].Reason, "was date and is varchar")

	// A dataset that is gone, although another one has its name.
	other := &filled{t, s, d.bearer, d.owner, d.namespace, "customers"}
	require.Equal(t, http.StatusNoContent, other.call(http.MethodDelete, "", "").status)
	other = d.beside("customers", `{"data": [{"id": 1, "city": "Vienna"}]}`)
	require.NotEqual(t, "verified", other.asks("How many customers live everywhere?", "").Result.Basis)

	got := verifiedQuestion{}
	d.verified(http.MethodGet, every.ID, "").json(t, &got)
	require.Equal(t, "suspended", got.Status)
	require.Contains(t, got.Reason, "was deleted, renamed or moved")
}

func verifiedRights(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newTrade(t, s, "vito", key.token("vito"))
	late := d.verify(lateIn)
	joined := d.verify(`{"question": "How many orders of retail customers are there?",
		"query": "SELECT count(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.segment = 'retail'"}`)

	partly, whole, editor, nobody := d.by(key.token("partly")), d.by(key.token("whole")), d.by(key.token("editing")), d.by(key.token("nobody"))
	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/orders", "partly", "editor")
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "whole", "viewer")
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "editing", "editor")

	// Who may read one of two datasets does not learn that the other verified question exists.
	require.Len(t, partly.listVerified(""), 1)
	absent := partly.verified(http.MethodGet, uuid.NewString(), "")
	hidden := partly.verified(http.MethodGet, joined.ID, "")
	require.Equal(t, http.StatusNotFound, hidden.status)
	require.Len(t, hidden.body, len(absent.body))
	require.NotContains(t, hidden.body, "retail")
	require.NotContains(t, partly.asks("How many orders of big customers are there?", "").Result.Response, "retail")
	require.NotEqual(t, "verified", partly.asks(joined.Question, "").Result.Basis)
	require.Equal(t, "verified", partly.asks("How many orders in the south are late since 2026?", "").Result.Basis)

	for _, id := range []string{late.ID, joined.ID} {
		for _, method := range []string{http.MethodPatch, http.MethodDelete} {
			got := partly.verified(method, id, map[string]string{http.MethodPatch: `{"wordings": []}`}[method])
			require.Equal(t, map[string]int{late.ID: http.StatusForbidden, joined.ID: http.StatusNotFound}[id], got.status, got.body)

			require.Equal(t, http.StatusForbidden, whole.verified(method, id, map[string]string{http.MethodPatch: `{"wordings": []}`}[method]).status)
			require.Equal(t, http.StatusNotFound, nobody.verified(method, id, map[string]string{http.MethodPatch: `{"wordings": []}`}[method]).status)
		}
	}

	require.Equal(t, "verified", whole.asks(joined.Question, "").Result.Basis)
	require.Equal(t, http.StatusNotFound, nobody.verified(http.MethodGet, "", "").status)
	require.Equal(t, http.StatusOK, editor.verified(http.MethodPatch, late.ID, `{"wordings": ["Late orders of the $region since $year"]}`).status)
	require.Equal(t, "editing", d.asks("late orders of the south since 2026", "").Result.Verified.Author)

	// A restricted token sees what it names. The run of somebody who lost access is withheld.
	limited := d.by(restrictedToken(t, s, d.bearer, target("vito", d.namespace, "orders")))
	require.Len(t, limited.listVerified(""), 1)
	require.NotEqual(t, "verified", limited.asks(joined.Question, "").Result.Basis)

	run := whole.asks(joined.Question, "")
	ended := call(t, http.MethodDelete, s.url+"/permissions/namespaces/self/"+d.namespace+"/shares", d.bearer, `{"username": "whole"}`)
	require.Equal(t, http.StatusOK, ended.status)
	require.NotContains(t, call(t, http.MethodGet, s.url+"/query/runs/"+run.RunID, whole.bearer, "").body, "retail'")
	require.Equal(t, http.StatusNotFound, whole.verified(http.MethodGet, joined.ID, "").status)
}

// verifiedPoison tries to make others get wrong answers that are marked as verified.
func verifiedPoison(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newTrade(t, s, "vlad", key.token("vlad"))
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "reading", "viewer")
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "writing", "editor")

	reading, writing := d.by(key.token("reading")), d.by(key.token("writing"))
	secret := newFilled(t, s, "vlad", d.bearer)
	require.Equal(t, http.StatusOK, secret.post(`{"data": [{"a": 1}]}`).status)

	right := d.verify(`{"question": "How many orders are late?", "query": "SELECT count(*) AS n FROM orders WHERE status = 'Late'"}`)
	others := d.asks("How many orders are cancelled?", "")
	elsewhere := secret.asks("How many orders are there?", "")
	question := func(text, query string) string {
		return fmt.Sprintf(`{"question": %s, "query": %s}`, encode(t, text), encode(t, query))
	}
	wrong := "SELECT 0 AS n FROM orders ORDER BY id LIMIT 1"

	for name, try := range map[string]struct {
		by     *filled
		body   string
		status int
	}{
		"a viewer":                        {reading, question("How many orders exist?", wrong), http.StatusForbidden},
		"a stranger":                      {d.by(key.token("strange")), question("How many orders exist?", wrong), http.StatusNotFound},
		"the same question":               {writing, question("How many orders are late?", wrong), http.StatusConflict},
		"in other letters":                {writing, question("ＨＯＷ MÂNY or\u200bders are   late ?!", wrong), http.StatusConflict},
		"with another number":             {writing, question("How many order is the late", wrong), http.StatusConflict},
		"as another wording":              {writing, `{"question": "How many orders exist at all?", "wordings": ["how many orders are late"], "query": "` + wrong + `"}`, http.StatusConflict},
		"a constant":                      {writing, question("How many orders exist?", "SELECT 42 AS n"), http.StatusUnprocessableEntity},
		"the clock":                       {writing, question("How many orders exist?", "SELECT count(*) AS n FROM orders WHERE ordered < current_date"), http.StatusUnprocessableEntity},
		"chance":                          {writing, question("How many orders exist?", "SELECT count(*) AS n FROM orders WHERE random() < 0.5"), http.StatusUnprocessableEntity},
		"any row":                         {writing, question("Which order exists?", "SELECT region FROM orders LIMIT 1"), http.StatusUnprocessableEntity},
		"a change":                        {writing, question("How many orders exist?", "DELETE FROM orders"), http.StatusUnprocessableEntity},
		"two statements":                  {writing, question("How many orders exist?", "SELECT 1 FROM orders; SELECT 2 FROM orders"), http.StatusUnprocessableEntity},
		"somebody else's dataset":         {writing, question("How many secrets exist?", `SELECT count(*) AS n FROM "vlad/`+secret.namespace+`/orders"`), http.StatusUnprocessableEntity},
		"a run of somebody else":          {writing, fmt.Sprintf(`{"runId": %q}`, others.RunID), http.StatusUnprocessableEntity},
		"a run about another namespace":   {d, fmt.Sprintf(`{"runId": %q}`, elsewhere.RunID), http.StatusUnprocessableEntity},
		"a wording that fits everything":  {writing, `{"question": "$a $b", "query": "SELECT count(*) AS n FROM orders WHERE amount > $a AND id > $b", "parameters": [{"name": "a", "type": "bigint", "default": "1"}, {"name": "b", "type": "bigint", "default": "1"}]}`, http.StatusUnprocessableEntity},
		"a parameter without a column":    {writing, `{"question": "How many orders are $what?", "query": "SELECT count(*) AS n FROM orders WHERE status = $what", "parameters": [{"name": "what", "type": "varchar", "default": "Late"}]}`, http.StatusUnprocessableEntity},
		"values of a column it must know": {writing, `{"question": "How many orders are from $what?", "query": "SELECT count(*) AS n FROM orders WHERE status = $what", "parameters": [{"name": "what", "type": "varchar", "column": "customers.city", "default": "Late"}]}`, http.StatusUnprocessableEntity},
		"SQL as a default":                {writing, `{"question": "How many orders since $year exist?", "query": "SELECT count(*) AS n FROM orders WHERE year(ordered) > $year", "parameters": [{"name": "year", "type": "bigint", "period": "year", "default": "2026 OR 1=1"}]}`, http.StatusUnprocessableEntity},
	} {
		got := try.by.verified(http.MethodPost, "", try.body)
		require.Equal(t, try.status, got.status, "%s: %s", name, got.body)
	}

	// A change of another question cannot take its wording either.
	other := writing.verify(question("How many orders exist at all?", wrong))
	require.Equal(t, http.StatusConflict, writing.verified(http.MethodPatch, other.ID, `{"question": "How many late orders are there?", "wordings": ["how many orders are late"]}`).status)

	// A rating makes nothing verified, and a question with SQL in it is only words.
	reading.rated(reading.asks("How many orders are cancelled?", "").RunID, `{"thumbsUp": true, "comment": "verified"}`)
	require.Equal(t, "rules", reading.asks("How many orders are cancelled?", "").Result.Basis)
	d.verify(lateIn)

	for _, text := range []string{"How many orders in the south' OR 1=1 -- are late since 2026?", "How many orders in the south; DROP TABLE orders are late since 2026?"} {
		require.NotEqual(t, "verified", d.asks(text, "").Result.Basis)
	}

	run := reading.asks("How many orders are late?", "")
	require.Equal(t, right.ID, run.Result.Verified.ID)
	require.Equal(t, map[string]any{"n": 67.0}, run.cells(t))
}

// TestVerifiedKilled kills the worker while the statement of a verified question waits for a slot. The next worker runs the same statement
// with the same values.
func TestVerifiedKilled(t *testing.T) {
	t.Parallel()

	settings := []string{"QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_QUERY_MAX_RUNNING=1", "QUERN_QUERY_THREADS=1", "QUERN_QUERY_WAIT_TIMEOUT=1m"}
	s := start(t, append(settings, "QUERN_RUN_WORKERS=0")...)
	worker := another(t, s, settings...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))
	kept := d.verify(lateIn)

	for _, agent := range []string{"nl2ql", "assistant"} {
		body := fmt.Sprintf(`{"username": "ada", "namespace": %q, "query": "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e"}`, d.namespace)
		long := newRequest(t, http.MethodPost, worker.url+"/query", d.bearer, body)

		go func() { // this statement holds the only slot
			if response, err := http.DefaultTransport.RoundTrip(long); err == nil {
				_ = response.Body.Close()
			}
		}()

		await(t, "the statement that holds the place", func() bool {
			return strings.Contains(call(t, http.MethodGet, worker.admin+"/metrics", "", "").body, "quern_query_running 1")
		})

		var run concluded

		accepted := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script(agent, "How many orders in the south are late since 2025?", ""), "Prefer: respond-async")
		require.Equal(t, http.StatusAccepted, accepted.status, accepted.body)
		accepted.json(t, &run)

		await(t, "the statement", func() bool {
			return s.count(`SELECT count(*) FROM run_events WHERE run_id = $1 AND kind = 'queryExecuting'`, run.RunID) == 1
		})

		worker.kill()
		worker.restart()

		await(t, "the end", func() bool {
			call(t, http.MethodGet, s.url+"/query/runs/"+run.RunID, d.bearer, "").json(t, &run)

			return run.Status != "running"
		})
		require.Equal(t, "completed", run.Status, "%+v", run)
		require.Equal(t, "verified", run.Result.Basis)
		require.Equal(t, kept.ID, run.Result.Verified.ID)
		require.Equal(t, map[string]string{"region": "south", "year": "2025"}, run.Result.Verified.values())
		require.Equal(t, map[string]any{"late": 33.0}, run.cells(t))
		require.Equal(t, 1, s.count(`SELECT count(*) FROM run_events WHERE run_id = $1 AND kind = 'queryExecuting'`, run.RunID))
	}
}
