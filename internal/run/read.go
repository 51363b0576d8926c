package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// Get returns a run of the caller's. NotFound.
func (r *Runs) Get(ctx context.Context, who auth.Principal, id uuid.UUID) (Run, error) {
	found, err := r.own(ctx, who, id)
	if err != nil {
		return Run{}, err
	}

	shown, err := r.reveal(ctx, who, &found)
	if err != nil || found.Result == nil {
		return found, err
	}

	if err := r.note(ctx, who, actionRead, shown); err != nil {
		return Run{}, err
	}

	return found, r.Credentials.Check(ctx, who) // the caller may have waited for the result
}

// own finds a run of the caller's, without what came of it.
func (r *Runs) own(ctx context.Context, who auth.Principal, id uuid.UUID) (found Run, err error) {
	err = r.DB.Do(ctx, func(q postgres.Querier) error {
		one, err := selectRun(ctx, q, who.Account, id)
		if err == nil && one == nil {
			err = fault.Absent()
		}

		if err == nil {
			found = *one
			err = r.reaches(ctx, q, who, found)
		}

		return err
	})

	return found, err
}

// unsaid stands for the words of a failure that say something of the data.
const unsaid = "The question could not be answered."

// reveal sets what came of a run, if the reader may still see what it read. It returns the datasets whose rows it shows.
func (r *Runs) reveal(ctx context.Context, who auth.Principal, run *Run) (shown []source, err error) {
	if run.Status != Completed && run.Status != Failed {
		return nil, nil
	}

	reads, paths, err := r.read(ctx, who, run.ID)
	if err != nil {
		return nil, err
	}

	visible := len(reads) == len(paths)
	if visible && run.Status == Completed {
		shown = pair(reads, paths)
	}

	return shown, r.show(ctx, run, visible, r.complete)
}

// show sets what came of a run, as far as the reader may see it.
func (r *Runs) show(ctx context.Context, run *Run, visible bool, complete func(context.Context, storedStep) (agent.Step, error)) (err error) {
	switch {
	case run.Status == Failed && !visible: // its words may quote the data
		run.Error = fault.New(run.Error.Code, unsaid)
	case run.Status == Completed && !visible:
		run.Result = &agent.Result{Steps: []agent.Step{}, Outcome: agent.Withheld}
	case run.Status == Completed:
		result := run.stored.Result
		result.Steps = make([]agent.Step, len(run.stored.Steps))

		for i, step := range run.stored.Steps {
			if result.Steps[i], err = complete(ctx, step); err != nil {
				return err
			}
		}

		run.Result = &result
	}

	return nil
}

// visible tells whether the reader may see all datasets that a run read so far.
func (r *Runs) visible(ctx context.Context, who auth.Principal, run uuid.UUID) (bool, error) {
	reads, seen, err := r.read(ctx, who, run)

	return err == nil && len(seen) == len(reads), err
}

// read gives what a run read so far, and the names of those that the reader may see.
func (r *Runs) read(ctx context.Context, who auth.Principal, run uuid.UUID) (reads []query.Read, seen []catalog.Path, err error) {
	if reads, err = r.reads(ctx, who.Account, run); err == nil {
		seen, err = r.names(ctx, who, reads)
	}

	return reads, seen, err
}

func (r *Runs) reads(ctx context.Context, account, run uuid.UUID) (reads []query.Read, err error) {
	err = r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		reads, err = selectReads(ctx, q, account, run)

		return err
	})

	return reads, err
}

// names are those of the datasets that the reader may see.
func (r *Runs) names(ctx context.Context, who auth.Principal, reads []query.Read) ([]catalog.Path, error) {
	targets := make([]auth.Target, len(reads))
	for i, read := range reads {
		targets[i] = auth.Target{Kind: "dataset", Account: read.Account, ID: read.ID}
	}

	return r.Catalog.Paths(ctx, who, targets)
}

// complete gives a step the rows that go out with it.
func (r *Runs) complete(ctx context.Context, kept storedStep) (agent.Step, error) {
	step := kept.Step
	if kept.Object == "" {
		return step, nil
	}

	content, err := r.Store.Read(ctx, kept.Object, 0, min(kept.Size, wireBytes+wireRows))
	if err != nil {
		return step, err
	}
	defer content.Close()

	step.Data = nil
	lines := bufio.NewReader(content)

	for size := 0; len(step.Data) < wireRows; {
		row, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // the last one may be cut
		}

		if err != nil {
			return step, err
		}

		row = row[:len(row)-1]
		if size += len(row); size > wireBytes {
			break
		}

		step.Data = append(step.Data, row)
	}

	return step, nil
}

