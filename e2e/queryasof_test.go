package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// queryMoves delays statements at the object store. The resolved dataset is read, even if it is renamed or deleted meanwhile.
func queryMoves(t *testing.T, s *service, key *signer) {
	t.Helper()

	between, settings := newStoreProxy(t)
	slow := start(t, append(settings, "QUERN_S3_TIMEOUT=5s", "QUERN_OIDC_ISSUER="+s.realm.issuer())...)

	for _, move := range []struct {
		name string
		do   func(d *filled)
		undo func(d *filled)
	}{
		{"rename", func(d *filled) {
			require.Equal(t, http.StatusOK, d.call(http.MethodPatch, "", `{"name": "renamed"}`).status)
		}, func(d *filled) {
			d.name = "renamed"
			require.Equal(t, http.StatusOK, d.call(http.MethodPatch, "", `{"name": "orders"}`).status)
		}},
		{"delete", func(d *filled) {
			require.Equal(t, http.StatusNoContent, d.call(http.MethodDelete, "", "").status)
		}, func(d *filled) { slow.quernd("dataset", "restore", d.path()) }},
	} {
		d := newFilled(t, slow, "runner", key.token("runner"))
		between.set(behaviour{})
		require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
		dropCache(t, slow)
		between.set(behaviour{delay: patience})

		before, answered := between.requests(".parquet"), make(chan *answer, 1)
		question := d.question("SELECT n FROM orders", "")

		go func() {
			answer, _ := try(question)
			answered <- answer
		}()

		await(t, "its file is on the way", func() bool { return between.requests(".parquet") > before })
		move.do(d)

		gone := d.ask("SELECT n FROM orders", "")
		require.Equal(t, http.StatusUnprocessableEntity, gone.status, move.name)
		require.Contains(t, gone.body, "There is no dataset")

		between.set(behaviour{})

		answer := <-answered
		require.NotNil(t, answer, move.name)
		require.Equal(t, [][]any{{1.0}}, d.resultOf(answer).rows(), move.name)

		move.undo(d)
		require.Equal(t, [][]any{{1.0}}, d.result("SELECT n FROM orders", "").rows(), move.name)
	}
}

func queryAsOf(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "historian", key.token("historian"))
	born := time.Now()

	// moment returns a time between the previous and the next action.
	moment := func() string {
		time.Sleep(20 * time.Millisecond)
		defer time.Sleep(20 * time.Millisecond)

		return time.Now().UTC().Format(time.RFC3339Nano)
	}

	first := d.loaded("", "n\n1\n").SnapshotID
	one := moment()
	second := d.loaded("", "n,more\n2,x\n").SnapshotID
	two := moment()
	third := d.loaded(`"mode": "replace"`, "m\n9\n").SnapshotID
	three := moment()

	for _, then := range []struct {
		asOf, snapshot string
		columns        int
		rows           [][]any
	}{
		{one, first, 1, [][]any{{1.0}}},
		{two, second, 2, [][]any{{1.0, nil}, {2.0, "x"}}},
		{three, third, 1, [][]any{{9.0}}},
		{time.Now().Add(time.Hour).UTC().Format(time.RFC3339), third, 1, [][]any{{9.0}}},
	} {
		found := d.result("FROM orders ORDER BY ALL", fmt.Sprintf(`"asOf": %q`, then.asOf))
		require.Len(t, found.Columns, then.columns)
		require.Equal(t, then.rows, found.rows())
		require.Equal(t, then.snapshot, found.Metadata.Snapshots[0].SnapshotID)
	}

	require.Equal(t, third, d.result("FROM orders", "").Metadata.Snapshots[0].SnapshotID)

	early := d.ask("FROM orders", fmt.Sprintf(`"asOf": %q`, born.Add(-time.Hour).UTC().Format(time.RFC3339)))
	requireFault(t, "before its first rows", early, http.StatusUnprocessableEntity, "QUERY_INVALID")
	require.Contains(t, early.body, "had no rows at that time")
}
