package ingest

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// Selected are the rows that a condition selects.
type Selected struct {
	Count   int64
	Columns []engine.Column
	First   []json.RawMessage
}

const shownRows = 20

// SelectRows returns how many rows DeleteRows would remove now, and the first of them.
//
// Faults: as DeleteRows.
func (g *Ingest) SelectRows(ctx context.Context, who auth.Principal, at catalog.Path, condition query.Condition) (found Selected, err error) {
	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return found, err
	}

	selected, err := g.Query.Select(ctx, who, at, condition)
	if found.Count = selected.Count; err != nil || found.Count == 0 {
		return found, err
	}

	pinned := map[uuid.UUID]uuid.UUID{selected.Dataset: selected.Snapshot.ID}
	found.Columns, found.First, err = g.Query.Sample(ctx, who, at, dataset.Name, condition, pinned, shownRows)

	return found, err
}

// DeleteRows removes the rows for which a condition is true, in one snapshot. If it fails with Unavailable, the rows may be
// removed nevertheless.
//
// Faults: NotFound, Forbidden, ValidationFailed, Conflict, and those of package query.
func (g *Ingest) DeleteRows(ctx context.Context, who auth.Principal, at catalog.Path, condition query.Condition, once auth.Once) (removed Stored, err error) {
	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return Stored{}, err
	}

	end, err := g.posts.Begin(who)
	if err != nil {
		return Stored{}, err
	}
	defer end()

	made := Ingestion{
		Account: dataset.Account, Dataset: dataset.ID, ID: uuid.Must(uuid.NewV7()), Caller: who.Account, Status: Running, Mode: lake.Deleted,
		Epoch: dataset.Epoch, Phase: phaseQueued, CreatedAt: g.Now(), StartedAt: g.Now(), kind: kindRows,
	}

	first, err := g.claim(ctx, who, dataset, made, once)

	switch {
	case err != nil:
		return Stored{}, err
	case first != nil:
		return first.stored, first.asFault()
	}

	// With a key the caller can learn the outcome later, so the work does not end with the request.
	if once.Given() {
		longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Timeout)
		defer cancel()

		ctx = longer
	}

	removed, err = g.deleteClaimed(ctx, made, deletion{who: who, at: at, dataset: dataset, find: func(ctx context.Context) (lake.Snapshot, replaced, error) {
		found, err := g.Query.Select(ctx, who, at, condition)
		if err == nil && found.Snapshot.ID != uuid.Nil && found.Dataset != dataset.ID {
			err = cleared()
		}

		return found.Snapshot, replaced{files: found.Files, gone: found.Rows}, err
	}})
	if err != nil && once.Given() {
		g.forgetFailed(context.WithoutCancel(ctx), who, made, once)
	}

	return removed, err
}

// deleteClaimed removes the rows for a recorded request. The request holds its lease, so that another process ends it if this
// one dies.
func (g *Ingest) deleteClaimed(ctx context.Context, made Ingestion, d deletion) (removed Stored, err error) {
	err = g.Jobs().Hold(ctx, made.work(), func(ctx context.Context, lease job.Lease) error {
		w := &working{Ingest: g, lease: lease, i: made}
		d.working = w

		err := g.aloneFor(ctx, rowsWork(made.table()), func(ctx context.Context, lease job.Lease) error {
			d.rows = lease

			return g.changeRows(ctx, rowChange{table: made.table(), lease: lease, prepare: d.prepare, commit: d.commit})
		})
		removed = d.removed

		if err != nil {
			return errors.Join(deleteFault(err), w.fail(ctx, deleteFault(err)))
		}

		return nil
	})
	if errors.Is(err, job.ErrLost) || errors.Is(err, context.DeadlineExceeded) {
		err = fault.Wrap(err, fault.Unavailable, "It is not known whether the rows were removed. Repeat the request with the same Idempotency-Key.")
	}

	return removed, err
}

func deleteFault(err error) error {
	switch {
	case errors.Is(err, errMoved):
		return cleared()
	case errors.Is(err, lake.ErrReplaced), errors.Is(err, lake.ErrConflict), errors.Is(err, job.ErrStopped):
		return fault.Wrap(err, fault.Unavailable, "Others change the dataset too often at the moment. Nothing was removed. Try again.")
	default:
		return bodyFault(err)
	}
}

// deletion is a request to delete rows whose lease this process holds.
type deletion struct {
	*working

	who     auth.Principal
	at      catalog.Path
	find    func(ctx context.Context) (on lake.Snapshot, found replaced, err error) // the rows to remove
	dataset catalog.Dataset
	rows    job.Lease // of rowsWork
	by      []uuid.UUID
	removed Stored
}

func (d *deletion) prepare(ctx context.Context) (change lake.Change, err error) {
	now, err := d.allow(ctx, d.who, auth.Editor, d.at)
	if err != nil {
		return change, err
	}

	d.dataset.Key = now.Key // it may change meanwhile: no key forbids to delete rows

	on, found, err := d.find(ctx)
	if err != nil {
		return change, err
	}

	table := d.i.table()
	change = lake.Change{
		Table: table, Mode: lake.Deleted, Base: on.ID, Files: found.files, Rewritten: rewriting(table), Ingestions: []uuid.UUID{rewriting(table)},
	}
	d.removed, d.by = Stored{Rows: found.rows()}, found.by
	change.Removed, err = d.rewrite(ctx, table, d.rows, on, found.files, found.gone)

	return change, err
}

// commit runs in the transaction of the commit. If no row was removed, the snapshot is the one before.
func (d *deletion) commit(ctx context.Context, tx postgres.Tx, made lake.Snapshot) error {
	if err := d.lease.FenceTx(ctx, tx); errors.Is(err, job.ErrLost) {
		return job.ErrStopped
	} else if err != nil {
		return err
	}

	if d.removed.Snapshot = uuid.Nil; d.removed.Rows > 0 {
		d.removed.Snapshot = made.ID

		fits, err := d.Catalog.SetContentTx(ctx, tx, d.dataset, content(made))
		if err == nil && !fits {
			err = errMoved
		}

		if err == nil { // the removed values must no longer find the dataset
			err = d.Catalog.SetValuesTx(ctx, tx, d.dataset.Account, d.dataset.ID, nil)
		}

		if err == nil {
			err = forgetThese(ctx, tx, d.i.table(), d.by)
		}

		if err == nil {
			err = d.tellDeletedTx(ctx, tx)
		}

		if err != nil {
			return err
		}
	}

	return d.completeTx(ctx, tx)
}

func (d *deletion) completeTx(ctx context.Context, tx postgres.Tx) error {
	done, err := completeDeletion(ctx, tx, d.i, d.removed, d.Now())
	if err == nil && !done {
		err = job.ErrStopped
	}

	if err != nil {
		return err
	}

	return writeAudit(ctx, tx, d.i.table(), []uuid.UUID{d.i.ID})
}
