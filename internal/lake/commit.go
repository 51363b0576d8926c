package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	commitTries = 12
	// commitTime is how long a commit may take after its first object is recorded before its objects count as
	// abandoned.
	commitTime = 15 * time.Minute
	// patience is how long a commit tries to determine its outcome when the answer of the database was lost.
	patience = 20 * time.Second
)

type querier = postgres.Querier

// errLost reports that another commit came first.
var errLost = errors.New("another commit came first")

// Commit makes one snapshot. The transaction that makes the snapshot current calls also first, so that the caller's
// rows are always locked before the rows of the lake. also receives the new snapshot. If also fails, nothing changes.
// also may run several times, each time in a new transaction, but takes effect at most once.
//
// If there is nothing to commit (appending without a staged file and without a new column, or clearing a table that
// never had a snapshot), Commit only calls also and returns the current snapshot, or the zero Snapshot if there is
// none.
//
// Faults: ErrConflict, ErrStale, ErrReplaced, ErrDropped; NotFound if the snapshot or the table does not exist.
func (l *Lake) Commit(ctx context.Context, change Change, also func(tx postgres.Tx, made Snapshot) error) (Snapshot, error) {
	began := l.now()
	made, lost, err := l.commit(ctx, change, also)

	if l.observe != nil {
		l.observe(change.Mode, err, lost, l.now().Sub(began))
	}

	return made, err
}

// commit is Commit. It also returns how often another commit came first.
func (l *Lake) commit(ctx context.Context, change Change, also func(tx postgres.Tx, made Snapshot) error) (made Snapshot, tries int, err error) {
	var lost error

	for try := range commitTries {
		made, err := l.try(ctx, change, also)
		if !errors.Is(err, errLost) {
			return made, try, err
		}

		lost = err

		pause := time.Duration(1+rand.IntN(10<<min(try, 5))) * time.Millisecond //nolint:gosec // spreads tries, keeps no secret

		select {
		case <-ctx.Done():
			return Snapshot{}, try + 1, ctx.Err()
		case <-time.After(pause):
		}
	}

	return Snapshot{}, commitTries, fmt.Errorf("%w: %w", ErrConflict, lost)
}

func (l *Lake) try(ctx context.Context, change Change, also func(tx postgres.Tx, made Snapshot) error) (Snapshot, error) {
	base, staged, err := l.load(ctx, change)
	if err != nil {
		return Snapshot{}, err
	}

	d, err := l.draft(ctx, change, *base, staged)
	if err != nil {
		return Snapshot{}, err
	}

	if d == nil {
		var current Snapshot
		if base.current != nil {
			current = base.current.Snapshot
		}

		return current, l.db.InTx(ctx, func(tx postgres.Tx) error { return also(tx, current) })
	}

	err = l.db.Do(ctx, func(q querier) error { return insertWritten(ctx, q, d.table, d.written, l.now().Add(commitTime)) })
	if err != nil {
		return Snapshot{}, err
	}

	if err := l.write(ctx, d.written); err != nil {
		l.release(ctx, d)

		return Snapshot{}, err
	}

	if err := l.swap(ctx, d, also); err != nil {
		return Snapshot{}, err
	}

	for _, o := range d.written {
		l.known.put(o.key, o.decoded, decoded*int64(len(o.content)))
	}

	d.made.Current, d.made.BytesBefore = true, 0

	return d.made.Snapshot, nil
}

// load reads the state of the table and the staged files of the change.
func (l *Lake) load(ctx context.Context, change Change) (base *state, staged []Staged, err error) {
	err = l.db.Do(ctx, func(q querier) error {
		if base, err = selectState(ctx, q, change.Table); err != nil {
			return err
		}

		if base == nil {
			base = &state{}

			if change.Mode == Append || change.Mode == Replace || change.Mode == Merged || change.Mode == Attached {
				err = insertTable(ctx, q, change.Table)
			}
		}

		if err != nil || len(change.Ingestions) == 0 || change.Mode == Clear || change.Mode == Restore {
			return err
		}

		staged, err = selectReady(ctx, q, change.Table, change.Ingestions)

		return err
	})
	if err == nil && base.removed {
		err = fault.Absent()
	}

	return base, staged, err
}

// write writes the objects to the store concurrently. No object depends on the result of writing another.
func (l *Lake) write(ctx context.Context, written []object) error {
	group, ctx := errgroup.WithContext(ctx)

	for _, o := range written {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			_, err = l.store.Write(ctx, o.key, bytes.NewReader(o.content))

			return err
		})
	}

	return group.Wait()
}

// swap runs the transaction of a commit. If the outcome of the transaction is not known, swap determines it.
func (l *Lake) swap(ctx context.Context, d *draft, also func(tx postgres.Tx, made Snapshot) error) error {
	var refused error

	err := l.db.InTx(ctx, func(tx postgres.Tx) error {
		if refused = also(tx, d.made.Snapshot); refused != nil {
			return refused
		}

		now := l.now()

		done, err := commitRows(ctx, tx, *d, commitTimes{now: now, retire: now.Add(l.deleteGrace), profile: now.Add(l.quietPeriod)})
		if _, twice := postgres.ViolatesUnique(err); twice || (err == nil && !done) {
			refused = errLost

			return refused
		}

		return err
	})
	if err == nil {
		return nil
	}

	if refused == nil {
		happened, unknown := l.settle(ctx, d)
		if unknown != nil {
			return errors.Join(err, unknown)
		}

		if happened {
			return nil
		}
	}

	l.release(ctx, d)

	return err
}

// settle reports whether a commit with unknown outcome took effect. The lock waits for a transaction that is still in
// progress.
func (l *Lake) settle(ctx context.Context, d *draft) (happened bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
	defer cancel()

	for {
		err = l.db.InTx(ctx, func(tx postgres.Tx) error {
			if err := lockTable(ctx, tx, d.table); err != nil {
				return err
			}

			happened, err = hasSnapshot(ctx, tx, d.table, d.made.ID)

			return err
		})
		if err == nil || ctx.Err() != nil {
			return happened, err
		}

		select {
		case <-ctx.Done():
		case <-time.After(l.patience / 20):
		}
	}
}

// release makes the objects of a failed commit available to Clean. If release fails too, Clean removes them after
// commitTime.
func (l *Lake) release(ctx context.Context, d *draft) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
	defer cancel()

	err := l.db.Do(ctx, func(q querier) error { return releaseWritten(ctx, q, d.table, d.written, l.now()) })
	if err != nil {
		l.log.WarnContext(ctx, "the objects of a failed commit are removed later", "error", err)
	}
}
