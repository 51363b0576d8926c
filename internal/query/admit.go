package query

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
)

// gate lets so many statements run at once as there is memory for, and few of one caller.
type gate struct {
	places  chan struct{}
	perUser int
	queue   int64
	wait    time.Duration

	mu      sync.Mutex
	callers map[uuid.UUID]int

	waiting, refusedUser, refusedFull atomic.Int64
}

func newGate(running, perUser, queue int, wait time.Duration) *gate {
	return &gate{places: make(chan struct{}, running), perUser: perUser, queue: int64(queue), wait: wait, callers: map[uuid.UUID]int{}}
}

// enter waits a short time for a place. Who got one gives it back by leave.
//
// Faults: RateLimited if the caller has too many, Unavailable if there is no place.
func (g *gate) enter(ctx context.Context, caller uuid.UUID) (leave func(), err error) {
	if !g.count(caller) {
		g.refusedUser.Add(1)

		return nil, later(fault.RateLimited, fmt.Sprintf("You run %d statements already. Wait until one has ended.", g.perUser))
	}

	if err := g.take(ctx); err != nil {
		g.discount(caller)

		return nil, err
	}

	return sync.OnceFunc(func() {
		<-g.places
		g.discount(caller)
	}), nil
}

func (g *gate) take(ctx context.Context) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}

	defer g.waiting.Add(-1)

	if g.waiting.Add(1) > g.queue {
		g.refusedFull.Add(1)

		return later(fault.Unavailable, "Too many statements run on this server. Try again shortly.")
	}

	patience := time.NewTimer(g.wait)
	defer patience.Stop()

	select {
	case g.places <- struct{}{}:
		return nil
	case <-patience.C:
		g.refusedFull.Add(1)

		return later(fault.Unavailable, "Too many statements run on this server. Try again shortly.")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) count(caller uuid.UUID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.callers[caller] >= g.perUser {
		return false
	}

	g.callers[caller]++

	return true
}

func (g *gate) discount(caller uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.callers[caller]--
	if g.callers[caller] == 0 {
		delete(g.callers, caller)
	}
}

func later(code fault.Code, message string) error {
	e := fault.New(code, message)
	e.RetryAfter = time.Second

	return e
}
