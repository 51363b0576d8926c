package query

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	// The lock makes concurrent requests of one account count its statements in turn.
	sqlLockLongs = `SELECT pg_advisory_xact_lock(hashtextextended('statements ' || $1::text, 0))`
	sqlCountOpen = `SELECT count(*) FROM statements WHERE account_id = $1 AND status IN ('queued', 'running')`
	sqlSumBytes  = `SELECT coalesce(sum(bytes), 0)::bigint FROM statements WHERE account_id = $1`

	sqlInsertLong = `
		INSERT INTO statements (account_id, id, token_id, status, caller, request, format, created_at, expires_at)
		VALUES ($1, $2, $3, 'queued', $4::jsonb, $5, $6, $7, $8)`
	sqlLongColumns = `
		SELECT account_id, id, status, caller, request, format, tables, columns, attempt, part, rows, bytes, error_code, error_message, error_subs,
			created_at, began_at, finished_at, expires_at
		FROM statements`
	sqlSelectLong      = sqlLongColumns + ` WHERE account_id = $1 AND id = $2 AND expires_at > $3`
	sqlSelectLongs     = sqlLongColumns + ` WHERE account_id = $1 AND id < $2 AND expires_at > $4 ORDER BY id DESC LIMIT $3`
	sqlSelectTokens    = sqlLongColumns + ` WHERE account_id = $1 AND token_id = $5 AND id < $2 AND expires_at > $4 ORDER BY id DESC LIMIT $3`
	sqlSelectLongReads = `SELECT dataset_account, dataset_id, dataset, snapshot_id FROM statement_reads WHERE account_id = $1 AND statement_id = $2 ORDER BY dataset`

	sqlBeginLong = `
		UPDATE statements SET status = 'running', attempt = $3, part = 0, rows = 0, bytes = 0, began_at = coalesce(began_at, $4), expires_at = $5
		WHERE account_id = $1 AND id = $2 AND status IN ('queued', 'running')`
	sqlForgetLongReads = `DELETE FROM statement_reads WHERE account_id = $1 AND statement_id = $2`
	sqlInsertLongRead  = `
		INSERT INTO statement_reads (account_id, statement_id, dataset_account, dataset_id, dataset, snapshot_id) VALUES ($1, $2, $3, $4, $5, $6)`
	sqlSetTables = `UPDATE statements SET tables = $4::jsonb WHERE account_id = $1 AND id = $2 AND attempt = $3 AND status = 'running'`
	sqlProgress  = `
		UPDATE statements SET part = $4, rows = $5, bytes = $6 WHERE account_id = $1 AND id = $2 AND attempt = $3 AND status = 'running'`
	sqlCompleteLong = `
		UPDATE statements SET status = 'completed', columns = $4::jsonb, rows = $5, bytes = $6, part = 1, request = $7, finished_at = $8, expires_at = $9
		WHERE account_id = $1 AND id = $2 AND attempt = $3 AND status = 'running'`
	sqlEndLong = `
		UPDATE statements
		SET status = $3, error_code = $4, error_message = $5, error_subs = $6::jsonb, request = $7, rows = 0, bytes = 0, finished_at = $8, expires_at = $9
		WHERE account_id = $1 AND id = $2 AND status IN ('queued', 'running')`
	sqlIsRunning = `SELECT 1 FROM statements WHERE account_id = $1 AND id = $2 AND attempt = $3 AND status = 'running'`

	sqlInsertPiece = `
		INSERT INTO statement_pieces (account_id, statement_id, attempt, number, object_key, is_end, rows, bytes, head, tail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	sqlSetSum       = `UPDATE statement_pieces SET sha256 = $5 WHERE account_id = $1 AND statement_id = $2 AND attempt = $3 AND number = $4`
	sqlSelectPieces = `
		SELECT number, object_key, is_end, rows, bytes, head, tail, coalesce(sha256, '') FROM statement_pieces
		WHERE account_id = $1 AND statement_id = $2 AND attempt = $3 AND remove_at IS NULL ORDER BY number`
	sqlDropPieces = `
		UPDATE statement_pieces SET remove_at = $3
		WHERE account_id = $1 AND statement_id = $2 AND remove_at IS NULL AND attempt IS DISTINCT FROM $4`
	sqlDeleteLong = `DELETE FROM statements WHERE account_id = $1 AND id = $2`

	sqlExpiredLongs  = `SELECT account_id, id, status NOT IN ('queued', 'running') FROM statements WHERE expires_at < $1 ORDER BY expires_at LIMIT $2`
	sqlRemovable     = `SELECT object_key FROM statement_pieces WHERE remove_at < $1 ORDER BY remove_at LIMIT $2`
	sqlDeletePiece   = `DELETE FROM statement_pieces WHERE object_key = $1`
	sqlSelectReaders = `
		SELECT r.account_id, r.statement_id, s.status NOT IN ('queued', 'running') FROM statement_reads r
		JOIN statements s ON s.account_id = r.account_id AND s.id = r.statement_id
		WHERE r.dataset_account = $1 AND r.dataset_id = $2 LIMIT $3`

	sqlKnownPieces = `SELECT object_key, '' FROM statement_pieces WHERE object_key = ANY($1)`
	sqlKeptPieces  = `
		SELECT object_key, bytes FROM statement_pieces
		WHERE remove_at IS NULL AND sha256 IS NOT NULL AND object_key > $1 ORDER BY object_key LIMIT $2`
)

// lockOpen returns how many long statements of an account have not ended, and the size of its results. Until the
// transaction ends, no other statement of the account is started.
func lockOpen(ctx context.Context, tx pgx.Tx, account uuid.UUID) (open int, bytes int64, err error) {
	if _, err := tx.Exec(ctx, sqlLockLongs, account); err != nil {
		return 0, 0, err
	}

	if err := tx.QueryRow(ctx, sqlCountOpen, account).Scan(&open); err != nil {
		return 0, 0, err
	}

	err = tx.QueryRow(ctx, sqlSumBytes, account).Scan(&bytes)

	return open, bytes, err
}

func insertLong(ctx context.Context, tx pgx.Tx, l Long) error {
	request, err := l.request()
	if err != nil {
		return err
	}

	caller, err := json.Marshal(l.caller) //nolint:musttag // it is read by the same type
	if err != nil {
		return err
	}

	var token *uuid.UUID
	if l.caller.Token != nil {
		token = &l.caller.Token.ID
	}

	_, err = tx.Exec(ctx, sqlInsertLong, l.account, l.ID, token, string(caller), request, formats()[l.Want.Form], l.CreatedAt, l.ExpiresAt)

	return err
}

// selectLong returns a long statement that has not expired, with its reads; nil if it does not exist.
func selectLong(ctx context.Context, q postgres.Querier, account, id uuid.UUID, now time.Time) (*Long, error) {
	rows, err := q.Query(ctx, sqlSelectLong, account, id, now)
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanLong)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	rows, err = q.Query(ctx, sqlSelectLongReads, account, id)
	if err != nil {
		return nil, err
	}

	found[0].Reads, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Read, err error) {
		err = row.Scan(&r.Account, &r.ID, &r.Dataset, &r.Snapshot)

		return r, err
	})

	return &found[0], err
}

// selectLongs returns a page of long statements without their reads; of one token, if token is not uuid.Nil.
func selectLongs(ctx context.Context, q postgres.Querier, account, token, after uuid.UUID, limit int, now time.Time) ([]Long, error) {
	statement, arguments := sqlSelectLongs, []any{account, after, limit, now}
	if token != uuid.Nil {
		statement, arguments = sqlSelectTokens, append(arguments, token)
	}

	rows, err := q.Query(ctx, statement, arguments...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanLong)
}

func scanLong(row pgx.CollectableRow) (l Long, err error) {
	var (
		request, format, code, message string
		subs                           []fault.Sub
		attempt                        *uuid.UUID
		began, finished                *time.Time
	)

	err = row.Scan(&l.account, &l.ID, &l.Status, &l.caller, &request, &format, &l.tables, &l.Columns, &attempt, &l.Part, &l.Rows, &l.Bytes,
		&code, &message, &subs, &l.CreatedAt, &began, &finished, &l.ExpiresAt)
	if err != nil {
		return l, err
	}

	if attempt != nil {
		l.attempt = *attempt
	}

	if began != nil {
		l.BeganAt = *began
	}

	if finished != nil {
		l.FinishedAt = *finished
	}

	if code != "" {
		l.Error = fault.New(fault.Code(code), message)
		l.Error.Subs = subs
	}

	l.Want, err = statementOf(request, format)

	return l, err
}

// beginLong starts an attempt. The pieces of earlier attempts are to be removed when their workers can no longer write.
func beginLong(ctx context.Context, tx pgx.Tx, l Long, now, until time.Time) (bool, error) {
	wanted, err := met(ctx, tx, sqlBeginLong, l.account, l.ID, l.attempt, now, until)
	if err != nil || !wanted {
		return wanted, err
	}

	_, err = tx.Exec(ctx, sqlDropPieces, l.account, l.ID, now.Add(stillUsed), l.attempt)

	return true, err
}

// setReads records what the statement is going to read.
func setReads(ctx context.Context, tx pgx.Tx, l Long, reads []Read, tables []readTable) (bool, error) {
	if _, err := tx.Exec(ctx, sqlForgetLongReads, l.account, l.ID); err != nil {
		return false, err
	}

	for _, r := range reads {
		if _, err := tx.Exec(ctx, sqlInsertLongRead, l.account, l.ID, r.Account, r.ID, r.Dataset, r.Snapshot); err != nil {
			return false, err
		}
	}

	text, err := json.Marshal(tables)
	if err != nil {
		return false, err
	}

	return met(ctx, tx, sqlSetTables, l.account, l.ID, l.attempt, string(text))
}

func setProgress(ctx context.Context, tx pgx.Tx, l Long) (bool, error) {
	return met(ctx, tx, sqlProgress, l.account, l.ID, l.attempt, l.Part, l.Rows, l.Bytes)
}

func completeLong(ctx context.Context, tx pgx.Tx, l Long, now, until time.Time) (bool, error) {
	columns, err := json.Marshal(l.Columns)
	if err != nil {
		return false, err
	}

	l.Want.Parameters = Parameters{}

	request, err := l.request()
	if err != nil {
		return false, err
	}

	return met(ctx, tx, sqlCompleteLong, l.account, l.ID, l.attempt, string(columns), l.Rows, l.Bytes, request, now, until)
}

// longEnd describes how a statement ends without a result.
type longEnd struct {
	status    Status
	reason    error
	at, until time.Time
}

// endLong ends a statement without a result. Its pieces are to be removed when its worker can no longer write.
func endLong(ctx context.Context, tx pgx.Tx, l Long, e longEnd) (bool, error) {
	l.Want.Parameters = Parameters{}

	request, err := l.request()
	if err != nil {
		return false, err
	}

	failure := &fault.Error{}
	if e.reason != nil {
		failure = fault.From(e.reason)
	}

	subs, err := json.Marshal(append([]fault.Sub{}, failure.Subs...)) //nolint:musttag // it is read by the same type
	if err != nil {
		return false, err
	}

	isChanged, err := met(ctx, tx, sqlEndLong, l.account, l.ID, e.status, failure.Code, failure.Message, string(subs), request, e.at, e.until)
	if err != nil || !isChanged {
		return false, err
	}

	_, err = tx.Exec(ctx, sqlDropPieces, l.account, l.ID, e.at.Add(stopTime), nil)

	return true, err
}

// isRunning reports whether the attempt is still wanted.
func isRunning(ctx context.Context, q postgres.Querier, l Long) (bool, error) {
	var found int

	err := q.QueryRow(ctx, sqlIsRunning, l.account, l.ID, l.attempt).Scan(&found)
	if postgres.NoRows(err) {
		return false, nil
	}

	return err == nil, err
}

func insertPieces(ctx context.Context, tx pgx.Tx, l Long, pieces []Piece) error {
	for _, p := range pieces {
		if _, err := tx.Exec(ctx, sqlInsertPiece, l.account, l.ID, l.attempt, p.Number, p.key, p.IsEnd, p.Rows, p.Bytes, p.Head, p.Tail); err != nil {
			return err
		}
	}

	return nil
}

func setSum(ctx context.Context, tx pgx.Tx, l Long, p Piece) error {
	_, err := tx.Exec(ctx, sqlSetSum, l.account, l.ID, l.attempt, p.Number, p.SHA256)

	return err
}

func selectPieces(ctx context.Context, q postgres.Querier, l Long) ([]Piece, error) {
	rows, err := q.Query(ctx, sqlSelectPieces, l.account, l.ID, l.attempt)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Piece, err error) {
		err = row.Scan(&p.Number, &p.key, &p.IsEnd, &p.Rows, &p.Bytes, &p.Head, &p.Tail, &p.SHA256)

		return p, err
	})
}

// deleteLong deletes a statement. Its objects are to be removed at the given time.
func deleteLong(ctx context.Context, tx pgx.Tx, account, id uuid.UUID, at time.Time) error {
	if _, err := tx.Exec(ctx, sqlDropPieces, account, id, at, nil); err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, sqlForgetLongReads, account, id); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, sqlDeleteLong, account, id)

	return err
}

// endedLong is a statement that is to be deleted.
type endedLong struct {
	account, id uuid.UUID
	hasEnded    bool
}

func scanEnded(row pgx.CollectableRow) (l endedLong, err error) {
	err = row.Scan(&l.account, &l.id, &l.hasEnded)

	return l, err
}

func expiredLongs(ctx context.Context, q postgres.Querier, before time.Time, limit int) ([]endedLong, error) {
	rows, err := q.Query(ctx, sqlExpiredLongs, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanEnded)
}

// selectReaders returns statements that read a dataset.
func selectReaders(ctx context.Context, q postgres.Querier, account, dataset uuid.UUID, limit int) ([]endedLong, error) {
	rows, err := q.Query(ctx, sqlSelectReaders, account, dataset, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanEnded)
}

func removablePieces(ctx context.Context, q postgres.Querier, before time.Time, limit int) ([]string, error) {
	rows, err := q.Query(ctx, sqlRemovable, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func deletePiece(ctx context.Context, q postgres.Querier, key string) error {
	_, err := q.Exec(ctx, sqlDeletePiece, key)

	return err
}

// storedPieces returns the rows of all pieces, to be compared with the store.
func storedPieces(db *postgres.DB) blob.Rows {
	return blob.Rows{
		Prefix: piecePrefix,
		Known: func(ctx context.Context, keys []string) (map[string]string, error) {
			return postgres.Map[string](ctx, db, sqlKnownPieces, keys)
		},
		Next: func(ctx context.Context, after string, limit int) (map[string]int64, error) {
			return postgres.Map[int64](ctx, db, sqlKeptPieces, after, limit)
		},
	}
}
