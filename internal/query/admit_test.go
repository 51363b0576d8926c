package query

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// idle reports whether no statement runs or waits and no caller is stored.
func (g *gate) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.running == 0 && g.waiting == 0 && len(g.turns) == 0 && len(g.callers) == 0
}

// TestPlaceMoves checks that a statement that waits for another gate holds no slot of the first.
func TestPlaceMoves(t *testing.T) {
	t.Parallel()

	here, there := newGate(1, 4, 4, time.Hour), newGate(1, 4, 4, time.Millisecond)
	ann, bob := uuid.New(), uuid.New()

	leave, err := here.enter(t.Context(), ann, briefly)
	require.NoError(t, err)

	at := &place{who: ann, waits: briefly, leave: leave}
	require.NoError(t, at.move(t.Context(), there))
	require.True(t, here.idle())
	require.False(t, there.idle())

	leave, err = here.enter(t.Context(), bob, briefly)
	require.NoError(t, err)

	other := &place{who: bob, waits: briefly, leave: leave}
	require.True(t, fault.Is(other.move(t.Context(), there), fault.Unavailable), "all slots are taken")
	require.True(t, here.idle())

	other.leave()
	at.leave()
	require.True(t, there.idle())

	require.NoError(t, (*place)(nil).move(t.Context(), there))
	require.True(t, there.idle())
}

func TestGatePerUser(t *testing.T) {
	t.Parallel()

	g := newGate(8, 2, 8, time.Hour)
	ann, bob := uuid.New(), uuid.New()

	first, err := g.enter(t.Context(), ann, briefly)
	require.NoError(t, err)
	second, err := g.enter(t.Context(), ann, briefly)
	require.NoError(t, err)

	_, err = g.enter(t.Context(), ann, briefly)
	require.True(t, fault.Is(err, fault.RateLimited))
	require.Positive(t, fault.From(err).RetryAfter)
	require.EqualValues(t, 1, g.stats().RefusedUser)

	other, err := g.enter(t.Context(), bob, briefly)
	require.NoError(t, err, "one caller does not stop another")

	first()
	first() // the second call has no effect

	third, err := g.enter(t.Context(), ann, briefly)
	require.NoError(t, err)
	_, err = g.enter(t.Context(), ann, briefly)
	require.True(t, fault.Is(err, fault.RateLimited))

	second()
	third()
	other()
	require.True(t, g.idle())
}

func TestGateQueue(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10, 2, time.Second)
		leave, err := g.enter(t.Context(), uuid.New(), briefly)
		require.NoError(t, err)

		entered := make(chan func(), 2)

		for range 2 {
			go func() {
				leave, err := g.enter(t.Context(), uuid.New(), briefly)
				if err != nil {
					leave = nil
				}

				entered <- leave
			}()
		}

		synctest.Wait()
		require.EqualValues(t, 2, g.stats().Waiting)

		began := time.Now()
		_, err = g.enter(t.Context(), uuid.New(), briefly)
		require.True(t, fault.Is(err, fault.Unavailable))
		require.Positive(t, fault.From(err).RetryAfter)
		require.Zero(t, time.Since(began), "a full queue says so at once")

		// A slot that becomes free is given to one waiting statement; the other one is refused after the waiting time.
		time.Sleep(500 * time.Millisecond)
		leave()

		next := <-entered
		require.NotNil(t, next)
		require.Equal(t, 500*time.Millisecond, time.Since(began))

		require.Nil(t, <-entered)
		require.Equal(t, time.Second, time.Since(began))
		require.EqualValues(t, 2, g.stats().RefusedFull)

		next()
		require.True(t, g.idle())
	})
}

// TestGateShare checks that one caller gets at most half of the slots and of the queue, whatever the other settings are.
func TestGateShare(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ places, perUser, queue, runs, waits int }{
		{places: 8, perUser: 10, queue: 100, runs: 4, waits: 6},
		{places: 8, perUser: 1000, queue: 100, runs: 4, waits: 50},
		{places: 8, perUser: 3, queue: 100, runs: 3, waits: 0},
		{places: 3, perUser: 10, queue: 4, runs: 1, waits: 2},
		{places: 1, perUser: 10, queue: 1, runs: 1, waits: 1},
		{places: 8, perUser: 10, queue: 0, runs: 4, waits: 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(test.places, test.perUser, test.queue, time.Second)
			greedy := uuid.New()

			var (
				group   sync.WaitGroup
				running []func()
				mu      sync.Mutex
				refused atomic.Int64
			)

			for range test.runs + test.waits + 5 {
				group.Go(func() {
					leave, err := g.enter(t.Context(), greedy, briefly)
					if err != nil {
						if fault.Is(err, fault.RateLimited) {
							refused.Add(1)
						}

						return
					}

					mu.Lock()
					defer mu.Unlock()

					running = append(running, leave)
				})
			}

			synctest.Wait()
			require.EqualValues(t, test.runs, g.stats().Running, "%+v", test)
			require.EqualValues(t, test.waits, g.stats().Waiting, "%+v", test)

			if test.places > 1 {
				other, err := g.enter(t.Context(), uuid.New(), briefly)
				require.NoError(t, err, "there is a place for somebody else at once")
				other()
			}

			// Statements that did not get a slot in time are refused, because their caller uses all slots of one caller.
			group.Wait()
			require.EqualValues(t, test.waits+5, refused.Load(), "%+v", test)
			require.Equal(t, refused.Load(), g.stats().RefusedUser)

			for _, leave := range running {
				leave()
			}

			require.True(t, g.idle())
		})
	}
}

