package feed

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

const (
	pollEvery  = 250 * time.Millisecond
	idleEvery  = time.Second // no stream is open; webhooks still need the numbers
	checkEvery = 250 * time.Millisecond
	hubPage    = 2000
)

// hub reads the new events for all streams of this replica, with one statement, and lets events get their numbers.
type hub struct {
	db          *postgres.DB
	log         *slog.Logger
	credentials auth.Credentials
	numbered    func(ctx context.Context, tx postgres.Tx, events []event.Event) error
	wake        chan struct{}

	mu       sync.Mutex
	position int64 // everything up to this number was passed to the streams
	streams  map[*Stream]struct{}
}

// compare orders logs.
func compare(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

func errLapsed() error {
	return fault.New(fault.Unauthorized, "Stopped because the token or account that opened the stream is no longer valid. Connect again with a valid token.")
}

// add adds a stream, which first reads what is between its position and that of the hub. head is a number that was the highest.
func (h *hub) add(s *Stream, head int64) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if len(h.streams) == 0 {
		h.position = max(h.position, head)
	}

	h.streams[s] = struct{}{}
	s.fresh, s.behind, s.until = true, true, max(h.position, s.position)

	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *hub) remove(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()

	delete(h.streams, s)
}

// caughtUp lets the stream follow, if it has read everything up to the position of the hub.
func (h *hub) caughtUp(s *Stream, read int64) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if s.until <= read {
		s.behind = false
	}
}

// follow sets the logs of a stream. New logs are read from its position on.
func (h *hub) follow(s *Stream, logs []uuid.UUID) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if !slices.Equal(s.logs, logs) {
		s.logs, s.fresh, s.behind, s.queue = logs, true, true, nil
	}
}

// fallBack makes the stream read again from its position, because the events that it took were not given.
func (h *hub) fallBack(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()

	s.behind, s.queue = true, nil
}

// pass gives events to the streams that read their logs. upTo is the number up to which they are all.
func (h *hub) pass(events []event.Event, upTo int64) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.position = max(h.position, upTo)

	for s := range h.streams {
		had := len(s.queue)
		s.behind = s.behind || s.fresh // events of its logs may not be among these

		for _, e := range events {
			if _, reads := slices.BinarySearchFunc(s.logs, e.Account, compare); reads && !s.behind && e.Seq > s.until {
				s.queue = append(s.queue, e)
			}
		}

		if len(s.queue) > queueSize {
			s.behind = true
		}

		if s.behind {
			s.queue = nil
		}

		if s.until = max(s.until, upTo); s.behind || len(s.queue) > had {
			s.notify()
		}
	}
}

// notify wakes the stream.
func (s *Stream) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Run gives numbers to events, passes events to streams and checks the credentials of streams, until ctx ends. It continues after errors of the
// database.
func (f *Feed) Run(ctx context.Context) {
	var checking sync.WaitGroup

	h, log := f.hub, job.Limited(f.Log)

	defer checking.Wait()
	checking.Go(func() {
		for ctx.Err() == nil {
			err := fault.Try(func() error {
				h.check(ctx)

				return nil
			})
			if err != nil {
				log.ErrorContext(ctx, "the credentials of streams could not be checked", "error", err)
			}
		}
	})

	for {
		more, err := h.look(ctx)
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "events could not be read", "error", err)
		}

		pause := h.pause()
		if more && err == nil {
			pause = 0
		}

		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-time.After(pause):
		}
	}
}

func (h *hub) pause() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()

	if len(h.streams) == 0 {
		return idleEvery
	}

	return pollEvery
}

// look gives numbers to new events, and reads what is new for the streams.
func (h *hub) look(ctx context.Context) (more bool, err error) {
	head, waiting, err := h.head(ctx)
	if err != nil {
		return false, err
	}

	if waiting {
		if more, err = event.Number(ctx, h.db, func(tx postgres.Tx, events []event.Event) error { return h.numbered(ctx, tx, events) }); err != nil {
			return false, err
		}

		if head, _, err = h.head(ctx); err != nil {
			return false, err
		}
	}

	h.mu.Lock()
	from := h.position

	if head <= from || len(h.streams) == 0 {
		h.mu.Unlock()

		return more, nil
	}

	logs := h.watched()
	h.mu.Unlock()

	var events []event.Event

	err = h.db.Do(ctx, func(q postgres.Querier) (err error) {
		events, err = event.List(ctx, q, event.Range{Logs: logs, After: from, Until: head}, hubPage)

		return err
	})
	if err != nil {
		return false, err
	}

	if len(events) == hubPage {
		head, more = events[hubPage-1].Seq, true
	}

	h.pass(events, head)

	return more, nil
}

func (h *hub) head(ctx context.Context) (seq int64, waiting bool, err error) {
	err = h.db.Do(ctx, func(q postgres.Querier) (err error) {
		seq, waiting, err = event.Head(ctx, q)

		return err
	})

	return seq, waiting, err
}

// watched returns the logs that streams read, each once. The caller holds the lock, and reads these logs next.
func (h *hub) watched() (logs []uuid.UUID) {
	for s := range h.streams {
		logs = append(logs, s.logs...)
		s.fresh = false
	}

	slices.SortFunc(logs, compare)

	return slices.Compact(logs)
}

// check ends streams whose credential is no longer valid, until ctx ends. While the database does not answer, streams give no events.
func (h *hub) check(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(checkEvery):
		}

		if held := h.holders(); len(held) > 0 {
			if lapsed, err := h.credentials.Lapsed(ctx, held); err == nil && len(lapsed) > 0 {
				h.end(lapsed)
			}
		}
	}
}

func (h *hub) holders() (list []auth.Holder) {
	h.mu.Lock()
	defer h.mu.Unlock()

	met := map[auth.Holder]bool{}

	for s := range h.streams {
		if !met[s.holder] {
			met[s.holder] = true
			list = append(list, s.holder)
		}
	}

	return list
}

func (h *hub) end(lapsed []auth.Holder) {
	h.mu.Lock()
	defer h.mu.Unlock()

	for s := range h.streams {
		if slices.Contains(lapsed, s.holder) {
			s.lapsed = true
			s.notify()
		}
	}
}
