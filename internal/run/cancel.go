package run

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// ending describes how a run ends.
type ending struct {
	status  Status
	kind    agent.Kind
	result  []byte
	failure Failure
	at      time.Time
}

// Cancel cancels a run of the caller. Cancelling a cancelled run again returns the same run.
//
// Faults: NotFound, InvalidState if the run ended in another way.
func (r *Runs) Cancel(ctx context.Context, who auth.Principal, id uuid.UUID) (Run, error) {
	run, err := r.own(ctx, who, id)
	if err != nil {
		return Run{}, err
	}

	err = r.DB.InTx(ctx, func(tx postgres.Tx) error {
		if _, err := endRun(ctx, tx, who.Account, id, ending{status: Cancelled, kind: EventCancelled, at: r.now()}); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, r.now(), "run.cancel", run.audit()))
	})

	switch {
	case err == nil:
		r.tail.hurry()
	case !errors.Is(err, errEnded):
		return Run{}, err
	}

	run, err = r.own(ctx, who, id)
	if err == nil && run.Status != Cancelled {
		err = fault.New(fault.InvalidState, "The run has already ended with the status "+string(run.Status)+".")
	}

	return run, err
}

const expireAtOnce = 100

// expire ends the runs whose deadline has passed.
func (r *Runs) expire(ctx context.Context, _ job.Lease) error {
	for {
		var late []Args

		err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
			late, err = selectLate(ctx, q, r.now(), expireAtOnce)

			return err
		})
		if err != nil || len(late) == 0 {
			return err
		}

		for _, one := range late {
			if err := r.DB.InTx(ctx, func(tx postgres.Tx) error { return r.expireTx(ctx, tx, one) }); notEnded(err) != nil {
				return err
			}
		}

		r.tail.hurry()
	}
}

// expireTx ends a run whose deadline has passed. The run may have got another deadline since it was selected, by a choice.
func (r *Runs) expireTx(ctx context.Context, tx postgres.Tx, one Args) error {
	run, err := lockRun(ctx, tx, one.Account, one.Run)
	if err != nil || run == nil || run.Status.ended() || !run.DeadlineAt.Before(r.now()) {
		return err
	}

	e := ending{
		status: Expired, kind: EventFailed, at: r.now(),
		failure: Failure{Code: fault.Timeout, Message: "The question reached its time limit. Ask for less, or ask again."},
	}
	if run.Status == Waiting {
		e.failure.Message = "No option was chosen within 24 hours. Ask again."
	}

	_, err = endRun(ctx, tx, one.Account, one.Run, e)

	return err
}

// Delete deletes a run of the caller with its events and results, and the conversation if it has no other run.
//
// Faults: NotFound, Forbidden, Conflict while the run is in progress.
func (r *Runs) Delete(ctx context.Context, who auth.Principal, id uuid.UUID) error {
	found, err := r.own(ctx, who, id)
	if err != nil {
		return err
	}

	if err := mayChange(who); err != nil {
		return err
	}

	return r.DB.InTx(ctx, func(tx postgres.Tx) error {
		conversation, err := lockConversation(ctx, tx, who.Account, found.Conversation)
		if err != nil {
			return err
		}

		run, err := lockRun(ctx, tx, who.Account, id)

		switch {
		case err != nil:
			return err
		case run == nil || conversation == nil:
			return fault.Absent()
		case run.Status == Running:
			return fault.New(fault.Conflict, "The run is still in progress. Cancel it first.")
		}

		if err := r.removeTx(ctx, tx, *conversation, []uuid.UUID{id}); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, r.now(), "run.delete", run.audit()))
	})
}
