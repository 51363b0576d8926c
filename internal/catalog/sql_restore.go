package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/postgres"
)

const sqlSelectDeleted = `
	SELECT kind, id, namespace, dataset, deleted_at FROM (
		(SELECT 'dataset' AS kind, d.id, n.name AS namespace, d.name AS dataset, d.deleted_at
			FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id
			WHERE d.account_id = $1 AND d.deleted_at >= $2 AND (d.deleted_at, d.id) < ($3, $4)
			ORDER BY d.deleted_at DESC, d.id DESC LIMIT $5)
		UNION ALL
		(SELECT 'namespace', id, name, '', deleted_at FROM namespaces
			WHERE account_id = $1 AND deleted_at >= $2 AND NOT erased AND (deleted_at, id) < ($3, $4)
			ORDER BY deleted_at DESC, id DESC LIMIT $5)) AS both_kinds
	ORDER BY deleted_at DESC, id DESC LIMIT $5`

func selectDeleted(ctx context.Context, q postgres.Querier, account uuid.UUID, since time.Time, after audit.Position, limit int) ([]Deleted, error) {
	rows, err := q.Query(ctx, sqlSelectDeleted, account, since, after.At, after.ID, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Deleted, err error) {
		err = row.Scan(&d.Kind, &d.ID, &d.Namespace, &d.Dataset, &d.DeletedAt)

		return d, err
	})
}

const (
	sqlLockDatasetByID = `SELECT namespace_id, name, deleted_at FROM datasets WHERE account_id = $1 AND id = $2 FOR UPDATE`
	sqlNamespaceName   = `SELECT name FROM namespaces WHERE account_id = $1 AND id = $2`
)

// lockDatasetByID locks a dataset or a tombstone. It returns nil if there is none. A second statement reads the name of the
// namespace, because the first one may have waited for a transaction that changed the namespace of the dataset.
func lockDatasetByID(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*Dataset, *time.Time, error) {
	var (
		d         = Dataset{Account: account, ID: id}
		deletedAt *time.Time
	)

	err := tx.QueryRow(ctx, sqlLockDatasetByID, account, id).Scan(&d.NamespaceID, &d.Name, &deletedAt)
	if postgres.NoRows(err) {
		return nil, nil, nil
	}

	if err == nil {
		err = tx.QueryRow(ctx, sqlNamespaceName, account, d.NamespaceID).Scan(&d.Namespace)
	}

	return &d, deletedAt, err
}

const sqlLockNamespaceByID = `SELECT name, deleted_at FROM namespaces WHERE account_id = $1 AND id = $2 AND NOT (deleted_at IS NOT NULL AND erased) FOR UPDATE`

// lockNamespaceByID locks a namespace or a tombstone. It returns nil if there is none, or if it was erased.
func lockNamespaceByID(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*Namespace, *time.Time, error) {
	var (
		n         = Namespace{Account: account, ID: id}
		deletedAt *time.Time
	)

	err := tx.QueryRow(ctx, sqlLockNamespaceByID, account, id).Scan(&n.Name, &deletedAt)
	if postgres.NoRows(err) {
		return nil, nil, nil
	}

	return &n, deletedAt, err
}

const sqlReviveNamespace = `UPDATE namespaces SET deleted_at = NULL, name = $3, name_key = $4 WHERE account_id = $1 AND id = $2 AND deleted_at IS NOT NULL`

// reviveNamespace returns false if the namespace is not deleted.
func reviveNamespace(ctx context.Context, tx pgx.Tx, account, id uuid.UUID, name string) (revived bool, err error) {
	return changed(ctx, tx, sqlReviveNamespace, account, id, name, nameKey(name))
}

const sqlReviveDataset = `
	UPDATE datasets SET deleted_at = NULL, namespace_id = $3, name = $4, name_key = $5, epoch = epoch + 1, updated_at = $6 WHERE account_id = $1 AND id = $2`

func reviveDataset(ctx context.Context, tx pgx.Tx, d Dataset, now time.Time) error {
	_, err := tx.Exec(ctx, sqlReviveDataset, d.Account, d.ID, d.NamespaceID, d.Name, nameKey(d.Name), now)

	return err
}

const sqlSelectErasable = `SELECT account_id, id FROM namespaces WHERE deleted_at < $1 AND NOT erased ORDER BY deleted_at LIMIT $2`

func selectErasable(ctx context.Context, q postgres.Querier, until time.Time, limit int) ([]access, error) {
	rows, err := q.Query(ctx, sqlSelectErasable, until, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a access, err error) {
		err = row.Scan(&a.account, &a.namespace)

		return a, err
	})
}

const sqlEraseNamespace = `UPDATE namespaces SET erased = true WHERE account_id = $1 AND id = $2 AND deleted_at < $3`

// eraseNamespace marks a namespace. It returns false if the namespace was restored in the meantime.
func eraseNamespace(ctx context.Context, tx pgx.Tx, n access, until time.Time) (isDue bool, err error) {
	return changed(ctx, tx, sqlEraseNamespace, n.account, n.namespace, until)
}

// A trigger deletes its document of the search.
const sqlForgetDataset = `
	WITH gone AS (
		DELETE FROM datasets WHERE account_id = $1 AND id = $2 AND deleted_at IS NOT NULL RETURNING account_id, namespace_id, id),
	revisions AS (DELETE FROM definitions v USING gone WHERE v.account_id = gone.account_id AND v.dataset_id = gone.id),
	remarks AS (DELETE FROM semantics s USING gone WHERE s.account_id = gone.account_id AND s.dataset_id = gone.id),
	choices AS (DELETE FROM remembered r USING gone WHERE r.account_id = gone.account_id AND r.dataset_id = gone.id)
	SELECT account_id, namespace_id, id FROM gone`

// forgetDataset returns nil if the dataset does not exist or is not deleted.
func forgetDataset(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*access, error) {
	var gone access

	err := tx.QueryRow(ctx, sqlForgetDataset, account, id).Scan(&gone.account, &gone.namespace, &gone.dataset)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // there is none
	}

	return &gone, err
}
