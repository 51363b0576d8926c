package run

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"quern.dev/quern/internal/auth"
)

// shareTime is how long followers of a run with the same rights share the filtered events. They receive events at the same
// time, so a short time is enough.
const shareTime = 250 * time.Millisecond

// share is a list of events as readers with the same rights see them.
type share struct {
	done     chan struct{}
	events   []Event
	err      error
	checking bool // the check of the credential has started
}

// view filters events for one reader.
type view struct {
	reveal func(context.Context, []Event) ([]Event, error)
	check  func(context.Context) error // fails if the credential is no longer valid
}

// of returns the events as far as the reader may see them. The credential is checked last, so that nothing slow happens
// between the check and the delivery. checking is called when the check starts.
func (v view) of(ctx context.Context, events []Event, checking func()) (shown []Event, err error) {
	if shown, err = v.reveal(ctx, events); err == nil && tell(shown) {
		checking()

		err = v.check(ctx)
	}

	if err != nil {
		return nil, err
	}

	return shown, nil
}

func tell(events []Event) bool { return slices.ContainsFunc(events, Event.revealsData) }

type shareKey struct {
	rights      string
	first, last int64 // numbers of events
}

// share filters events once for all followers with the same events and the same rights: the first follower filters them
// and checks the credential. The check is valid for followers that joined before it started, because their own check would
// have had the same result. A follower that joins later does its own check, so that no follower relies on a check that is
// older than its request.
func (f *follower) share(ctx context.Context, rights string, events []Event, v view) ([]Event, error) {
	key := shareKey{rights, events[0].Seq, events[len(events)-1].Seq}

	one, mine, covered := f.join(key)
	if mine {
		one.events, one.err = v.of(ctx, events, func() { f.closeTo(one) })
		close(one.done)
		time.AfterFunc(shareTime, func() { f.forget(key) })

		return one.events, one.err
	}

	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-one.done:
	}

	switch {
	case one.err != nil: // perhaps only because the first follower's context ended
		return v.of(ctx, events, func() {})
	case !covered && tell(one.events):
		if err := v.check(ctx); err != nil {
			return nil, err
		}
	}

	return one.events, nil
}

// join returns the share for a key; mine is true if this call created it. covered is true if the check of the credential
// has not started yet, so that it is also valid for this follower.
func (f *follower) join(key shareKey) (one *share, mine, covered bool) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	topic := f.tail.topics[f.key]
	if one, found := topic.shares[key]; found {
		return one, false, !one.checking
	}

	one = &share{done: make(chan struct{})}
	topic.shares[key] = one

	return one, true, true
}

// closeTo marks the check of a share as started: it is not valid for followers that join from now on.
func (f *follower) closeTo(one *share) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	one.checking = true
}

func (f *follower) forget(key shareKey) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	if topic := f.tail.topics[f.key]; topic != nil {
		delete(topic.shares, key)
	}
}

// rightsOf returns a text that is equal for readers with the same rights.
func rightsOf(who auth.Principal) (string, error) {
	text, err := json.Marshal(auth.Principal{Account: who.Account, Groups: who.Groups, Token: who.Token}) //nolint:musttag // nobody reads it

	return string(text), err
}
