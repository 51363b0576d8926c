package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

const (
	// The lock makes concurrent questions of one account count the running ones in turn.
	sqlLockAccount  = `SELECT pg_advisory_xact_lock(hashtextextended('runs ' || $1::text, 0))`
	sqlCountRunning = `SELECT count(*) FROM runs WHERE account_id = $1 AND status = 'running'`

	sqlInsertRun = `
		INSERT INTO runs
			(account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, created_at, deadline_at, namespace_id)
		VALUES ($1, $2, $3, $4, 'running', $5, $6::jsonb, $7::jsonb, $8, 1, $9, $10, $11)`
	sqlRunColumns = `
		account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, result, error_code, error_message,
		created_at, deadline_at, began_at, finished_at`
	sqlSelectRun = `SELECT` + sqlRunColumns + ` FROM runs WHERE account_id = $1 AND id = $2`
	sqlLockRun   = sqlSelectRun + ` FOR UPDATE`
	sqlBeginRun  = `
		UPDATE runs SET began_at = coalesce(began_at, $3) WHERE account_id = $1 AND id = $2 AND status = 'running' RETURNING` + sqlRunColumns
	sqlSelectTurns   = `SELECT` + sqlRunColumns + ` FROM runs WHERE account_id = $1 AND conversation_id = $2 ORDER BY id`
	sqlSelectEarlier = `
		SELECT` + sqlRunColumns + ` FROM runs
		WHERE account_id = $1 AND conversation_id = $2 AND id < $3 AND status = 'completed' ORDER BY id DESC LIMIT $4`
	sqlSelectLate = `SELECT account_id, id FROM runs WHERE status IN ('running', 'waiting') AND deadline_at < $1 ORDER BY deadline_at LIMIT $2`

	// The lock prevents the deletion of the run until the transaction ends.
	sqlHoldRunning = `SELECT 1 FROM runs WHERE account_id = $1 AND id = $2 AND status = 'running' FOR SHARE`

	sqlInsertRead = `
		INSERT INTO run_reads (account_id, run_id, dataset_account, dataset_id, dataset, snapshot_id, committed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (account_id, run_id, dataset_id) DO UPDATE
			SET dataset = excluded.dataset, snapshot_id = excluded.snapshot_id, committed_at = excluded.committed_at, quoted = false
			WHERE run_reads.quoted`
	sqlSelectReads = `
		SELECT dataset_account, dataset_id, dataset, snapshot_id, committed_at FROM run_reads WHERE account_id = $1 AND run_id = $2 ORDER BY dataset`
	sqlSelectPinned = `
		SELECT dataset_account, dataset_id, dataset, snapshot_id, committed_at FROM run_reads
		WHERE account_id = $1 AND run_id = $2 AND NOT quoted ORDER BY dataset`

	sqlInsertObject = `
		INSERT INTO run_objects (account_id, run_id, step, state, object_key, remove_at) VALUES ($1, $2, $3, 'writing', $4, $5)`
	sqlKeepObject = `
		UPDATE run_objects SET state = 'kept', size = $5, remove_at = NULL
		WHERE account_id = $1 AND run_id = $2 AND step = $3 AND object_key = $4 AND state = 'writing'`
)

func lockRunning(ctx context.Context, tx pgx.Tx, account uuid.UUID) (running int, err error) {
	if _, err := tx.Exec(ctx, sqlLockAccount, account); err != nil {
		return 0, err
	}

	err = tx.QueryRow(ctx, sqlCountRunning, account).Scan(&running)

	return running, err
}

func insertRun(ctx context.Context, tx pgx.Tx, r Run) error {
	request, asking, err := r.stringsOf()
	if err != nil {
		return err
	}

	_, err = tx.Exec(ctx, sqlInsertRun, r.Account, r.ID, r.Conversation, r.Agent, r.Question.Text, request, asking, r.TraceID[:],
		r.CreatedAt, r.DeadlineAt, r.namespace)

	return err
}

