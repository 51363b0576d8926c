package source

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/ingest"
)

const (
	sqlUpdateLoad = `UPDATE sources SET load = $3 WHERE account_id = $1 AND id = $2 AND load IS NOT DISTINCT FROM $4`
	sqlSettleLoad = `
		UPDATE sources SET load = NULL, cursor = $4, dataset_id = coalesce(dataset_id, $5) WHERE account_id = $1 AND id = $2 AND load->>'ingestion' = $3::text`
	sqlAddRows = `UPDATE source_runs SET rows = rows + $4, bytes = bytes + $5, rows_set_aside = rows_set_aside + $6 WHERE account_id = $1 AND source_id = $2 AND id = $3`
)

// updateLoad replaces the load in progress, which must be the one that the source has.
func updateLoad(ctx context.Context, tx pgx.Tx, s Source, l *load) error {
	return exactlyOne(ctx, tx, sqlUpdateLoad, s.Account, s.ID, l, s.load)
}

// settleLoad records that the rows of a load are in the dataset, and counts them for the run.
func settleLoad(ctx context.Context, tx pgx.Tx, r Run, l load, made ingest.Ingestion) error {
	if err := exactlyOne(ctx, tx, sqlSettleLoad, r.account, r.source, l.Ingestion.String(), l.Cursor, l.Dataset); err != nil {
		return err
	}

	return exactlyOne(ctx, tx, sqlAddRows, r.account, r.source, r.ID, made.RowsDone, l.Size, made.RowsSetAside)
}
