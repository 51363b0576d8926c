package query

import (
	"context"
	"errors"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	cleanBatch = 200
	// stillUsed is how long after its expiry an export may still be downloaded by its address, or written.
	stillUsed = 2 * addressTime
)

// clean removes expired exports and results of long statements, as recorded in the database. It is safe to interrupt: a row
// is deleted after its object.
func (q *Query) clean(ctx context.Context, _ job.Lease) error {
	return errors.Join(q.cleanExports(ctx), q.expireLongs(ctx), q.removePieces(ctx))
}

func (q *Query) cleanExports(ctx context.Context) error {
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

// expireLongs deletes long statements that have expired.
func (q *Query) expireLongs(ctx context.Context) error {
	return q.deleteLongs(ctx, func(db postgres.Querier) ([]endedLong, error) { return expiredLongs(ctx, db, q.Now(), cleanBatch) })
}

// deleteLongs deletes the long statements that next returns, until it returns none.
func (q *Query) deleteLongs(ctx context.Context, next func(db postgres.Querier) ([]endedLong, error)) error {
	for {
		var due []endedLong

		err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
			due, err = next(db)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		for _, one := range due {
			if err := q.DB.InTx(ctx, func(tx postgres.Tx) error { return q.deleteLongTx(ctx, tx, one.account, one.id, one.hasEnded) }); err != nil {
				return err
			}
		}
	}
}

// removePieces removes the objects of deleted long statements and of attempts that did not complete.
func (q *Query) removePieces(ctx context.Context) error {
	for {
		var due []string

		err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
			due, err = removablePieces(ctx, db, q.Now(), cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		for _, key := range due {
			if err := q.Exports.Store.DeleteBegun(ctx, key); err != nil {
				return err
			}

			if err := q.DB.Do(ctx, func(db postgres.Querier) error { return deletePiece(ctx, db, key) }); err != nil {
				return err
			}
		}
	}
}

// ForgetTx inserts the job that deletes the long statements that read a permanently deleted dataset.
func (q *Query) ForgetTx(ctx context.Context, tx postgres.Tx, t lake.Table) error {
	return q.Exports.Jobs().InsertTx(ctx, tx, EraseArgs{Account: t.Account, Dataset: t.Dataset}, eraseOpts())
}

func (q *Query) erase(ctx context.Context, args EraseArgs) error {
	return q.deleteLongs(ctx, func(db postgres.Querier) ([]endedLong, error) {
		return selectReaders(ctx, db, args.Account, args.Dataset, cleanBatch)
	})
}

// Stored describes the objects that the store should have for exports and long statements.
func Stored(db *postgres.DB) []blob.Rows { return []blob.Rows{storedExports(db), storedPieces(db)} }

// Inspect compares the rows of all exports and results with the objects in the store. It changes nothing.
func (q *Query) Inspect(ctx context.Context) (blob.Inspection, error) {
	found, err := q.Exports.Store.Inspect(ctx, storedExports(q.DB))
	if err != nil {
		return found, err
	}

	results, err := q.Exports.Store.Inspect(ctx, storedPieces(q.DB))
	found.Lost, found.Orphans = append(found.Lost, results.Lost...), append(found.Orphans, results.Orphans...)

	return found, err
}
