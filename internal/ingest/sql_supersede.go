package ingest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

const sqlSupersede = `
	UPDATE ingestions SET epoch = $4, status = CASE status WHEN 'waiting' THEN 'cancelled' ELSE status END, phase = 'done', finished_at = coalesce(finished_at, $5)
	WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status IN ('failed', 'cancelled', 'waiting')`

func supersede(ctx context.Context, q postgres.Querier, account, dataset, id uuid.UUID, now time.Time) (bool, error) {
	done, err := q.Exec(ctx, sqlSupersede, account, dataset, id, superseded, now)

	return done.RowsAffected() > 0, err
}
