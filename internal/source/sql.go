package source

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlColumns = `account_id, id, token_id, name, connection_id, username, namespace, dataset, dataset_id, prefix, pattern, options, accept, reads, cursor, load, status, reason,
		ingestion_id, created_at, reason_code, cron, time_zone, jitter_minutes, slot_at, next_at, changed, deleted, paths, attaches FROM sources`

const (
	sqlLockAccount  = `SELECT pg_advisory_xact_lock(hashtextextended('sources ' || $1::text, 0))`
	sqlCountSources = `SELECT count(*) FROM sources WHERE account_id = $1`
	sqlInsertSource = `
		INSERT INTO sources (account_id, id, token_id, name, connection_id, username, namespace, dataset, prefix, pattern, options, accept, status, reason, created_at, reads,
			cron, time_zone, jitter_minutes, slot_at, next_at, changed, deleted, paths, attaches)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, '', $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`
	sqlSelectSource  = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id = $2`
	sqlLockSource    = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id = $2 FOR UPDATE`
	sqlSelectSources = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	sqlUpdateStatus  = `UPDATE sources SET status = $3, reason = $4, ingestion_id = $5, token_id = $6, reason_code = $7 WHERE account_id = $1 AND id = $2`
	sqlUpdateFiles   = `
		UPDATE sources SET prefix = $3, pattern = $4, options = $5, accept = $6, changed = $7, deleted = $8, paths = $9, connection_id = $10 WHERE account_id = $1 AND id = $2`
	sqlStopSource = `
		UPDATE sources SET status = 'stopped', reason = $3, ingestion_id = $4, reason_code = $5, slot_at = NULL, next_at = NULL
		WHERE account_id = $1 AND id = $2 AND status = 'active'`
	sqlDeleteSource = `DELETE FROM sources WHERE account_id = $1 AND id = $2`
	sqlDeleteFiles  = `DELETE FROM source_files WHERE account_id = $1 AND source_id = $2`
	sqlDeleteRuns   = `DELETE FROM source_runs WHERE account_id = $1 AND source_id = $2`
)

// optional returns nil for uuid.Nil.
func optional(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}

	return &id
}

func orNil(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}

	return *id
}

func scanSource(row pgx.CollectableRow) (s Source, err error) {
	var (
		dataset, ingestion *uuid.UUID
		jitter             int
		slot, next         *time.Time
	)

	err = row.Scan(&s.Account, &s.ID, &s.token, &s.Name, &s.Connection, &s.At.Username, &s.At.Namespace, &s.At.Dataset, &dataset, &s.Prefix, &s.Pattern, &s.Options, &s.Accept,
		&s.Rows, &s.Cursor, &s.load, &s.Status, &s.Stop.Reason, &ingestion, &s.CreatedAt, &s.Stop.Code, &s.Schedule.Cron, &s.Schedule.TimeZone, &jitter, &slot, &next,
		&s.Changed, &s.Deleted, &s.Paths, &s.Table)
	s.dataset, s.Stop.Ingestion = orNil(dataset), orNil(ingestion)
	s.Schedule.Jitter = time.Duration(jitter) * time.Minute

	if slot != nil && next != nil {
		s.next = due{*slot, *next}
	}

	return s, err
}

// countSources returns the number of sources of an account. Until the transaction ends, no other one counts them.
func countSources(ctx context.Context, tx pgx.Tx, account uuid.UUID) (n int, err error) {
	if _, err := tx.Exec(ctx, sqlLockAccount, account); err != nil {
		return 0, err
	}

	err = tx.QueryRow(ctx, sqlCountSources, account).Scan(&n)

	return n, err
}

func insertSource(ctx context.Context, tx pgx.Tx, s Source) error {
	_, err := tx.Exec(ctx, sqlInsertSource, s.Account, s.ID, s.token, s.Name, s.Connection, s.At.Username, s.At.Namespace, s.At.Dataset, s.Prefix, s.Pattern, s.Options, append([]string{}, s.Accept...),
		s.Status, s.CreatedAt, s.Rows, s.Schedule.Cron, s.Schedule.TimeZone, int(s.Schedule.Jitter/time.Minute), timeOrNull(s.next.slot), timeOrNull(s.next.at),
		s.Changed, s.Deleted, append([]string{}, s.Paths...), s.Table)

	return err
}

func selectSource(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Source, error) {
	rows, err := q.Query(ctx, sqlSelectSource, account, id)

	return one(ctx, q, account, rows, err)
}

func lockSource(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*Source, error) {
	rows, err := tx.Query(ctx, sqlLockSource, account, id)

	return one(ctx, tx, account, rows, err)
}

func one(ctx context.Context, q postgres.Querier, account uuid.UUID, rows pgx.Rows, err error) (*Source, error) {
	found, err := withRuns(ctx, q, account, rows, err)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func selectSources(ctx context.Context, q postgres.Querier, account, after uuid.UUID, limit int) ([]Source, error) {
	rows, err := q.Query(ctx, sqlSelectSources, account, after, limit)

	return withRuns(ctx, q, account, rows, err)
}

// withRuns reads sources and adds the last run of each.
func withRuns(ctx context.Context, q postgres.Querier, account uuid.UUID, rows pgx.Rows, err error) ([]Source, error) {
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanSource)
	if err != nil {
		return nil, err
	}

	ids := make([]uuid.UUID, len(found))
	for i, s := range found {
		ids[i] = s.ID
	}

	last, err := selectLast(ctx, q, account, ids)

	for i := range found {
		for j := range last {
			if last[j].source == found[i].ID {
				found[i].LastRun = &last[j]
			}
		}
	}

	return found, err
}

func updateStatus(ctx context.Context, tx pgx.Tx, s Source) error {
	_, err := tx.Exec(ctx, sqlUpdateStatus, s.Account, s.ID, s.Status, s.Stop.Reason, optional(s.Stop.Ingestion), s.token, s.Stop.Code)

	return err
}

// updateFiles changes what a source loads, and how.
func updateFiles(ctx context.Context, tx pgx.Tx, s Source) error {
	_, err := tx.Exec(ctx, sqlUpdateFiles, s.Account, s.ID, s.Prefix, s.Pattern, s.Options, append([]string{}, s.Accept...), s.Changed, s.Deleted,
		append([]string{}, s.Paths...), s.Connection)

	return err
}

// stopSource stops a source that is active, and reports whether it was.
func stopSource(ctx context.Context, tx pgx.Tx, s Source, why Stop) (bool, error) {
	done, err := tx.Exec(ctx, sqlStopSource, s.Account, s.ID, why.Reason, optional(why.Ingestion), why.Code)

	return done.RowsAffected() > 0, err
}

func deleteSource(ctx context.Context, tx pgx.Tx, s Source) error {
	for _, statement := range []string{sqlDeleteFiles, sqlDeleteRuns, sqlDeleteSource} {
		if _, err := tx.Exec(ctx, statement, s.Account, s.ID); err != nil {
			return err
		}
	}

	return nil
}
