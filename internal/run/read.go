package run

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// Get returns a run of the caller with its result.
//
// Faults: NotFound.
func (r *Runs) Get(ctx context.Context, who auth.Principal, id uuid.UUID) (Run, error) {
	found, err := r.own(ctx, who, id)
	if err != nil {
		return Run{}, err
	}

	if found.Status == Completed {
		if found.Feedback, err = r.rated(ctx, found); err != nil {
			return Run{}, err
		}
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

// own returns a run of the caller without its result. It returns NotFound if the caller cannot access the run.
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

// hiddenMessage replaces the message of a failure that may quote data.
const hiddenMessage = "The question could not be answered."

// reveal sets the result or error of a run, as far as the reader may still see the datasets that the run read. It returns
// the datasets whose rows are shown.
func (r *Runs) reveal(ctx context.Context, who auth.Principal, run *Run) (shown []source, err error) {
	if !run.Status.hasResult() && run.Status != Failed {
		return nil, nil
	}

	reads, paths, err := r.read(ctx, who, run.ID)
	if err != nil {
		return nil, err
	}

	visible := len(reads) == len(paths)
	if visible && run.Status.hasResult() {
		shown = pair(reads, paths)
	}

	return shown, r.show(ctx, run, visible, r.complete)
}

// show sets the result or error of a run: in full if visible, and otherwise without data. complete adds the rows of a step.
func (r *Runs) show(ctx context.Context, run *Run, visible bool, complete func(context.Context, storedStep) (agent.Step, error)) (err error) {
	switch {
	case run.Status == Failed && !visible: // its message may quote data
		run.Error = fault.New(run.Error.Code, hiddenMessage)
	case run.Status.hasResult() && !visible:
		run.Result = &agent.Result{Steps: []agent.Step{}, Outcome: agent.Withheld}
	case run.Status.hasResult():
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

// visible reports whether the reader may see all datasets that a run has read so far.
func (r *Runs) visible(ctx context.Context, who auth.Principal, run uuid.UUID) (bool, error) {
	reads, seen, err := r.read(ctx, who, run)

	return err == nil && len(seen) == len(reads), err
}

// read returns the snapshots that a run has read so far, and the paths of those datasets that the reader may see.
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

// names returns the current paths of those datasets that the reader may see.
func (r *Runs) names(ctx context.Context, who auth.Principal, reads []query.Read) ([]catalog.Path, error) {
	targets := make([]auth.Target, len(reads))
	for i, read := range reads {
		targets[i] = auth.Target{Kind: "dataset", Account: read.Account, ID: read.ID}
	}

	return r.Catalog.Paths(ctx, who, targets)
}

// complete returns a stored step with the rows that are sent to clients.
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
			break // the last line may be incomplete
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

// Pinned returns the snapshots that a run of the caller has read, by dataset.
//
// Faults: NotFound.
func (r *Runs) Pinned(ctx context.Context, who auth.Principal, id uuid.UUID) (map[uuid.UUID]uuid.UUID, error) {
	if _, err := r.own(ctx, who, id); err != nil {
		return nil, err
	}

	pinned := map[uuid.UUID]uuid.UUID{}

	return pinned, r.DB.Do(ctx, func(q postgres.Querier) error {
		reads, err := selectPinned(ctx, q, who.Account, id)
		for _, read := range reads {
			pinned[read.ID] = read.Snapshot
		}

		return err
	})
}

// Await waits until a run of the caller ends or waits for a choice.
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
		if err != nil || events[len(events)-1].Rests() {
			return err
		}
	}
}
