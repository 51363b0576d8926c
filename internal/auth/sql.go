package auth

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlSelectIdentity = `SELECT account_id FROM directory_identities WHERE issuer = $1 AND subject = $2`
	sqlInsertIdentity = `INSERT INTO directory_identities (issuer, subject, account_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	sqlDeleteIdentity = `DELETE FROM directory_identities WHERE account_id = $1`

	sqlSelectName = `SELECT account_id FROM directory_names WHERE username = $1`
	sqlInsertName = `INSERT INTO directory_names (username, account_id) VALUES ($1, $2) ON CONFLICT (username) DO NOTHING`
	sqlUpdateName = `UPDATE directory_names SET username = $2 WHERE account_id = $1`

	sqlSelectAccount = `
		SELECT id, username, issuer, subject, name, email, groups, seen_at, disabled_at IS NOT NULL FROM accounts WHERE id = $1`
	sqlInsertAccount = `
		INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
		VALUES ($1, 'person', $2, $3, $4, $5, $6, $7, $8, $9)`
	sqlSelectAccounts = `
		SELECT a.id, a.username, a.name, a.email, a.created_at, a.seen_at, a.disabled_at IS NOT NULL
		FROM directory_names n JOIN accounts a ON a.id = n.account_id
		WHERE n.username > $1 ORDER BY n.username LIMIT $2`
	sqlLockAccount    = `SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE`
	sqlUpdateSeen     = `UPDATE accounts SET name = $2, email = $3, groups = $4, seen_at = $5 WHERE id = $1 AND seen_at < $5`
	sqlUpdateDisabled = `UPDATE accounts SET disabled_at = $2 WHERE id = $1`
	sqlReleaseAccount = `UPDATE accounts SET username = $2, issuer = '', subject = '', disabled_at = $3 WHERE id = $1`

	sqlSelectTokenKey     = `SELECT account_id, token_id FROM directory_tokens WHERE hash = $1`
	sqlSelectTokenAccount = `SELECT account_id FROM directory_tokens WHERE token_id = $1`
	sqlInsertTokenKey     = `INSERT INTO directory_tokens (hash, account_id, token_id) VALUES ($1, $2, $3)`

	sqlSelectTokenBearer = `
		SELECT t.id, t.role, t.restricted, t.expires_at, t.last_used_at, t.revoked_at IS NOT NULL,
			a.id, a.username, a.name, a.email, a.groups, a.seen_at, a.disabled_at IS NOT NULL
		FROM tokens t JOIN accounts a ON a.id = t.account_id
		WHERE t.account_id = $1 AND t.id = $2`
	// Two lookups by primary key for each credential; token_id is NULL for a person who signed in.
	sqlSelectLapsed = `
		SELECT held.account_id, held.token_id
		FROM unnest($1::uuid[], $2::uuid[]) AS held (account_id, token_id)
		LEFT JOIN accounts a ON a.id = held.account_id
		LEFT JOIN tokens t ON t.account_id = held.account_id AND t.id = held.token_id
		WHERE a.id IS NULL OR a.disabled_at IS NOT NULL
			OR (held.token_id IS NOT NULL AND (t.id IS NULL OR t.revoked_at IS NOT NULL OR t.expires_at <= $3))`
	sqlSelectTargets = `
		SELECT target_kind, target_account_id, target_id FROM token_targets WHERE account_id = $1 AND token_id = $2`
	sqlInsertTarget = `
		INSERT INTO token_targets (account_id, token_id, target_kind, target_account_id, target_id)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`
	sqlUpdateLastUsed = `UPDATE tokens SET last_used_at = $3 WHERE account_id = $1 AND id = $2`

	sqlSelectToken = `
		SELECT id, parent_id, name, role, restricted, hash, created_at, expires_at, last_used_at, revoked_at IS NOT NULL
		FROM tokens WHERE account_id = $1 AND id = $2`
	sqlInsertToken = `
		INSERT INTO tokens (account_id, id, parent_id, name, role, restricted, hash, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	sqlSelectTokens = `
		SELECT id, parent_id, name, role, restricted, hash, created_at, expires_at, last_used_at, false
		FROM tokens WHERE account_id = $1 AND revoked_at IS NULL AND id < $2
		ORDER BY id DESC LIMIT $3`
	sqlUpdateRevoked = `
		WITH RECURSIVE made AS (
			SELECT id FROM tokens WHERE account_id = $1 AND id = $2
			UNION
			SELECT t.id FROM tokens t JOIN made ON t.parent_id = made.id WHERE t.account_id = $1)
		UPDATE tokens SET revoked_at = $3
		WHERE account_id = $1 AND id IN (SELECT id FROM made) AND revoked_at IS NULL
		RETURNING id`
	sqlRevokeAll = `UPDATE tokens SET revoked_at = $2 WHERE account_id = $1 AND revoked_at IS NULL`

	// Each new key removes a few old ones, so the table needs no separate cleanup.
	sqlOnceForget = `
		DELETE FROM idempotency WHERE (account_id, caller_id, operation, key) IN (
			SELECT account_id, caller_id, operation, key FROM idempotency
			WHERE account_id = $1 AND created_at < $2 ORDER BY created_at LIMIT 100
			FOR UPDATE SKIP LOCKED)`

	sqlOnceClaim = `
		INSERT INTO idempotency (account_id, caller_id, operation, key, request_hash, made_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (account_id, caller_id, operation, key) DO UPDATE
			SET request_hash = excluded.request_hash, made_id = excluded.made_id, created_at = excluded.created_at
			WHERE idempotency.created_at < $8`

	sqlOnceGiveBack = `DELETE FROM idempotency WHERE account_id = $1 AND caller_id = $2 AND operation = $3 AND key = $4`

	sqlOnceRead = `
		SELECT request_hash, made_id FROM idempotency
		WHERE account_id = $1 AND caller_id = $2 AND operation = $3 AND key = $4`
	sqlOnceFind = `
		SELECT request_hash, made_id FROM idempotency
		WHERE account_id = $1 AND caller_id = $2 AND operation = $3 AND key = $4 AND created_at >= $5`
)

