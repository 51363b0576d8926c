package event

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsert = `
		INSERT INTO new_events (account_id, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	// A process that finds the row locked has nothing to do: its owner gives the numbers.
	sqlLockHead = `
		SELECT greatest(seq, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) FROM event_head FOR UPDATE SKIP LOCKED`
	sqlNumber = `
		WITH moved AS (
			DELETE FROM new_events WHERE id IN (SELECT id FROM new_events ORDER BY id LIMIT $2)
			RETURNING id, account_id, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at),
		numbered AS (
			INSERT INTO events (account_id, seq, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at)
			SELECT account_id, $1 + row_number() OVER (ORDER BY id), event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at
			FROM moved
			RETURNING account_id, seq, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at)
		SELECT account_id, seq, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at, '' FROM numbered ORDER BY seq`
	sqlSetHead    = `UPDATE event_head SET seq = $1`
	sqlSelectHead = `SELECT seq, EXISTS (SELECT FROM new_events) FROM event_head`
	// Each log is read for itself and only as far as the page goes, whatever else is in it.
	sqlSelect = `
		SELECT e.account_id, e.seq, e.event_id, e.type, e.kind, e.subject_account, e.subject_id, e.namespace_id, e.token_id, e.data, e.at, coalesce(a.username, '')
		FROM unnest($1::uuid[]) log CROSS JOIN LATERAL (
			SELECT account_id, seq, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at
			FROM events WHERE account_id = log AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4) e
		LEFT JOIN accounts a ON a.id = e.subject_account
		ORDER BY e.seq LIMIT $4`
	// Numbers may be given meanwhile. An event is then no longer in the first table, and the later statement sees it in the second.
	sqlForgetNew = `DELETE FROM new_events WHERE account_id = $1 AND kind = 'run' AND subject_id = ANY($2)`
	sqlForget    = `DELETE FROM events WHERE account_id = $1 AND kind = 'run' AND subject_id = ANY($2)`
	// The lock waits for a transaction that gives numbers, and makes the next one wait.
	sqlLockNewOfRun = `SELECT FROM new_events WHERE account_id = $1 AND kind = 'run' AND subject_id = $2 FOR KEY SHARE`
	sqlLastOfRun    = `
		SELECT account_id, seq, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at, ''
		FROM events WHERE account_id = $1 AND kind = 'run' AND subject_id = $2 ORDER BY seq DESC LIMIT 1`
	sqlMakePartition  = `SELECT events_partition($1)`
	sqlDropPartitions = `SELECT events_drop($1)`
)

func insert(ctx context.Context, tx pgx.Tx, events []Event) error {
	batch := &pgx.Batch{}

	for _, e := range events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return err
		}

		batch.Queue(sqlInsert, e.Account, e.ID, e.Type, e.Subject.Kind, e.Subject.Account, e.Subject.ID, e.Subject.Namespace, e.Token, string(data), e.At)
	}

	return tx.SendBatch(ctx, batch).Close()
}

func deleteOfRuns(ctx context.Context, tx pgx.Tx, account uuid.UUID, runs []uuid.UUID) error {
	for _, statement := range []string{sqlForgetNew, sqlForget} {
		if _, err := tx.Exec(ctx, statement, account, runs); err != nil {
			return err
		}
	}

	return nil
}

func selectLastOfRun(ctx context.Context, tx pgx.Tx, account, run uuid.UUID) (*Event, error) {
	if _, err := tx.Exec(ctx, sqlLockNewOfRun, account, run); err != nil {
		return nil, err
	}

	rows, err := tx.Query(ctx, sqlLastOfRun, account, run)
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scan)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func lockHead(ctx context.Context, tx pgx.Tx) (seq int64, free bool, err error) {
	err = tx.QueryRow(ctx, sqlLockHead).Scan(&seq)
	if postgres.NoRows(err) {
		return 0, false, nil
	}

	return seq, true, err
}

func setHead(ctx context.Context, tx pgx.Tx, seq int64) error {
	_, err := tx.Exec(ctx, sqlSetHead, seq)

	return err
}

func selectHead(ctx context.Context, q postgres.Querier) (seq int64, waiting bool, err error) {
	err = q.QueryRow(ctx, sqlSelectHead).Scan(&seq, &waiting)

	return seq, waiting, err
}

func number(ctx context.Context, tx pgx.Tx, head int64, limit int) ([]Event, error) {
	rows, err := tx.Query(ctx, sqlNumber, head, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scan)
}

func selectEvents(ctx context.Context, q postgres.Querier, r Range, limit int) ([]Event, error) {
	rows, err := q.Query(ctx, sqlSelect, r.Logs, r.After, r.Until, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scan)
}

func scan(row pgx.CollectableRow) (e Event, err error) {
	var data, username string

	err = row.Scan(&e.Account, &e.Seq, &e.ID, &e.Type, &e.Subject.Kind, &e.Subject.Account, &e.Subject.ID, &e.Subject.Namespace, &e.Token, &data, &e.At, &username)
	if err == nil {
		err = json.Unmarshal([]byte(data), &e.Data)
	}

	if e.Data.Username == "" {
		e.Data.Username = username
	}

	return e, err
}

func makePartition(ctx context.Context, tx pgx.Tx, week time.Time) error {
	_, err := tx.Exec(ctx, sqlMakePartition, week)

	return err
}

func dropPartitions(ctx context.Context, tx pgx.Tx, before time.Time) error {
	_, err := tx.Exec(ctx, sqlDropPartitions, before)

	return err
}
