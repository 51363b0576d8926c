package run

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// Stream delivers the events of a run. The caller closes it.
type Stream struct {
	runs     *Runs
	who      auth.Principal
	run      Run
	rights   string // of the reader
	follower *follower
	backlog  []Event            // events that are not delivered yet
	noted    map[uuid.UUID]bool // datasets whose read is recorded in the audit
	over     bool               // nothing was going on and the reader had the last event when the stream was opened
}

// Follow returns a stream of the events of a run of the caller after the event with the number after. The caller closes the
// stream. Before a stream is delivered to a client, Reserve must be called.
//
// Faults: NotFound.
func (r *Runs) Follow(ctx context.Context, who auth.Principal, id uuid.UUID, after int64) (*Stream, error) {
	run, err := r.own(ctx, who, id)
	if err != nil {
		return nil, err
	}

	rights, err := rightsOf(who)
	if err != nil {
		return nil, err
	}

	// Clamp the client's cursor: a value past the last event would make followers wait for an event that does not exist.
	after = min(after, run.lastSeq)
	s := &Stream{
		runs: r, who: who, run: run, rights: rights, noted: map[uuid.UUID]bool{}, over: run.Status != Running && after == run.lastSeq,
	}

	var from int64

	s.follower, from = r.tail.follow(run.key(), run.lastSeq)
	s.follower.heldBy(who)

	err = r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		s.backlog, err = selectEvents(ctx, q, run.Account, run.ID, after)

		return err
	})
	if err != nil {
		s.Close()

		return nil, err
	}

	// The retention of events may be over, but the run itself records how it ended.
	if run.Status != Running && len(s.backlog) == 0 && after < run.lastSeq {
		s.backlog = []Event{{Event: agent.Event{Kind: run.lastKind(), Body: json.RawMessage("{}")}, Seq: run.lastSeq}}
	}

	for i, e := range s.backlog {
		if e.Seq > from { // the follower delivers it
			s.backlog = s.backlog[:i]

			break
		}
	}

	return s, nil
}

// FollowTask is Follow, but delivers EventBegun before the events that the worker wrote. A reader that resumes after the
// second event or later does not receive it again.
func (r *Runs) FollowTask(ctx context.Context, who auth.Principal, id uuid.UUID, after int64) (*Stream, error) {
	s, err := r.Follow(ctx, who, id, after)
	if err != nil || after > 1 {
		return s, err
	}

	began, first := s.run.BeganAt, slices.IndexFunc(s.backlog, func(e Event) bool { return e.Seq > 1 })

	if began.IsZero() && first >= 0 { // a worker started the run while its events were read
		now, err := r.own(ctx, who, id)
		if err != nil {
			s.Close()

			return nil, err
		}

		began = now.BeganAt
	}

	switch {
	case began.IsZero():
		s.follower.awaitBegun()
	case first < 0:
		s.backlog = append(s.backlog, begun(began))
	default:
		s.backlog = slices.Insert(s.backlog, first, begun(began))
	}

	return s, nil
}

func (r Run) lastKind() agent.Kind {
	switch r.Status {
	case Completed:
		return EventCompleted
	case Waiting:
		return EventWaiting
	case Cancelled:
		return EventCancelled
	default:
		return EventFailed
	}
}

// Next waits for events and returns them. If Rests is true for the last one of them, do not call Next again. Next
// returns io.EOF if the reader had already received the last event when the stream was opened. After an error, the next
// call returns the same events again.
//
// Faults: Unauthorized when the credential of the reader is no longer valid.
func (s *Stream) Next(ctx context.Context) (shown []Event, err error) {
	if s.over {
		return nil, io.EOF
	}

	isOld := len(s.backlog) > 0

	if !isOld {
		if s.backlog, err = s.follower.next(ctx); err != nil {
			return nil, err
		}
	}

	if err := s.note(ctx, s.backlog); err != nil {
		return nil, err
	}

	mine := view{s.reveal, func(ctx context.Context) error { return s.runs.Credentials.Check(ctx, s.who) }}

	if isOld {
		shown, err = mine.of(ctx, s.backlog, func() {})
	} else {
		shown, err = s.follower.share(ctx, s.rights, s.backlog, mine)
	}

	if err != nil {
		return nil, err
	}

	s.backlog = nil

	return shown, nil
}

// Close closes the stream. The run continues.
func (s *Stream) Close() { s.follower.leave() }

// reveal drops the events that the reader may no longer see, and completes the bodies of the others.
func (s *Stream) reveal(ctx context.Context, events []Event) (shown []Event, err error) {
	visible := true

	for _, e := range events {
		if e.revealsData() {
			if visible, err = s.runs.visible(ctx, s.who, s.run.ID); err != nil {
				return nil, err
			}

			break
		}
	}

	for _, e := range events {
		if !visible && e.revealsData() && !e.Rests() {
			continue
		}

		if e.Body, err = s.body(ctx, e, visible); err != nil {
			return nil, err
		}

		shown = append(shown, e)
	}

	return shown, nil
}

func (s *Stream) body(ctx context.Context, e Event, visible bool) (json.RawMessage, error) {
	switch e.Kind {
	case EventCompleted, EventFailed:
		run, err := s.runs.own(ctx, s.who, s.run.ID)
		if err == nil {
			err = s.runs.show(ctx, &run, visible, s.runs.complete)
		}

		if err != nil {
			return nil, err
		}

		if e.Kind == EventCompleted {
			return encode(Completion{Result: run.Result})
		}

		return encode(Failure{Code: run.Error.Code, Message: run.Error.Message})
	case EventWaiting:
		if visible {
			return e.Body, nil
		}

		return encode(Completion{Result: &agent.Result{Steps: []agent.Step{}, Outcome: agent.Withheld}})
	case EventStep:
		var kept storedStep
		if err := json.Unmarshal(e.Body, &kept); err != nil {
			return nil, err
		}

		step, err := s.runs.complete(ctx, kept)
		if err != nil {
			return nil, err
		}

		return encode(step)
	default:
		return e.Body, nil
	}
}
