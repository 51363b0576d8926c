package source

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/lake"
)

const (
	sqlSettleTable = `UPDATE sources SET dataset_id = coalesce(dataset_id, $3) WHERE account_id = $1 AND id = $2`
	sqlSetPinned   = `UPDATE source_runs SET pinned = $4, files = $5, rows = $6, bytes = $7 WHERE account_id = $1 AND source_id = $2 AND id = $3`
)

// settleTable records the snapshot that a run has attached. Recording it twice has no further effect.
func settleTable(ctx context.Context, tx pgx.Tx, r Run, found lake.Foreign, dataset uuid.UUID) error {
	if err := exactlyOne(ctx, tx, sqlSettleTable, r.account, r.source, dataset); err != nil {
		return err
	}

	rows, bytes := found.Totals()

	return exactlyOne(ctx, tx, sqlSetPinned, r.account, r.source, r.ID, found.Snapshot, len(found.Files), rows, bytes)
}
