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
	draftAge      = 7 * 24 * time.Hour // as long as uploads that nobody loads
)

// clean forgets old snapshots, removes objects that nobody needs, and settles reservations of files whose ingestion nobody knows of.
func (g *Ingest) clean(ctx context.Context, _ job.Lease) error {
	if err := g.Lake.Expire(ctx, g.SnapshotAge); err != nil {
		return err
	}

	// The files were uploaded by other accounts, whose rows are changed in a transaction of their own.
	before := func(t lake.Table) error { return g.Uploads.Forsake(ctx, t.Account, t.Dataset) }

	if err := g.Lake.Clean(ctx, before, func(tx postgres.Tx, t lake.Table) error { return g.forget(ctx, tx, t) }); err != nil {
		return err
	}

	if err := errors.Join(g.settle(ctx), g.forgetDrafts(ctx)); err != nil {
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

// forget takes away what is known about a dataset whose table is gone for good.
func (g *Ingest) forget(ctx context.Context, tx postgres.Tx, t lake.Table) error {
	if err := remove(ctx, tx, t); err != nil {
		return err
	}

	return g.Gone(ctx, tx, t)
}

// forgetDrafts removes datasets that were named and never came about, with what is known of their ingestions.
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

// settle commits what was left ready, and ends posted rows whose process died before it had their lease, or could
// not even say that they failed.
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
		if err != nil && !errors.Is(err, job.ErrLost) {
			return err
		}
	}

	return nil
}
