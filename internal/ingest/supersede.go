package ingest

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// superseded is the epoch of an ingestion whose rows are loaded by another one. No dataset has it.
const superseded = -1

// Supersede makes sure that an ingestion that has failed or was cancelled is never retried, because its rows are going to be loaded by another one. It reports false if somebody
// was faster.
func (g *Ingest) Supersede(ctx context.Context, account, dataset, id uuid.UUID) (isOver bool, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		isOver, err = supersede(ctx, q, account, dataset, id)

		return err
	})

	return isOver, err
}
