package ingest

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// SetAside is a row set aside.
type SetAside struct {
	File   string
	Row    int64
	Reason string

	position int32 // of the file in the ingestion
}

// Place returns the position of the row in the list of all rows that the ingestion set aside.
func (s SetAside) Place() Place { return Place{File: s.position, Row: s.Row} }

// Place is a position among the rows that an ingestion set aside. The zero value is before the first one.
type Place struct {
	File int32 // position of the file in the ingestion, starting at 0
	Row  int64
}

// SetAsideRows returns rows that an ingestion set aside, after the given place. The caller must be a viewer of the dataset.
//
// Faults: NotFound.
func (g *Ingest) SetAsideRows(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, after Place, limit int) ([]SetAside, error) {
	dataset, _, list, err := g.setAside(ctx, who, at, id, after, limit)
	if err != nil {
		return nil, err
	}

	return list, g.noteSetAside(ctx, who, dataset, "setAside.read", id)
}

// SetAsideExport returns a function that returns all rows that an ingestion set aside, one after the other, and io.EOF after
// the last one. Access is checked again for each page that is read.
//
// Faults: NotFound, also from the function; Conflict from the function if the ingestion is retried meanwhile.
func (g *Ingest) SetAsideExport(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID) (next func() (SetAside, error), err error) {
	dataset, started, list, err := g.setAside(ctx, who, at, id, Place{}, asidePage)
	if err != nil {
		return nil, err
	}

	read, whole := 0, len(list) < asidePage

	return func() (SetAside, error) {
		if read == len(list) && !whole {
			_, again, page, err := g.setAside(ctx, who, at, id, list[read-1].Place(), asidePage)
			if err != nil {
				return SetAside{}, err
			}

			if !again.Equal(started) {
				return SetAside{}, fault.New(fault.Conflict, "The ingestion was retried while its rows were read. Read them again.")
			}

			list, read, whole = page, 0, len(page) < asidePage
		}

		if read == len(list) {
			return SetAside{}, io.EOF
		}

		read++

		return list[read-1], nil
	}, g.noteSetAside(ctx, who, dataset, "setAside.export", id)
}

const asidePage = 1000

// setAside returns rows set aside, and when the attempt that set them aside was started.
func (g *Ingest) setAside(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, after Place, limit int) (
	dataset catalog.Dataset, started time.Time, list []SetAside, err error,
) {
	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		if dataset, err = g.Catalog.AllowDraft(ctx, q, who, auth.Viewer, at); err != nil {
			return err
		}

		found, err := filesOf(ctx, q, dataset, id)
		if err != nil {
			return err
		}

		started = found.StartedAt
		list, err = selectSetAside(ctx, q, found, after, limit)

		return err
	})

	return dataset, started, list, err
}

// noteSetAside records that rows set aside were read: their reasons quote values.
func (g *Ingest) noteSetAside(ctx context.Context, who auth.Principal, dataset catalog.Dataset, action string, id uuid.UUID) error {
	entry := who.Audit(dataset.Account, g.Now(), action, dataset.Audit())
	entry.Detail = id.String()

	return g.DB.InTx(ctx, func(tx postgres.Tx) error { return audit.WriteTx(ctx, tx, entry) })
}
