package upload

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlLockUploads = `SELECT pg_advisory_xact_lock(hashtextextended('upload ' || $1::text, 0))`
	sqlCountOpen   = `
		SELECT count(DISTINCT s.id), coalesce(sum(f.size), 0)::bigint
		FROM upload_sessions s LEFT JOIN upload_files f ON f.account_id = s.account_id AND f.session_id = s.id AND f.status = 'preparing'
		WHERE s.account_id = $1 AND s.status = 'preparing'`
	sqlInsertSession = `
		INSERT INTO upload_sessions (account_id, id, status, created_at, expires_at, token_id)
		VALUES ($1, $2, $3, $4, $5, nullif($6, '00000000-0000-0000-0000-000000000000'::uuid))`
	sqlInsertFile = `
		INSERT INTO upload_files (account_id, session_id, id, position, filename, size, part_size, object_key, upload_id, status)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', $9)`
	sqlLockSession   = `SELECT id FROM upload_sessions WHERE account_id = $1 AND id = $2 FOR UPDATE`
	sqlSelectSession = `
		SELECT status, created_at, expires_at, coalesce(token_id, '00000000-0000-0000-0000-000000000000'::uuid)
		FROM upload_sessions WHERE account_id = $1 AND id = $2`
	sqlSelectFiles = `
		SELECT id, position, filename, size, part_size, object_key, upload_id, status, completed_at FROM upload_files
		WHERE account_id = $1 AND session_id = $2 ORDER BY position`
	sqlUpdateUploadID = `
		UPDATE upload_files SET upload_id = $4 WHERE account_id = $1 AND session_id = $2 AND id = $3 AND upload_id = ''`
	sqlSelectUploadID = `SELECT upload_id FROM upload_files WHERE account_id = $1 AND session_id = $2 AND id = $3`
	sqlCompleteFile   = `
		UPDATE upload_files SET status = 'completed', completed_at = $4, remove_at = $5
		WHERE account_id = $1 AND session_id = $2 AND id = $3 AND status = 'preparing'`
	sqlAbortFiles = `
		UPDATE upload_files SET status = 'aborted', remove_at = CASE status WHEN 'completed' THEN $5::timestamptz ELSE $4::timestamptz END
		WHERE account_id = $1 AND session_id = $2 AND status <> 'aborted' AND bound_dataset IS NULL AND ($3::uuid IS NULL OR id = $3)`
	sqlUpdateSession = `UPDATE upload_sessions SET status = $3 WHERE account_id = $1 AND id = $2`
	sqlCountFiles    = `
		SELECT count(*) FILTER (WHERE status = 'preparing'), count(*) FILTER (WHERE status = 'completed')
		FROM upload_files WHERE account_id = $1 AND session_id = $2`

	sqlSelectExpired = `
		SELECT account_id, id FROM upload_sessions WHERE status = 'preparing' AND expires_at < $1 ORDER BY expires_at LIMIT $2`
	sqlClaimRemovable = `
		UPDATE upload_files SET status = 'aborted' WHERE (account_id, session_id, id) IN (
			SELECT account_id, session_id, id FROM upload_files
			WHERE remove_at < $1 AND removed_at IS NULL AND (remove_at, id) > ($2, $3) ORDER BY remove_at, id LIMIT $4 FOR UPDATE SKIP LOCKED)
		RETURNING account_id, session_id, id, object_key, upload_id, remove_at`
	sqlUpdateRemoved = `
		UPDATE upload_files SET removed_at = $4 WHERE account_id = $1 AND session_id = $2 AND id = $3 AND status = 'aborted' AND remove_at < $4`
	sqlSelectCompleted = `
		SELECT object_key, size FROM upload_files WHERE status = 'completed' AND removed_at IS NULL AND object_key > $1 ORDER BY object_key LIMIT $2`
	sqlBindFiles = `
		UPDATE upload_files SET bound_account = $4, bound_dataset = $5, bound_ingestion = $6, reserved_until = $7, remove_at = NULL
		WHERE account_id = $1 AND session_id = $2 AND id = ANY($3) AND status = 'completed' AND removed_at IS NULL
			AND (bound_dataset IS NULL OR bound_dataset = $5 AND bound_ingestion = $6 AND reserved_until IS NOT NULL)`
	sqlCountBound = `
		SELECT count(*) FILTER (WHERE bound_ingestion = $5 OR reserved_until IS NULL), count(*) FROM upload_files
		WHERE account_id = $1 AND session_id = $2 AND id = ANY($3) AND bound_dataset = $4`
	sqlConfirmFiles = `
		UPDATE upload_files SET reserved_until = NULL
		WHERE account_id = $1 AND bound_account = $2 AND bound_dataset = $3 AND bound_ingestion = $4 AND reserved_until IS NOT NULL`
	sqlReleaseFiles = `
		UPDATE upload_files SET bound_account = NULL, bound_dataset = NULL, bound_ingestion = NULL, reserved_until = NULL, remove_at = $5
		WHERE account_id = $1 AND bound_account = $2 AND bound_dataset = $3 AND bound_ingestion = $4 AND reserved_until IS NOT NULL`
	sqlForsakeFiles   = `UPDATE upload_files SET reserved_until = NULL, remove_at = $3 WHERE bound_account = $1 AND bound_dataset = $2 AND remove_at IS NULL`
	sqlMoveBound      = `UPDATE upload_files SET bound_account = $2 WHERE bound_account = $1 AND bound_dataset = $3`
	sqlSelectReserved = `
		SELECT account_id, bound_account, bound_dataset, bound_ingestion FROM upload_files
		WHERE reserved_until < $1 ORDER BY reserved_until LIMIT $2`
	sqlSelectKept = `
		SELECT id FROM upload_files
		WHERE bound_account = $1 AND bound_dataset = $2 AND id = ANY($3) AND status = 'completed' AND remove_at IS NULL AND removed_at IS NULL`
	sqlSelectKnown = `SELECT object_key, upload_id FROM upload_files WHERE object_key = ANY($1) AND removed_at IS NULL`
)

