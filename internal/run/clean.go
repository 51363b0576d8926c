package run

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	weeksAhead = 2
	// eventsKept is the minimum retention of events after a run. They are dropped by whole weeks.
	eventsKept = 7 * 24 * time.Hour
	cleanBatch = 200
)

// Prepare creates the partitions of events for this week and the next weeksAhead weeks. Any replica may call it at any
// time.
func Prepare(ctx context.Context, db *postgres.DB, now time.Time) error {
	var problems []error

	for i := range weeksAhead + 1 {
		problems = append(problems, db.InTx(ctx, func(tx postgres.Tx) error {
			return makePartition(ctx, tx, now.UTC().AddDate(0, 0, 7*i))
		}))
	}

	return errors.Join(problems...)
}

// clean drops the events of old weeks and removes expired runs and objects, as recorded in the database. It is safe to
// interrupt; a failure of one cleanup does not stop the others.
func (r *Runs) clean(ctx context.Context, _ job.Lease) error {
	before := r.now().Add(-eventsKept - r.Timeout - choiceTime)
	dropped := r.DB.InTx(ctx, func(tx postgres.Tx) error { return dropEvents(ctx, tx, before) })

	return errors.Join(dropped, r.removeOld(ctx), r.removeObjects(ctx))
}

// turn identifies a run and its conversation.
type turn struct {
	Account      uuid.UUID
	Conversation uuid.UUID
	Run          uuid.UUID
}

// removeOld removes runs whose retention is over, each in a transaction on the account that asked.
func (r *Runs) removeOld(ctx context.Context) error {
	if r.Retention == 0 {
		return nil
	}

	for {
		var old []turn

		err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
			old, err = selectOld(ctx, q, r.now().Add(-r.Retention), cleanBatch)

			return err
		})
		if err != nil || len(old) == 0 {
			return err
		}

		for _, one := range old {
			err := r.DB.InTx(ctx, func(tx postgres.Tx) error {
				conversation, err := lockConversation(ctx, tx, one.Account, one.Conversation)
				if err != nil {
					return err
				}

				if conversation == nil { // deleted since selectOld
					return r.deleteTx(ctx, tx, one.Account, []uuid.UUID{one.Run})
				}

				return r.removeTx(ctx, tx, *conversation, []uuid.UUID{one.Run})
			})
			if err != nil {
				return err
			}
		}
	}
}

// removeObjects removes objects whose removal is due.
func (r *Runs) removeObjects(ctx context.Context) error {
	for {
		var due []removable

		err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
			due, err = claimObjects(ctx, q, r.now(), cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		for _, one := range due {
			if err := r.Store.DeleteBegun(ctx, one.Key); err != nil {
				return err
			}

			if err := r.DB.Do(ctx, func(q postgres.Querier) error { return deleteObject(ctx, q, one) }); err != nil {
				return err
			}
		}
	}
}

// Stored describes the objects that the store should have for runs.
func Stored(db *postgres.DB) blob.Rows { return stored(db) }

// Inspect compares the recorded objects of steps with the objects in the store. It changes nothing.
func (r *Runs) Inspect(ctx context.Context) (blob.Inspection, error) {
	return r.Store.Inspect(ctx, stored(r.DB))
}

// ForgetTx inserts the job that erases the rows and answers that runs read from a permanently deleted dataset.
func (r *Runs) ForgetTx(ctx context.Context, tx postgres.Tx, t lake.Table) error {
	return r.Jobs().InsertTx(ctx, tx, EraseArgs{Account: t.Account, Dataset: t.Dataset}, eraseOpts())
}

// erase removes rows and answers from the runs that read a dataset, each in a transaction on the account that asked. It is
// safe to interrupt.
func (r *Runs) erase(ctx context.Context, args EraseArgs) error {
	for {
		var readers []Args

		err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
			readers, err = selectReaders(ctx, q, args.Account, args.Dataset, cleanBatch)

			return err
		})
		if err != nil || len(readers) == 0 {
			return err
		}

		withheld, err := encode(storedResult{Result: agent.Result{Outcome: agent.Withheld}, Steps: []storedStep{}})
		if err != nil {
			return err
		}

		// A run that is still in progress must not continue.
		gone := ending{status: Failed, kind: EventFailed, at: r.now(), failure: Failure{Code: fault.NotFound, Message: hiddenMessage}}

		for _, one := range readers {
			if err := r.DB.InTx(ctx, func(tx postgres.Tx) error {
				if _, err := endRun(ctx, tx, one.Account, one.Run, gone); err != nil && !errors.Is(err, errEnded) {
					return err
				}

				return eraseRun(ctx, tx, one, args.Dataset, withheld, r.now())
			}); err != nil {
				return err
			}
		}
	}
}

type removable struct {
	Account uuid.UUID
	Run     uuid.UUID
	Key     string
}
