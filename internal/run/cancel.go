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

// ending is how a run ends.
type ending struct {
	status  Status
	kind    agent.Kind
	result  []byte
	failure failed
	at      time.Time
}

// Cancel ends a run of the caller's. A repeat gives the same.
//
// Faults: NotFound, InvalidState if it ended otherwise.
func (r *Runs) Cancel(ctx context.Context, who auth.Principal, id uuid.UUID) (Run, error) {
	run, err := r.own(ctx, who, id)
	if err != nil {
		return Run{}, err
	}

	var last Event

	err = r.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		if last, err = endRun(ctx, tx, who.Account, id, ending{status: Cancelled, kind: kindCancelled, at: r.now()}); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, r.now(), "run.cancel", run.audit()))
	})

	switch {
	case err == nil:
		r.tail.tell(run.key(), last)
	case !errors.Is(err, errEnded):
		return Run{}, err
	}

	run, err = r.own(ctx, who, id)
	if err == nil && run.Status != Cancelled {
		err = fault.New(fault.InvalidState, "The run has ended: it is "+string(run.Status)+".")
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

		e := ending{
			status: Expired, kind: kindFailed, at: r.now(),
			failure: failed{Code: fault.Timeout, Message: "The question took longer than a run may take. Ask for less, or ask again."},
		}

		for _, one := range late {
			if err := r.DB.InTx(ctx, func(tx postgres.Tx) error {
				_, err := endRun(ctx, tx, one.Account, one.Run, e)

				return err
			}); err != nil && !errors.Is(err, errEnded) {
				return err
			}
		}

		r.tail.hurry()
	}
}

// Delete removes a run of the caller's with everything that came of it, and its conversation if it has no other.
//
// Faults: NotFound, Forbidden, Conflict while it is going on.
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
			return fault.New(fault.Conflict, "The run is still going on. Cancel it first.")
		}

		if err := r.removeTx(ctx, tx, *conversation, []uuid.UUID{id}); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, r.now(), "run.delete", run.audit()))
	})
}
