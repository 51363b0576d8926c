package ingest

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
)

// PageText is the text of a page of a document.
type PageText struct {
	Page int
	Text string
}

func (g *Ingest) RecordText(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, of Place) ([]PageText, error) {
	return nil, fault.Absent()
}

func (g *Ingest) Correct(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, of Place, field, value string) (Record, error) {
	return Record{}, fault.Absent()
}

func (g *Ingest) Uncorrect(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, of Place, field string) (Record, error) {
	return Record{}, fault.Absent()
}

func (g *Ingest) Reload(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, once auth.Once) (Ingestion, error) {
	return Ingestion{}, fault.Absent()
}
