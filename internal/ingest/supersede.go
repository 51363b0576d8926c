package ingest

import (
	"bytes"
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// superseded is the epoch of an ingestion whose rows are loaded by another one. No dataset has it.
const superseded = -1

// Supersede makes sure that an ingestion that has failed, was cancelled or waits is never retried, because its rows are going to be loaded by another one. One that waits is
// cancelled. It reports false if somebody was faster.
func (g *Ingest) Supersede(ctx context.Context, account, dataset, id uuid.UUID) (isOver bool, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		isOver, err = supersede(ctx, q, account, dataset, id, g.Now())

		return err
	})

	return isOver, err
}

// IsSuperseded reports whether another ingestion loads the rows.
func (i Ingestion) IsSuperseded() bool { return i.Epoch == superseded }

// HasOptions reports whether the files are read with these options.
func (i Ingestion) HasOptions(o Options) bool { return bytes.Equal(asJSON(i.Options), asJSON(o)) }
