package ingest

import (
	"context"
	"fmt"

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

// Name returns the id of the record in its ingestion.
func (r Record) Name() string { return fmt.Sprintf("%d-%d", r.position, r.number) }

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

		found, err := filesOf(ctx, q, dataset, id)
		if err != nil {
			return err
		}

		list, err = selectRecords(ctx, q, found, page)

		return err
	})
	if err != nil {
		return nil, err
	}

	return list, g.noteRecords(ctx, who, dataset, id.String())
}

// noteRecords records that somebody read what documents contain.
func (g *Ingest) noteRecords(ctx context.Context, who auth.Principal, dataset catalog.Dataset, what string) error {
	entry := who.Audit(dataset.Account, g.Now(), "records.read", dataset.Audit())
	entry.Detail = what

	return g.DB.InTx(ctx, func(tx postgres.Tx) error { return audit.WriteTx(ctx, tx, entry) })
}

// filesOf returns an ingestion of files.
func filesOf(ctx context.Context, q postgres.Querier, dataset catalog.Dataset, id uuid.UUID) (Ingestion, error) {
	found, err := first(collect(ctx, q, sqlSelectIngestion, dataset.Account, dataset.ID, id))
	if err == nil && (found == nil || found.kind != kindFiles) {
		err = fault.Absent()
	}

	return orZero(found), err
}

// PageText is the text of a page of a document.
type PageText struct {
	Page int
	Text string
}

// RecordText returns the pages that a record and its quotes stand on. The caller must be a viewer of the dataset.
//
// Faults: NotFound.
func (g *Ingest) RecordText(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, of Place) (pages []PageText, err error) {
	var (
		dataset catalog.Dataset
		found   Record
	)

	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		if dataset, err = g.Catalog.AllowDraft(ctx, q, who, auth.Viewer, at); err != nil {
			return err
		}

		i, err := filesOf(ctx, q, dataset, id)
		if err != nil {
			return err
		}

		if found, err = selectRecord(ctx, q, i, of); err != nil {
			return err
		}

		numbers := []int32{int32(found.Page)} //nolint:gosec // at most engine.MaxPages
		for _, f := range found.Fields {
			numbers = append(numbers, int32(f.Page)) //nolint:gosec // as above
		}

		pages, err = selectPages(ctx, q, i, of, numbers)

		return err
	})
	if err != nil {
		return nil, err
	}

	return pages, g.noteRecords(ctx, who, dataset, id.String()+" "+found.Name())
}
