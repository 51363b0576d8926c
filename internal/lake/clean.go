package lake

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	cleanBatch = 200
	cleaners   = 8
)

// RemoveTableTx marks the table of a dataset that is deleted. From then on nobody commits to it; its objects go
// after the grace.
func RemoveTableTx(ctx context.Context, tx postgres.Tx, t Table, at time.Time) error {
	return removeTable(ctx, tx, t, at)
}

// KeepTableTx undoes RemoveTableTx. NotFound: it is too late.
func KeepTableTx(ctx context.Context, tx postgres.Tx, t Table) error {
	tooLate, err := keepTable(ctx, tx, t)
	if err == nil && tooLate {
		err = fault.Absent()
	}

	return err
}

// MoveTableTx hands a table over to another dataset, also of another account. No object moves: keys tell nothing
// of who owns them.
func MoveTableTx(ctx context.Context, tx postgres.Tx, from, to Table) error {
	return moveTable(ctx, tx, from, to)
}

// Clean removes the objects whose time has come, and tables whose grace is over, by rows. Several may do so at
// once, and it can be cut off anywhere: a row goes after its object. What is given as gone runs in the transaction
// in which the last row of a removed table goes, also for one that never had a snapshot. What is given as before runs
// ahead of that, perhaps more than once, when the table cannot come back any more; no connection is held then.
func (l *Lake) Clean(ctx context.Context, before func(t Table) error, gone func(tx postgres.Tx, t Table) error) error {
	for {
		ended, err := l.cleanTables(ctx, before, gone)
		if err != nil || ended == 0 {
			return err
		}
	}
}

// cleanTables removes some tables whose grace is over, and every object whose time has come. It returns how many
// tables are gone.
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

// beginRemovals marks some tables whose grace is over: from then on they cannot come back.
func (l *Lake) beginRemovals(ctx context.Context) (begun []Table, err error) {
	var (
		tables []Table
		until  = l.now().Add(-l.grace)
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

// cleanFiles claims rows first: a commit that still wants one of them finds it claimed, and fails.
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

// Inspect compares all rows with all of the store, and changes nothing.
func (l *Lake) Inspect(ctx context.Context) (blob.Inspection, error) {
	return l.store.Inspect(ctx, stored(l.db))
}
