package run

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/agent"
)

// newFollowed returns a run with two followers after its first event. The tail does not poll the database.
func newFollowed(t *testing.T) (tl *tail, key topicKey, a, b *follower) {
	t.Helper()

	tl, key = newTail(Config{Log: slog.New(slog.DiscardHandler), PollInterval: time.Hour}), topicKey{uuid.New(), uuid.New()}
	a, _ = tl.follow(key, 1)
	b, _ = tl.follow(key, 1)
	<-tl.wake

	return tl, key, a, b
}

func TestToldEventsComeInOrder(t *testing.T) {
	t.Parallel()

	tl, key, a, b := newFollowed(t)

	tl.tell(key, time.Time{}, Event{Seq: 2})
	tl.tell(key, time.Time{}, Event{Seq: 3})
	require.Empty(t, tl.wake)

	tl.tell(key, time.Time{}, Event{Seq: 5}) // event 4, of another process, is in the database
	require.Len(t, tl.wake, 1)
	tl.tell(topicKey{uuid.New(), uuid.New()}, time.Time{}, Event{Seq: 2})

	for _, f := range []*follower{a, b} {
		events, err := f.next(t.Context())
		require.NoError(t, err)
		require.Equal(t, []Event{{Seq: 2}, {Seq: 3}}, events)
	}

	tl.tell(key, time.Time{}, Event{Seq: 4})

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
		shown, err := one.f.share(t.Context(), one.rights, one.events, view{reveal: reveal})
		require.NoError(t, err)
		require.Equal(t, one.events[1:], shown)
		require.Equal(t, one.asked, asked)
	}

	left := errors.New("left")
	later := []Event{{Seq: 5}, {Seq: 6}}

	_, err := a.share(t.Context(), "ada", later, view{reveal: func(context.Context, []Event) ([]Event, error) { return nil, left }})
	require.ErrorIs(t, err, left)

	shown, err := b.share(t.Context(), "ada", later, view{reveal: reveal})
	require.NoError(t, err)
	require.Equal(t, later[1:], shown)

	require.Eventually(t, func() bool {
		a.tail.mu.Lock()
		defer a.tail.mu.Unlock()

		return len(a.tail.topics[a.key].shares) == 0
	}, 10*time.Second, 10*time.Millisecond)
}

// TestTopicTakesOnce checks that a topic takes every event once and in order, although two polls can overlap and events of
// this process are added before they are read.
func TestTopicTakesOnce(t *testing.T) {
	t.Parallel()

	event := func(seq int64) Event { return Event{Seq: seq} }
	one := &topic{after: 3, changed: make(chan struct{})}

	one.add(time.Time{}, []Event{event(4), event(5)})
	one.add(time.Time{}, []Event{event(4), event(5), event(6)})
	one.add(time.Time{}, []Event{event(6)})
	one.add(time.Time{}, []Event{event(8)}) // event 7 is missing and comes with the next poll
	one.add(time.Time{}, []Event{event(7), event(8)})

	var taken []int64
	for _, e := range one.events {
		taken = append(taken, e.Seq)
	}

	require.Equal(t, []int64{4, 5, 6, 7, 8}, taken)
}

// TestSharedCheck checks that a check of the credential is valid only for followers that joined before it started.
func TestSharedCheck(t *testing.T) {
	t.Parallel()

	_, _, a, b := newFollowed(t)
	events := []Event{{Event: agent.Event{Kind: EventStepStarted}, Seq: 2}}
	key := shareKey{"ada", 2, 2}
	revealing, checking, released := make(chan struct{}), make(chan struct{}), make(chan struct{})
	checks := 0

	go func() {
		_, _ = a.share(t.Context(), "ada", events, view{
			reveal: func(_ context.Context, of []Event) ([]Event, error) {
				revealing <- struct{}{}
				<-released
				return of, nil
			},
			check: func(context.Context) error { checking <- struct{}{}; <-released; return nil },
		})
	}()

	<-revealing

	_, mine, covered := b.join(key)
	require.False(t, mine)
	require.True(t, covered, "the check has not begun")

	released <- struct{}{}
	<-checking

	one, _, covered := b.join(key)
	require.False(t, covered, "the check has begun")

	released <- struct{}{}
	<-one.done

	refused := errors.New("revoked meanwhile")
	_, err := b.share(t.Context(), "ada", events, view{check: func(context.Context) error { checks++; return refused }})
	require.ErrorIs(t, err, refused, "who comes later checks himself")
	require.Equal(t, 1, checks)
}

// TestBegun checks that a follower that waits for a worker receives the start once, before the events of the worker,
// however the start becomes known.
func TestBegun(t *testing.T) {
	t.Parallel()

	began := time.Now()

	for name, bring := range map[string]func(tl *tail, key topicKey){
		"by itself":        func(tl *tail, key topicKey) { tl.tellBegun(key, began); tl.tellBegun(key, began) },
		"with an event":    func(tl *tail, key topicKey) { tl.tell(key, began, Event{Seq: 2}) },
		"with what it did": func(tl *tail, key topicKey) { tl.tellBegun(key, began); tl.tell(key, began, Event{Seq: 2}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tl, key, a, b := newFollowed(t)
			a.awaitBegun()
			bring(tl, key)
			tl.tell(key, began, Event{Seq: 2})
			tl.tell(key, began, Event{Seq: 3})

			events, err := a.next(t.Context())
			require.NoError(t, err)
			require.Equal(t, []Event{begun(began), {Seq: 2}, {Seq: 3}}, events)

			events, err = b.next(t.Context())
			require.NoError(t, err)
			require.Equal(t, []Event{{Seq: 2}, {Seq: 3}}, events, "who does not wait is not told")
		})
	}
}