// Stream gives the events of a run. Close it.
type Stream struct {
	runs     *Runs
	who      auth.Principal
	run      Run
	rights   string // of the reader
	follower *follower
	backlog  []Event            // not given yet
	noted    map[uuid.UUID]bool // datasets whose reading is in the audit
	over     bool               // the reader has had the end
	end      func()             // gives the place among the caller's streams back
}

// Follow gives the events of a run of the caller's after one. Close the stream.
//
// Faults: NotFound, RateLimited if the caller has too many streams open.
func (r *Runs) Follow(ctx context.Context, who auth.Principal, id uuid.UUID, after int64) (*Stream, error) {
	run, err := r.own(ctx, who, id)
	if err != nil {
		return nil, err
	}

	rights, err := rightsOf(who)
	if err != nil {
		return nil, err
	}

	end, err := r.streams.Begin(who)
	if err != nil {
		return nil, err
	}

	// Nobody has seen more than there is; whoever says so would let all that follow it here wait for that.
	after = min(after, run.lastSeq)
	s := &Stream{
		runs: r, who: who, run: run, rights: rights, noted: map[uuid.UUID]bool{}, end: end, over: run.Status != Running && after == run.lastSeq,
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

	// Events are not kept for ever; how it ended is.
	if run.Status != Running && len(s.backlog) == 0 && after < run.lastSeq {
		s.backlog = []Event{{Event: agent.Event{Kind: run.lastKind(), Body: json.RawMessage("{}")}, Seq: run.lastSeq}}
	}

	for i, e := range s.backlog {
		if e.Seq > from { // comes again
			s.backlog = s.backlog[:i]

			break
		}
	}

	return s, nil
}

func (r Run) lastKind() agent.Kind {
	switch r.Status {
	case Completed:
		return kindCompleted
	case Cancelled:
		return kindCancelled
	default:
		return kindFailed
	}
}

// Next waits for events. After one that ends the run there are none: whoever has had it gets io.EOF. What it could not
// give it gives the next time.
//
// Faults: Unauthorized when the credential of the reader is no longer valid.
func (s *Stream) Next(ctx context.Context) (shown []Event, err error) {
	if s.over {
		return nil, io.EOF
	}

	reveal := s.reveal

	if len(s.backlog) == 0 {
		if s.backlog, err = s.follower.next(ctx); err != nil {
			return nil, err
		}

		reveal = func(ctx context.Context, events []Event) ([]Event, error) {
			return s.follower.share(ctx, s.rights, events, s.reveal)
		}
	}

	if err := s.note(ctx, s.backlog); err != nil {
		return nil, err
	}

	shown, err = reveal(ctx, s.backlog)

	// What is shared may have been revealed before the credential lapsed.
	if err == nil && slices.ContainsFunc(shown, Event.tells) {
		err = s.runs.Credentials.Check(ctx, s.who)
	}

	if err != nil {
		return nil, err
	}

	s.backlog = nil

	return shown, nil
}

// Await waits for the end of a run of the caller's.
//
// Faults: NotFound, Unauthorized when the credential of the caller is no longer valid.
func (r *Runs) Await(ctx context.Context, who auth.Principal, id uuid.UUID) error {
	run, err := r.own(ctx, who, id)
	if err != nil || run.Status != Running {
		return err
	}

	follower, _ := r.tail.follow(run.key(), run.lastSeq)
	defer follower.leave()

	follower.heldBy(who)

	for {
		events, err := follower.next(ctx)
		if err != nil || events[len(events)-1].Ends() {
			return err
		}
	}
}

// Close ends the stream, not the run.
func (s *Stream) Close() {
	s.follower.leave()
	s.end()
}

// reveal leaves out what the reader may no longer see, and completes the rest.
func (s *Stream) reveal(ctx context.Context, events []Event) (shown []Event, err error) {
	visible := true

	for _, e := range events {
		if e.tells() {
			if visible, err = s.runs.visible(ctx, s.who, s.run.ID); err != nil {
				return nil, err
			}

			break
		}
	}

	for _, e := range events {
		if !visible && e.tells() && !e.Ends() {
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
	case kindCompleted, kindFailed:
		run, err := s.runs.own(ctx, s.who, s.run.ID)
		if err == nil {
			err = s.runs.show(ctx, &run, visible, s.runs.complete)
		}

		if err != nil {
			return nil, err
		}

		if e.Kind == kindCompleted {
			return encode(completed{run.Result})
		}

		return encode(failed{Code: run.Error.Code, Message: run.Error.Message})
	case agent.StepDone:
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
