package run

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// tail reads the new events of all runs that have followers on this replica, with one statement for all of them.
type tail struct {
	db   *postgres.DB
	log  *slog.Logger
	poll time.Duration
	wake chan struct{}

	credentials auth.Credentials

	mu     sync.Mutex
	topics map[topicKey]*topic
}

type topicKey struct{ account, run uuid.UUID }

// topic is a run that has followers. Its events are those that arrived since the first follower and that at least one
// follower has not taken yet.
type topic struct {
	followers map[*follower]struct{}
	after     int64     // number of the last event that was read
	began     time.Time // when a worker started the run; zero if this replica does not know of a start
	events    []Event
	changed   chan struct{} // closed when followers must check for events
	shares    map[shareKey]*share
}

func newTail(c Config) *tail {
	return &tail{db: c.DB, log: c.Log, poll: c.PollInterval, credentials: c.Credentials, wake: make(chan struct{}, 1), topics: map[topicKey]*topic{}}
}

// tell passes an event that this process has written to the followers of its run on this replica, so that they do not wait
// for the next poll. began is when a worker started the run.
func (t *tail) tell(key topicKey, began time.Time, e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()

	switch one := t.topics[key]; {
	case one == nil:
	case e.Seq == one.after+1:
		one.add(began, []Event{e})
	default: // events that other processes wrote come first
		t.hurry()
	}
}

// tellBegun informs the followers of a run that a worker of this process has started it.
func (t *tail) tellBegun(key topicKey, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if one := t.topics[key]; one != nil {
		one.add(began, nil)
	}
}

// hurry starts the next poll now.
func (t *tail) hurry() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run polls for new events, and checks the credentials of followers, until ctx ends. It continues after errors of the
// database.
func (t *tail) run(ctx context.Context) {
	var checking sync.WaitGroup

	log := job.Limited(t.log)

	defer checking.Wait()
	checking.Go(func() {
		for ctx.Err() == nil { // continue after a panic
			err := fault.Try(func() error {
				t.checkHolders(ctx)

				return nil
			})
			if err != nil {
				log.ErrorContext(ctx, "the credentials of streams could not be checked", "error", err)
			}
		}
	})

	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-time.After(t.poll):
		}

		if err := t.look(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "events could not be read", "error", err)
		}
	}
}

func (t *tail) look(ctx context.Context) error {
	t.mu.Lock()
	wanted := make(map[topicKey]seen, len(t.topics))

	for key, one := range t.topics {
		wanted[key] = seen{one.after, one.began.IsZero()}
	}
	t.mu.Unlock()

	if len(wanted) == 0 {
		return nil
	}

	var found map[topicKey]news

	err := t.db.Do(ctx, func(q postgres.Querier) (err error) {
		found, err = selectNews(ctx, q, wanted)

		return err
	})
	if err != nil {
		return err
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	for key, fresh := range found {
		if one := t.topics[key]; one != nil {
			one.add(fresh.began, fresh.events)
		}
	}

	return nil
}

// add appends the events that follow in order, and wakes the followers. It ignores events that the topic already has.
func (o *topic) add(began time.Time, events []Event) {
	if o.began.IsZero() {
		o.began = began
	}

	for _, e := range events {
		if e.Seq == o.after+1 {
			o.events, o.after = append(o.events, e), e.Seq
		}
	}

	o.tell()
}

// tell wakes the followers.
func (o *topic) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// follower takes the events of one run in order.
type follower struct {
	tail  *tail
	key   topicKey
	taken int64

	holder auth.Holder // credential to check; zero means none
	lapsed bool
	waits  bool // wants an event when a worker starts the run
}

// follow adds a follower to a run. The follower delivers the events after the number from, which is at least after. The
// caller must read the events between after and from itself.
func (t *tail) follow(key topicKey, after int64) (f *follower, from int64) {
	t.mu.Lock()
	defer t.mu.Unlock()

	one := t.topics[key]
	if one == nil {
		one = &topic{followers: map[*follower]struct{}{}, after: after, changed: make(chan struct{}), shares: map[shareKey]*share{}}
		t.topics[key] = one
	}

	f = &follower{tail: t, key: key, taken: max(one.after, after)}
	one.followers[f] = struct{}{}
	t.hurry()

	return f, f.taken
}

// awaitBegun makes the follower deliver an event when a worker starts the run.
func (f *follower) awaitBegun() {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	f.waits = true
}

// next waits for events. It fails with errLapsed when the credential of its holder is no longer valid.
func (f *follower) next(ctx context.Context) ([]Event, error) {
	for {
		events, changed, err := f.take()
		if err != nil || len(events) > 0 {
			return events, err
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (f *follower) take() ([]Event, <-chan struct{}, error) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	one := f.tail.topics[f.key]

	if f.lapsed {
		return nil, nil, errLapsed()
	}

	var fresh []Event

	if f.waits && !one.began.IsZero() {
		f.waits, fresh = false, []Event{begun(one.began)}
	}

	for _, e := range one.events {
		if e.Seq > f.taken {
			fresh = append(fresh, e)
		}
	}

	if len(fresh) > 0 {
		f.taken = max(f.taken, fresh[len(fresh)-1].Seq)
		one.forget()
	}

	return fresh, one.changed, nil
}

// forget drops the events that every follower has taken.
func (o *topic) forget() {
	least := o.after
	for f := range o.followers {
		least = min(least, f.taken)
	}

	kept := o.events[:0:0]

	for _, e := range o.events {
		if e.Seq > least {
			kept = append(kept, e)
		}
	}

	o.events = kept
}

// leave removes the follower, and the topic if it was the last follower.
func (f *follower) leave() {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	one := f.tail.topics[f.key]
	delete(one.followers, f)

	if len(one.followers) == 0 {
		delete(f.tail.topics, f.key)

		return
	}

	one.forget()
}
