package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// choiceTime is how long a run waits for a choice.
const choiceTime = 24 * time.Hour

// Choose chooses an option of a run that waits. The run goes on with the rights of the caller, from the event with the
// number LastChosen().Event on. Of several callers at the same time one succeeds. Choosing the same option again returns
// the same run.
//
// Faults: NotFound; Conflict if the run does not wait, or if the caller may no longer see what the options are about;
// ValidationFailed for an option that does not exist; RateLimited if the account has too many runs in progress.
func (r *Runs) Choose(ctx context.Context, who auth.Principal, id uuid.UUID, option int) (made Run, err error) {
	run, err := r.own(ctx, who, id)
	if err != nil {
		return Run{}, err
	}

	visible, err := r.visible(ctx, who, id)
	if err != nil {
		return Run{}, err
	}

	if run.Status == Waiting && !visible {
		return Run{}, fault.New(fault.Conflict, "You may no longer see the data that the options are about. Ask again.")
	}

	err = r.DB.InTx(ctx, func(tx postgres.Tx) error {
		running, err := lockRunning(ctx, tx, who.Account)
		if err != nil {
			return err
		}

		found, err := lockRun(ctx, tx, who.Account, id)

		switch {
		case err != nil:
			return err
		case found == nil:
			return fault.Absent()
		case found.isChosen(option):
			made = *found

			return nil
		}

		chosen, err := found.option(option, r.now())
		if err != nil {
			return err
		}

		if running >= r.MaxPerUser {
			return r.tooMany(running)
		}

		if err := r.rememberTx(ctx, tx, who, *found, option); err != nil {
			return err
		}

		found.caller = who
		found.Question.Chosen = append(found.Question.Chosen, chosen)
		made, err = r.continueTx(ctx, tx, *found, chosen)

		return err
	})
	if err == nil {
		r.Jobs().Wake(Queue)
		r.tail.hurry()
	}

	return made, err
}

// rememberTx stores what the choice says about words of the question, so that the caller is not asked again.
func (r *Runs) rememberTx(ctx context.Context, tx postgres.Tx, who auth.Principal, run Run, option int) error {
	chosen, others := run.stored.Clarification.Decided(option)

	for i, one := range slices.Concat(others, chosen) {
		d, err := r.Catalog.Allow(ctx, tx, who, auth.Viewer, run.Question.Dataset(one.Dataset))

		switch said := (catalog.Remembered{Words: one.Words, Said: one.Said, Kind: one.As, Column: one.Column}); {
		case fault.Is(err, fault.NotFound): // renamed since
			continue
		case err != nil:
			return err
		case i < len(others):
			err = r.Catalog.ForgetTx(ctx, tx, who, d, said)
		default:
			err = r.Catalog.RememberTx(ctx, tx, who, d, said)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// isChosen reports whether the option is the last one that was chosen, and the run has not asked again since.
func (r Run) isChosen(option int) bool {
	last := r.Question.LastChosen()

	return r.Status != Waiting && last != nil && last.Number == option
}

// option returns the choice of an option of a run that waits.
func (r Run) option(number int, now time.Time) (agent.Chosen, error) {
	if r.Status != Waiting || r.DeadlineAt.Before(now) {
		return agent.Chosen{}, r.notWaiting()
	}

	choice := r.stored.Clarification

	chosen, found := choice.Option(number)
	if !found {
		return agent.Chosen{}, fault.Invalid("option", rangeOf(len(choice.Options)))
	}

	return agent.Chosen{Option: chosen, Asked: choice.Question, Event: r.lastSeq + 1}, nil
}

func rangeOf(options int) string {
	if options == 1 {
		return "must be 1, because the run has one option"
	}

	return fmt.Sprintf("must be a number from 1 to %d", options)
}

// notWaiting returns the fault for a choice of a run that does not wait.
func (r Run) notWaiting() error {
	last := r.Question.LastChosen()

	switch {
	case r.Status == Waiting:
		return fault.New(fault.Conflict, "The time for a choice is over. Ask again.")
	case last != nil:
		return fault.New(fault.Conflict, fmt.Sprintf("Option %d was chosen before. Ask again to choose another one.", last.Number))
	default:
		return fault.New(fault.Conflict, "The run does not wait for a choice. Its status is "+string(r.Status)+".")
	}
}

// continueTx records the choice with its event, its audit entry and the job that goes on.
func (r *Runs) continueTx(ctx context.Context, tx postgres.Tx, run Run, chosen agent.Chosen) (Run, error) {
	now := r.now()
	run.Status, run.BeganAt, run.DeadlineAt = Running, now, now.Add(r.Timeout)

	body, err := encode(agent.OptionChosen{Number: chosen.Number, Interpretation: chosen.Interpretation})
	if err != nil {
		return run, err
	}

	event, err := continueRun(ctx, tx, run, agent.Event{Kind: EventChosen, Body: body}, now)
	if err != nil {
		return run, err
	}

	run.lastSeq, run.stored = event.Seq, nil

	if err := quoteReads(ctx, tx, run); err != nil {
		return run, err
	}

	if err := audit.WriteTx(ctx, tx, run.caller.Audit(run.Account, now, "run.choose", run.audit())); err != nil {
		return run, err
	}

	return run, r.Jobs().InsertTx(ctx, tx, run.args(), run.opts())
}

// tooMany returns the fault for a question above the limit of an account.
func (r *Runs) tooMany(running int) error {
	limited := fault.New(fault.RateLimited, fmt.Sprintf("You have %d questions in progress, which is the maximum. Wait for one to finish, or cancel one.", running))
	limited.RetryAfter = retryAfter

	return limited
}

// sinceChoice returns the events after the last choice, and all events if there was none.
func sinceChoice(events []Event) []Event {
	since := 0

	for i, e := range events {
		if e.Kind == EventChosen {
			since = i + 1
		}
	}

	return events[since:]
}

// waitingBody returns the body of the event that a run waits. The log keeps it, because the row of the run has the result
// only until the choice.
func waitingBody(kept storedResult) (json.RawMessage, error) {
	result := kept.Result
	result.Steps = make([]agent.Step, len(kept.Steps))

	for i, step := range kept.Steps {
		result.Steps[i] = step.Step
	}

	return encode(Completion{Result: &result})
}
