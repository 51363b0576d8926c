package query

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
)

// gate lets as many statements run at once as there is memory for. A place that becomes free goes to the callers in turn,
// and to the statements of one caller in the order in which they came. No caller holds more than half of the places or of
// the queue, so that there is always something left for the others.
type gate struct {
	places  int
	share   int // places that one caller may hold
	perUser int // statements of one caller, running or waiting
	queue   int
	wait    time.Duration

	mu      sync.Mutex
	callers map[uuid.UUID]*caller
	turns   []*caller // who wait, the next one first
	running int
	waiting int

	refusedUser, refusedFull int64
}

// caller is somebody whose statements run or wait.
type caller struct {
	running int
	waiting []chan struct{} // each is closed when its statement has a place
}

func newGate(running, perUser, queue int, wait time.Duration) *gate {
	return &gate{places: running, share: half(running), perUser: perUser, queue: queue, wait: wait, callers: map[uuid.UUID]*caller{}}
}

func half(of int) int { return max(1, of/2) }

// enter waits a short time for a place. Who got one gives it back by leave.
//
// Faults: RateLimited if the caller has too many, Unavailable if there is no place.
func (g *gate) enter(ctx context.Context, who uuid.UUID) (leave func(), err error) {
	place, err := g.ask(who)
	if err != nil {
		return nil, err
	}

	if err := g.await(ctx, who, place); err != nil {
		return nil, err
	}

	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()

		g.callers[who].running--
		g.running--
		g.forget(who)
		g.give()
	}), nil
}

// ask takes a place or joins the queue. What it returns is closed as soon as the place is given, which may be at once.
func (g *gate) ask(who uuid.UUID) (place chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	c := g.callers[who]
	if c == nil {
		c = &caller{}
		g.callers[who] = c
	}
	defer g.forget(who)

	switch {
	case c.running+len(c.waiting) >= g.perUser:
		g.refusedUser++

		return nil, later(fault.RateLimited, fmt.Sprintf("You have %d statements running or waiting. Wait until one has ended.", g.perUser))
	case g.running < g.places && c.running < g.share:
		// Those who wait all have their share: otherwise the place would be theirs.
		place = make(chan struct{})
		close(place)

		c.running++
		g.running++

		return place, nil
	case g.waiting >= g.queue, len(c.waiting) >= half(g.queue):
		return nil, g.refuse(c)
	}

	if len(c.waiting) == 0 {
		g.turns = append(g.turns, c)
	}

	place = make(chan struct{})
	c.waiting = append(c.waiting, place)
	g.waiting++

	return place, nil
}

// await waits until the place is given.
func (g *gate) await(ctx context.Context, who uuid.UUID, place chan struct{}) (err error) {
	patience := time.NewTimer(g.wait)
	defer patience.Stop()

	select {
	case <-place:
		return nil
	case <-patience.C:
	case <-ctx.Done():
		err = ctx.Err()
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	c := g.callers[who]
	at := slices.Index(c.waiting, place)

	// The place was given at the last moment.
	if at < 0 && err == nil {
		return nil
	}

	if at < 0 {
		c.running--
		g.running--
	} else {
		c.waiting = slices.Delete(c.waiting, at, at+1)
		g.waiting--

		if len(c.waiting) == 0 {
			g.turns = slices.DeleteFunc(g.turns, func(other *caller) bool { return other == c })
		}
	}

	if err == nil {
		err = g.refuse(c)
	}

	g.forget(who)
	g.give()

	return err
}

// give gives the free places to those who wait: each caller in turn gets one, unless it has its share.
func (g *gate) give() {
	for g.running < g.places {
		turn := slices.IndexFunc(g.turns, func(c *caller) bool { return c.running < g.share })
		if turn < 0 {
			return
		}

		c := g.turns[turn]
		g.turns = slices.Delete(g.turns, turn, turn+1)

		close(c.waiting[0])
		c.waiting = c.waiting[1:]
		c.running++
		g.running++
		g.waiting--

		if len(c.waiting) > 0 {
			g.turns = append(g.turns, c)
		}
	}
}

// refuse says why there is no place: the caller has its share, or everybody together has them all.
func (g *gate) refuse(c *caller) error {
	if c.running >= g.share {
		g.refusedUser++

		return later(fault.RateLimited, fmt.Sprintf("You run %d statements already, which is all that one user may run at once. Wait until one has ended.", c.running))
	}

	g.refusedFull++

	return later(fault.Unavailable, "Too many statements run on this server. Try again shortly.")
}

// forget drops a caller who has no statement.
func (g *gate) forget(who uuid.UUID) {
	if c := g.callers[who]; c.running == 0 && len(c.waiting) == 0 {
		delete(g.callers, who)
	}
}

// stats is how many statements run and wait, and how many were refused.
func (g *gate) stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()

	return Stats{Running: int64(g.running), Waiting: int64(g.waiting), Places: int64(g.places), RefusedFull: g.refusedFull, RefusedUser: g.refusedUser}
}

func later(code fault.Code, message string) error {
	e := fault.New(code, message)
	e.RetryAfter = time.Second

	return e
}
