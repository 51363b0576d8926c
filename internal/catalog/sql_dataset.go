package catalog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

func scanDataset(row pgx.CollectableRow) (d Dataset, err error) {
	err = row.Scan(&d.Account, &d.ID, &d.NamespaceID, &d.Namespace, &d.Name, &d.Exposure, &d.Epoch, &d.DataDescription, &d.Columns, &d.RowCount,
		&d.SnapshotID, &d.CreatedAt, &d.UpdatedAt, &d.Key.Columns, &d.Key.Duplicates, &d.Engine, &d.access.granted)
	d.access.account, d.access.namespace, d.access.dataset = d.Account, d.NamespaceID, d.ID

	return d, err
}

// The plans of the statements that select datasets must be good for an account with a million datasets, although the
// planner of PostgreSQL expects few. Therefore each condition fits exactly one index.
const sqlSelectDataset = `SELECT ` + sqlDatasetColumns + sqlDatasets + `
	WHERE d.account_id = $1 AND d.name_key = $5 AND d.deleted_at IS NULL
		AND d.namespace_id = (SELECT id FROM namespaces WHERE account_id = $1 AND name_key = $4 AND deleted_at IS NULL)`

func selectDataset(ctx context.Context, q postgres.Querier, account uuid.UUID, namespace, name string, who auth.Principal) (*Dataset, error) {
	return first(list(ctx, q, scanDataset, sqlSelectDataset, account, who, namespace, name))
}

const sqlSelectDatasetByID = `SELECT ` + sqlDatasetColumns + sqlDatasets + ` WHERE d.account_id = $1 AND d.id = $4`

func selectDatasetByID(ctx context.Context, q postgres.Querier, account, id uuid.UUID, who auth.Principal) (*Dataset, error) {
	return first(list(ctx, q, scanDataset, sqlSelectDatasetByID, account, who, id))
}

const sqlSelectDatasetsByID = `
	WITH d AS MATERIALIZED (
		SELECT account_id, id, namespace_id, name, exposure, epoch, data_description, columns, row_count, snapshot_id, created_at, updated_at,
			key_columns, key_duplicates, engine
		FROM datasets WHERE account_id = $1 AND id = ANY($4) AND deleted_at IS NULL)
	SELECT ` + sqlDatasetColumns + ` FROM d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id ORDER BY d.id`

func selectDatasetsByID(ctx context.Context, q postgres.Querier, account uuid.UUID, who auth.Principal, ids []uuid.UUID) ([]Dataset, error) {
	return list(ctx, q, scanDataset, sqlSelectDatasetsByID, account, who, ids)
}

const sqlSelectDatasetsOf = `SELECT ` + sqlDatasetColumns + sqlDatasets + `
	WHERE d.account_id = $1 AND d.namespace_id = $4 AND d.id > $5 AND d.live ORDER BY d.id LIMIT $6`

func selectDatasetsOf(ctx context.Context, q postgres.Querier, account uuid.UUID, who auth.Principal, namespace, after uuid.UUID, limit int) ([]Dataset, error) {
	return list(ctx, q, scanDataset, sqlSelectDatasetsOf, account, who, namespace, after, limit)
}

const sqlSelectNeighbours = `
	SELECT id, name FROM datasets WHERE account_id = $1 AND id = $2 AND live
	UNION (
		SELECT id, name FROM datasets
		WHERE account_id = $1 AND namespace_id = (SELECT namespace_id FROM datasets WHERE account_id = $1 AND id = $2) AND live
		ORDER BY id DESC LIMIT $3)`

func selectNeighbours(ctx context.Context, q postgres.Querier, account, dataset uuid.UUID, limit int) (map[uuid.UUID]string, error) {
	return namesByID(ctx, q, sqlSelectNeighbours, account, dataset, limit)
}

const sqlInsertDataset = `
	INSERT INTO datasets (account_id, id, namespace_id, name, name_key, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
	ON CONFLICT (account_id, namespace_id, name_key) WHERE deleted_at IS NULL DO NOTHING`

func insertDataset(ctx context.Context, tx pgx.Tx, d Dataset) (isNew bool, err error) {
	return changed(ctx, tx, sqlInsertDataset, d.Account, d.ID, d.NamespaceID, d.Name, nameKey(d.Name), d.CreatedAt)
}

