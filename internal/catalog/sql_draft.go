package catalog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlDraftColumns = `account_id, id, namespace, name, entry, created_at,
	(SELECT n.id FROM namespaces n WHERE n.account_id = d.account_id AND n.name_key = d.namespace_key AND n.deleted_at IS NULL) FROM dataset_drafts d`

func scanDraft(row pgx.CollectableRow) (d Draft, err error) {
	var namespace *uuid.UUID

	err = row.Scan(&d.Account, &d.ID, &d.Namespace, &d.Name, &d.entry, &d.CreatedAt, &namespace)
	if namespace != nil {
		d.NamespaceID = *namespace
	}

	return d, err
}

func drafts(ctx context.Context, q postgres.Querier, statement string, args ...any) ([]Draft, error) {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanDraft)
}

const sqlSelectDraft = `SELECT ` + sqlDraftColumns + ` WHERE account_id = $1 AND namespace_key = $2 AND name_key = $3`

// selectDraft returns nil if the draft does not exist.
func selectDraft(ctx context.Context, q postgres.Querier, account uuid.UUID, namespace, name string) (*Draft, error) {
	return first(drafts(ctx, q, sqlSelectDraft, account, namespace, name))
}

const sqlDraftByID = `SELECT ` + sqlDraftColumns + ` WHERE account_id = $1 AND id = $2`

func selectDraftByID(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Draft, error) {
	return first(drafts(ctx, q, sqlDraftByID, account, id))
}

const sqlStaleDrafts = `SELECT ` + sqlDraftColumns + ` WHERE used_at < $1 ORDER BY used_at LIMIT $2`

func selectStaleDrafts(ctx context.Context, q postgres.Querier, since time.Time, limit int) ([]Draft, error) {
	return drafts(ctx, q, sqlStaleDrafts, since, limit)
}

const sqlUpsertDraft = `
	INSERT INTO dataset_drafts (account_id, namespace_key, name_key, id, namespace, name, entry, created_at, used_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
	ON CONFLICT (account_id, namespace_key, name_key) DO UPDATE SET used_at = excluded.used_at RETURNING id`

// upsertDraft returns the id of the draft of that name, which may be an earlier draft.
func upsertDraft(ctx context.Context, tx pgx.Tx, d Draft) (id uuid.UUID, err error) {
	entry, err := marshal(d.entry)
	if err != nil {
		return id, err
	}

	err = tx.QueryRow(ctx, sqlUpsertDraft, d.Account, nameKey(d.Namespace), nameKey(d.Name), d.ID, d.Namespace, d.Name, entry, d.CreatedAt).Scan(&id)

	return id, err
}

// marshal encodes a value for a jsonb column.
func marshal(value any) ([]byte, error) { return json.Marshal(value) }

const sqlDeleteDraft = `DELETE FROM dataset_drafts WHERE account_id = $1 AND id = $2`

func deleteDraft(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlDeleteDraft, account, id)

	return err
}

const sqlDeleteStaleDraft = `DELETE FROM dataset_drafts WHERE account_id = $1 AND id = $2 AND used_at < $3`

func deleteStaleDraft(ctx context.Context, tx pgx.Tx, account, id uuid.UUID, since time.Time) (isStale bool, err error) {
	return changed(ctx, tx, sqlDeleteStaleDraft, account, id, since)
}
