package lake

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	// A table that was removed at the beginning of time is past every grace period.
	sqlEraseTable = `
		INSERT INTO lake_tables (account_id, dataset_id, removed_at) VALUES ($1, $2, 'epoch')
		ON CONFLICT (account_id, dataset_id) DO UPDATE SET removed_at = 'epoch'`
	// Objects that no snapshot needs have a time of removal; those of a profile that was deleted get one. Data files that are being written keep theirs.
	sqlHistoryFiles = `
		UPDATE lake_files f SET remove_at = $3::timestamptz - interval '1 second'
		WHERE f.account_id = $1 AND f.dataset_id = $2 AND (f.kind = 'derived' OR f.state NOT IN ('writing', 'ready')) AND (f.remove_at > $3 OR f.remove_at IS NULL AND f.kind = 'derived'
			AND NOT EXISTS (SELECT FROM lake_profiles p WHERE p.account_id = $1 AND p.dataset_id = $2 AND f.object_key IN (p.profile_key, p.values_key)))`
	sqlHistoryProfile = `
		INSERT INTO lake_upkeep (account_id, dataset_id, chore, snapshot_id, since, due_at)
		SELECT account_id, dataset_id, 'profile', snapshot_id, $3, $3 FROM lake_tables WHERE account_id = $1 AND dataset_id = $2 AND snapshot_id IS NOT NULL
		ON CONFLICT (account_id, dataset_id, chore) DO UPDATE SET snapshot_id = excluded.snapshot_id, due_at = excluded.due_at`
	sqlSelectExists = `
		SELECT EXISTS (SELECT FROM lake_tables WHERE account_id = $1 AND dataset_id = $2)
			OR EXISTS (SELECT FROM lake_files WHERE account_id = $1 AND dataset_id = $2)`
)

func eraseTable(ctx context.Context, tx pgx.Tx, t Table) error {
	_, err := tx.Exec(ctx, sqlEraseTable, t.Account, t.Dataset)

	return err
}

// eraseHistory makes all objects that are not needed due now, and the profile too.
func eraseHistory(ctx context.Context, tx pgx.Tx, t Table, now time.Time) error {
	for _, statement := range []string{sqlHistoryFiles, sqlHistoryProfile} {
		if _, err := tx.Exec(ctx, statement, t.Account, t.Dataset, now); err != nil {
			return err
		}
	}

	return nil
}

func selectExists(ctx context.Context, q postgres.Querier, t Table) (exists bool, err error) {
	err = q.QueryRow(ctx, sqlSelectExists, t.Account, t.Dataset).Scan(&exists)

	return exists, err
}
