package run

import (
	"context"
	"encoding/json"
	"time"

	"quern.dev/quern/internal/auth"
)

// shareTime is how long those who follow a run with the same rights share what one of them may see of new events. They
// get them at the same time, so it need not be long.
const shareTime = 250 * time.Millisecond

// share is events as readers with the same rights see them.
type share struct {
	done   chan struct{}
	events []Event
	err    error
}

type shareKey struct {
	rights      string
	first, last int64 // events
}

// share lets one of the followers who have these events and these rights ask what they may see of them.
func (f *follower) share(ctx context.Context, rights string, events []Event, reveal func(context.Context, []Event) ([]Event, error)) ([]Event, error) {
	key := shareKey{rights, events[0].Seq, events[len(events)-1].Seq}

	one, mine := f.join(key)
	if mine {
		one.events, one.err = reveal(ctx, events)
		close(one.done)
		time.AfterFunc(shareTime, func() { f.forget(key) })

		return one.events, one.err
	}

	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-one.done:
	}

	if one.err != nil { // perhaps only because that one has left
		return reveal(ctx, events)
	}

	return one.events, nil
}

// join finds those who have the same, or is the first.
func (f *follower) join(key shareKey) (one *share, mine bool) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	topic := f.tail.topics[f.key]
	if one, found := topic.shares[key]; found {
		return one, false
	}

	one = &share{done: make(chan struct{})}
	topic.shares[key] = one

	return one, true
}

func (f *follower) forget(key shareKey) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	if topic := f.tail.topics[f.key]; topic != nil {
		delete(topic.shares, key)
	}
}

// rightsOf is equal for readers who may see the same.
func rightsOf(who auth.Principal) (string, error) {
	text, err := json.Marshal(auth.Principal{Account: who.Account, Groups: who.Groups, Token: who.Token}) //nolint:musttag // nobody reads it

	return string(text), err
}
