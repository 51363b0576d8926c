package ingest

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Reload creates an ingestion that loads the documents of a completed one again, with the corrections, and replaces its rows in one snapshot.
//
// Faults: NotFound, Forbidden, InvalidState if no model may read the documents, Conflict if the rows cannot be replaced.
func (g *Ingest) Reload(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, once auth.Once) (made Ingestion, err error) {
	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return Ingestion{}, err
	}

	if first, err := g.repeated(ctx, who, dataset, once); err != nil || first != nil {
		return orZero(first), err
	}

	base, err := g.load(ctx, dataset, id)
	if err != nil {
		return Ingestion{}, err
	}

	if err := g.reloadable(ctx, dataset, base); err != nil {
		return Ingestion{}, err
	}

	made = Ingestion{
		Account: dataset.Account, Dataset: dataset.ID, ID: uuid.Must(uuid.NewV7()), Caller: who.Account, Session: base.Session, Status: Queued, Mode: lake.Merged,
		Origin: base.Origin, Reloads: base.ID, Epoch: dataset.Epoch, Options: base.Options, Accepted: base.Accepted, Files: base.Files, BytesTotal: base.BytesTotal,
		Phase: phaseQueued, CreatedAt: g.Now(), kind: kindFiles,
	}
	if made.Origin == uuid.Nil {
		made.Origin = base.ID
	}

	first := made.ID

	err = g.DB.InTx(ctx, func(tx postgres.Tx) error {
		var repeated bool
		if first, repeated, err = once.ClaimTx(ctx, tx, dataset.Account, who, made.ID, made.CreatedAt); err != nil || repeated {
			return err
		}

		if _, err := lockIngestion(ctx, tx, base.Account, base.Dataset, base.ID); err != nil { // one reload after the other
			return err
		}

		if err := g.latest(ctx, tx, made, true); err != nil {
			return err
		}

		if err := setOrigin(ctx, tx, base, made.Origin); err != nil {
			return err
		}

		return g.insertTx(ctx, tx, who, dataset, made)
	})
	if err != nil {
		return Ingestion{}, err
	}

	return g.load(ctx, dataset, first)
}

// reloadable returns the reason why an ingestion cannot be reloaded. It runs before the transaction, so it checks only what cannot change
// meanwhile, or what the load checks again.
func (g *Ingest) reloadable(ctx context.Context, dataset catalog.Dataset, base Ingestion) error {
	switch {
	case base.Status != Completed || base.DryRun:
		return fault.New(fault.Conflict, "The ingestion has not loaded rows, so there is nothing to replace. One that has failed or waits is continued with a retry.")
	case !base.isExtracted():
		return fault.New(fault.Conflict, "No model has read the files of this ingestion. Only documents that a model has read are loaded again; upload other files instead.")
	case base.Mode == lake.Merged && base.Origin == uuid.Nil && !dataset.Key.Has(base.Key):
		return fault.New(fault.Conflict, "The rows were merged by a key that the dataset does not declare, so later merges may have replaced some of them. Merge the files again, or declare the key.")
	}

	ids := make([]uuid.UUID, len(base.Files))
	for n, f := range base.Files {
		ids[n] = f.ID
	}

	kept, err := g.Uploads.Kept(ctx, base.Account, base.Dataset, ids)
	if err != nil {
		return err
	}

	for _, f := range base.Files {
		if !kept[f.ID] {
			return fault.New(fault.Conflict, fmt.Sprintf("The uploaded file %q was erased. Upload it again.", f.Name))
		}
	}

	if _, err := g.readable(ctx, &dataset); err != nil {
		return err
	}

	return g.present(ctx, base)
}

// present returns the reason if a completed ingestion and those with the same origin have no rows in the dataset any more, because people removed
// them: a reload must not bring them back.
func (g *Ingest) present(ctx context.Context, base Ingestion) error {
	_, files, err := g.inForce(ctx, base.table())
	if err != nil {
		return err
	}

	var found replaced

	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		by := []uuid.UUID{base.ID}
		if base.Origin != uuid.Nil {
			if by, err = selectCompletedFrom(ctx, q, base.table(), []uuid.UUID{base.Origin}); err != nil {
				return err
			}
		}

		found.files, found.gone, err = g.Lake.LoadedBy(ctx, q, base.table(), files, by)

		return err
	})
	if err == nil && base.RowsDone > 0 && found.rows() == 0 {
		err = notPresent()
	}

	return err
}

func notPresent() *fault.Error {
	return fault.New(fault.Conflict, "The rows of the ingestion are no longer in the dataset, so there is nothing to replace. If you want them back, upload the documents again.")
}

// latest returns Conflict if a later ingestion has replaced the rows that a reload is to replace. With alone it also returns Conflict if such an
// ingestion has not ended. Otherwise two reloads, or a reload and a source, could undo each other.
func (g *Ingest) latest(ctx context.Context, q postgres.Querier, i Ingestion, alone bool) error {
	other, status, err := selectLaterFrom(ctx, q, i)

	switch {
	case err != nil || other == uuid.Nil:
		return err
	case status == Completed:
		return fault.New(fault.Conflict, fmt.Sprintf("The rows of this ingestion were replaced by the ingestion %s. Correct and reload that one.", other))
	case alone:
		return fault.New(fault.Conflict, fmt.Sprintf("The ingestion %s, which replaces these rows, has not ended. Wait for it, or cancel it.", other))
	default:
		return nil
	}
}

// checkReloads returns the reason why a reload of the group must not be committed. counts are the rows that are replaced now.
func (m *merging) checkReloads(ctx context.Context) error {
	for n, i := range m.group {
		if i.Reloads == uuid.Nil {
			continue
		}

		var base *Ingestion

		err := m.DB.Do(ctx, func(q postgres.Querier) (err error) {
			if err = m.latest(ctx, q, i, false); err == nil {
				base, err = selectIngestion(ctx, q, i.Account, i.Dataset, i.Reloads)
			}

			return err
		})
		if err != nil {
			return err
		}

		if base == nil || (base.RowsDone > 0 && m.counts[n] == 0) {
			return notPresent()
		}
	}

	return nil
}
