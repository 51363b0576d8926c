package query

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// idle: nobody runs, waits or is remembered.
func (g *gate) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	return len(g.places) == 0 && g.waiting.Load() == 0 && len(g.callers) == 0
}

func TestGatePerUser(t *testing.T) {
	t.Parallel()

	g := newGate(8, 2, 8, time.Hour)
	ann, bob := uuid.New(), uuid.New()

	first, err := g.enter(t.Context(), ann)
	require.NoError(t, err)
	second, err := g.enter(t.Context(), ann)
	require.NoError(t, err)

	_, err = g.enter(t.Context(), ann)
	require.True(t, fault.Is(err, fault.RateLimited))
	require.Positive(t, fault.From(err).RetryAfter)
	require.EqualValues(t, 1, g.refusedUser.Load())

	other, err := g.enter(t.Context(), bob)
	require.NoError(t, err, "one caller does not stop another")

	first()
	first() // counts once

	third, err := g.enter(t.Context(), ann)
	require.NoError(t, err)
	_, err = g.enter(t.Context(), ann)
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
		leave, err := g.enter(t.Context(), uuid.New())
		require.NoError(t, err)

		entered := make(chan func(), 2)

		for range 2 {
			go func() {
				leave, err := g.enter(t.Context(), uuid.New())
				if err != nil {
					leave = nil
				}

				entered <- leave
			}()
		}

		synctest.Wait()
		require.EqualValues(t, 2, g.waiting.Load())

		began := time.Now()
		_, err = g.enter(t.Context(), uuid.New())
		require.True(t, fault.Is(err, fault.Unavailable))
		require.Positive(t, fault.From(err).RetryAfter)
		require.Zero(t, time.Since(began), "a full queue says so at once")

		// A place that becomes free goes to one that waits; the other has no more patience some time.
		time.Sleep(500 * time.Millisecond)
		leave()

		next := <-entered
		require.NotNil(t, next)
		require.Equal(t, 500*time.Millisecond, time.Since(began))

		require.Nil(t, <-entered)
		require.Equal(t, time.Second, time.Since(began))
		require.EqualValues(t, 2, g.refusedFull.Load())

		next()
		require.True(t, g.idle())
	})
}

func TestGateCancel(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10, 2, time.Hour)
		leave, err := g.enter(t.Context(), uuid.New())
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		began := time.Now()
		_, err = g.enter(ctx, uuid.New())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
		require.Zero(t, g.refusedFull.Load())

		leave()
		require.True(t, g.idle())
	})
}

// TestGateBounds: whatever comes together, no more run than may, and nothing is left.
func TestGateBounds(t *testing.T) {
	t.Parallel()

	const (
		places  = 4
		perUser = 3
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

				leave, err := g.enter(ctx, callers[caller])

				switch {
				case err == nil:
					now := running.Add(1)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
						continue
					}

					if ofOne[caller].Add(1) > perUser {
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
