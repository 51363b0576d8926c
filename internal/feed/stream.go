package feed

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/postgres"
)

const (
	pageSize  = 200
	queueSize = 1000
	// refreshEvery is how often a stream looks who shares with its caller, beside when something is shared. A dataset that is transferred
	// to another account has no such event.
	refreshEvery = 30 * time.Second
	// tellEvery is how often a stream gives its position when it has no events, so that a client that comes back need not read the same again.
	tellEvery = 10 * time.Second
)

// Stream gives events to one caller. The caller closes it.
type Stream struct {
	feed  *Feed
	who   auth.Principal
	scope Scope

	position  int64 // everything up to this number was given, or is not for the caller
	told      int64 // position that the client knows
	toldAt    time.Time
	refreshed time.Time

	// The hub and the stream share these, under the lock of the hub.
	logs    []uuid.UUID
	queue   []event.Event
	fresh   bool  // the hub has not read for the current logs yet
	behind  bool  // events up to until must be read from the database
	until   int64 // number up to which the hub passed everything, to the queue unless the stream is behind
	changed chan struct{}
	holder  auth.Holder
	lapsed  bool
}

// Batch is what a stream gives at once: events, which may be none, and the position after them.
type Batch struct {
	Events   []event.Event
	Position int64
}

// Open returns a stream of the events after a number, or of those from now on if it is 0.
//
// Faults: NotFound if the filter names something that the caller may not see, ValidationFailed.
func (f *Feed) Open(ctx context.Context, who auth.Principal, filter Filter, after int64) (*Stream, error) {
	s := &Stream{feed: f, who: who, holder: who.Holder(), changed: make(chan struct{}), refreshed: f.Now()}

	var head int64

	err := f.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if s.scope, err = f.scope(ctx, q, who, filter); err != nil {
			return err
		}

		if head, _, err = event.Head(ctx, q); err != nil {
			return err
		}

		s.logs, err = f.logs(ctx, q, who, s.scope)

		return err
	})
	if err != nil {
		return nil, err
	}

	if s.position, err = f.position(head, after); err != nil {
		return nil, err
	}

	f.hub.add(s, head)

	return s, nil
}

// readPages limits the pages that one Read looks through.
const readPages = 20

// Read returns up to limit events after a number, and the number after which to go on. If after is 0, it returns no events, and the highest number.
//
// Faults: NotFound if the filter names something that the caller may not see, ValidationFailed.
func (f *Feed) Read(ctx context.Context, who auth.Principal, filter Filter, after int64, limit int) (batch Batch, err error) {
	err = f.DB.Do(ctx, func(q postgres.Querier) error {
		batch = Batch{}

		scope, err := f.scope(ctx, q, who, filter)
		if err != nil {
			return err
		}

		head, _, err := event.Head(ctx, q)
		if err != nil {
			return err
		}

		if batch.Position, err = f.position(head, after); err != nil {
			return err
		}

		logs, err := f.logs(ctx, q, who, scope)

		for page := 0; err == nil && page < readPages && len(batch.Events) < limit && batch.Position < head; page++ {
			err = f.readPage(ctx, q, who, scope, event.Range{Logs: logs, After: batch.Position, Until: head}, limit, &batch)
		}

		return err
	})

	return batch, err
}

// readPage adds the events of one page to the batch. The logs are already those of this moment, so a new share does not change them.
func (f *Feed) readPage(ctx context.Context, q postgres.Querier, who auth.Principal, s Scope, r event.Range, limit int, batch *Batch) error {
	events, err := event.List(ctx, q, r, pageSize)
	if err != nil {
		return err
	}

	end := r.Until
	if len(events) == pageSize {
		end = events[pageSize-1].Seq
	}

	shown, err := Reveal(ctx, q, f.Catalog, who, slices.DeleteFunc(events, func(e event.Event) bool { return !s.Has(e) }))
	if err != nil {
		return err
	}

	if room := limit - len(batch.Events); len(shown) > room {
		shown = shown[:room]
		end = shown[room-1].Seq
	}

	batch.Events, batch.Position = append(batch.Events, shown...), end

	return nil
}

// Close ends the stream.
func (s *Stream) Close() { s.feed.hub.remove(s) }

