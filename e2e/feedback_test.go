package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	storeDown   = "UPSTREAM_UNAVAILABLE"
	storeTime   = 6 * time.Second
	shortAnswer = `{"response": "Yes."}`
)

func (d *filled) feedback(run string) string { return d.s.url + "/query/runs/" + run + "/feedback" }

func (d *filled) rate(run, body string) *answer {
	d.t.Helper()

	return call(d.t, http.MethodPost, d.feedback(run), d.bearer, body)
}

// rated requires that a rating is recorded.
func (d *filled) rated(run, body string) {
	d.t.Helper()

	got := d.rate(run, body)
	require.Equal(d.t, http.StatusNoContent, got.status, got.body)
	require.Empty(d.t, got.body)
}

// failsToRate requires the response for an unavailable tracing store, within storeTime.
func (d *filled) failsToRate(run, body string) {
	d.t.Helper()

	began := time.Now()
	got := d.rate(run, body)
	require.Less(d.t, time.Since(began), storeTime)
	d.refused(got, http.StatusBadGateway, storeDown)
}

func (d *filled) refused(got *answer, status int, code string) {
	d.t.Helper()
	require.Equal(d.t, status, got.status, got.body)
	require.Contains(d.t, got.body, `"error_code":"`+code+`"`)
}

// inForce requires that this rating is read back.
func (d *filled) inForce(run string, up bool, comment string) {
	d.t.Helper()

	got := call(d.t, http.MethodGet, d.feedback(run), d.bearer, "")
	require.Equal(d.t, http.StatusOK, got.status, got.body)

	var found struct {
		ThumbsUp bool
		Comment  string
	}

	got.json(d.t, &found)
	require.Equal(d.t, up, found.ThumbsUp)
	require.Equal(d.t, comment, found.Comment)

	shown, turn := d.shownRatings(run)
	require.JSONEq(d.t, got.body, string(shown))
	require.JSONEq(d.t, got.body, string(turn))
}

// shownRatings returns the rating of a run as the run and the turn of its conversation have it; empty if they have none.
func (d *filled) shownRatings(run string) (shown, turn json.RawMessage) {
	d.t.Helper()

	var one struct {
		ConversationID string
		Feedback       json.RawMessage
	}

	call(d.t, http.MethodGet, d.s.url+"/query/runs/"+run, d.bearer, "").json(d.t, &one)

	var whole struct {
		Turns []struct {
			RunID    string
			Feedback json.RawMessage
		}
	}

	call(d.t, http.MethodGet, d.s.url+"/query/conversations/"+one.ConversationID, d.bearer, "").json(d.t, &whole)

	for _, t := range whole.Turns {
		if t.RunID == run {
			return one.Feedback, t.Feedback
		}
	}

	d.t.Fatal("the conversation has no turn of the run")

	return nil, nil
}

