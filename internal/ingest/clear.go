package ingest

import (
	"context"
	"errors"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Clear removes all rows and keeps name, definition and grants. Ingestions that were accepted before and are not in a
// snapshot yet fail with Conflict.
//
// Faults: NotFound, Forbidden, Unavailable.
func (g *Ingest) Clear(ctx context.Context, who auth.Principal, at catalog.Path) (cleared catalog.Description, err error) {
	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return catalog.Description{}, err
	}

	table := lake.Table{Account: dataset.Account, Dataset: dataset.ID}

	err = g.alone(ctx, table, func(ctx context.Context, lease job.Lease) error {
		_, err := g.Lake.Commit(ctx, lake.Change{Table: table, Mode: lake.Clear}, func(tx postgres.Tx, made lake.Snapshot) error {
			if err := lease.FenceTx(ctx, tx); err != nil {
				return err
			}

			if err := forgetOthers(ctx, tx, table, nil); err != nil {
				return err
			}

			cleared, err = g.Catalog.ClearTx(ctx, tx, who, at, made.ID)

			return err
		})

		return err
	})

	return cleared, err
}

// alone runs a change of a table while no other commit to the table is in progress.
func (g *Ingest) alone(ctx context.Context, table lake.Table, do func(ctx context.Context, lease job.Lease) error) error {
	return g.aloneFor(ctx, commitWork(table), do)
}

// aloneFor runs do while no other process holds the lease of the work. Goroutines of this process take turns.
func (g *Ingest) aloneFor(ctx context.Context, work job.Work, do func(ctx context.Context, lease job.Lease) error) error {
	done, err := g.turns.take(ctx, work.ID)
	if err != nil {
		return err
	}
	defer done()

	for {
		err := g.Jobs().Hold(ctx, work, do)
		if !errors.Is(err, job.ErrLost) {
			return err
		}

		select {
		case <-time.After(commitPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
