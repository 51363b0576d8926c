package lake

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlSelectDue = `
	SELECT account_id, dataset_id, snapshot_id FROM lake_upkeep WHERE chore = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3`

func selectDue(ctx context.Context, q postgres.Querier, chore Chore, now time.Time, limit int) ([]Due, error) {
	rows, err := q.Query(ctx, sqlSelectDue, chore, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Due, error) {
		due := Due{Chore: chore}
		err := row.Scan(&due.Table.Account, &due.Table.Dataset, &due.Snapshot)

		return due, err
	})
}

const sqlUpdateDue = `UPDATE lake_upkeep SET due_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND chore = $3`

func updateDue(ctx context.Context, tx pgx.Tx, due Due, at time.Time) error {
	_, err := tx.Exec(ctx, sqlUpdateDue, due.Table.Account, due.Table.Dataset, due.Chore, at)

	return err
}

const sqlDeleteDue = `
	WITH done AS (
		DELETE FROM lake_upkeep u WHERE u.account_id = $1 AND u.dataset_id = $2 AND u.chore = $3 AND NOT EXISTS (
			SELECT 1 FROM lake_snapshots later JOIN lake_snapshots seen USING (account_id, dataset_id)
			WHERE later.account_id = $1 AND later.dataset_id = $2 AND later.id = u.snapshot_id AND seen.id = $4 AND later.sequence > seen.sequence)
		RETURNING 1)
	UPDATE lake_upkeep SET since = $5 WHERE account_id = $1 AND dataset_id = $2 AND chore = $3 AND NOT EXISTS (SELECT 1 FROM done)`

func deleteDue(ctx context.Context, tx pgx.Tx, due Due, now time.Time) error {
	_, err := tx.Exec(ctx, sqlDeleteDue, due.Table.Account, due.Table.Dataset, due.Chore, due.Snapshot, now)

	return err
}

const sqlDeleteHopeless = `DELETE FROM lake_upkeep WHERE account_id = $1 AND dataset_id = $2 AND chore = $3 AND snapshot_id = $4 AND since <= $5`

func deleteHopeless(ctx context.Context, tx pgx.Tx, due Due, begun time.Time) error {
	_, err := tx.Exec(ctx, sqlDeleteHopeless, due.Table.Account, due.Table.Dataset, due.Chore, due.Snapshot, begun)

	return err
}

// A profile that is being computed may not have seen what has changed since: its row gets a later time, with which it is not given up.
const sqlAskProfile = `
	INSERT INTO lake_upkeep (account_id, dataset_id, chore, snapshot_id, since, due_at)
	SELECT t.account_id, t.dataset_id, 'profile', t.snapshot_id, $3, $3 FROM lake_tables t
	WHERE t.account_id = $1 AND t.dataset_id = $2 AND t.snapshot_id IS NOT NULL AND t.removed_at IS NULL AND NOT EXISTS (
		SELECT FROM lake_profiles p WHERE p.account_id = $1 AND p.dataset_id = $2 AND p.snapshot_id = t.snapshot_id)
	ON CONFLICT (account_id, dataset_id, chore) DO UPDATE SET since = excluded.since WHERE lake_upkeep.due_at <= excluded.due_at`

func askProfile(ctx context.Context, tx pgx.Tx, t Table, now time.Time) error {
	_, err := tx.Exec(ctx, sqlAskProfile, t.Account, t.Dataset, now)

	return err
}
