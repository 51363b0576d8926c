package ingest

import (
	"context"
	"errors"
	"time"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	cleanAtOnce   = 100
	strandedAfter = time.Minute
	forgetAfter   = time.Minute
	draftAge      = 7 * 24 * time.Hour // same as for uploads that are never loaded
)

// clean deletes expired snapshots, removes objects that are no longer needed, finishes the work of dead
// processes, removes old drafts, erases deleted namespaces, and confirms or releases reservations of uploaded files that
// are still open.
func (g *Ingest) clean(ctx context.Context, _ job.Lease) error {
	if err := g.Lake.Expire(ctx, g.SnapshotRetention); err != nil {
		return err
	}

	if err := g.cleanTables(ctx); err != nil {
		return err
	}

	if err := errors.Join(g.settle(ctx), g.forgetDrafts(ctx), g.Catalog.EraseNamespaces(ctx)); err != nil {
		return err
	}

	for {
		open, err := g.Uploads.Reserved(ctx, cleanAtOnce)
		if err != nil || len(open) == 0 {
			return err
		}

		for binding, account := range open {
			var made bool

			if err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
				made, err = hasIngestion(ctx, q, binding.Account, binding.Dataset, binding.Ingestion)

				return err
			}); err != nil {
				return err
			}

			settle := g.Uploads.Release
			if made {
				settle = g.Uploads.Confirm
			}

			if err := settle(ctx, account, binding); err != nil {
				return err
			}
		}
	}
}

// cleanTables removes objects that are due, and tables whose grace period is over.
func (g *Ingest) cleanTables(ctx context.Context) error {
	// The files may have been uploaded by other accounts, whose rows are changed in a separate transaction.
	before := func(t lake.Table) error { return g.Uploads.Forsake(ctx, t.Account, t.Dataset) }

	return g.Lake.Clean(ctx, before, func(tx postgres.Tx, t lake.Table) error { return g.forget(ctx, tx, t) })
}

// forget deletes the ingestions and all other rows of a dataset whose table was removed.
func (g *Ingest) forget(ctx context.Context, tx postgres.Tx, t lake.Table) error {
	if err := remove(ctx, tx, t); err != nil {
		return err
	}

	return g.Gone(ctx, tx, t)
}

// forgetDrafts removes drafts, datasets that were named but never created, together with their ingestions.
func (g *Ingest) forgetDrafts(ctx context.Context) error {
	var stale []catalog.Draft

	err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		stale, err = g.Catalog.StaleDrafts(ctx, q, g.Now().Add(-draftAge), cleanAtOnce)

		return err
	})

	for _, draft := range stale {
		err = errors.Join(err, g.DB.InTx(ctx, func(tx postgres.Tx) error { return g.Catalog.ForgetDraftTx(ctx, tx, draft, g.Now().Add(-draftAge)) }))
	}

	return err
}

// settle commits ingestions that were left staged. It also ends posted rows whose process died before it acquired
// their lease, or could not record their failure.
func (g *Ingest) settle(ctx context.Context) error {
	var (
		stranded  []lake.Table
		forgotten []RunArgs
	)

	err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if forgotten, err = selectForgotten(ctx, q, g.Now().Add(-forgetAfter), cleanAtOnce); err == nil {
			stranded, err = selectStranded(ctx, q, g.Now().Add(-strandedAfter), cleanAtOnce)
		}

		return err
	})
	if err != nil {
		return err
	}

	for _, args := range forgotten {
		if err := g.run(ctx, args, true); err != nil && !errors.Is(err, job.ErrLost) {
			return err
		}
	}

	for _, table := range stranded {
		err := g.Jobs().Hold(ctx, commitWork(table), func(ctx context.Context, lease job.Lease) error { return g.drain(ctx, table, lease) })
		if err == nil || errors.Is(err, job.ErrLost) {
			err = g.Jobs().Hold(ctx, rowsWork(table), func(ctx context.Context, lease job.Lease) error { return g.drainMerges(ctx, table, lease) })
		}

		if err != nil && !errors.Is(err, job.ErrLost) {
			return err
		}
	}

	return nil
}
