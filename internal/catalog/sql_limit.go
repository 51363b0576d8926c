package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlUpsertLimit = `
		INSERT INTO limits (account_id, kind, amount) VALUES ($1, $2, $3)
		ON CONFLICT (account_id, kind) DO UPDATE SET amount = EXCLUDED.amount`
	sqlUpsertSharedLimit = `
		INSERT INTO directory_limits (subject_kind, subject_id, kind, amount) VALUES ($1, $2, $3, $4)
		ON CONFLICT (subject_kind, subject_id, kind) DO UPDATE SET amount = EXCLUDED.amount`
	sqlDeleteLimit        = `DELETE FROM limits WHERE account_id = $1 AND kind = $2`
	sqlDeleteSharedLimit  = `DELETE FROM directory_limits WHERE subject_kind = $1 AND subject_id = $2 AND kind = $3`
	sqlSelectSharedLimits = `SELECT '', subject_id, kind, amount FROM directory_limits ORDER BY subject_kind, subject_id, kind`
	sqlSelectLimits       = `
		SELECT n.username, '', l.kind, l.amount FROM directory_names n JOIN limits l ON l.account_id = n.account_id
		WHERE (n.username, l.kind) > ($1, $2) ORDER BY n.username, l.kind LIMIT $3`
	sqlSelectDays = `
		SELECT u.day, u.account_id, coalesce(n.username, ''), u.kind, u.amount
		FROM usage u LEFT JOIN directory_names n ON n.account_id = u.account_id
		WHERE (u.account_id, u.day, u.kind) > ($3, $4, $5) AND u.day >= $1 AND u.day <= $2
		ORDER BY u.account_id, u.day, u.kind LIMIT $6`
)

func upsertLimit(ctx context.Context, tx pgx.Tx, account uuid.UUID, kind Kind, amount int64) error {
	_, err := tx.Exec(ctx, sqlUpsertLimit, account, kind, amount)

	return err
}

func upsertSharedLimit(ctx context.Context, tx pgx.Tx, of auth.Subject, kind Kind, amount int64) error {
	_, err := tx.Exec(ctx, sqlUpsertSharedLimit, of.Kind, of.ID, kind, amount)

	return err
}

func deleteLimit(ctx context.Context, tx pgx.Tx, account uuid.UUID, kind Kind) (bool, error) {
	tag, err := tx.Exec(ctx, sqlDeleteLimit, account, kind)

	return tag.RowsAffected() > 0, err
}

func deleteSharedLimit(ctx context.Context, tx pgx.Tx, of auth.Subject, kind Kind) (bool, error) {
	tag, err := tx.Exec(ctx, sqlDeleteSharedLimit, of.Kind, of.ID, kind)

	return tag.RowsAffected() > 0, err
}

func selectSharedLimits(ctx context.Context, q postgres.Querier) ([]Limit, error) {
	return limitRows(q.Query(ctx, sqlSelectSharedLimits))
}

func selectLimits(ctx context.Context, q postgres.Querier, after Limit, most int) ([]Limit, error) {
	return limitRows(q.Query(ctx, sqlSelectLimits, after.Of.User, after.Kind, most))
}

func limitRows(rows pgx.Rows, err error) ([]Limit, error) {
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Limit, err error) {
		return l, row.Scan(&l.Of.User, &l.Of.Group, &l.Kind, &l.Amount)
	})
}

func selectDays(ctx context.Context, q postgres.Querier, from, to time.Time, after Day, most int) ([]Day, error) {
	rows, err := q.Query(ctx, sqlSelectDays, from, to, after.Account, after.Day, after.Kind, most)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Day])
}
