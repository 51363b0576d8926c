package lake

import (
	"context"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	cleanBatch = 200
	cleaners   = 8
)

// RemoveTableTx marks the table of a deleted dataset. Commits to it fail from then on; its objects are removed after
// the grace period.
func RemoveTableTx(ctx context.Context, tx postgres.Tx, t Table, at time.Time) error {
	return removeTable(ctx, tx, t, at)
}

// KeepTableTx undoes RemoveTableTx. NotFound if the removal of the table has begun.
func KeepTableTx(ctx context.Context, tx postgres.Tx, t Table) error {
	tooLate, err := keepTable(ctx, tx, t)
	if err == nil && tooLate {
		err = fault.Absent()
	}

	return err
}

// Kept returns those of the datasets of an account whose table exists and is not being removed.
func Kept(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) ([]uuid.UUID, error) {
	return selectKept(ctx, q, account, datasets)
}

// Sizes returns the sizes of the given snapshots of an account's datasets, by snapshot: the bytes of their data files.
func Sizes(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets, snapshots []uuid.UUID) (map[uuid.UUID]int64, error) {
	return selectSizes(ctx, q, account, datasets, snapshots)
}

// MoveTableTx moves a table to another dataset, which may belong to another account. No object moves, because keys do
// not depend on the owner.
func MoveTableTx(ctx context.Context, tx postgres.Tx, from, to Table) error {
	return moveTable(ctx, tx, from, to)
}

// Clean removes objects that are due for removal and tables whose grace period is over. It works from rows. Several
// processes may run it at once, and it is safe to interrupt: a row is deleted after its object. gone runs in the
// transaction that deletes the last row of a removed table, also if the table never had a snapshot. before runs
// earlier, when the table can no longer be restored and no connection is held; it may run more than once.
func (l *Lake) Clean(ctx context.Context, before func(t Table) error, gone func(tx postgres.Tx, t Table) error) error {
	for {
		ended, err := l.cleanTables(ctx, before, gone)
		if err != nil || ended == 0 {
			return err
		}
	}
}

// cleanTables removes some tables whose grace period is over, and every object that is due. It returns the number of
// removed tables.
func (l *Lake) cleanTables(ctx context.Context, before func(t Table) error, gone func(tx postgres.Tx, t Table) error) (ended int, err error) {
	tables, err := l.beginRemovals(ctx)
	if err != nil {
		return 0, err
	}

	if err := l.cleanFiles(ctx); err != nil {
		return 0, err
	}

	for _, t := range tables {
		var isGone bool

		if err := before(t); err != nil {
			return ended, err
		}

		err := l.db.InTx(ctx, func(tx postgres.Tx) (err error) {
			if isGone, err = endRemoval(ctx, tx, t); err != nil || !isGone {
				return err
			}

			return gone(tx, t)
		})
		if err != nil {
			return ended, err
		}

		if isGone {
			ended++
		}
	}

	return ended, nil
}

// beginRemovals marks some tables whose grace period is over. From then on they cannot be restored.
func (l *Lake) beginRemovals(ctx context.Context) (begun []Table, err error) {
	var (
		tables []Table
		until  = l.now().Add(-l.deleteGrace)
	)

	err = l.db.Do(ctx, func(q querier) (err error) {
		tables, err = selectRemoved(ctx, q, until, cleanBatch)

		return err
	})
	if err != nil {
		return nil, err
	}

	for _, t := range tables {
		var removing bool

		err := l.db.InTx(ctx, func(tx postgres.Tx) (err error) {
			removing, err = beginRemoval(ctx, tx, t, until, l.now())

			return err
		})
		if err != nil {
			return nil, err
		}

		if removing {
			begun = append(begun, t)
		}
	}

	return begun, nil
}

// cleanFiles claims rows before it removes objects, so that a commit that still uses one of the objects fails.
func (l *Lake) cleanFiles(ctx context.Context) error {
	for {
		var due []removable

		err := l.db.Do(ctx, func(q querier) (err error) {
			due, err = claimRemovable(ctx, q, l.now(), cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(cleaners)

		for _, file := range due {
			group.Go(func() error { return fault.Try(func() error { return l.removeFile(ctx, file) }) })
		}

		if err := group.Wait(); err != nil {
			return err
		}
	}
}

func (l *Lake) removeFile(ctx context.Context, file removable) error {
	remove := l.store.Delete
	if file.incomplete {
		remove = l.store.DeleteBegun
	}

	if err := remove(ctx, file.key); err != nil {
		return err
	}

	return l.db.Do(ctx, func(q querier) error { return deleteFile(ctx, q, file) })
}

// Stored describes the objects that the store should have for tables.
func Stored(db *postgres.DB) blob.Rows { return stored(db) }

// Inspect compares all rows with all objects of the store. It changes nothing.
func (l *Lake) Inspect(ctx context.Context) (blob.Inspection, error) {
	return l.store.Inspect(ctx, stored(l.db))
}
