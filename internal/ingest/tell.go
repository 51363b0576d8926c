package ingest

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// tellLoadedTx writes the events of a snapshot: one for each ingestion of files, and one for all posted rows.
func (g *Ingest) tellLoadedTx(ctx context.Context, tx postgres.Tx, dataset catalog.Dataset, loaded []Ingestion, made lake.Snapshot) error {
	var (
		events []event.Event
		posted *event.Event
	)

	for _, i := range loaded {
		if i.kind == kindRows && posted != nil {
			*posted.Data.Rows += i.RowsDone

			continue
		}

		e := dataset.Event(event.Loaded, g.Now())
		e.Data.Mode, e.Data.Rows = string(i.Mode), &i.RowsDone

		if made.ID != uuid.Nil {
			e.Data.SnapshotID = &made.ID
		}

		if i.kind == kindRows {
			posted = &e

			continue
		}

		e.Data.IngestionID, e.Data.RowsSetAside = &i.ID, &i.RowsSetAside
		events = append(events, e)
	}

	if posted != nil {
		events = append(events, *posted)
	}

	return event.WriteTx(ctx, tx, events...)
}

// tellDeletedTx writes the event of deleted rows.
func (d *deletion) tellDeletedTx(ctx context.Context, tx postgres.Tx) error {
	e := d.dataset.Event(event.RowsDeleted, d.Now())
	e.Data.SnapshotID, e.Data.Rows = &d.removed.Snapshot, &d.removed.Rows

	return event.WriteTx(ctx, tx, e)
}

func (g *Ingest) observe(status Status, ended ...Ingestion) {
	if g.Observe == nil {
		return
	}

	for _, i := range ended {
		g.Observe(i.kind, status, g.Now().Sub(i.CreatedAt))
	}
}

// failTx ends an ingestion with a failure, and writes the event. The caller of posted rows gets the failure as the answer, and that of a dry
// run waits for it, so they have no event.
func (g *Ingest) failTx(ctx context.Context, tx postgres.Tx, i Ingestion, reason error) error {
	ended, err := finish(ctx, tx, i, Failed, reason, g.Now())
	if err == nil && ended {
		g.observe(Failed, i) // a transaction that is repeated counts again, which is rare
	}

	if err != nil || !ended || i.kind == kindRows || i.DryRun {
		return err
	}

	code, _ := failure(reason) // the message may quote a cell

	return g.tellTx(ctx, tx, i, event.LoadFailed, func(d *event.Data) { d.Code = code })
}

// tellTx writes an event about an ingestion, unless its dataset was deleted.
func (g *Ingest) tellTx(ctx context.Context, tx postgres.Tx, i Ingestion, what event.Type, add func(*event.Data)) error {
	dataset, err := g.Catalog.Live(ctx, tx, i.Account, i.Dataset)
	if err != nil {
		return err
	}

	if dataset == nil {
		draft, err := g.Catalog.FindDraft(ctx, tx, i.Account, i.Dataset)
		if err != nil || draft == nil {
			return err
		}

		dataset = new(draft.Dataset())
	}

	e := dataset.Event(what, g.Now())
	e.Data.IngestionID, e.Data.Mode = &i.ID, string(i.Mode)
	add(&e.Data)

	return event.WriteTx(ctx, tx, e)
}

// failure returns the code and the message that are stored for an error.
func failure(err error) (code, message string) {
	if f, ok := errors.AsType[*engine.FileError](err); ok {
		return string(codeOf(f.Code)), f.Message
	}

	e := fault.From(err)

	return string(e.Code), e.Message
}

// codeOf returns the public code for a failure of a file.
func codeOf(code string) fault.Code {
	switch code {
	case engine.TooManyColumns, engine.LineTooLong, engine.LimitExceeded:
		return fault.LimitExceeded
	default:
		return fault.ValidationFailed
	}
}
