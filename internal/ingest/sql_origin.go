package ingest

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const sqlSelectCompletedFrom = `
	SELECT id FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND origin_id IS NOT NULL AND origin_id = ANY($3) AND status = 'completed'`

// selectCompletedFrom returns the ingestions that have loaded rows from the origins.
func selectCompletedFrom(ctx context.Context, q postgres.Querier, t lake.Table, origins []uuid.UUID) ([]uuid.UUID, error) {
	rows, err := q.Query(ctx, sqlSelectCompletedFrom, t.Account, t.Dataset, origins)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}
