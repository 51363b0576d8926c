package connection

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlColumns = `account_id, id, name, kind, settings, key_id, wrapped, sealed, problem, tested_at, created_at FROM connections`

const (
	sqlInsert = `
		INSERT INTO connections (account_id, id, name, kind, settings, key_id, wrapped, sealed, problem, tested_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', $9, $10)`
	sqlLockAccount = `SELECT pg_advisory_xact_lock(hashtextextended('connections ' || $1::text, 0))`
	sqlCount       = `SELECT count(*) FROM connections WHERE account_id = $1`
	sqlSelect      = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id = $2`
	sqlLock        = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id = $2 FOR UPDATE`
	sqlSelectPage  = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlUpdate      = `
		UPDATE connections SET name = $3, settings = $4, key_id = $5, wrapped = $6, sealed = $7, problem = $8, tested_at = $9 WHERE account_id = $1 AND id = $2`
	sqlDelete        = `DELETE FROM connections WHERE account_id = $1 AND id = $2`
	sqlLockOtherKeys = `SELECT ` + sqlColumns + ` WHERE (account_id, id) > ($1, $2) AND key_id <> $3 ORDER BY account_id, id LIMIT $4 FOR UPDATE`
)

func scan(row pgx.CollectableRow) (c Connection, err error) {
	var settings json.RawMessage

	if err := row.Scan(&c.Account, &c.ID, &c.Name, &c.Kind, &settings, &c.secret.keyID, &c.secret.wrapped, &c.secret.text, &c.Problem, &c.TestedAt, &c.CreatedAt); err != nil {
		return Connection{}, err
	}

	switch c.Kind {
	case KindPostgres:
		return c, json.Unmarshal(settings, &c.Postgres)
	case KindHTTPS:
		return c, json.Unmarshal(settings, &c.HTTPS)
	case KindIceberg:
		return c, json.Unmarshal(settings, &c.Iceberg)
	default:
		return c, json.Unmarshal(settings, &c.S3)
	}
}

// settings are those of the kind of the connection.
func (c Connection) settings() any {
	switch c.Kind {
	case KindPostgres:
		return c.Postgres
	case KindHTTPS:
		return c.HTTPS
	case KindIceberg:
		return c.Iceberg
	default:
		return c.S3
	}
}

func first(rows pgx.Rows, err error) (*Connection, error) {
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scan)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func insert(ctx context.Context, tx pgx.Tx, c Connection) error {
	_, err := tx.Exec(ctx, sqlInsert, c.Account, c.ID, c.Name, c.Kind, c.settings(), c.secret.keyID, c.secret.wrapped, c.secret.text, c.TestedAt, c.CreatedAt)

	return err
}

// count returns the number of connections of an account. Until the transaction ends, no other one counts them.
func count(ctx context.Context, tx pgx.Tx, account uuid.UUID) (n int, err error) {
	if _, err := tx.Exec(ctx, sqlLockAccount, account); err != nil {
		return 0, err
	}

	err = tx.QueryRow(ctx, sqlCount, account).Scan(&n)

	return n, err
}

func selectOne(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Connection, error) {
	rows, err := q.Query(ctx, sqlSelect, account, id)

	return first(rows, err)
}

func lock(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Connection, error) {
	rows, err := q.Query(ctx, sqlLock, account, id)

	return first(rows, err)
}

func selectPage(ctx context.Context, q postgres.Querier, account, after uuid.UUID, limit int) ([]Connection, error) {
	rows, err := q.Query(ctx, sqlSelectPage, account, after, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scan)
}

func update(ctx context.Context, tx pgx.Tx, c Connection) error {
	_, err := tx.Exec(ctx, sqlUpdate, c.Account, c.ID, c.Name, c.settings(), c.secret.keyID, c.secret.wrapped, c.secret.text, c.Problem, c.TestedAt)

	return err
}

// remove deletes a connection with its grants.
func remove(ctx context.Context, tx pgx.Tx, c Connection) error {
	if _, err := tx.Exec(ctx, sqlDeleteAllGrants, c.Account, c.ID); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, sqlDelete, c.Account, c.ID)

	return err
}

// lockOtherKeys returns connections after the given one whose secrets are sealed with another key.
func lockOtherKeys(ctx context.Context, tx pgx.Tx, after Connection, key string, limit int) ([]Connection, error) {
	rows, err := tx.Query(ctx, sqlLockOtherKeys, after.Account, after.ID, key, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scan)
}
