package lake

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	// A table that was removed at the beginning of time is past every grace period.
	sqlEraseTable = `
		INSERT INTO lake_tables (account_id, dataset_id, removed_at) VALUES ($1, $2, 'epoch')
		ON CONFLICT (account_id, dataset_id) DO UPDATE SET removed_at = 'epoch'`
	sqlSelectExists = `
		SELECT EXISTS (SELECT FROM lake_tables WHERE account_id = $1 AND dataset_id = $2)
			OR EXISTS (SELECT FROM lake_files WHERE account_id = $1 AND dataset_id = $2)`
)

func eraseTable(ctx context.Context, tx pgx.Tx, t Table) error {
	_, err := tx.Exec(ctx, sqlEraseTable, t.Account, t.Dataset)

	return err
}

func selectExists(ctx context.Context, q postgres.Querier, t Table) (exists bool, err error) {
	err = q.QueryRow(ctx, sqlSelectExists, t.Account, t.Dataset).Scan(&exists)

	return exists, err
}
