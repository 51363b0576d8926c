package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// TestRestoreKillLoop restores datasets while the cleanup erases them, and kills the process in between. Each dataset is then
// restored with all its rows or erased with all its objects, and what was answered stays true.
func TestRestoreKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	const datasets, contested = 5, 2

	s := start(t, "QUERN_DELETE_GRACE=1h")
	bearer := s.newKey().token("ada")
	won, killed, all := 0, 0, 0

	for round := range rounds(60) {
		kill.Round(t)

		list, ids := deletedDatasets(t, s, bearer, datasets)

		// The cleanup finds that the grace period is over, and the request finds that it is not, as on machines whose clocks
		// differ. The cleanup begins with what was deleted first, and waits at the contested dataset.
		s.stop()
		s.cleanAtStart()

		for _, id := range ids {
			s.exec(`UPDATE lake_tables SET removed_at = removed_at - interval '2 hours' WHERE dataset_id = $1`, id)
		}

		free := s.hold(`SELECT FROM lake_tables WHERE dataset_id = $1 FOR UPDATE`, ids[contested])
		s.restart()
		await(t, "the cleanup waits", func() bool { return s.count(`SELECT count(*) FROM lake_tables WHERE removing`) == contested })

		answers := make([]*answer, datasets)

		for i, id := range ids {
			if i != contested {
				answers[i] = restore(t, s, bearer, id, "")
				require.Equal(t, i > contested, answers[i].status == http.StatusOK, answers[i].body)
			}
		}

		request := newRequest(t, http.MethodPost, s.url+"/schema/deleted/"+ids[contested]+"/restore", bearer, "")
		asked := make(chan *answer, 1)

		go func() {
			free()

			answer, _ := try(request)
			asked <- answer
		}()

		if round%2 == 0 {
			time.Sleep(rand.N(30 * time.Millisecond))
			s.kill()
			s.cleanAtStart()
			s.restart()

			killed++
		}

		answers[contested] = <-asked

		for i, d := range list {
			if d.checkFate(ids[i], answers[i]) && i == contested {
				won++
			}
		}

		require.Empty(t, deletedList(t, s, bearer, 100))

		all++
	}

	t.Logf("%d of %d contested datasets were restored, %d kills", won, all, killed)
	s.requireNothingLeft()
}

// deletedDatasets creates datasets with rows and deletes them in order.
func deletedDatasets(t *testing.T, s *service, bearer string, n int) (list []*filled, ids []string) {
	t.Helper()

	namespace := makeDataset(t, s, bearer)

	for i := range n {
		d := &filled{t: t, s: s, bearer: bearer, owner: "ada", namespace: namespace, name: fmt.Sprintf("d%d", i)}
		require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/ingest/new/"+namespace+"/"+d.name, bearer, "").status)
		postRows(t, s, bearer, d.path(), `{"data": [{"n": 1}, {"n": 2}]}`)

		list, ids = append(list, d), append(ids, deleteDataset(t, s, bearer, d.path()))
	}

	return list, ids
}

// checkFate restores a dataset again and checks that the answer is the first one, if there was one, and that the dataset has all
// its rows or that nothing is left of it.
func (d *filled) checkFate(id string, first *answer) (isRestored bool) {
	d.t.Helper()

	now := restore(d.t, d.s, d.bearer, id, "")
	if first != nil {
		require.Equal(d.t, fmt.Sprint(first.status, first.body), fmt.Sprint(now.status, now.body))
	}

	if now.status == http.StatusOK {
		require.Equal(d.t, [][]any{{1.0}, {2.0}}, d.result("SELECT n FROM "+d.name+" ORDER BY n", "").rows())

		return true
	}

	require.Equal(d.t, http.StatusNotFound, now.status, now.body)
	await(d.t, "its table is gone", func() bool {
		return d.s.count(`SELECT count(*) FROM lake_tables WHERE dataset_id = $1`, id)+d.s.count(`SELECT count(*) FROM lake_files WHERE dataset_id = $1`, id) == 0
	})

	return false
}
