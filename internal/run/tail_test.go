package run

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// newFollowed is a run that two follow after its first event. Nobody looks into a database.
func newFollowed(t *testing.T) (tl *tail, key topicKey, a, b *follower) {
	t.Helper()

	tl, key = newTail(Config{Log: slog.New(slog.DiscardHandler), Poll: time.Hour}), topicKey{uuid.New(), uuid.New()}
	a, _ = tl.follow(key, 1)
	b, _ = tl.follow(key, 1)
	<-tl.wake

	return tl, key, a, b
}

func TestToldEventsComeInOrder(t *testing.T) {
	t.Parallel()

	tl, key, a, b := newFollowed(t)

	tl.tell(key, Event{Seq: 2})
	tl.tell(key, Event{Seq: 3})
	require.Empty(t, tl.wake)

	tl.tell(key, Event{Seq: 5}) // what another wrote before it is in the database
	require.Len(t, tl.wake, 1)
	tl.tell(topicKey{uuid.New(), uuid.New()}, Event{Seq: 2})

	for _, f := range []*follower{a, b} {
		events, err := f.next(t.Context())
		require.NoError(t, err)
		require.Equal(t, []Event{{Seq: 2}, {Seq: 3}}, events)
	}

	tl.tell(key, Event{Seq: 4})

	events, err := a.next(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Event{{Seq: 4}}, events)
}

func TestFollowersWithTheSameRightsShare(t *testing.T) {
	t.Parallel()

	_, _, a, b := newFollowed(t)

	var (
		asked  int
		events = []Event{{Seq: 2}, {Seq: 3}}
		reveal = func(_ context.Context, of []Event) ([]Event, error) {
			asked++

			return of[1:], nil
		}
	)

	for _, one := range []struct {
		f      *follower
		rights string
		events []Event
		asked  int
	}{
		{a, "ada", events, 1},
		{b, "ada", events, 1},
		{b, "bob", events, 2},
		{b, "ada", append(events, Event{Seq: 4}), 3},
	} {
		shown, err := one.f.share(t.Context(), one.rights, one.events, reveal)
		require.NoError(t, err)
		require.Equal(t, one.events[1:], shown)
		require.Equal(t, one.asked, asked)
	}

	left := errors.New("left")
	later := []Event{{Seq: 5}, {Seq: 6}}

	_, err := a.share(t.Context(), "ada", later, func(context.Context, []Event) ([]Event, error) { return nil, left })
	require.ErrorIs(t, err, left)

	shown, err := b.share(t.Context(), "ada", later, reveal)
	require.NoError(t, err)
	require.Equal(t, later[1:], shown)

	require.Eventually(t, func() bool {
		a.tail.mu.Lock()
		defer a.tail.mu.Unlock()

		return len(a.tail.topics[a.key].shares) == 0
	}, 10*time.Second, 10*time.Millisecond)
}

// TestTopicTakesOnce: two looks at the log can overlap, and what this process wrote is told before it is read. Every event is taken once and in
// order, whoever brings it.
func TestTopicTakesOnce(t *testing.T) {
	t.Parallel()

	event := func(seq int64) Event { return Event{Seq: seq} }
	one := &topic{after: 3, changed: make(chan struct{})}

	one.add([]Event{event(4), event(5)})
	one.add([]Event{event(4), event(5), event(6)})
	one.add([]Event{event(6)})
	one.add([]Event{event(8)}) // one before it is missing, and comes with the next look
	one.add([]Event{event(7), event(8)})

	var taken []int64
	for _, e := range one.events {
		taken = append(taken, e.Seq)
	}

	require.Equal(t, []int64{4, 5, 6, 7, 8}, taken)
}
