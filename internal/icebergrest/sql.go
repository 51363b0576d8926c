package icebergrest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsertSchema = `INSERT INTO engine_schemas (account_id, token_hash, tables, expires_at) VALUES ($1, $2, $3, $4)`
	sqlSelectTables = `SELECT tables FROM engine_schemas WHERE account_id = $1 AND token_hash = $2 AND expires_at > $3`
	sqlDeleteSchema = `DELETE FROM engine_schemas WHERE account_id = $1 AND token_hash = $2`

	sqlDropStale = `
		DELETE FROM engine_schemas WHERE (account_id, token_hash) IN (
			SELECT account_id, token_hash FROM engine_schemas WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

func insertSchema(ctx context.Context, q postgres.Querier, account uuid.UUID, hash []byte, tables []Table, deadline time.Time) error {
	_, err := q.Exec(ctx, sqlInsertSchema, account, hash, tables, deadline)

	return err
}

// selectTables returns nil if there is no such schema.
func selectTables(ctx context.Context, q postgres.Querier, account uuid.UUID, hash []byte, now time.Time) (tables []Table, err error) {
	err = q.QueryRow(ctx, sqlSelectTables, account, hash, now).Scan(&tables)
	if postgres.NoRows(err) {
		return nil, nil
	}

	return tables, err
}

func deleteSchema(ctx context.Context, q postgres.Querier, account uuid.UUID, hash []byte) error {
	_, err := q.Exec(ctx, sqlDeleteSchema, account, hash)

	return err
}

func dropStale(ctx context.Context, q postgres.Querier, now time.Time, limit int) error {
	_, err := q.Exec(ctx, sqlDropStale, now, limit)

	return err
}
