package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRevokedMeanwhile revokes access to the data of a run while a client follows the run or waits for it. From then on the
// client must get nothing of the data, whether the run continues without the data or needs more. Later requests must not return
// it either.
func TestRevokedMeanwhile(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	key := s.newKey()
	d := newWordy(t, s, "ada", key.token("ada"))
	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "viewer")
	share(t, s, d.bearer, "datasets/"+d.beside("kept", `{"data": [{"n": 1}]}`).path(), "bob", "viewer") // the namespace stays visible

	reader := d.by(key.token("bob"))
	quoted := reader.failed(quoting)

	goesOn := strings.Replace(wordy, `]}]}`, `]}, {"instruction": "amaranthine", "queries": ["SELECT 1 AS amaranthine"]}], "pause": 5000}`, 1)
	needsMore := strings.Replace(wordy, `]}]}`, `]}, {"instruction": "amaranthine", "queries": ["SELECT max(n) AS amaranthine FROM orders"]}], "pause": 5000}`, 1)

	var (
		clients  sync.WaitGroup
		streamed = map[string][]event{}
		waited   = map[string]*answer{}
		mutex    sync.Mutex
	)

	for _, script := range []string{goesOn, needsMore} {
		clients.Go(func() {
			followEach(t, newRequest(t, http.MethodPost, s.url+"/query/ask", reader.bearer, reader.script("assistant", script, "")), func(one event) bool {
				mutex.Lock()
				defer mutex.Unlock()

				streamed[script] = append(streamed[script], one)

				return true
			})
		})
		clients.Go(func() {
			got := call(t, http.MethodPost, s.url+"/query/ask", reader.bearer, reader.script("assistant", script, ""), "Accept: application/json")

			mutex.Lock()
			defer mutex.Unlock()

			waited[script] = got
		})
	}

	await(t, "all have read", func() bool { return s.count(`SELECT count(*) FROM run_events WHERE kind = 'step'`) == 4 })
	await(t, "both streams have it", func() bool {
		mutex.Lock()
		defer mutex.Unlock()

		return len(streamed[goesOn]) >= 6 && len(streamed[needsMore]) >= 6
	})
	unshare(t, s, d.bearer, "datasets/"+d.path(), "bob")
	clients.Wait()

	runs := map[string][]asked{}

	for script, events := range streamed {
		var (
			run   asked
			after strings.Builder
		)

		(&answer{body: events[0].data}).json(t, &run)

		names := make([]string, len(events))
		for i, e := range events {
			names[i] = e.name
		}

		require.Equal(t, []string{"runStarted", "planningStarted", "plan", "stepStarted", "queryExecuting", "step"}, names[:6])
		require.Contains(t, events[5].data, rowWord, "it could see that")

		for _, e := range events[6:] {
			after.WriteString(e.name + " " + e.data + "\n")
		}

		require.NotContains(t, after.String(), answerWord)
		require.NotContains(t, after.String(), rowWord)

		runs[script] = append(runs[script], run)
	}

	for script, got := range waited {
		var run asked

		got.json(t, &run)
		body := strings.ReplaceAll(got.body, strings.Trim(encode(t, script), `"`), "")
		require.NotContains(t, body, answerWord)
		require.NotContains(t, body, rowWord)

		runs[script] = append(runs[script], run)
	}

	require.Contains(t, waited[goesOn].body, withheld)
	require.Contains(t, waited[needsMore].body, "The question could not be answered.")

	for _, run := range runs[goesOn] {
		reader.requireWithheld(run, goesOn)
	}

	for _, run := range append(runs[needsMore], quoted) {
		said := fmt.Sprint(reader.told(run))
		for _, question := range []string{needsMore, quoting} {
			said = strings.ReplaceAll(said, strings.Trim(encode(t, question), `"`), "")
			said = strings.ReplaceAll(said, strings.Trim(encode(t, question[:80]), `"`), "")
		}

		require.NotContains(t, said, rowWord)
		require.NotContains(t, said, answerWord)
		require.NotContains(t, said, "CAST")
		require.Contains(t, said, "The question could not be answered.")
	}
}
