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
	sqlSetOrigin       = `UPDATE ingestions SET origin_id = $4 WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND origin_id IS NULL`
	sqlSelectLaterFrom = `
		SELECT i.id, i.status FROM ingestions i JOIN ingestions b ON b.account_id = i.account_id AND b.dataset_id = i.dataset_id AND b.id = $4
		WHERE i.account_id = $1 AND i.dataset_id = $2 AND i.origin_id IS NOT NULL AND i.origin_id = $3 AND i.id NOT IN ($4, $5)
			AND (i.status IN ('queued', 'running', 'waiting') OR i.status = 'completed' AND (i.finished_at, i.id) > (b.finished_at, b.id))
		ORDER BY i.status = 'completed' DESC, i.finished_at DESC LIMIT 1`
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

// setOrigin gives an ingestion an origin, so that its rows are found by it.
func setOrigin(ctx context.Context, tx pgx.Tx, i Ingestion, origin uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlSetOrigin, i.Account, i.Dataset, i.ID, origin)

	return err
}

// selectLaterFrom returns another ingestion than the one that is reloaded that has replaced its rows, or that is going to; uuid.Nil if there is none.
func selectLaterFrom(ctx context.Context, q postgres.Querier, i Ingestion) (id uuid.UUID, status Status, err error) {
	err = q.QueryRow(ctx, sqlSelectLaterFrom, i.Account, i.Dataset, i.Origin, i.Reloads, i.ID).Scan(&id, &status)
	if postgres.NoRows(err) {
		return uuid.Nil, "", nil
	}

	return id, status, err
}
