package ingest

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Record is a record that a model read in a document.
type Record struct {
	File   string
	Row    int64 // number of the row that it became; 0 if no field has a value
	Page   int
	Fields map[string]RecordField // of the fields about which the model said something

	position int32
	number   int64
}

// Place returns the position of the record in the list of all records of the ingestion.
func (r Record) Place() Place { return Place{File: r.position, Row: r.number} }

// RecordsPage says which records are wanted.
type RecordsPage struct {
	After   Place
	Limit   int
	Flagged bool // only those with a field that is in doubt
}

// Records returns the records of documents after the given place. The caller must be a viewer of the dataset, because quotes are values.
//
// Faults: NotFound.
func (g *Ingest) Records(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, page RecordsPage) (list []Record, err error) {
	var dataset catalog.Dataset

	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		if dataset, err = g.Catalog.AllowDraft(ctx, q, who, auth.Viewer, at); err != nil {
			return err
		}

		found, err := first(collect(ctx, q, sqlSelectIngestion, dataset.Account, dataset.ID, id))
		if err != nil {
			return err
		}

		if found == nil || found.kind != kindFiles {
			return fault.Absent()
		}

		list, err = selectRecords(ctx, q, *found, page.After, page.Limit)

		return err
	})
	if err != nil {
		return nil, err
	}

	entry := who.Audit(dataset.Account, g.Now(), "records.read", dataset.Audit())
	entry.Detail = id.String()

	return list, g.DB.InTx(ctx, func(tx postgres.Tx) error { return audit.WriteTx(ctx, tx, entry) })
}
