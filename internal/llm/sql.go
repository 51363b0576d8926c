package llm

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsertCall = `
		INSERT INTO model_calls (account_id, run_id, id, purpose, provider, model, turn, attempt, request_hash, state, started_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'sending', $10, $11)`
	sqlEndCall = `
		UPDATE model_calls SET state = $4, error = $5, input_tokens = $6, output_tokens = $7, cached_tokens = $8, reasoning_tokens = $9,
			finish = $10, response_id = $11, ended_at = $12
		WHERE account_id = $1 AND run_id = $2 AND id = $3`
	sqlSelectUsed = `
		SELECT coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint FROM model_calls WHERE account_id = $1 AND run_id = $2`
	sqlSelectLate = `
		SELECT account_id, run_id, id FROM model_calls WHERE state = 'sending' AND expires_at < $1 ORDER BY expires_at LIMIT $2`
	sqlLoseCall = `
		UPDATE model_calls SET state = 'unknown', error = 'lost', ended_at = $4
		WHERE account_id = $1 AND run_id = $2 AND id = $3 AND state = 'sending'`
)

func insertCall(ctx context.Context, tx pgx.Tx, e entry) error {
	_, err := tx.Exec(ctx, sqlInsertCall, e.Account, e.Run, e.ID, e.Purpose, e.Provider, e.Model, e.Turn, e.Attempt, e.RequestHash, e.StartedAt, e.ExpiresAt)

	return err
}

func endCall(ctx context.Context, tx pgx.Tx, e entry, came state, why string, answer Response, now time.Time) error {
	u := answer.Usage
	_, err := tx.Exec(ctx, sqlEndCall, e.Account, e.Run, e.ID, came, why, u.InputTokens, u.OutputTokens, u.CachedTokens, u.Reasoning, answer.Finish, answer.ID, now)

	return err
}

func selectUsed(ctx context.Context, q postgres.Querier, account, run uuid.UUID) (used Usage, err error) {
	return used, q.QueryRow(ctx, sqlSelectUsed, account, run).Scan(&used.InputTokens, &used.OutputTokens)
}

// selectLate returns entries with only their keys set.
func selectLate(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]entry, error) {
	rows, err := q.Query(ctx, sqlSelectLate, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e entry, err error) {
		return e, row.Scan(&e.Account, &e.Run, &e.ID)
	})
}

func loseCall(ctx context.Context, q postgres.Querier, e entry, now time.Time) error {
	_, err := q.Exec(ctx, sqlLoseCall, e.Account, e.Run, e.ID, now)

	return err
}
