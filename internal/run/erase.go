package run

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// flushTime is how long the worker of a run that was ended from outside may still send spans of it.
const flushTime = 2 * time.Second

// EraseReaders deletes the runs that read a dataset, with their questions and traces: a question can quote a value. It is safe to interrupt.
func (r *Runs) EraseReaders(ctx context.Context, t lake.Table) error {
	return r.eraseAll(ctx, func(q postgres.Querier) ([]Args, error) {
		return selectReaders(ctx, q, t.Account, t.Dataset, cleanBatch)
	})
}

// EraseAccount deletes all runs of an account, with their conversations and traces. It is safe to interrupt.
func (r *Runs) EraseAccount(ctx context.Context, account uuid.UUID) error {
	return r.eraseAll(ctx, func(q postgres.Querier) ([]Args, error) { return selectRunsOf(ctx, q, account, cleanBatch) })
}

// eraseAll erases the runs that next returns, until it returns none, and then their objects.
func (r *Runs) eraseAll(ctx context.Context, next func(q postgres.Querier) ([]Args, error)) error {
	for {
		var runs []Args

		err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
			runs, err = next(q)

			return err
		})
		if err != nil {
			return err
		}

		if len(runs) == 0 {
			return r.removeObjects(ctx)
		}

		for _, one := range runs {
			if err := r.eraseOne(ctx, one); err != nil {
				return err
			}
		}
	}
}

// eraseOne ends a run if it is in progress, removes its trace, and deletes it. The trace goes first, because its id is in the run.
func (r *Runs) eraseOne(ctx context.Context, one Args) error {
	var (
		found   *erasable
		running = true
		gone    = ending{status: Failed, kind: EventFailed, at: r.now(), failure: Failure{Code: fault.NotFound, Message: hiddenMessage}}
	)

	err := r.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		if found, err = selectErasable(ctx, tx, one); err != nil {
			return err
		}

		if _, err = endRun(ctx, tx, one.Account, one.Run, gone); errors.Is(err, errEnded) {
			running, err = false, nil
		}

		return err
	})
	if err != nil {
		return err
	}

	if found == nil { // deleted meanwhile; only the record of what it read is left
		return r.DB.InTx(ctx, func(tx postgres.Tx) error { return r.deleteTx(ctx, tx, one.Account, []uuid.UUID{one.Run}) })
	}

	if running {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(flushTime):
		}
	}

	if err := r.Tracing.Erase(ctx, [16]byte(found.Trace)); err != nil {
		return err
	}

	return r.DB.InTx(ctx, func(tx postgres.Tx) error {
		conversation, err := lockConversation(ctx, tx, one.Account, found.Conversation)
		if err != nil {
			return err
		}

		if conversation == nil {
			return r.deleteTx(ctx, tx, one.Account, []uuid.UUID{one.Run})
		}

		return r.removeTx(ctx, tx, *conversation, []uuid.UUID{one.Run})
	})
}

// erasable is what is needed to erase a run.
type erasable struct {
	Conversation uuid.UUID
	Trace        []byte
}