func lockUploads(ctx context.Context, tx pgx.Tx, account uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlLockUploads, account)

	return err
}

func countOpen(ctx context.Context, tx pgx.Tx, account uuid.UUID) (sessions int, bytes int64, err error) {
	err = tx.QueryRow(ctx, sqlCountOpen, account).Scan(&sessions, &bytes)

	return sessions, bytes, err
}

func insertSession(ctx context.Context, tx pgx.Tx, s Session) error {
	if _, err := tx.Exec(ctx, sqlInsertSession, s.Account, s.ID, s.Status, s.CreatedAt, s.ExpiresAt, s.token); err != nil {
		return err
	}

	batch := &pgx.Batch{}
	for _, f := range s.Files {
		batch.Queue(sqlInsertFile, s.Account, s.ID, f.ID, f.position, f.Name, f.Size, f.PartSize, f.Key, f.Status)
	}

	return tx.SendBatch(ctx, batch).Close()
}

func lockSession(ctx context.Context, tx pgx.Tx, s Session) error {
	_, err := tx.Exec(ctx, sqlLockSession, s.Account, s.ID)

	return err
}

// selectSession returns nil if the session does not exist.
func selectSession(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Session, error) {
	s := Session{Account: account, ID: id}

	err := q.QueryRow(ctx, sqlSelectSession, account, id).Scan(&s.Status, &s.CreatedAt, &s.ExpiresAt, &s.token)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	if err != nil {
		return nil, err
	}

	rows, err := q.Query(ctx, sqlSelectFiles, account, id)
	if err != nil {
		return nil, err
	}

	s.Files, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f File, err error) {
		var completed *time.Time

		err = row.Scan(&f.ID, &f.position, &f.Name, &f.Size, &f.PartSize, &f.Key, &f.UploadID, &f.Status, &completed)
		if completed != nil {
			f.CompletedAt = *completed
		}

		return f, err
	})

	return &s, err
}

// updateUploadID stores the id if the file has none yet, and returns the stored id.
func updateUploadID(ctx context.Context, q postgres.Querier, s Session, f File, id string) (kept string, err error) {
	if _, err := q.Exec(ctx, sqlUpdateUploadID, s.Account, s.ID, f.ID, id); err != nil {
		return "", err
	}

	// The first statement may have waited for another request and does not see what that request wrote. A second
	// statement sees it.
	err = q.QueryRow(ctx, sqlSelectUploadID, s.Account, s.ID, f.ID).Scan(&kept)

	return kept, err
}

func completeFile(ctx context.Context, tx pgx.Tx, s Session, f File, now, removeAt time.Time) error {
	_, err := tx.Exec(ctx, sqlCompleteFile, s.Account, s.ID, f.ID, now, removeAt)

	return err
}

// updateFiles aborts one file, or all files if file is uuid.Nil. Bytes of unfinished files may be removed at once.
func updateFiles(ctx context.Context, tx pgx.Tx, s Session, file uuid.UUID, now, afterGrace time.Time) error {
	var only *uuid.UUID
	if file != uuid.Nil {
		only = &file
	}

	_, err := tx.Exec(ctx, sqlAbortFiles, s.Account, s.ID, only, now, afterGrace)

	return err
}

func updateSession(ctx context.Context, tx pgx.Tx, s Session, status Status) error {
	_, err := tx.Exec(ctx, sqlUpdateSession, s.Account, s.ID, status)

	return err
}

func countFiles(ctx context.Context, tx pgx.Tx, s Session) (open, completed int, err error) {
	err = tx.QueryRow(ctx, sqlCountFiles, s.Account, s.ID).Scan(&open, &completed)

	return open, completed, err
}

func selectExpired(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]Session, error) {
	rows, err := q.Query(ctx, sqlSelectExpired, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Session, err error) {
		err = row.Scan(&s.Account, &s.ID)

		return s, err
	})
}

