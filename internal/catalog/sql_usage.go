package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	// The limit of the account $1 for k.kind: its own, else the highest of its groups, else that of everyone. NULL means no limit.
	sqlLimit = `
		nullif(coalesce(
			(SELECT l.amount FROM limits l WHERE l.account_id = $1 AND l.kind = k.kind),
			(SELECT max(d.amount) FROM directory_limits d JOIN accounts a ON a.id = $1 AND d.subject_id = ANY (a.groups)
				WHERE d.subject_kind = 'group' AND d.kind = k.kind),
			(SELECT d.amount FROM directory_limits d WHERE d.subject_kind = 'everyone' AND d.kind = k.kind)
		), 9223372036854775807)`

	sqlSelectUsage = `
		SELECT k.kind, coalesce(u.amount, 0), ` + sqlLimit + `
		FROM unnest($3::text[]) WITH ORDINALITY AS k (kind, n)
		LEFT JOIN usage u ON u.account_id = $1 AND u.day = $2 AND u.kind = k.kind
		ORDER BY k.n`

	// Adds 1 to the first kind.
	sqlTakeOne = `
		WITH taken AS (
			INSERT INTO usage AS u (account_id, day, kind, amount) VALUES ($1, $2, ($3::text[])[1], 1)
			ON CONFLICT (account_id, day, kind) DO UPDATE SET amount = u.amount + 1 RETURNING kind, amount)
		SELECT k.kind, coalesce(taken.amount, u.amount, 0), ` + sqlLimit + `
		FROM unnest($3::text[]) WITH ORDINALITY AS k (kind, n)
		LEFT JOIN taken ON taken.kind = k.kind
		LEFT JOIN usage u ON u.account_id = $1 AND u.day = $2 AND u.kind = k.kind
		ORDER BY k.n`

	// What the account $1 stores: the current rows of datasets that are not deleted and not attached, the files that were loaded into them, and uploads that
	// are in progress or wait to be loaded.
	sqlStored = `
		((SELECT coalesce(sum(s.byte_count), 0) FROM lake_tables t
			JOIN lake_snapshots s ON s.account_id = t.account_id AND s.dataset_id = t.dataset_id AND s.id = t.snapshot_id
			WHERE t.account_id = $1 AND t.removed_at IS NULL AND t.attached IS NULL)
		+ (SELECT coalesce(sum(f.size), 0) FROM upload_files f
			WHERE f.account_id = $1 AND f.bound_dataset IS NULL AND f.removed_at IS NULL AND f.status <> 'aborted')
		+ (SELECT coalesce(sum(f.size), 0) FROM upload_files f
			LEFT JOIN lake_tables t ON t.account_id = f.bound_account AND t.dataset_id = f.bound_dataset
			WHERE f.bound_account = $1 AND f.bound_dataset IS NOT NULL AND f.remove_at IS NULL AND f.removed_at IS NULL AND t.removed_at IS NULL))::bigint`

	sqlSelectStored = `SELECT ` + sqlStored

	sqlSelectRoom = `
		SELECT l.kind, CASE WHEN l.amount IS NULL THEN 0 ELSE ` + sqlStored + ` END, l.amount
		FROM (SELECT k.kind, ` + sqlLimit + ` AS amount FROM (SELECT 'storedBytes' AS kind) k) l`

	// The order of the rows is that of $3, so that no two transactions wait for each other.
	// The account may have been erased since the work began. What it used then is not kept.
	sqlAddUsage = `
		INSERT INTO usage AS u (account_id, day, kind, amount)
		SELECT $1, $2, * FROM unnest($3::text[], $4::bigint[]) WHERE EXISTS (SELECT FROM accounts WHERE id = $1)
		ON CONFLICT (account_id, day, kind) DO UPDATE SET amount = u.amount + EXCLUDED.amount`
)

func selectUsage(ctx context.Context, q postgres.Querier, account uuid.UUID, day time.Time, kinds []Kind) ([]Used, error) {
	return usedRows(q.Query(ctx, sqlSelectUsage, account, day, kinds))
}

func takeOne(ctx context.Context, tx pgx.Tx, account uuid.UUID, day time.Time, kinds []Kind) ([]Used, error) {
	return usedRows(tx.Query(ctx, sqlTakeOne, account, day, kinds))
}

func usedRows(rows pgx.Rows, err error) ([]Used, error) {
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Used])
}

func addUsage(ctx context.Context, q postgres.Querier, account uuid.UUID, day time.Time, kinds []Kind, amounts []int64) error {
	_, err := q.Exec(ctx, sqlAddUsage, account, day, kinds, amounts)

	return err
}

func selectStored(ctx context.Context, q postgres.Querier, account uuid.UUID) (bytes int64, err error) {
	return bytes, q.QueryRow(ctx, sqlSelectStored, account).Scan(&bytes)
}

func selectRoom(ctx context.Context, tx pgx.Tx, account uuid.UUID) (stored Used, err error) {
	return stored, tx.QueryRow(ctx, sqlSelectRoom, account).Scan(&stored.Kind, &stored.Amount, &stored.Limit)
}
