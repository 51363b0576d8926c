package run

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	weeksAhead = 2
	// eventsKept is how long events stay after a run: at least seven days, and until its week is over.
	eventsKept = 7 * 24 * time.Hour
	cleanBatch = 200
)

// Prepare makes the partitions of this week and the coming ones. It is safe to call at any time, by any replica.
func Prepare(ctx context.Context, db *postgres.DB, now time.Time) error {
	var problems []error

	for i := range weeksAhead + 1 {
		problems = append(problems, db.InTx(ctx, func(tx postgres.Tx) error {
			return makePartition(ctx, tx, now.UTC().AddDate(0, 0, 7*i))
		}))
	}

	return errors.Join(problems...)
}

// clean drops the events of weeks long ago, and removes objects whose time has come, by rows.
func (r *Runs) clean(ctx context.Context, _ job.Lease) error {
	before := r.now().Add(-eventsKept - r.Time)
	if err := r.DB.InTx(ctx, func(tx postgres.Tx) error { return dropEvents(ctx, tx, before) }); err != nil {
		return err
	}

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

// Inspect compares all rows of steps with all of the store, and changes nothing.
func (r *Runs) Inspect(ctx context.Context) (blob.Inspection, error) {
	return r.Store.Inspect(ctx, stored(r.DB))
}

// ForgetTx lets what was made of a dataset that is gone for good be erased.
func (r *Runs) ForgetTx(ctx context.Context, tx postgres.Tx, t lake.Table) error {
	return r.Jobs().InsertTx(ctx, tx, EraseArgs{Account: t.Account, Dataset: t.Dataset}, eraseOpts())
}

// erase takes rows and answers out of the runs that read a dataset, in transactions of the askers' accounts. It can be
// cut off anywhere.
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

		for _, one := range readers {
			if err := r.DB.InTx(ctx, func(tx postgres.Tx) error {
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
