package e2e

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStreamsPerUser checks the limit of streams per user, and that it does not affect other users.
func TestStreamsPerUser(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_MAX_STREAMS_PER_USER=2", "QUERN_RUN_MAX_PER_USER=100", "QUERN_RUN_WORKERS=0")
	key := s.newKey()

	// open follows a run that never begins, until ctx ends.
	open := func(ctx context.Context, d *filled, run string) int {
		response, err := http.DefaultClient.Do(newRequest(t, http.MethodGet, s.url+"/query/runs/"+run+"/events", d.bearer, "").WithContext(ctx))
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })

		if response.StatusCode != http.StatusOK {
			require.NotEmpty(t, response.Header.Get("Retry-After"))
		}

		return response.StatusCode
	}
	ask := func(d *filled) string {
		var made struct{ RunID string }

		answer := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("nl2ql", `{"response": "x"}`, ""), "Prefer: respond-async")
		require.Equal(t, http.StatusAccepted, answer.status, answer.body)
		answer.json(t, &made)

		return made.RunID
	}

	greedy, modest := newAsker(t, s, key, "greedy"), newAsker(t, s, key, "modest")
	run, other := ask(greedy), ask(modest)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	require.Equal(t, http.StatusOK, open(ctx, greedy, run))
	require.Equal(t, http.StatusOK, open(t.Context(), greedy, run))
	require.Equal(t, http.StatusTooManyRequests, open(t.Context(), greedy, run))
	require.Equal(t, http.StatusOK, open(t.Context(), modest, other))

	cancel()
	await(t, "a stream that ended makes room", func() bool { return open(t.Context(), greedy, run) == http.StatusOK })
}

// TestBodiesPerUser checks the limit of bodies of rows that a user may send at the same time, and that it does not affect other
// users.
func TestBodiesPerUser(t *testing.T) {
	t.Parallel()

	between, settings := newStoreProxy(t)
	s := start(t, append(settings, "QUERN_INGEST_MAX_PER_USER=2")...)
	key := s.newKey()
	greedy, modest := newAsker(t, s, key, "greedy"), newAsker(t, s, key, "modest")
	require.Equal(t, http.StatusOK, greedy.post(`{"data": [{"n": 1}]}`).status)
	require.Equal(t, http.StatusOK, modest.post(`{"data": [{"n": 1}]}`).status)

	between.set(behaviour{delay: time.Second})

	post := func(d *filled) *http.Request {
		return newRequest(t, http.MethodPost, d.url()+"/rows", d.bearer, `{"data": [{"n": 2}]}`)
	}

	var (
		posting sync.WaitGroup
		others  *answer
	)

	posting.Go(func() { others, _ = try(post(modest)) })

	statuses := requireFair(t, atOnce(t, 20, func(int) *http.Request { return post(greedy) }))
	t.Logf("20 bodies at once: %v", statuses)
	require.GreaterOrEqual(t, statuses[http.StatusOK], 2)
	require.Positive(t, statuses[http.StatusTooManyRequests])
	require.Zero(t, statuses[http.StatusServiceUnavailable])

	posting.Wait()
	require.NotNil(t, others)
	require.Equal(t, http.StatusOK, others.status, others.body)

	between.set(behaviour{})
	require.Equal(t, http.StatusOK, greedy.post(`{"data": [{"n": 3}]}`).status)
}
