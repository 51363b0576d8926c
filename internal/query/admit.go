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

// gate limits how many statements run at once to the number that fits into memory. A slot that becomes free is given to
// the waiting callers in turn, and to the statements of one caller in order of arrival. One caller holds at most half of
// the slots, and its requests at most half of the queue, so that other callers always have the rest.
type gate struct {
	slots   int
	share   int // slots that one caller may hold
	perUser int // statements of one caller, running or waiting
	queue   int
	wait    time.Duration

	mu      sync.Mutex
	callers map[uuid.UUID]*caller
	turns   []*caller // callers with waiting statements, the next one first
	running int
	waiting int

	refusedUser, refusedFull int64
}

// caller is an account with statements that run or wait.
type caller struct {
	running int
	waiting []chan struct{} // each is closed when its statement gets a slot
}

func newGate(running, perUser, queue int, wait time.Duration) *gate {
	return &gate{slots: running, share: half(running), perUser: perUser, queue: queue, wait: wait, callers: map[uuid.UUID]*caller{}}
}

func half(of int) int { return max(1, of/2) }

// patience is how long a statement waits for a slot.
type patience int

const (
	briefly     patience = iota // for requests: at most gate.wait, and refused if the queue is full
	untilItEnds                 // for runs: until the context ends, and never refused; the number of run workers limits them
)

// enter waits for a slot. The caller must call leave to free the slot.
//
// Faults, for requests only: RateLimited if the caller has too many statements, Unavailable if no slot is free in time.
func (g *gate) enter(ctx context.Context, who uuid.UUID, p patience) (leave func(), err error) {
	place, err := g.ask(who, p)
	if err != nil {
		return nil, err
	}

	if err := g.await(ctx, who, place, p); err != nil {
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

// ask takes a slot or joins the queue. The returned channel is closed when the slot is given, which may be at once.
func (g *gate) ask(who uuid.UUID, p patience) (place chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	c := g.callers[who]
	if c == nil {
		c = &caller{}
		g.callers[who] = c
	}
	defer g.forget(who)

	switch {
	case p == briefly && c.running+len(c.waiting) >= g.perUser:
		g.refusedUser++

		return nil, later(fault.RateLimited, fmt.Sprintf("You have %d statements running or waiting, which is the maximum. Wait for one to finish.", g.perUser))
	case g.running < g.slots && c.running < g.share:
		// Every waiting caller already holds its share; otherwise it would have this slot.
		place = make(chan struct{})
		close(place)

		c.running++
		g.running++

		return place, nil
	case p == briefly && (g.waiting >= g.queue || len(c.waiting) >= half(g.queue)):
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

// await waits until the slot is given, the waiting time is over, or the context ends.
func (g *gate) await(ctx context.Context, who uuid.UUID, place chan struct{}, p patience) (err error) {
	var enough <-chan time.Time // nil never fires
	if p == briefly {
		enough = time.After(g.wait)
	}

	select {
	case <-place:
		return nil
	case <-enough:
	case <-ctx.Done():
		err = ctx.Err()
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	c := g.callers[who]
	at := slices.Index(c.waiting, place)

	// The slot was given between the timeout and the lock: use it.
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

// place is the slot of a statement. Trino's work is not done in a sealed process: a cluster that hangs must not take the slots of the
// statements that do not need it.
type place struct {
	who   uuid.UUID
	waits patience
	leave func()
}

// move frees the slot, and waits for one of another gate.
//
// Faults: those of enter.
func (p *place) move(ctx context.Context, to *gate) error {
	if p == nil { // the number of workers limits what they run
		return nil
	}

	p.leave()

	leave, err := to.enter(ctx, p.who, p.waits)
	if err == nil {
		p.leave = leave
	}

	return err
}

// give gives the free slots to waiting statements: each caller in turn gets one, unless it already holds its share.
func (g *gate) give() {
	for g.running < g.slots {
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

// refuse returns the fault for a statement without a slot: RateLimited if the caller holds its share, Unavailable if all
// callers together hold all slots.
func (g *gate) refuse(c *caller) error {
	if c.running >= g.share {
		g.refusedUser++

		return later(fault.RateLimited, fmt.Sprintf("You have %d statements running, which is the maximum. Wait for one to finish.", c.running))
	}

	g.refusedFull++

	return later(fault.Unavailable, "This server is running too many statements. Try again later.")
}

// forget removes a caller without statements.
func (g *gate) forget(who uuid.UUID) {
	if c := g.callers[who]; c.running == 0 && len(c.waiting) == 0 {
		delete(g.callers, who)
	}
}

// stats returns how many statements run, wait and were refused, and the number of slots.
func (g *gate) stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()

	return Stats{Running: int64(g.running), Waiting: int64(g.waiting), Slots: int64(g.slots), RefusedFull: g.refusedFull, RefusedUser: g.refusedUser}
}

func later(code fault.Code, message string) error {
	e := fault.New(code, message)
	e.RetryAfter = time.Second

	return e
}
