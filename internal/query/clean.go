package query

import (
	"context"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

const (
	cleanBatch = 200
	// stillUsed is how long after its expiry an export may still be downloaded by its address, or written.
	stillUsed = 2 * addressTime
)

// clean removes expired exports, as recorded in the database. It is safe to interrupt: a row is deleted after its object.
func (q *Query) clean(ctx context.Context, _ job.Lease) error {
	for {
		var due []removable

		err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
			due, err = claimExpired(ctx, db, q.Now().Add(-stillUsed), cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		for _, one := range due {
			if err := q.remove(ctx, one); err != nil {
				return err
			}
		}
	}
}

func (q *Query) remove(ctx context.Context, one removable) error {
	remove := q.Exports.Store.Delete
	if one.incomplete {
		remove = q.Exports.Store.DeleteBegun
	}

	if err := remove(ctx, one.key); err != nil {
		return err
	}

	return q.DB.Do(ctx, func(db postgres.Querier) error { return deleteExport(ctx, db, one) })
}

// Inspect compares the rows of all exports with the objects in the store. It changes nothing.
func (q *Query) Inspect(ctx context.Context) (blob.Inspection, error) {
	return q.Exports.Store.Inspect(ctx, storedExports(q.DB))
}
