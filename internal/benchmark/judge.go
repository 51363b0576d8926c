package benchmark

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/verified"
)

// judge compares the answer with the rows of the verified statement.
func (s *session) judge(ctx context.Context, open *Result, of verified.Question) error {
	answered, err := s.Runs.Get(ctx, s.is.caller, open.Run)
	if fault.Is(err, fault.NotFound) {
		open.Outcome, open.Detail = FailedToTell, "The run was deleted before its answer was compared."

		return nil
	}

	if err != nil {
		return err
	}

	switch result := answered.Result; {
	case result == nil && answered.Error != nil:
		open.Outcome, open.Detail = FailedToTell, "The run failed: "+string(answered.Error.Code)+"."
	case result == nil:
		open.Outcome, open.Detail = FailedToTell, "The run ended as "+string(answered.Status)+"."
	case len(result.Steps) == 1 && result.Outcome != agent.Clarification:
		return s.compare(ctx, open, of, result.Steps[0])
	case result.Outcome == agent.Clarification:
		open.Outcome = AskedBack
	case result.Outcome == agent.Withheld:
		open.Outcome, open.Detail = FailedToTell, "The answer may no longer be read."
	default:
		open.Outcome, open.Detail = Refused, "The outcome of the run is "+string(result.Outcome)+"."
	}

	return nil
}

// compare compares the rows of an answer with those of the verified statement on the same snapshots.
func (s *session) compare(ctx context.Context, open *Result, of verified.Question, step agent.Step) error {
	pinned, err := s.Runs.Pinned(ctx, s.is.caller, open.Run)
	if err != nil {
		return err
	}

	gold, err := s.expected(ctx, of, pinned, open)
	if err != nil || open.Outcome != "" {
		return err
	}

	lines, err := s.Runs.StepLines(ctx, s.is.caller, open.Run, step.Index)
	if err != nil {
		return err
	}
	defer lines.Close()

	got, err := readTable(lines.Columns, lines.Next)
	open.Rows = &step.RowCount

	switch {
	case errors.Is(err, errLarge):
		open.Outcome, open.Detail = FailedToTell, tooMany
	case err != nil:
		return err
	default:
		open.Outcome, open.Detail = compare(got, gold)
	}

	return nil
}

// expected returns the rows of the verified statement. It sets the outcome if there are none to compare with.
func (s *session) expected(ctx context.Context, of verified.Question, pinned map[uuid.UUID]uuid.UUID, open *Result) (gold table, err error) {
	result, err := s.Verified.Rows(ctx, s.is.caller, s.at, of, pinned)

	if changed, ok := errors.AsType[*query.ChangedError](err); ok {
		open.Outcome, open.Detail = FailedToTell, "The verified statement no longer fits its data."

		return gold, s.Verified.Suspend(ctx, s.is.caller, of, changed.Reason)
	}

	if err != nil {
		failed := fault.From(err)
		if slices.Contains([]fault.Code{fault.Unavailable, fault.RateLimited, fault.Timeout, fault.Internal, fault.Unauthorized}, failed.Code) {
			return gold, err
		}

		open.Outcome, open.Detail = FailedToTell, "The verified statement failed: "+string(failed.Code)+"."

		return gold, nil
	}
	defer result.Close()

	snapshots := map[uuid.UUID]uuid.UUID{}
	for _, read := range result.Reads {
		snapshots[read.ID] = read.Snapshot
	}

	gold, err = readTable(result.Columns, result.Bare)
	if errors.Is(err, errLarge) {
		open.Outcome, open.Detail = FailedToTell, tooMany

		return gold, nil
	}

	if err != nil {
		return gold, err
	}

	count, cut := result.End()
	if cut != "" {
		open.Outcome, open.Detail = FailedToTell, tooMany
	}

	gold.ordered, open.Expected, open.data = result.Ordered, &count, dataOf(snapshots)

	return gold, nil
}
