package query

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	// exportEnds is how long a worker may still write the object of an export after the export was deleted.
	exportEnds = time.Minute
	eraseAgain = time.Second
)

// EraseDataset removes all exports of a dataset and the results of long statements that read it, with the statements. It is safe to interrupt.
func (q *Query) EraseDataset(ctx context.Context, t lake.Table) error {
	if err := q.erase(ctx, EraseArgs{Account: t.Account, Dataset: t.Dataset}); err != nil {
		return err
	}

	if err := q.removePieces(ctx); err != nil {
		return err
	}

	err := q.DB.Do(ctx, func(db postgres.Querier) error {
		return eraseExports(ctx, db, t, q.Now().Add(-stillUsed), q.Now().Add(exportEnds-stillUsed))
	})
	if err != nil {
		return err
	}

	for {
		if err := q.cleanExports(ctx); err != nil {
			return err
		}

		var left bool

		if err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
			left, err = hasExports(ctx, db, t)

			return err
		}); err != nil || !left {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(eraseAgain):
		}
	}
}

// EraseAccount removes all long statements of an account with their results. It is safe to interrupt.
func (q *Query) EraseAccount(ctx context.Context, account uuid.UUID) error {
	err := q.deleteLongs(ctx, func(db postgres.Querier) ([]endedLong, error) { return selectLongsOf(ctx, db, account, cleanBatch) })
	if err != nil {
		return err
	}

	return q.removePieces(ctx)
}