// removable is a file whose bytes are due for removal.
type removable struct {
	account, session, file uuid.UUID
	key, uploadID          string
	due                    time.Time
}

// claimRemovable marks the due files after the given one as aborted, so that they can no longer be bound, and returns
// them. A claimed file stays removable until updateRemoved records that its bytes were removed.
func claimRemovable(ctx context.Context, tx pgx.Tx, now time.Time, after removable, limit int) ([]removable, error) {
	rows, err := tx.Query(ctx, sqlClaimRemovable, now, after.due, after.file, limit)
	if err != nil {
		return nil, err
	}

	claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r removable, err error) {
		err = row.Scan(&r.account, &r.session, &r.file, &r.key, &r.uploadID, &r.due)

		return r, err
	})

	slices.SortFunc(claimed, func(a, b removable) int {
		return cmp.Or(a.due.Compare(b.due), bytes.Compare(a.file[:], b.file[:]))
	})

	return claimed, err
}

func updateRemoved(ctx context.Context, tx pgx.Tx, r removable, now time.Time) error {
	_, err := tx.Exec(ctx, sqlUpdateRemoved, r.account, r.session, r.file, now)

	return err
}

// stored returns the rows that describe the objects of uploads. If a prepare request dies and is repeated, a second
// multipart upload of the same key begins; the first one then belongs to no row.
func stored(db *postgres.DB, prefix string) blob.Rows {
	return blob.Rows{
		Prefix: prefix,
		Known: func(ctx context.Context, keys []string) (map[string]string, error) {
			return postgres.Map[string](ctx, db, sqlSelectKnown, keys)
		},
		Next: func(ctx context.Context, after string, limit int) (map[string]int64, error) {
			return postgres.Map[int64](ctx, db, sqlSelectCompleted, after, limit)
		},
	}
}

const sqlEndBegun = `UPDATE upload_sessions SET expires_at = $1 WHERE status = 'preparing' AND expires_at > $1`

func endBegun(ctx context.Context, tx pgx.Tx, now time.Time) error {
	_, err := tx.Exec(ctx, sqlEndBegun, now)

	return err
}

// bindFiles binds the files that are free, and reserves those longer that this ingestion has reserved before. It returns the number of files that the dataset has now (bound), and how
// many of them no other request has reserved (certain).
func bindFiles(ctx context.Context, tx pgx.Tx, s Session, files []uuid.UUID, to Binding, until time.Time) (certain, bound int, err error) {
	if _, err := tx.Exec(ctx, sqlBindFiles, s.Account, s.ID, files, to.Account, to.Dataset, to.Ingestion, until); err != nil {
		return 0, 0, err
	}

	err = tx.QueryRow(ctx, sqlCountBound, s.Account, s.ID, files, to.Dataset, to.Ingestion).Scan(&certain, &bound)

	return certain, bound, err
}

func confirmFiles(ctx context.Context, tx pgx.Tx, account uuid.UUID, to Binding) error {
	_, err := tx.Exec(ctx, sqlConfirmFiles, account, to.Account, to.Dataset, to.Ingestion)

	return err
}

func releaseFiles(ctx context.Context, tx pgx.Tx, account uuid.UUID, to Binding, removeAt time.Time) error {
	_, err := tx.Exec(ctx, sqlReleaseFiles, account, to.Account, to.Dataset, to.Ingestion, removeAt)

	return err
}

// forsakeFiles may change the files of several accounts: of every account that loaded files into the dataset.
func forsakeFiles(ctx context.Context, tx pgx.Tx, account, dataset uuid.UUID, now time.Time) error {
	_, err := tx.Exec(ctx, sqlForsakeFiles, account, dataset, now)

	return err
}

// MoveTx updates bound files when a dataset changes its owner.
func MoveTx(ctx context.Context, tx pgx.Tx, from, to, dataset uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlMoveBound, from, to, dataset)

	return err
}

func selectReserved(ctx context.Context, q postgres.Querier, now time.Time, limit int) (map[Binding]uuid.UUID, error) {
	rows, err := q.Query(ctx, sqlSelectReserved, now, limit)
	if err != nil {
		return nil, err
	}

	var (
		list    = map[Binding]uuid.UUID{}
		account uuid.UUID
		to      Binding
	)

	_, err = pgx.ForEachRow(rows, []any{&account, &to.Account, &to.Dataset, &to.Ingestion}, func() error {
		list[to] = account

		return nil
	})

	return list, err
}

// selectKept may read the files of several accounts, like forsakeFiles.
func selectKept(ctx context.Context, q postgres.Querier, account, dataset uuid.UUID, files []uuid.UUID) (map[uuid.UUID]bool, error) {
	rows, err := q.Query(ctx, sqlSelectKept, account, dataset, files)
	if err != nil {
		return nil, err
	}

	kept := map[uuid.UUID]bool{}

	var id uuid.UUID

	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		kept[id] = true

		return nil
	})

	return kept, err
}