// stringsOf returns the request and the caller of a run as they are stored.
func (r Run) stringsOf() (request, caller string, err error) {
	first, err := json.Marshal(r.Question)
	if err != nil {
		return "", "", err
	}

	second, err := json.Marshal(r.caller) //nolint:musttag // it is read by the same type

	return string(first), string(second), err
}

// selectRun returns a run; nil if it does not exist.
func selectRun(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Run, error) {
	return oneRun(q.Query(ctx, sqlSelectRun, account, id))
}

// beginRun records that a worker has started the run. It returns nil if the run is not in progress.
func beginRun(ctx context.Context, q postgres.Querier, account, id uuid.UUID, now time.Time) (*Run, error) {
	return oneRun(q.Query(ctx, sqlBeginRun, account, id, now))
}

func lockRun(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*Run, error) {
	return oneRun(tx.Query(ctx, sqlLockRun, account, id))
}

func oneRun(rows pgx.Rows, err error) (*Run, error) {
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanRun)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func selectTurns(ctx context.Context, q postgres.Querier, account, conversation uuid.UUID) ([]Run, error) {
	rows, err := q.Query(ctx, sqlSelectTurns, account, conversation)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanRun)
}

func selectEarlier(ctx context.Context, q postgres.Querier, run Run, limit int) ([]Run, error) {
	rows, err := q.Query(ctx, sqlSelectEarlier, run.Account, run.Conversation, run.ID, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanRun)
}

func scanRun(row pgx.CollectableRow) (r Run, err error) {
	var (
		question, code, message string
		trace                   []byte
		result                  *string
		began, finished         *time.Time
	)

	err = row.Scan(&r.Account, &r.ID, &r.Conversation, &r.Agent, &r.Status, &question, &r.Question, &r.caller, &trace, &r.lastSeq, &result, &code, &message,
		&r.CreatedAt, &r.DeadlineAt, &began, &finished)
	if err != nil {
		return r, err
	}

	r.Question.Text = question
	copy(r.TraceID[:], trace)

	if began != nil {
		r.BeganAt = *began
	}

	if finished != nil {
		r.FinishedAt = *finished
	}

	if code != "" {
		r.Error = fault.New(fault.Code(code), message)
	}

	if result != nil {
		r.stored = &storedResult{}
		err = json.Unmarshal([]byte(*result), r.stored)
	}

	return r, err
}

func selectLate(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]Args, error) {
	rows, err := q.Query(ctx, sqlSelectLate, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Args])
}

// holdRunning reports whether a run is in progress, and prevents its deletion until the transaction ends.
func holdRunning(ctx context.Context, tx pgx.Tx, r Run) (running bool, err error) {
	tag, err := tx.Exec(ctx, sqlHoldRunning, r.Account, r.ID)

	return tag.RowsAffected() == 1, err
}

func insertReads(ctx context.Context, tx pgx.Tx, r Run, reads []query.Read) error {
	batch := &pgx.Batch{}
	for _, read := range reads {
		batch.Queue(sqlInsertRead, r.Account, r.ID, read.Account, read.ID, read.Dataset, read.Snapshot, read.CommittedAt)
	}

	return tx.SendBatch(ctx, batch).Close()
}

func selectReads(ctx context.Context, q postgres.Querier, account, run uuid.UUID) ([]query.Read, error) {
	rows, err := q.Query(ctx, sqlSelectReads, account, run)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[query.Read])
}

// selectPinned returns the snapshots that a run has read since the last choice.
func selectPinned(ctx context.Context, q postgres.Querier, account, run uuid.UUID) ([]query.Read, error) {
	rows, err := q.Query(ctx, sqlSelectPinned, account, run)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[query.Read])
}

func insertObject(ctx context.Context, tx pgx.Tx, r Run, step int, key string, removeAt time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertObject, r.Account, r.ID, step, key, removeAt)

	return err
}

func keepObject(ctx context.Context, tx pgx.Tx, r Run, step int, key string, size int64) error {
	tag, err := tx.Exec(ctx, sqlKeepObject, r.Account, r.ID, step, key, size)
	if err == nil && tag.RowsAffected() == 0 {
		err = errEnded // writing took so long that the cleanup removed the object
	}

	return err
}