// tokenBearer is an API token with its account.
type tokenBearer struct {
	grant      Grant
	owner      account
	lastUsedAt time.Time
	revoked    bool
}

// selectID returns uuid.Nil if the row does not exist.
func selectID(ctx context.Context, q postgres.Querier, statement string, args ...any) (id uuid.UUID, err error) {
	err = q.QueryRow(ctx, statement, args...).Scan(&id)
	if postgres.NoRows(err) {
		return uuid.Nil, nil
	}

	return id, err
}

func selectIdentity(ctx context.Context, q postgres.Querier, issuer, subject string) (uuid.UUID, error) {
	return selectID(ctx, q, sqlSelectIdentity, issuer, subject)
}

func selectName(ctx context.Context, q postgres.Querier, username string) (uuid.UUID, error) {
	return selectID(ctx, q, sqlSelectName, username)
}

func selectTokenAccount(ctx context.Context, q postgres.Querier, token uuid.UUID) (uuid.UUID, error) {
	return selectID(ctx, q, sqlSelectTokenAccount, token)
}

func insertIdentity(ctx context.Context, tx pgx.Tx, id identity, account uuid.UUID) (isNew bool, err error) {
	tag, err := tx.Exec(ctx, sqlInsertIdentity, id.issuer, id.subject, account)

	return tag.RowsAffected() == 1, err
}

func insertName(ctx context.Context, tx pgx.Tx, username string, account uuid.UUID) (isFree bool, err error) {
	tag, err := tx.Exec(ctx, sqlInsertName, username, account)

	return tag.RowsAffected() == 1, err
}

// selectAccount returns nil if the account does not exist.
func selectAccount(ctx context.Context, q postgres.Querier, id uuid.UUID) (*account, error) {
	var a account

	// Passed as bytes because this runs at every request, and pgx is slower for types with a Valuer.
	err := q.QueryRow(ctx, sqlSelectAccount, [16]byte(id)).Scan(
		(*[16]byte)(&a.id), &a.username, &a.issuer, &a.subject, &a.name, &a.email, &a.groups, &a.seenAt, &a.disabled)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	return &a, err
}

func insertAccount(ctx context.Context, tx pgx.Tx, a account, now time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertAccount, a.id, a.username, a.issuer, a.subject, a.name, a.email, a.groups, a.seenAt, now)

	return err
}

func selectAccounts(ctx context.Context, q postgres.Querier, after string, limit int) ([]Account, error) {
	rows, err := q.Query(ctx, sqlSelectAccounts, after, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Account])
}

func lockAccount(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlLockAccount, id)

	return err
}

func updateSeen(ctx context.Context, q postgres.Querier, account uuid.UUID, id identity) error {
	_, err := q.Exec(ctx, sqlUpdateSeen, account, id.name, id.email, id.groups, id.issuedAt)

	return err
}

func updateDisabled(ctx context.Context, tx pgx.Tx, account uuid.UUID, at *time.Time) error {
	_, err := tx.Exec(ctx, sqlUpdateDisabled, account, at)

	return err
}

