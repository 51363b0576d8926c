package run

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// tail reads the new events of all runs that somebody on this replica follows, with one statement for all of them.
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

// topic is a run that is followed. Its events are those that came since somebody does, as far as one of the
// followers has not taken them yet.
type topic struct {
	followers map[*follower]struct{}
	after     int64 // the number of the last event that was read
	events    []Event
	changed   chan struct{} // closed when there is more
	shares    map[shareKey]*share
}

func newTail(c Config) *tail {
	return &tail{db: c.DB, log: c.Log, poll: c.Poll, credentials: c.Credentials, wake: make(chan struct{}, 1), topics: map[topicKey]*topic{}}
}

// tell gives an event that this process has written to those who follow its run here. They need not wait for a look.
func (t *tail) tell(key topicKey, e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()

	switch one := t.topics[key]; {
	case one == nil:
	case e.Seq == one.after+1:
		one.add([]Event{e})
	default: // others wrote before it
		t.hurry()
	}
}

// hurry lets the next look be now.
func (t *tail) hurry() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run looks for new events, and for followers whose credential has lapsed, until ctx ends. A database that does not
// answer is asked again.
func (t *tail) run(ctx context.Context) {
	var checking sync.WaitGroup

	defer checking.Wait()
	checking.Go(func() {
		for ctx.Err() == nil { // after a panic it goes on
			err := fault.Try(func() error {
				t.checkHolders(ctx)

				return nil
			})
			if err != nil {
				t.log.ErrorContext(ctx, "the credentials of streams were not checked", "error", err)
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
			t.log.WarnContext(ctx, "events could not be read", "error", err)
		}
	}
}

func (t *tail) look(ctx context.Context) error {
	t.mu.Lock()
	wanted := make(map[topicKey]int64, len(t.topics))

	for key, one := range t.topics {
		wanted[key] = one.after
	}
	t.mu.Unlock()

	if len(wanted) == 0 {
		return nil
	}

	var found map[topicKey][]Event

	err := t.db.Do(ctx, func(q postgres.Querier) (err error) {
		found, err = selectNews(ctx, q, wanted)

		return err
	})
	if err != nil {
		return err
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	for key, events := range found {
		if one := t.topics[key]; one != nil {
			one.add(events)
		}
	}

	return nil
}

// add takes what comes next in order; what is there already was read by an earlier look.
func (o *topic) add(events []Event) {
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

// follower takes the events of one run in order, from one on.
type follower struct {
	tail  *tail
	key   topicKey
	taken int64

	holder auth.Holder // zero: nobody's credential is checked
	lapsed bool
}

// follow begins with the event after one that is not newer than what the topic has: what lies between is the
// caller's to read, and from is where that ends.
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

	for _, e := range one.events {
		if e.Seq > f.taken {
			fresh = append(fresh, e)
		}
	}

	if len(fresh) > 0 {
		f.taken = fresh[len(fresh)-1].Seq
		one.forget()
	}

	return fresh, one.changed, nil
}

// forget drops what every follower has.
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

// leave ends it. The last one takes the topic along.
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
