package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRowRaces posts rows to a dataset while all its rows are removed. Every acknowledged row must exist, or must have existed
// before the removal. No other row may exist or have existed.
func TestRowRaces(t *testing.T) { //nolint:tparallel // the races share two cores
	t.Parallel()

	one := start(t)
	two := start(t, slices.Concat(one.place.settings(), []string{"QUERN_DATABASE_URL=" + one.databaseURL, "QUERN_OIDC_ISSUER=" + one.realm.issuer()})...)
	// An API token outlives the loop.
	bearer := value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "racer", "role": "owner"}`))

	for _, race := range []rowRace{
		{name: "clear", operation: "clear", writers: 20, left: numbers(), change: func(r *rowRace) *http.Request {
			return newRequest(t, http.MethodPost, r.url()+"/clear", bearer, "")
		}},
		{name: "restore", operation: "restore", writers: 6, left: numbers(-1), change: func(r *rowRace) *http.Request {
			return newRequest(t, http.MethodPost, r.url()+"/snapshots/"+r.first+"/restore", bearer, "")
		}},
		{name: "replace", operation: "replace", writers: 6, left: numbers(-2, -3), change: func(r *rowRace) *http.Request {
			session := uploadFiles(r.t, r.s, bearer, "n\n-2\n-3\n")

			return newRequest(t, http.MethodPost, r.url()+"/ingestions", bearer, fmt.Sprintf(`{"sessionId": %q, "mode": "replace"}`, session))
		}},
	} {
		t.Run(race.name, func(t *testing.T) {
			race.filled, race.replicas = newFilled(t, one, "ada", bearer), []*service{one, two}
			require.Equal(t, http.StatusOK, race.post(`{"data": [{"n": -1}]}`).status)

			race.first = race.snapshots()[0].SnapshotID
			race.rows = 1
			race.seen = 1

			for round := range rounds(200) {
				race.run(round)
			}

			t.Logf("%d rows acknowledged, %d of them before the %s; %d refused", race.acknowledged, race.earlier, race.name, race.refused)
		})
	}
}

// rowRace is one way to remove all rows.
type rowRace struct {
	*filled

	name, operation string
	writers         int
	left            [][]any // the rows right after the change
	change          func(*rowRace) *http.Request
	replicas        []*service
	first           string // the snapshot that is restored

	seen, rows                     int // snapshots and rows at the beginning of a round
	acknowledged, earlier, refused int
}

func (r *rowRace) run(round int) {
	r.t.Helper()

	var (
		posting sync.WaitGroup
		change  = r.change(r)
		answers = make([]*answer, r.writers)
		changed *answer
	)

	posting.Go(func() {
		pause(time.Second)

		changed, _ = try(change)
	})

	for writer := range r.writers {
		replica := r.replicas[writer%len(r.replicas)]
		post := newRequest(r.t, http.MethodPost, replica.url+"/data/"+r.path()+"/rows", r.bearer, fmt.Sprintf(`{"data": [{"n": %d}]}`, round*r.writers+writer))

		posting.Go(func() {
			pause(time.Second)

			answers[writer], _ = try(post)
		})
	}

	posting.Wait()
	require.NotNil(r.t, changed)
	require.Contains(r.t, []int{http.StatusOK, http.StatusAccepted}, changed.status, changed.body)

	if changed.status == http.StatusAccepted {
		done := r.wait(r.accepted(changed).ID)
		require.Equal(r.t, "completed", done.Status, "%+v", done.Error)
	}

	acknowledged := r.learn(round, answers)
	found := r.table().rows

	for _, row := range r.left {
		at := slices.IndexFunc(found, func(other []any) bool { return other[0] == row[0] })
		require.NotEqual(r.t, -1, at, "%v is missing", row)
		found = slices.Delete(found, at, at+1)
	}

	for _, row := range found {
		require.True(r.t, acknowledged[number(row)], "%v is there twice, or was not acknowledged", row)
		delete(acknowledged, number(row))
	}

	// The other acknowledged rows existed before the change. The row count of the snapshot before it confirms this.
	list := r.snapshots()
	made := list[:len(list)-r.seen]
	at := slices.IndexFunc(made, func(s snapshot) bool { return s.Operation == r.operation })
	require.NotEqual(r.t, -1, at)

	for _, s := range slices.Delete(slices.Clone(made), at, at+1) {
		require.Equal(r.t, "append", s.Operation)
	}

	require.Equal(r.t, len(r.left), made[at].RowCount)
	require.Len(r.t, acknowledged, list[at+1].RowCount-r.rows)

	r.earlier += len(acknowledged)
	r.seen, r.rows = len(list), list[0].RowCount
}

// learn returns the acknowledged rows.
func (r *rowRace) learn(round int, answers []*answer) map[int64]bool {
	r.t.Helper()

	acknowledged := map[int64]bool{}

	for writer, answer := range answers {
		require.NotNil(r.t, answer)

		if answer.status == http.StatusOK {
			acknowledged[int64(round*r.writers+writer)] = true
			r.acknowledged++

			continue
		}

		require.NotEqual(r.t, "replace", r.operation, answer.body)
		require.JSONEq(r.t, plainFault("CONFLICT", wasCleared), answer.body)
		r.refused++
	}

	return acknowledged
}