func releaseAccount(ctx context.Context, tx pgx.Tx, account uuid.UUID, newName string, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlDeleteIdentity, account); err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, sqlUpdateName, account, newName); err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, sqlRevokeAll, account, now); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, sqlReleaseAccount, account, newName, now)

	return err
}

func selectTokenKey(ctx context.Context, q postgres.Querier, hash [32]byte) (key tokenKey, err error) {
	err = q.QueryRow(ctx, sqlSelectTokenKey, hash[:]).Scan(&key.account, &key.token)
	if postgres.NoRows(err) {
		return tokenKey{}, nil
	}

	return key, err
}

// selectTokenBearer returns nil if the token does not exist.
func selectTokenBearer(ctx context.Context, q postgres.Querier, key tokenKey) (*tokenBearer, error) {
	var (
		b        tokenBearer
		lastUsed *time.Time
	)

	err := q.QueryRow(ctx, sqlSelectTokenBearer, [16]byte(key.account), [16]byte(key.token)).Scan(
		(*[16]byte)(&b.grant.ID), &b.grant.Role, &b.grant.Restricted, &b.grant.ExpiresAt, &lastUsed, &b.revoked,
		(*[16]byte)(&b.owner.id), &b.owner.username, &b.owner.name, &b.owner.email, &b.owner.groups, &b.owner.seenAt, &b.owner.disabled)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	if lastUsed != nil {
		b.lastUsedAt = *lastUsed
	}

	return &b, err
}

func selectTargets(ctx context.Context, q postgres.Querier, key tokenKey) ([]Target, error) {
	rows, err := q.Query(ctx, sqlSelectTargets, key.account, key.token)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Target])
}

func updateLastUsed(ctx context.Context, q postgres.Querier, key tokenKey, now time.Time) error {
	_, err := q.Exec(ctx, sqlUpdateLastUsed, key.account, key.token, now)

	return err
}

func scanToken(row pgx.CollectableRow) (token Token, err error) {
	var (
		parent   *uuid.UUID
		lastUsed *time.Time
	)

	err = row.Scan(&token.ID, &parent, &token.Name, &token.Role, &token.Restricted, &token.hash,
		&token.CreatedAt, &token.ExpiresAt, &lastUsed, &token.revoked)

	if parent != nil {
		token.parent = *parent
	}

	if lastUsed != nil {
		token.LastUsedAt = *lastUsed
	}

	return token, err
}

// selectToken returns nil if the token does not exist.
func selectToken(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Token, error) {
	rows, err := q.Query(ctx, sqlSelectToken, account, id)
	if err != nil {
		return nil, err
	}

	token, err := pgx.CollectExactlyOneRow(rows, scanToken)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	return &token, err
}

func selectTokens(ctx context.Context, q postgres.Querier, account, after uuid.UUID, limit int) ([]Token, error) {
	if after == uuid.Nil {
		after = uuid.Max
	}

	rows, err := q.Query(ctx, sqlSelectTokens, account, after, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanToken)
}

func insertToken(ctx context.Context, tx pgx.Tx, account uuid.UUID, token Token) error {
	var parent *uuid.UUID
	if token.parent != uuid.Nil {
		parent = &token.parent
	}

	if _, err := tx.Exec(ctx, sqlInsertToken, account, token.ID, parent, token.Name, token.Role, token.Restricted, token.hash,
		token.CreatedAt, token.ExpiresAt); err != nil {
		return err
	}

	for _, target := range token.Targets {
		if _, err := tx.Exec(ctx, sqlInsertTarget, account, token.ID, target.Kind, target.Account, target.ID); err != nil {
			return err
		}
	}

	_, err := tx.Exec(ctx, sqlInsertTokenKey, token.hash, account, token.ID)

	return err
}

func updateRevoked(ctx context.Context, tx pgx.Tx, account, id uuid.UUID, now time.Time) ([]uuid.UUID, error) {
	rows, err := tx.Query(ctx, sqlUpdateRevoked, account, id, now)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

func selectLapsed(ctx context.Context, q postgres.Querier, holders []Holder, now time.Time) ([]Holder, error) {
	accounts, tokens := make([]uuid.UUID, len(holders)), make([]*uuid.UUID, len(holders))

	for i, h := range holders {
		accounts[i] = h.Account
		if h.Token != uuid.Nil {
			tokens[i] = &h.Token
		}
	}

	rows, err := q.Query(ctx, sqlSelectLapsed, accounts, tokens, now)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Holder, err error) {
		var token *uuid.UUID

		err = row.Scan(&h.Account, &token)
		if token != nil {
			h.Token = *token
		}

		return h, err
	})
}
