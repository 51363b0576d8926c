package catalog

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlLockSearched = `SELECT examples FROM dataset_search WHERE account_id = $1 AND dataset_id = $2 FOR UPDATE`

func lockSearched(ctx context.Context, tx pgx.Tx, account, dataset uuid.UUID) ([]searched, error) {
	found := searched{account: account, dataset: dataset}

	err := tx.QueryRow(ctx, sqlLockSearched, account, dataset).Scan(&found.values)
	if postgres.NoRows(err) {
		return nil, nil
	}

	return []searched{found}, err
}

const sqlLockStale = `
	SELECT account_id, dataset_id, examples FROM dataset_search
	WHERE stale AND account_id = (SELECT account_id FROM dataset_search WHERE stale ORDER BY account_id LIMIT 1)
	ORDER BY dataset_id LIMIT $1 FOR UPDATE SKIP LOCKED`

func lockStale(ctx context.Context, tx pgx.Tx, limit int) ([]searched, error) {
	rows, err := tx.Query(ctx, sqlLockStale, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s searched, err error) {
		err = row.Scan(&s.account, &s.dataset, &s.values)

		return s, err
	})
}

const sqlSelectSearched = `
	SELECT id, namespace_id, name, data_description, schema_definition, columns FROM datasets
	WHERE account_id = $1 AND id = ANY($2) AND deleted_at IS NULL`

func selectSearched(ctx context.Context, tx pgx.Tx, list []searched) (map[uuid.UUID]searched, error) {
	ids := make([]uuid.UUID, len(list))
	for i, s := range list {
		ids[i] = s.dataset
	}

	rows, err := tx.Query(ctx, sqlSelectSearched, list[0].account, ids)
	if err != nil {
		return nil, err
	}

	found := map[uuid.UUID]searched{}

	for rows.Next() {
		var s searched
		if err := rows.Scan(&s.dataset, &s.namespace, &s.name, &s.definition.DataDescription, &s.definition.SchemaDefinition, &s.columns); err != nil {
			return nil, err
		}

		found[s.dataset] = s
	}

	return found, rows.Err()
}

const sqlUpdateSearched = `
	UPDATE dataset_search h SET document = s.document::tsvector, stale = false
	FROM unnest($2::uuid[], $3::text[]) AS s (dataset_id, document) WHERE h.account_id = $1 AND h.dataset_id = s.dataset_id`

func updateSearched(ctx context.Context, tx pgx.Tx, account uuid.UUID, ids []uuid.UUID, documents []string) error {
	_, err := tx.Exec(ctx, sqlUpdateSearched, account, ids, documents)

	return err
}

const sqlUpdateExamples = `
	UPDATE dataset_search SET examples = $3 WHERE account_id = $1 AND dataset_id = $2 AND examples <> $3`

func updateExamples(ctx context.Context, tx pgx.Tx, account, dataset uuid.UUID, values []string) (isNew bool, err error) {
	return changed(ctx, tx, sqlUpdateExamples, account, dataset, values)
}