// Next waits for events and returns those that the caller may see now. It returns no events if only the position is news: at once for the first call,
// and from time to time. After an error, the next call returns the same events again.
//
// Faults: Unauthorized when the credential of the caller is no longer valid.
func (s *Stream) Next(ctx context.Context) (Batch, error) {
	if s.told == 0 {
		return s.tell(nil), nil
	}

	for {
		if err := s.refresh(ctx); err != nil {
			return Batch{}, err
		}

		events, upTo, changed, err := s.take(ctx)
		if err != nil {
			return Batch{}, err
		}

		shown, err := s.reveal(ctx, events)
		if err != nil {
			s.feed.hub.fallBack(s)

			return Batch{}, err
		}

		s.position = max(s.position, upTo)

		if slices.ContainsFunc(events, changesLogs) {
			s.refreshed = time.Time{} // events of the new owner follow
		}

		if len(shown) > 0 || (s.position > s.told && s.feed.Now().Sub(s.toldAt) >= tellEvery) {
			return s.tell(shown), nil
		}

		if changed == nil || len(events) > 0 { // there may be more
			continue
		}

		select {
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		case <-changed:
		case <-time.After(tellEvery):
		}
	}
}

func (s *Stream) tell(shown []event.Event) Batch {
	s.told, s.toldAt = s.position, s.feed.Now()

	return Batch{Events: shown, Position: s.position}
}

// take returns the next events, and the number up to which they are all. changed is nil if more may be there already.
func (s *Stream) take(ctx context.Context) (events []event.Event, upTo int64, changed <-chan struct{}, err error) {
	h := s.feed.hub

	h.mu.Lock()
	lapsed, behind, logs, until := s.lapsed, s.behind, s.logs, s.until

	if !behind {
		var whole bool
		if events, whole = cut(s.queue); !whole {
			s.behind, until = true, events[len(events)-1].Seq
		}

		s.queue, changed = nil, s.changed
	}
	h.mu.Unlock()

	switch {
	case lapsed:
		return nil, 0, nil, errLapsed()
	case !behind:
		return events, until, changed, nil
	}

	err = s.feed.DB.Do(ctx, func(q postgres.Querier) (err error) {
		events, err = event.List(ctx, q, event.Range{Logs: logs, After: s.position, Until: until}, pageSize)

		return err
	})
	if err != nil {
		return nil, 0, nil, err
	}

	first, whole := cut(events)
	if !whole || len(events) == pageSize {
		return first, first[len(first)-1].Seq, nil, nil
	}

	h.caughtUp(s, until)

	return events, until, nil, nil
}

// cut returns the events up to the first one that changes which logs the stream reads, because what follows in the new ones must come in order.
// whole is true if there is none.
func cut(events []event.Event) (first []event.Event, whole bool) {
	for i, e := range events {
		if changesLogs(e) {
			return events[:i+1], false
		}
	}

	return events, true
}

func changesLogs(e event.Event) bool {
	return e.Type == event.DatasetShared || e.Type == event.NamespaceShared
}

// reveal returns the events that the filter selects and the caller may see. The credential is checked last, so that nothing slow happens between
// the check and the delivery.
func (s *Stream) reveal(ctx context.Context, events []event.Event) (shown []event.Event, err error) {
	events = slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return !s.scope.Has(e) })
	if len(events) == 0 {
		return nil, nil
	}

	err = s.feed.DB.Do(ctx, func(q postgres.Querier) error {
		shown, err = Reveal(ctx, q, s.feed.Catalog, s.who, events)

		return err
	})
	if err != nil || len(shown) == 0 {
		return nil, err
	}

	return shown, s.feed.Credentials.Check(ctx, s.who)
}

// refresh reads again who shares with the caller. If that has changed, the stream reads from its position in all logs.
func (s *Stream) refresh(ctx context.Context) error {
	now := s.feed.Now()
	if now.Sub(s.refreshed) < refreshEvery {
		return nil
	}

	var logs []uuid.UUID

	err := s.feed.DB.Do(ctx, func(q postgres.Querier) (err error) {
		logs, err = s.feed.logs(ctx, q, s.who, s.scope)

		return err
	})
	if err != nil {
		return err
	}

	s.refreshed = now
	s.feed.hub.follow(s, logs)

	return nil
}
