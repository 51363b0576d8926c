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
	// commitTime is how long a commit may take from its first object to its end before its objects count as
	// forgotten.
	commitTime = 15 * time.Minute
	// patience is how long we look for the outcome of a commit whose answer was lost.
	patience = 20 * time.Second
)

type querier = postgres.Querier

// errLost says that somebody else was quicker.
var errLost = errors.New("lost to another commit")

// Commit makes one snapshot. In the transaction that puts it in force also runs first, so that rows of the
// caller are locked before ours, always; what it is given is the snapshot as it will be. If it fails, nothing
// happened. It may run several times, each time in a new transaction, but takes effect at most once.
//
// With nothing to commit (appending without a ready file and without a new column, clearing what never had a
// snapshot) only also runs, and the result is the current snapshot or none.
//
// ErrConflict, ErrStale, ErrReplaced; NotFound for a snapshot or a table that is not there.
func (l *Lake) Commit(ctx context.Context, change Change, also func(tx postgres.Tx, made Snapshot) error) (Snapshot, error) {
	var lost error

	for try := range commitTries {
		made, err := l.try(ctx, change, also)
		if !errors.Is(err, errLost) {
			return made, err
		}

		lost = err

		pause := time.Duration(1+rand.IntN(10<<min(try, 5))) * time.Millisecond //nolint:gosec // spreads tries, keeps no secret

		select {
		case <-ctx.Done():
			return Snapshot{}, ctx.Err()
		case <-time.After(pause):
		}
	}

	return Snapshot{}, fmt.Errorf("%w: %w", ErrConflict, lost)
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

	d.made.Current = true

	return d.made.Snapshot, nil
}

// load reads what the commit starts from.
func (l *Lake) load(ctx context.Context, change Change) (base *state, staged []Staged, err error) {
	err = l.db.Do(ctx, func(q querier) error {
		if base, err = selectState(ctx, q, change.Table); err != nil {
			return err
		}

		if base == nil {
			base = &state{}

			if change.Mode == Append || change.Mode == Replace {
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

// write puts the objects into the store, all at once: none refers to what another one turns out to be.
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

// swap is the transaction. If its outcome is not known it looks what it was.
func (l *Lake) swap(ctx context.Context, d *draft, also func(tx postgres.Tx, made Snapshot) error) error {
	var refused error

	err := l.db.InTx(ctx, func(tx postgres.Tx) error {
		if refused = also(tx, d.made.Snapshot); refused != nil {
			return refused
		}

		now := l.now()

		done, err := commitRows(ctx, tx, *d, commitTimes{now: now, retire: now.Add(l.grace), profile: now.Add(l.quiet)})
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

// settle tells whether a commit happened, whose end we did not see. The lock waits for a transaction that is
// still at it.
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

// release lets Clean have the objects of a commit that did not happen. If that fails too it takes longer.
func (l *Lake) release(ctx context.Context, d *draft) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
	defer cancel()

	err := l.db.Do(ctx, func(q querier) error { return releaseWritten(ctx, q, d.table, d.written, l.now()) })
	if err != nil {
		l.log.WarnContext(ctx, "objects of a failed commit stay for a while", "error", err)
	}
}