const sqlLockDataset = `SELECT namespace_id FROM datasets WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE`

// lockDataset locks a dataset until the transaction ends, and sets its current namespace: a concurrent move may have
// changed it.
func lockDataset(ctx context.Context, tx pgx.Tx, d *Dataset) (isLive bool, err error) {
	err = tx.QueryRow(ctx, sqlLockDataset, d.Account, d.ID).Scan(&d.NamespaceID)
	if postgres.NoRows(err) {
		return false, nil
	}

	return true, err
}

const sqlUpdateDataset = `
	UPDATE datasets SET name = coalesce(nullif($3, ''), name), name_key = coalesce(nullif($4, ''), name_key),
		exposure = coalesce(nullif($5, ''), exposure), updated_at = $6, namespace_id = $7
	WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

func updateDataset(ctx context.Context, tx pgx.Tx, d Dataset, change DatasetChange, now time.Time) (isLive bool, err error) {
	return changed(ctx, tx, sqlUpdateDataset, d.Account, d.ID, change.Name, nameKey(change.Name), change.Exposure, now, d.NamespaceID)
}

const sqlDeleteDataset = `
	UPDATE datasets SET deleted_at = $3, epoch = epoch + 1 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

func deleteDataset(ctx context.Context, tx pgx.Tx, d Dataset, now time.Time) (isLive bool, err error) {
	return changed(ctx, tx, sqlDeleteDataset, d.Account, d.ID, now)
}

const sqlClearDataset = `
	UPDATE datasets SET row_count = 0, epoch = epoch + 1, snapshot_id = $4, updated_at = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

func clearDataset(ctx context.Context, tx pgx.Tx, d Dataset, snapshot uuid.UUID, now time.Time) (isLive bool, err error) {
	return changed(ctx, tx, sqlClearDataset, d.Account, d.ID, now, orNull(snapshot))
}

const sqlUpdateContent = `
	UPDATE datasets SET columns = $4, row_count = $5, snapshot_id = $6, updated_at = $7
	WHERE account_id = $1 AND id = $2 AND epoch = $3 AND deleted_at IS NULL AND key_columns = $8`

func updateContent(ctx context.Context, tx pgx.Tx, d Dataset, content Content, now time.Time) (fits bool, err error) {
	columns, err := asJSON(content.Columns)
	if err != nil {
		return false, err
	}

	return changed(ctx, tx, sqlUpdateContent, d.Account, d.ID, d.Epoch, columns, content.Rows, orNull(content.Snapshot), now, d.Key.names())
}

// asJSON encodes columns as text, because behind a connection pooler pgx does not know that the column has the type
// jsonb.
func asJSON(columns []Column) (string, error) {
	text, err := json.Marshal(append([]Column{}, columns...)) // encode nil as an empty array

	return string(text), err
}

const sqlUpdateSnapshot = `UPDATE datasets SET snapshot_id = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

func updateSnapshot(ctx context.Context, tx pgx.Tx, account, id, snapshot uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlUpdateSnapshot, account, id, snapshot)

	return err
}

func orNull(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}

	return &id
}

const sqlLockTombstone = `
	SELECT d.id, d.namespace_id, n.name, d.name FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id
	WHERE d.account_id = $1 AND n.account_id = $1 AND n.name_key = $2 AND d.name_key = $3 AND d.deleted_at >= $4
	ORDER BY d.deleted_at DESC LIMIT 1 FOR UPDATE OF d`

// lockTombstone returns nil if no tombstone matches.
func lockTombstone(ctx context.Context, tx pgx.Tx, account uuid.UUID, namespace, name string, notBefore time.Time) (*Dataset, error) {
	d := Dataset{Account: account}

	err := tx.QueryRow(ctx, sqlLockTombstone, account, namespace, name, notBefore).Scan(&d.ID, &d.NamespaceID, &d.Namespace, &d.Name)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	return &d, err
}

const sqlUpdateKey = `
	UPDATE datasets SET key_columns = $3, key_duplicates = $4, updated_at = $5 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

func updateKey(ctx context.Context, tx pgx.Tx, d Dataset, key Key, now time.Time) (isLive bool, err error) {
	return changed(ctx, tx, sqlUpdateKey, d.Account, d.ID, key.names(), key.Duplicates, now)
}
