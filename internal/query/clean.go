package query

import (
	"context"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

const (
	cleanBatch = 200
	// stillUsed is how long after its time somebody may have the address of a file, or write it.
	stillUsed = 2 * addressTime
)

// clean removes exports whose time is over, by rows. It can be cut off anywhere: a row goes after its object.
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

// Inspect compares all exports with all of the store, and changes nothing.
func (q *Query) Inspect(ctx context.Context) (blob.Inspection, error) {
	return q.Exports.Store.Inspect(ctx, storedExports(q.DB))
}
