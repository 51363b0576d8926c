package ingest

import (
	"context"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/postgres"
)

// allow returns a dataset that the caller may read, or whose rows the caller may change.
func (g *Ingest) allow(ctx context.Context, who auth.Principal, need auth.Role, at catalog.Path) (dataset catalog.Dataset, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if dataset, err = g.Catalog.Allow(ctx, q, who, need, at); err == nil && need != auth.Viewer {
			err = g.own(ctx, q, dataset)
		}

		return err
	})

	return dataset, err
}

// allowDraft is allow for a dataset that may still be a draft.
func (g *Ingest) allowDraft(ctx context.Context, who auth.Principal, need auth.Role, at catalog.Path) (dataset catalog.Dataset, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		dataset, err = g.Catalog.AllowDraft(ctx, q, who, need, at)

		return err
	})

	return dataset, err
}

// draft is allow for a dataset that need not exist: it creates the draft if necessary.
func (g *Ingest) draft(ctx context.Context, who auth.Principal, at catalog.Path) (dataset catalog.Dataset, err error) {
	err = g.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		if dataset, err = g.Catalog.DraftTx(ctx, tx, who, at); err == nil {
			err = g.own(ctx, tx, dataset)
		}

		return err
	})

	return dataset, err
}
