package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// readDefinition returns nil if the dataset does not exist.
func readDefinition(ctx context.Context, q postgres.Querier, statement string, d Dataset) (*Definition, error) {
	var found Definition

	err := q.QueryRow(ctx, statement, d.Account, d.ID).Scan(&found.Revision, &found.DataDescription, &found.SchemaDefinition)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	return &found, err
}

const sqlSelectDefinition = `
	SELECT definition_revision, data_description, schema_definition FROM datasets WHERE account_id = $1 AND id = $2`

func selectDefinition(ctx context.Context, q postgres.Querier, d Dataset) (*Definition, error) {
	return readDefinition(ctx, q, sqlSelectDefinition, d)
}

const sqlSelectRefreshed = `SELECT refreshed_at FROM datasets WHERE account_id = $1 AND id = $2`

func selectRefreshed(ctx context.Context, q postgres.Querier, d Dataset) (time.Time, error) {
	var at *time.Time

	err := q.QueryRow(ctx, sqlSelectRefreshed, d.Account, d.ID).Scan(&at)
	if postgres.NoRows(err) {
		err = nil
	}

	if at == nil {
		return time.Time{}, err
	}

	return *at, err
}

const sqlUpdateRefreshed = `
	UPDATE datasets SET refreshed_at = greatest(refreshed_at, $3) WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

func updateRefreshed(ctx context.Context, tx pgx.Tx, d Dataset, at time.Time) error {
	_, err := tx.Exec(ctx, sqlUpdateRefreshed, d.Account, d.ID, at)

	return err
}

const sqlSelectDefinitions = `
	SELECT id, definition_revision, data_description, schema_definition FROM datasets WHERE account_id = $1 AND id = ANY($2)`

func selectDefinitions(ctx context.Context, q postgres.Querier, account uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]Definition, error) {
	rows, err := q.Query(ctx, sqlSelectDefinitions, account, ids)
	if err != nil {
		return nil, err
	}

	var (
		found = map[uuid.UUID]Definition{}
		id    uuid.UUID
		one   Definition
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &one.Revision, &one.DataDescription, &one.SchemaDefinition}, func() error {
		found[id] = one
		one.SchemaDefinition = nil

		return nil
	})

	return found, err
}

const sqlLockDefinition = `
	SELECT definition_revision, data_description, schema_definition FROM datasets
	WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE`

func lockDefinition(ctx context.Context, tx pgx.Tx, d Dataset) (*Definition, error) {
	return readDefinition(ctx, tx, sqlLockDefinition, d)
}

const sqlInsertDefinition = `
	WITH saved AS (
		INSERT INTO definitions (account_id, dataset_id, revision, data_description, schema_definition, actor_id, actor, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8))
	UPDATE datasets SET definition_revision = $3, data_description = $4, schema_definition = $5, updated_at = $8
	WHERE account_id = $1 AND id = $2`

func insertDefinition(ctx context.Context, tx pgx.Tx, who auth.Principal, d Dataset, definition Definition, now time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertDefinition, d.Account, d.ID, definition.Revision, definition.DataDescription, definition.SchemaDefinition,
		who.Account, who.Username, now)

	return err
}
