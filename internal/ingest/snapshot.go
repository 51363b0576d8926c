package ingest

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Snapshots returns the snapshots of a dataset with a sequence less than before, newest first. 0 starts with the
// newest.
func (g *Ingest) Snapshots(ctx context.Context, who auth.Principal, at catalog.Path, before int64, limit int) (list []Snapshot, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		dataset, err := g.Catalog.Allow(ctx, q, who, auth.Viewer, at)
		if err != nil {
			return err
		}

		list, err = g.Lake.Snapshots(ctx, q, lake.Table{Account: dataset.Account, Dataset: dataset.ID}, before, limit)

		return err
	})

	return list, err
}

// Restore makes a new snapshot with the rows of an earlier one. Ingestions that were accepted before fail with
// Conflict.
//
// Faults: NotFound, Forbidden, Conflict if the rows violate the key, Unavailable.
func (g *Ingest) Restore(ctx context.Context, who auth.Principal, at catalog.Path, snapshot uuid.UUID) (made Snapshot, err error) {
	dataset, err := g.allow(ctx, who, auth.Owner, at)
	if err != nil {
		return Snapshot{}, err
	}

	table := lake.Table{Account: dataset.Account, Dataset: dataset.ID}

	err = g.alone(ctx, table, func(ctx context.Context, lease job.Lease) error {
		if dataset, err = g.allow(ctx, who, auth.Owner, at); err != nil { // its key may have changed
			return err
		}

		if err := g.permits(ctx, dataset, snapshot); err != nil {
			return err
		}

		made, err = g.Lake.Commit(ctx, lake.Change{Table: table, Mode: lake.Restore, Snapshot: snapshot}, func(tx postgres.Tx, made lake.Snapshot) error {
			if err := lease.FenceTx(ctx, tx); err != nil {
				return err
			}

			if err := forgetSince(ctx, tx, table, snapshot); err != nil {
				return err
			}

			return g.Catalog.RestoreTx(ctx, tx, who, at, content(made))
		})

		return err
	})

	return made, err
}

// content returns what the catalog stores about the current snapshot of a dataset.
func content(made lake.Snapshot) catalog.Content {
	columns := make([]catalog.Column, len(made.Columns))
	for n, c := range made.Columns {
		columns[n] = catalog.Column{Name: c.Name, Type: string(c.Type), Nullable: true}
	}

	return catalog.Content{Columns: columns, Rows: made.Rows, Bytes: made.Bytes, BytesBefore: made.BytesBefore, Snapshot: made.ID, IsAttached: made.Operation == lake.Attached}
}
