package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/agent"
)

const (
	// began_at is when the status last changed, until the run ends.
	sqlSuspendRun = `
		WITH suspended AS (
			UPDATE runs SET status = 'waiting', last_seq = last_seq + 1, result = $3, began_at = $4, deadline_at = $5
			WHERE account_id = $1 AND id = $2 AND status = 'running' RETURNING last_seq)
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1, $2, last_seq, $6, 0, $7, $4 FROM suspended
		RETURNING seq`
	sqlContinueRun = `
		WITH continued AS (
			UPDATE runs SET status = 'running', last_seq = last_seq + 1, result = NULL, request = $3::jsonb, caller = $4::jsonb, began_at = $5, deadline_at = $6
			WHERE account_id = $1 AND id = $2 AND status = 'waiting' RETURNING last_seq)
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1, $2, last_seq, $7, 0, $8, $5 FROM continued
		RETURNING seq`
	sqlQuoteReads = `UPDATE run_reads SET quoted = true WHERE account_id = $1 AND run_id = $2`
	// A run that nobody chose an option of is completed with the question that it asked.
	sqlCloseWaiting = `
		WITH closed AS (
			UPDATE runs SET status = 'completed', last_seq = last_seq + 1, finished_at = $3
			WHERE account_id = $1 AND conversation_id = $2 AND status = 'waiting' RETURNING id, last_seq)
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1, id, last_seq, $4, 0, '{}', $3 FROM closed
		RETURNING run_id`
)

// suspendRun makes a run wait for a choice until the given time, and returns the event that says so, or returns errEnded.
func suspendRun(ctx context.Context, tx pgx.Tx, account, run uuid.UUID, e ending, body json.RawMessage, until time.Time) (Event, error) {
	last, err := numbered(agent.Event{Kind: e.kind, Body: body}, e.at,
		tx.QueryRow(ctx, sqlSuspendRun, account, run, string(e.result), e.at, until, e.kind, string(body)))
	if err != nil {
		return Event{}, err
	}

	return last, tellTx(ctx, tx, account, []uuid.UUID{run}, e.at)
}

// continueRun makes a run that waits go on, and returns the event that says so, or returns errEnded.
func continueRun(ctx context.Context, tx pgx.Tx, r Run, e agent.Event, now time.Time) (Event, error) {
	request, asking, err := r.stringsOf()
	if err != nil {
		return Event{}, err
	}

	return numbered(e, now, tx.QueryRow(ctx, sqlContinueRun, r.Account, r.ID, request, asking, now, r.DeadlineAt, e.Kind, string(e.Body)))
}

// quoteReads marks what a run has recorded so far as quoted only, so that the run can read other snapshots.
func quoteReads(ctx context.Context, tx pgx.Tx, r Run) error {
	_, err := tx.Exec(ctx, sqlQuoteReads, r.Account, r.ID)

	return err
}

// closeWaiting completes the runs of a conversation that wait for a choice.
func closeWaiting(ctx context.Context, tx pgx.Tx, account, conversation uuid.UUID, now time.Time) error {
	rows, err := tx.Query(ctx, sqlCloseWaiting, account, conversation, now, EventCompleted)
	if err != nil {
		return err
	}

	closed, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(closed) == 0 {
		return err
	}

	return tellTx(ctx, tx, account, closed, now)
}
