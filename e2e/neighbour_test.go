package e2e

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoisyNeighbour keeps as many heavy statements of one user running as the defaults allow. The small statements of another
// user must all succeed, and must not take much longer than alone.
func TestNoisyNeighbour(t *testing.T) { //nolint:paralleltest // times are measured, and the neighbour uses every core
	const (
		heavy     = 10 // default of QUERN_QUERY_MAX_PER_USER
		allowance = 100 * time.Millisecond
	)

	rounds, count := 1, 100
	if full() {
		rounds, count = 3, 200
	}

	s := start(t)
	key := s.newKey()
	noisy, quiet := newAsker(t, s, key, "noisy"), newAsker(t, s, key, "quiet")
	require.Equal(t, http.StatusOK, quiet.post(`{"data": [{"n": 1}, {"n": 2}]}`).status)
	quiet.small(20) // warms up caches and processes

	var excess []time.Duration

	for round := range rounds {
		alone := percentile(quiet.small(count), 95)

		ctx, cancel := context.WithCancel(t.Context())

		var asking sync.WaitGroup

		for range heavy {
			asking.Go(func() {
				for ctx.Err() == nil {
					if answer, _ := try(noisy.question(endless, "").WithContext(ctx)); answer != nil && answer.status != http.StatusGatewayTimeout {
						waitFor(ctx, time.Second) // as Retry-After requires
					}
				}
			})
		}

		await(t, "the neighbour has its share", func() bool { return s.gauge("quern_query_running") == max(1, s.gauge("quern_query_slots")/2) })

		beside := percentile(quiet.small(count), 95)

		cancel()
		asking.Wait()
		await(t, "the places are free", func() bool { return s.gauge("quern_query_running") == 0 })
		t.Logf("round %d: p95 alone %v, beside the neighbour %v", round+1, alone.Round(time.Millisecond), beside.Round(time.Millisecond))

		excess = append(excess, beside-5*alone-allowance)
	}

	slices.Sort(excess)
	require.LessOrEqual(t, excess[rounds/2], time.Duration(0), "later than five times alone and %v", allowance)
}

// small sends count small statements, four at a time, and returns how long each took. It fails if one is refused.
func (d *filled) small(count int) []time.Duration {
	d.t.Helper()

	const atATime = 4

	var (
		took    = make([]time.Duration, count)
		answers = make([]*answer, count)
		asking  sync.WaitGroup
	)

	for first := range atATime {
		asking.Go(func() {
			for i := first; i < count; i += atATime {
				began := time.Now()
				answers[i], _ = try(d.question("SELECT sum(n) AS n FROM orders", ""))
				took[i] = time.Since(began)
			}
		})
	}

	asking.Wait()

	for _, answer := range answers {
		require.NotNil(d.t, answer)
		require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	}

	return took
}

func percentile(took []time.Duration, of int) time.Duration {
	slices.Sort(took)

	return took[(len(took)-1)*of/100]
}

// waitFor waits, unless ctx ends before.
func waitFor(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// TestOnlyWaiting checks that a statement cannot hold a slot by sleeping.
func TestOnlyWaiting(t *testing.T) {
	t.Parallel()

	s := start(t)
	d := newAsker(t, s, s.newKey(), "sleeper")

	for _, statement := range []string{
		"SELECT sleep_ms(60000)", "SELECT SLEEP_MS(60000)", `SELECT "sleep_ms"(60000)`, "SELECT main.sleep_ms(60000)", "SELECT pg_sleep(60)", "SELECT list_transform([1], lambda x: sleep_ms(60000))",
		"SELECT 1 WHERE sleep_ms(60000) IS NULL", "SELECT (60000).sleep_ms()",
	} {
		requireFault(t, statement, d.ask(statement, ""), http.StatusUnprocessableEntity, "QUERY_INVALID")
	}
}
