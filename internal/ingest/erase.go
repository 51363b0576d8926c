package ingest

import (
	"context"
	"errors"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

var errObjectsLeft = errors.New("objects of the table are left")

// EraseTable removes the objects of a table that is marked for erasure, and all rows about the table and its ingestions. It is safe to
// interrupt.
func (g *Ingest) EraseTable(ctx context.Context, t lake.Table) error {
	for range eraseRounds {
		var exists bool

		err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
			exists, err = lake.Exists(ctx, q, t)

			return err
		})
		if err != nil {
			return err
		}

		// A draft never had a table, but it can have ingestions.
		if !exists {
			return g.DB.InTx(ctx, func(tx postgres.Tx) error { return remove(ctx, tx, t) })
		}

		if err := g.cleanTables(ctx); err != nil {
			return err
		}
	}

	return errObjectsLeft
}

// EraseHistory removes all snapshots of a table but the current one, and what ingestions keep of the rows that they read: rows set aside, previews and
// doubts. It is safe to interrupt.
func (g *Ingest) EraseHistory(ctx context.Context, t lake.Table) error {
	if err := g.atRest(ctx, t, func(ctx context.Context) error {
		return g.Lake.EraseHistory(ctx, t, compaction(t), rewriting(t))
	}); err != nil {
		return err
	}

	if err := g.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := g.Catalog.SetValuesTx(ctx, tx, t.Account, t.Dataset, nil); err != nil {
			return err
		}

		return eraseRead(ctx, tx, t)
	}); err != nil {
		return err
	}

	return g.cleanTables(ctx)
}

// atRest runs do while nobody writes objects from rows that the table already has: no chore and no change of rows. It waits for those that run, and for the
// leases of those that died.
func (g *Ingest) atRest(ctx context.Context, t lake.Table, do func(ctx context.Context) error) error {
	for _, work := range []job.Work{rowsWork(t), choreWork(t, lake.Compact), choreWork(t, lake.Profile)} {
		inner := do
		do = func(ctx context.Context) error {
			return g.aloneFor(ctx, work, func(ctx context.Context, _ job.Lease) error { return inner(ctx) })
		}
	}

	return do(ctx)
}

// eraseRounds limits how often EraseTable looks again. The next attempt at the erasure continues.
const eraseRounds = 5