// settled waits until the tracing store is known to have the ratings that are in force.
func (s *service) settled() {
	s.t.Helper()
	await(s.t, "every rating is in the store", func() (settled bool) {
		withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			require.NoError(s.t, connection.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM run_feedback WHERE check_at IS NOT NULL)`).Scan(&settled))
		})

		return settled
	})
}

// has requires that a trace has exactly this rating.
func (p *phoenix) has(trace string, score float64, comment string) {
	p.t.Helper()

	found := p.ratings(trace)
	require.Len(p.t, found, 1)
	require.Equal(p.t, "user-feedback", found[0].Name)
	require.Equal(p.t, "HUMAN", found[0].AnnotatorKind)
	require.Equal(p.t, trace+":", found[0].Identifier[:33])
	require.InDelta(p.t, score, found[0].Result.Score, 0)

	if comment == "" {
		require.Nil(p.t, found[0].Result.Explanation)
	} else {
		require.Equal(p.t, comment, *found[0].Result.Explanation)
	}
}

// TestFeedback checks that the rating of a run is the last one that the caller sent and the tracing store accepted, in Quern and
// in the tracing store.
func TestFeedback(t *testing.T) {
	t.Parallel()

	store, between := phoenixBehind(t)
	s := start(t, append(store.settings(), scripted)...)
	key := s.newKey()
	d := newFilled(t, s, "asker", key.token("asker"))

	run, trace := d.ran(shortAnswer)
	other, otherTrace := d.ran(shortAnswer)

	d.rated(run, `{"thumbsUp": true, "comment": "Exactly."}`)
	d.inForce(run, true, "Exactly.")
	store.has(trace, 1, "Exactly.")

	longest := strings.Repeat("é", 2000)
	d.rated(other, `{"thumbsUp": false, "comment": "`+longest+`"}`)
	d.inForce(other, false, longest)
	d.rated(other, `{"thumbsUp": false, "comment": "No."}`)

	d.rated(run, `{"thumbsUp": false, "comment": null}`)
	d.inForce(run, false, "")
	store.has(trace, 0, "")

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.feedback(run), d.bearer, "").status)
	require.Empty(t, store.ratings(trace))

	shown, turn := d.shownRatings(run)
	require.Empty(t, shown)
	require.Empty(t, turn)
	d.refused(call(t, http.MethodGet, d.feedback(run), d.bearer, ""), http.StatusNotFound, "NOT_FOUND")
	d.refused(call(t, http.MethodDelete, d.feedback(run), d.bearer, ""), http.StatusNotFound, "NOT_FOUND")
	store.has(otherTrace, 0, "No.")

	d.refusals(key, run)
	d.withheld(newFilled(t, s, "lender", key.token("lender")))

	d.rated(run, `{"thumbsUp": true}`)
	between.set(behaviour{refuse: true})
	d.failsToRate(run, `{"thumbsUp": false}`)
	d.inForce(run, true, "")

	unseen, unseenTrace := d.ran(shortAnswer) // the outage does not affect the run
	d.failsToRate(unseen, `{"thumbsUp": true}`)
	d.refused(call(t, http.MethodGet, d.feedback(unseen), d.bearer, ""), http.StatusNotFound, "NOT_FOUND")
	d.refused(call(t, http.MethodDelete, d.feedback(run), d.bearer, ""), http.StatusBadGateway, storeDown)
	d.inForce(run, true, "")

	between.set(behaviour{})
	s.settled()
	store.has(trace, 1, "")
	require.Empty(t, store.ratings(unseenTrace))
	d.rated(unseen, `{"thumbsUp": true, "comment": "After all."}`)
	store.has(unseenTrace, 1, "After all.")

	// The tracing store accepts the rating, but its response does not arrive in time.
	between.set(behaviour{delay: time.Hour})
	d.failsToRate(run, `{"thumbsUp": false, "comment": "Lost."}`)
	d.inForce(run, true, "")
	d.ran(shortAnswer)
	between.set(behaviour{})
	s.settled()
	store.has(trace, 1, "")
	store.has(otherTrace, 0, "No.")

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/query/runs/"+run, d.bearer, "").status)
	s.settled()
	require.Empty(t, store.ratings(trace))
	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		var left int

		require.NoError(t, connection.QueryRow(ctx, `SELECT count(*) FROM run_feedback WHERE run_id = $1`, run).Scan(&left))
		require.Zero(t, left)
	})
}

// refusals checks that invalid requests are refused in order of the checks, each with its status.
func (d *filled) refusals(key *signer, run string) {
	d.t.Helper()

	d.refused(call(d.t, http.MethodPost, d.feedback(run), "", `{"thumbsUp": true}`), http.StatusUnauthorized, "UNAUTHORIZED")

	unknown := uuid.NewString()
	for _, body := range []string{``, `{`, `{"thumbsUp": true} x`} {
		d.refused(d.rate(run, body), http.StatusBadRequest, "BAD_REQUEST")
		d.refused(d.rate(unknown, body), http.StatusBadRequest, "BAD_REQUEST")
	}

	for _, body := range []string{`{}`, `[]`, `{"thumbsUp": null}`, `{"thumbsUp": "yes"}`, `{"thumbsUp": 1}`, `{"thumbsUp": true, "comment": 1}`, `{"thumbsUp": true, "comment": "` + strings.Repeat("é", 2001) + `"}`} {
		d.refused(d.rate(run, body), http.StatusUnprocessableEntity, "VALIDATION_FAILED")
		d.refused(d.rate(unknown, body), http.StatusUnprocessableEntity, "VALIDATION_FAILED")
	}

	for _, id := range []string{unknown, "x"} {
		d.refused(d.rate(id, `{"thumbsUp": true}`), http.StatusNotFound, "NOT_FOUND")
	}

	d.refused(call(d.t, http.MethodPost, d.feedback(run), key.token("stranger"), `{"thumbsUp": true}`), http.StatusNotFound, "NOT_FOUND")

	failed := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script("nl2ql", `{"fail": true}`, ""), "Accept: application/json")
	running := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script("nl2ql", `{"pause": 60000, "steps": [{}]}`, ""), "Prefer: respond-async")

	var made struct{ RunID string }

	for _, asked := range []*answer{failed, running} {
		asked.json(d.t, &made)
		d.refused(d.rate(made.RunID, `{"thumbsUp": true}`), http.StatusUnprocessableEntity, "RUN_NOT_COMPLETED")
	}

	cancelled := call(d.t, http.MethodPost, d.s.url+"/query/runs/"+made.RunID+"/cancel", d.bearer, "")
	require.Equal(d.t, http.StatusOK, cancelled.status, cancelled.body)
	d.refused(d.rate(made.RunID, `{"thumbsUp": true}`), http.StatusUnprocessableEntity, "RUN_NOT_COMPLETED")

	d.refused(call(d.t, http.MethodGet, d.feedback(run), d.bearer, ""), http.StatusNotFound, "NOT_FOUND")
}

// withheld checks that a run can be rated even if its result can no longer be read.
func (d *filled) withheld(lent *filled) {
	d.t.Helper()
	require.Equal(d.t, http.StatusOK, lent.post(`{"data": [{"a": 1}]}`).status)
	share(d.t, d.s, lent.bearer, "namespaces/self/"+lent.namespace, d.owner, "viewer")

	borrowed := &filled{d.t, d.s, d.bearer, lent.owner, lent.namespace, lent.name}
	run, _ := borrowed.ran(`{"steps": [{"instruction": "read", "queries": ["FROM orders"]}], "response": "One."}`)

	ended := call(d.t, http.MethodDelete, d.s.url+"/permissions/namespaces/"+lent.owner+"/"+lent.namespace+"/shares", lent.bearer, `{"username": "`+d.owner+`"}`)
	require.Equal(d.t, http.StatusOK, ended.status, ended.body)
	require.Contains(d.t, call(d.t, http.MethodGet, d.s.url+"/query/runs/"+run, d.bearer, "").body, `"outcome":"withheld"`)
	d.rated(run, `{"thumbsUp": false}`)
	d.inForce(run, false, "")
}
