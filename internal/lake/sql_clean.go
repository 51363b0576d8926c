package lake

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlRemoveTable = `
	INSERT INTO lake_tables (account_id, dataset_id, removed_at) VALUES ($1, $2, $3)
	ON CONFLICT (account_id, dataset_id) DO UPDATE SET removed_at = coalesce(lake_tables.removed_at, excluded.removed_at)`

func removeTable(ctx context.Context, tx pgx.Tx, t Table, now time.Time) error {
	_, err := tx.Exec(ctx, sqlRemoveTable, t.Account, t.Dataset, now)

	return err
}

const sqlKeepTable = `
	UPDATE lake_tables SET removed_at = CASE WHEN removing THEN removed_at END WHERE account_id = $1 AND dataset_id = $2 RETURNING removing`

func keepTable(ctx context.Context, tx pgx.Tx, t Table) (tooLate bool, err error) {
	err = tx.QueryRow(ctx, sqlKeepTable, t.Account, t.Dataset).Scan(&tooLate)
	if postgres.NoRows(err) {
		return true, nil // every deleted dataset has a row until its table is removed, so the table no longer exists
	}

	return tooLate, err
}

const sqlSelectSizes = `
	SELECT s.id, s.byte_count FROM unnest($2::uuid[], $3::uuid[]) AS k (dataset_id, id)
	JOIN lake_snapshots s ON s.account_id = $1 AND s.dataset_id = k.dataset_id AND s.id = k.id`

func selectSizes(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets, snapshots []uuid.UUID) (map[uuid.UUID]int64, error) {
	rows, err := q.Query(ctx, sqlSelectSizes, account, datasets, snapshots)
	if err != nil {
		return nil, err
	}

	var (
		sizes = map[uuid.UUID]int64{}
		id    uuid.UUID
		size  int64
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &size}, func() error {
		sizes[id] = size

		return nil
	})

	return sizes, err
}

const sqlSelectKept = `SELECT dataset_id FROM lake_tables WHERE account_id = $1 AND dataset_id = ANY($2) AND NOT removing`

func selectKept(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) ([]uuid.UUID, error) {
	rows, err := q.Query(ctx, sqlSelectKept, account, datasets)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

const sqlSelectRemoved = `
	SELECT account_id, dataset_id FROM lake_tables WHERE removed_at < $1 ORDER BY removed_at LIMIT $2`

func selectRemoved(ctx context.Context, q postgres.Querier, before time.Time, limit int) ([]Table, error) {
	rows, err := q.Query(ctx, sqlSelectRemoved, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Table, err error) {
		err = row.Scan(&t.Account, &t.Dataset)

		return t, err
	})
}

const (
	sqlBeginRemoval = `
		UPDATE lake_tables SET removing = true WHERE account_id = $1 AND dataset_id = $2 AND removed_at < $3`
	sqlDeletePointer = `
		DELETE FROM iceberg_tables WHERE catalog_name = 'quern' AND table_namespace = $1 AND table_name = $2`
	sqlRemoveFiles = `
		UPDATE lake_files SET remove_at = $3 WHERE account_id = $1 AND dataset_id = $2 AND (remove_at IS NULL OR remove_at > $3)`
)

// beginRemoval does nothing if the table was restored in the meantime.
func beginRemoval(ctx context.Context, tx pgx.Tx, t Table, before, now time.Time) (begun bool, err error) {
	tag, err := tx.Exec(ctx, sqlBeginRemoval, t.Account, t.Dataset, before)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}

	if _, err := tx.Exec(ctx, sqlDeletePointer, t.Account.String(), t.Dataset.String()); err != nil {
		return false, err
	}

	_, err = tx.Exec(ctx, sqlRemoveFiles, t.Account, t.Dataset, now)

	return err == nil, err
}

const sqlEndRemoval = `
	WITH gone AS (
		DELETE FROM lake_tables t WHERE t.account_id = $1 AND t.dataset_id = $2 AND t.removing
			AND NOT EXISTS (SELECT 1 FROM lake_files f WHERE f.account_id = $1 AND f.dataset_id = $2)
		RETURNING t.account_id, t.dataset_id),
	snapshots AS (DELETE FROM lake_snapshots s USING gone WHERE s.account_id = gone.account_id AND s.dataset_id = gone.dataset_id),
	schemas AS (DELETE FROM lake_schemas c USING gone WHERE c.account_id = gone.account_id AND c.dataset_id = gone.dataset_id),
	upkeep AS (DELETE FROM lake_upkeep u USING gone WHERE u.account_id = gone.account_id AND u.dataset_id = gone.dataset_id),
	profiles AS (DELETE FROM lake_profiles p USING gone WHERE p.account_id = gone.account_id AND p.dataset_id = gone.dataset_id),
	joins AS (
		DELETE FROM lake_joins j USING gone
		WHERE j.account_id = gone.account_id AND (j.dataset_id = gone.dataset_id OR j.other_id = gone.dataset_id)),
	parts AS (DELETE FROM lake_parts p USING gone WHERE p.account_id = gone.account_id AND p.dataset_id = gone.dataset_id)
	SELECT count(*) = 1 FROM gone`

// endRemoval deletes the rows of a removed table. It returns false while objects are left.
func endRemoval(ctx context.Context, q postgres.Querier, t Table) (ended bool, err error) {
	err = q.QueryRow(ctx, sqlEndRemoval, t.Account, t.Dataset).Scan(&ended)

	return ended, err
}

// removable is an object to remove. An incomplete object may have open multipart uploads.
type removable struct {
	table      Table
	id         uuid.UUID
	key        string
	incomplete bool
}

const sqlClaimRemovable = `
	UPDATE lake_files SET state = 'removing' WHERE (account_id, dataset_id, id) IN (
		SELECT account_id, dataset_id, id FROM lake_files WHERE remove_at < $1 ORDER BY remove_at LIMIT $2 FOR UPDATE SKIP LOCKED)
	RETURNING account_id, dataset_id, id, object_key, CASE kind WHEN 'data' THEN row_count = 0 WHEN 'derived' THEN size = 0 ELSE false END`

func claimRemovable(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]removable, error) {
	rows, err := q.Query(ctx, sqlClaimRemovable, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r removable, err error) {
		err = row.Scan(&r.table.Account, &r.table.Dataset, &r.id, &r.key, &r.incomplete)

		return r, err
	})
}

const sqlDeleteFile = `
	WITH gone AS (
		DELETE FROM lake_files WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND state = 'removing'
		RETURNING account_id, dataset_id, id)
	DELETE FROM lake_parts p USING gone WHERE p.account_id = gone.account_id AND p.dataset_id = gone.dataset_id AND p.file_id = gone.id`

func deleteFile(ctx context.Context, q postgres.Querier, r removable) error {
	_, err := q.Exec(ctx, sqlDeleteFile, r.table.Account, r.table.Dataset, r.id)

	return err
}