// TestGateTurns checks that waiting callers get slots in turn, however many statements each has, and that the statements of
// one caller start in order.
func TestGateTurns(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		g := newGate(2, 100, 100, time.Hour)

		var (
			users  = map[string]uuid.UUID{"a": uuid.New(), "b": uuid.New(), "c": uuid.New()}
			begun  = make(chan string, 100)
			finish = make(chan struct{})
			group  sync.WaitGroup
		)

		ask := func(user, number string) {
			group.Go(func() {
				leave, err := g.enter(t.Context(), users[user], briefly)
				if err != nil {
					t.Error(err)

					return
				}

				begun <- user + number
				<-finish
				leave()
			})
			synctest.Wait()
		}

		for _, statement := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1"} {
			ask(statement[:1], statement[1:])
		}

		var order []string

		for range 8 {
			order = append(order, <-begun)

			if len(order) >= 2 {
				finish <- struct{}{}
				synctest.Wait()
			}
		}

		finish <- struct{}{}
		group.Wait()

		// a and b run, and either slot may become free first, so only properties of every possible order are checked.
		require.Equal(t, []string{"a1", "b1"}, order[:2])
		require.Less(t, slices.Index(order, "c1"), 5, "c waits for one turn of the others at most: %v", order)

		for _, user := range []string{"a", "b"} {
			var own []string

			for _, statement := range order {
				if statement[:1] == user {
					own = append(own, statement)
				}
			}

			require.True(t, slices.IsSorted(own), "%v", own)
		}

		require.True(t, g.idle())
	})
}

// TestGateLastMoment checks that a slot that is given at the moment at which the caller stops waiting is not lost.
func TestGateLastMoment(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10, 10, time.Hour)

		for range 200 {
			leave, err := g.enter(t.Context(), uuid.New(), briefly)
			require.NoError(t, err)

			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan struct{})

			go func() {
				defer close(left)

				if late, err := g.enter(ctx, uuid.New(), briefly); err == nil {
					late()
				}
			}()

			synctest.Wait()

			// The cancellation wakes the other goroutine, and the slot is usually given before it runs.
			cancel()
			leave()
			<-left
			require.True(t, g.idle())
		}
	})
}

func TestGateCancel(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10, 2, time.Hour)
		leave, err := g.enter(t.Context(), uuid.New(), briefly)
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		began := time.Now()
		_, err = g.enter(ctx, uuid.New(), briefly)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
		require.Zero(t, g.stats().RefusedFull)

		leave()
		require.True(t, g.idle())
	})
}

// TestGateBounds checks under random load that the limits hold and that the gate is idle in the end.
func TestGateBounds(t *testing.T) {
	t.Parallel()

	const (
		places  = 4
		perUser = 3
		share   = 2
	)

	var (
		g       = newGate(places, perUser, 8, 5*time.Millisecond)
		callers = []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
		running atomic.Int64
		most    atomic.Int64
		given   atomic.Int64
		ofOne   [3]atomic.Int64
		group   sync.WaitGroup
	)

	for i := range 60 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))

			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(4000))*time.Microsecond)
				caller := random.IntN(len(callers))

				leave, err := g.enter(ctx, callers[caller], briefly)

				switch {
				case err == nil:
					now := running.Add(1)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
						continue
					}

					if ofOne[caller].Add(1) > share {
						t.Error("too many of one caller")
					}

					time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
					given.Add(1)
					ofOne[caller].Add(-1)
					running.Add(-1)
					leave()
				case !fault.Is(err, fault.RateLimited) && !fault.Is(err, fault.Unavailable) && !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}

				cancel()
			}
		})
	}

	group.Wait()
	require.LessOrEqual(t, most.Load(), int64(places))
	require.Positive(t, given.Load())
	require.True(t, g.idle())
}

// TestGateRunWaits checks that the statement of a run is never refused: it waits until it gets a slot or the run ends.
func TestGateRunWaits(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		g := newGate(2, 1, 1, time.Second)
		ann := uuid.New()

		leave, err := g.enter(t.Context(), ann, untilItEnds)
		require.NoError(t, err)

		failures := make(chan error, 4)

		for range 3 {
			go func() {
				next, err := g.enter(t.Context(), ann, untilItEnds)
				if err == nil {
					next()
				}

				failures <- err
			}()
		}

		ended, cancel := context.WithCancel(t.Context())

		go func() {
			_, err := g.enter(ended, ann, untilItEnds)
			failures <- err
		}()

		synctest.Wait()
		require.EqualValues(t, 4, g.stats().Waiting)

		_, err = g.enter(t.Context(), ann, briefly)
		require.True(t, fault.Is(err, fault.RateLimited), "a request is refused")

		time.Sleep(time.Hour)
		cancel()
		require.ErrorIs(t, <-failures, context.Canceled)
		leave()

		for range 3 {
			require.NoError(t, <-failures)
		}

		require.True(t, g.idle())
	})
}
