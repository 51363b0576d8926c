package ingest

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

const sqlSupersede = `
	UPDATE ingestions SET epoch = $4 WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status IN ('failed', 'cancelled')`

func supersede(ctx context.Context, q postgres.Querier, account, dataset, id uuid.UUID) (bool, error) {
	done, err := q.Exec(ctx, sqlSupersede, account, dataset, id, superseded)

	return done.RowsAffected() > 0, err
}
