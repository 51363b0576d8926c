package ingest

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlSelectCompletedFrom = `
		SELECT id FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND origin_id IS NOT NULL AND origin_id = ANY($3) AND status = 'completed'`
	sqlSetReplaced = `
		UPDATE ingestions i SET rows_replaced = r.count FROM unnest($3::uuid[], $4::bigint[]) AS r(id, count)
		WHERE i.account_id = $1 AND i.dataset_id = $2 AND i.id = r.id`
)

// selectCompletedFrom returns the ingestions that have loaded rows from the origins.
func selectCompletedFrom(ctx context.Context, q postgres.Querier, t lake.Table, origins []uuid.UUID) ([]uuid.UUID, error) {
	rows, err := q.Query(ctx, sqlSelectCompletedFrom, t.Account, t.Dataset, origins)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// updateReplaced records how many rows each ingestion has replaced.
func updateReplaced(ctx context.Context, tx pgx.Tx, t lake.Table, ids []uuid.UUID, counts []int64) error {
	_, err := tx.Exec(ctx, sqlSetReplaced, t.Account, t.Dataset, ids, counts)

	return err
}
