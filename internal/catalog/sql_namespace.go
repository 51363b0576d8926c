package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

func scanNamespace(row pgx.CollectableRow) (n Namespace, err error) {
	err = row.Scan(&n.Account, &n.ID, &n.Name, &n.Exposure, &n.CreatedAt, &n.access.granted)
	n.access.account, n.access.namespace = n.Account, n.ID

	return n, err
}

const sqlSelectNamespace = `SELECT ` + sqlNamespaceColumns + ` WHERE n.account_id = $1 AND n.name_key = $4 AND n.deleted_at IS NULL`

func selectNamespace(ctx context.Context, q postgres.Querier, account uuid.UUID, key string, who auth.Principal) (*Namespace, error) {
	return first(list(ctx, q, scanNamespace, sqlSelectNamespace, account, who, key))
}

const sqlSelectNamespaceByID = `SELECT ` + sqlNamespaceColumns + ` WHERE n.account_id = $1 AND n.id = $4`

func selectNamespaceByID(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Namespace, error) {
	return first(list(ctx, q, scanNamespace, sqlSelectNamespaceByID, account, auth.Principal{Account: account}, id))
}

const sqlSelectNamespacesByID = `SELECT ` + sqlNamespaceColumns + ` WHERE n.account_id = $1 AND n.id = ANY($4) AND n.deleted_at IS NULL ORDER BY n.id`

func selectNamespacesByID(ctx context.Context, q postgres.Querier, account uuid.UUID, who auth.Principal, ids []uuid.UUID) ([]Namespace, error) {
	return list(ctx, q, scanNamespace, sqlSelectNamespacesByID, account, who, ids)
}

const sqlSelectOwnNamespaces = `SELECT ` + sqlNamespaceColumns + ` WHERE n.account_id = $1 AND n.id > $4 AND n.deleted_at IS NULL ORDER BY n.id LIMIT $5`

func selectOwnNamespaces(ctx context.Context, q postgres.Querier, who auth.Principal, after uuid.UUID, limit int) ([]Namespace, error) {
	return list(ctx, q, scanNamespace, sqlSelectOwnNamespaces, who.Account, who, after, limit)
}

const sqlInsertNamespace = `
	INSERT INTO namespaces (account_id, id, name, name_key, exposure, created_at) VALUES ($1, $2, $3, $4, nullif($5, ''), $6)
	ON CONFLICT (account_id, name_key) WHERE deleted_at IS NULL DO NOTHING`

func insertNamespace(ctx context.Context, tx pgx.Tx, n Namespace) (isNew bool, err error) {
	return changed(ctx, tx, sqlInsertNamespace, n.Account, n.ID, n.Name, nameKey(n.Name), n.Exposure, n.CreatedAt)
}

const sqlHoldNamespace = `SELECT id, name FROM namespaces WHERE account_id = $1 AND name_key = $2 AND deleted_at IS NULL FOR SHARE`

// holdNamespace locks a namespace against deletion until the transaction ends. It returns nil if the namespace does
// not exist.
func holdNamespace(ctx context.Context, tx pgx.Tx, account uuid.UUID, key string) (*Namespace, error) {
	n := Namespace{Account: account}

	err := tx.QueryRow(ctx, sqlHoldNamespace, account, key).Scan(&n.ID, &n.Name)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	n.access = access{account: account, namespace: n.ID}

	return &n, err
}

const sqlLockNamespace = `SELECT id FROM namespaces WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE`

func lockNamespace(ctx context.Context, tx pgx.Tx, n Namespace) (isLive bool, err error) {
	return changed(ctx, tx, sqlLockNamespace, n.Account, n.ID)
}

const sqlUpdateNamespace = `
	UPDATE namespaces SET name = coalesce(nullif($3, ''), name), name_key = coalesce(nullif($4, ''), name_key), exposure = coalesce(nullif($5, ''), exposure)
	WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

func updateNamespace(ctx context.Context, tx pgx.Tx, n Namespace, change NamespaceChange) (isLive bool, err error) {
	return changed(ctx, tx, sqlUpdateNamespace, n.Account, n.ID, change.Name, nameKey(change.Name), change.Exposure)
}

const sqlDeleteNamespace = `UPDATE namespaces SET deleted_at = $3, erased = false WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

func deleteNamespace(ctx context.Context, tx pgx.Tx, n Namespace, now time.Time) error {
	_, err := tx.Exec(ctx, sqlDeleteNamespace, n.Account, n.ID, now)

	return err
}

const sqlNamespaceHasDatasets = `SELECT EXISTS (SELECT FROM datasets WHERE account_id = $1 AND namespace_id = $2 AND deleted_at IS NULL)`

func namespaceHasDatasets(ctx context.Context, tx pgx.Tx, n Namespace) (has bool, err error) {
	err = tx.QueryRow(ctx, sqlNamespaceHasDatasets, n.Account, n.ID).Scan(&has)

	return has, err
}
