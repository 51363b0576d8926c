package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// doubtsSecond is a model that reads offers and is wrong about the price of the second.
func doubtsSecond(t *testing.T) *model {
	t.Helper()

	return newModel(t, readsOffers(func(item int, said map[string]any) {
		if item == 2 {
			claim, _ := said["price"].(map[string]any)
			claim["value"] = "7,77 EUR"
		}
	}))
}

// offersSource returns a source of documents with offers, whose changed files replace their rows.
func offersSource(t *testing.T, s *service, bearer string) *sourceOf {
	t.Helper()

	o := &sourceOf{filled: newOffers(t, s, bearer), there: newBucket(t)}

	var made sourced

	answer := call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": %q, "datasetName": "orders", "changed": "replace", %s}`,
		uuid.NewString(), s.connect(t, bearer, "c-"+uuid.NewString(), o.there), o.namespace, byModel))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)

	o.id = made.ID

	return o
}

// loads runs the source and returns its ingestion. besides are ingestions that others made meanwhile.
func (o *sourceOf) loads(besides ...string) ingestion {
	o.t.Helper()

	run := o.refresh()
	require.Equal(o.t, "completed", run.Status, run.Reason)

	return o.last(besides...)
}

// last returns the newest ingestion that is not in the list.
func (o *sourceOf) last(besides ...string) ingestion {
	o.t.Helper()

	var list struct{ Data []ingestion }

	o.call(http.MethodGet, "/ingestions?limit=20", "").json(o.t, &list)

	for _, one := range list.Data {
		if !slices.Contains(besides, one.ID) {
			return one
		}
	}

	require.Fail(o.t, "no ingestion")

	return ingestion{}
}

// TestSourceOfDocuments changes a document that a source follows and that has a correction. The correction holds for the bytes that its reviewer saw:
// not for other content, and again when these bytes come back. Then reloads race the source: the rows are always those of the content that is there.
func TestSourceOfDocuments(t *testing.T) {
	t.Parallel()

	m := doubtsSecond(t)
	s := start(t, m.settings()...)
	bearer := s.newKey().token("ada")
	bearer = value(t, call(t, http.MethodPost, s.url+"/user/tokens", bearer, `{"name": "follower"}`))
	o := offersSource(t, s, bearer)
	first := strings.Join(offers(1, 4), "\f")

	o.there.put("offers.txt", first)

	made := o.loads()
	require.Equal(t, []string{"0-2: price"}, o.flagged(made.ID))
	o.correct(made.ID, "0-2", "price", `"5.55"`)

	made = o.reloaded(made.ID)
	require.Equal(t, []string{"1001.01", "5.55", "1003.03", "1004.04"}, o.cells("price"))

	o.there.put("offers.txt", first+"Thank you.\n")

	changed := o.loads(made.ID)
	require.Equal(t, []string{"1001.01", "<nil>", "1003.03", "1004.04"}, o.cells("price"))
	require.Equal(t, []string{"0-2: price"}, o.flagged(changed.ID), "another content has no corrections")
	require.NotContains(t, fmt.Sprint(changed.Doubts), "Corrections")
	require.Equal(t, conflict, o.reload(made.ID).status, "the source has replaced its rows")

	asked := len(m.requests())

	o.there.put("offers.txt", first)

	again := o.loads(made.ID, changed.ID)
	require.Equal(t, []string{"1001.01", "5.55", "1003.03", "1004.04"}, o.cells("price"), "the bytes that were corrected are back")
	require.Empty(t, o.flagged(again.ID))
	require.Len(t, m.requests(), asked)

	racesSource(t, o, again)
}

// racesSource reloads the rows of the source while the source reads other content.
func racesSource(t *testing.T, o *sourceOf, last ingestion) {
	t.Helper()

	var (
		outcomes = map[string]int{}
		others   []string
	)

	for round := range max(4, loops(20)) {
		count := 3 + round%4
		o.there.put("offers.txt", strings.Join(offers(1, count), "\f")+fmt.Sprintf("Round %d\n", round))
		o.correct(last.ID, "0-3", "colour", fmt.Sprintf(`"red %d"`, round))

		var (
			group  sync.WaitGroup
			reload *answer
		)

		group.Go(func() {
			time.Sleep(rand.N(600 * time.Millisecond))

			reload = o.reload(last.ID)
		})

		run := o.refresh()

		group.Wait()
		require.Equal(t, "completed", run.Status, run.Reason)

		switch reload.status {
		case http.StatusAccepted:
			done := o.wait(o.accepted(reload).ID)
			others = append(others, done.ID)
			outcomes[done.Status]++
		case conflict:
			outcomes["refused"]++
		default:
			require.Fail(t, "reload", reload.body)
		}

		require.Len(t, o.offered(), count, "the rows are those of the content, once")
		require.NotContains(t, o.cells("colour"), fmt.Sprintf("red %d", round), "the corrections of the content before are gone")

		last = o.last(others...)
		require.Equal(t, "completed", last.Status)
	}

	t.Logf("reloads: %v", outcomes)
}

// TestRecordsTransferred transfers a dataset with corrections to another user, who goes on with them.
func TestRecordsTransferred(t *testing.T) {
	t.Parallel()

	m := doubtsSecond(t)
	s := start(t, m.settings()...)
	key := s.newKey()
	d := newOffers(t, s, key.token("ada"))
	document := strings.Join(offers(2, 3), "\f")
	made := d.loaded(byModel, document)
	d.correct(made.ID, "0-2", "price", `"1002.02"`)

	heir := key.token("heir")
	require.Equal(t, http.StatusOK, me(t, s, heir).status)
	s.quernd("dataset", "transfer", d.path(), "heir")
	requireAbsent(t, d.call(http.MethodGet, "/ingestions/"+made.ID+"/records", ""))
	requireAbsent(t, d.reload(made.ID))

	d.owner, d.bearer = "heir", heir
	asked := len(m.requests())

	require.Empty(t, d.flagged(made.ID))
	require.Contains(t, d.call(http.MethodGet, "/ingestions/"+made.ID+"/records", "").body, `"pending":true`)
	require.Contains(t, d.call(http.MethodGet, "/ingestions/"+made.ID+"/records/0-2/text", "").body, offerLine(2))

	done := d.reloaded(made.ID)
	require.Equal(t, "1002.02", d.cells("price")[1])
	require.Empty(t, d.flagged(done.ID))
	require.Len(t, m.requests(), asked, "the answers have moved too")

	require.Equal(t, http.StatusOK, d.call(http.MethodDelete, "/ingestions/"+done.ID+"/records/0-2/fields/price", "").status)
	require.Equal(t, []string{"0-2: price"}, d.flagged(d.reloaded(done.ID).ID))

	require.Equal(t, 1, s.count(`SELECT count(*) FROM (SELECT account_id FROM document_corrections UNION SELECT account_id FROM document_records
		UNION SELECT account_id FROM document_pages UNION SELECT account_id FROM document_chunks) AS owners`))
}
