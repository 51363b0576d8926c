package ingest

import (
	"context"
	"errors"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// errAttached is the fault for a change of the rows of an attached dataset.
func errAttached() *fault.Error {
	return fault.New(fault.Conflict, "The dataset is attached: it shows an Iceberg table of another catalog. Change the rows there, and run the source of the dataset again.")
}

func errChanged() *fault.Error {
	return fault.New(fault.Unavailable, "The dataset was changed in the meantime. Try again.")
}

// own fails for an attached dataset.
func (g *Ingest) own(ctx context.Context, q postgres.Querier, dataset catalog.Dataset) error {
	attached, err := lake.IsAttached(ctx, q, lake.Table{Account: dataset.Account, Dataset: dataset.ID})
	if err == nil && attached {
		err = errAttached()
	}

	return err
}

// Attach makes a dataset show an Iceberg table of another catalog as it was read. The dataset need not exist. Nothing is copied. wanted is called while no other process can attach
// anything to the dataset: if it fails, nothing is attached. So of two workers that read the table, the one that read it last is the last to attach it.
//
// Faults: NotFound if the dataset was deleted, Conflict if it has rows of its own or shows another table.
func (g *Ingest) Attach(ctx context.Context, who auth.Principal, at catalog.Dataset, found lake.Foreign, wanted func(ctx context.Context) error) error {
	table := lake.Table{Account: at.Account, Dataset: at.ID}

	return g.alone(ctx, table, func(ctx context.Context, lease job.Lease) error {
		if err := wanted(ctx); errors.Is(err, job.ErrLost) {
			return job.ErrStopped // alone repeats after ErrLost, which means its own lease
		} else if err != nil {
			return err
		}

		dataset, draft, err := g.target(ctx, table)
		if err == nil && dataset == nil {
			err = fault.Absent()
		}

		if err != nil {
			return err
		}

		change, isDone, err := g.Lake.Attaching(ctx, table, found)

		switch {
		case err != nil:
		case isDone: // an earlier profile may have been given up because the files could not be read
			err = lease.InTx(ctx, func(tx postgres.Tx) error { return g.Lake.AskProfileTx(ctx, tx, table) })
		default:
			_, err = g.Lake.Commit(ctx, change, func(tx postgres.Tx, made lake.Snapshot) error {
				if err := lease.FenceTx(ctx, tx); err != nil {
					return err
				}

				return g.attachTx(ctx, tx, who, *dataset, draft, made)
			})
		}

		switch {
		case errors.Is(err, lake.ErrOwnRows):
			return errOwnRows()
		case errors.Is(err, lake.ErrReplaced), errors.Is(err, lake.ErrConflict), errors.Is(err, lake.ErrDropped):
			return errChanged()
		default:
			return err
		}
	})
}

func errOwnRows() error {
	return fault.New(fault.Conflict, "The dataset has or had rows of its own, or shows another table. Give the source the name of a new dataset.")
}

// CheckAttach returns Conflict for a dataset that cannot show a table.
func (g *Ingest) CheckAttach(ctx context.Context, at catalog.Dataset, found lake.Foreign) error {
	may, err := g.Lake.MayAttach(ctx, lake.Table{Account: at.Account, Dataset: at.ID}, found)
	if err == nil && !may {
		err = errOwnRows()
	}

	return err
}

// attachTx changes the dataset in the transaction that makes the snapshot the current one.
func (g *Ingest) attachTx(ctx context.Context, tx postgres.Tx, who auth.Principal, dataset catalog.Dataset, draft *catalog.Draft, made lake.Snapshot) (err error) {
	if draft != nil {
		if dataset.NamespaceID, err = g.Catalog.CreateDraftTx(ctx, tx, *draft); err != nil {
			return err
		}
	}

	fits, err := g.Catalog.SetContentTx(ctx, tx, dataset, content(made))
	if err == nil && !fits {
		err = errChanged()
	}

	if err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, who.Audit(dataset.Account, g.Now(), "dataset.attach", dataset.Audit()))
}
