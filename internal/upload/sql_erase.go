package upload

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	sqlForgetBound = `
		DELETE FROM upload_files f WHERE f.removed_at IS NOT NULL AND (f.bound_account = $1 AND f.bound_dataset = $2 OR f.bound_dataset IS NULL AND f.id IN (
			SELECT i.file_id FROM ingestion_files i WHERE i.account_id = $1 AND i.dataset_id = $2))`
	sqlDueBound = `
		UPDATE upload_files f SET reserved_until = NULL, remove_at = $3::timestamptz - interval '1 second'
		WHERE f.removed_at IS NULL AND (f.bound_account = $1 AND f.bound_dataset = $2 OR f.bound_dataset IS NULL AND f.id IN (
			SELECT i.file_id FROM ingestion_files i WHERE i.account_id = $1 AND i.dataset_id = $2))`

	sqlForgetOwn = `
		DELETE FROM upload_files WHERE account_id = $1 AND removed_at IS NOT NULL`
	sqlDueOwn = `
		UPDATE upload_files SET reserved_until = NULL, status = CASE status WHEN 'preparing' THEN 'aborted' ELSE status END, remove_at = $2::timestamptz - interval '1 second'
		WHERE account_id = $1 AND removed_at IS NULL AND (bound_account IS NULL OR bound_account = $1)`
	sqlForgetSessions = `
		DELETE FROM upload_sessions s WHERE s.account_id = $1
			AND NOT EXISTS (SELECT FROM upload_files f WHERE f.account_id = s.account_id AND f.session_id = s.id)`
)

// eraseBound returns how many files are left.
func eraseBound(ctx context.Context, tx pgx.Tx, account, dataset uuid.UUID, now time.Time) (left int64, err error) {
	if _, err := tx.Exec(ctx, sqlForgetBound, account, dataset); err != nil {
		return 0, err
	}

	tag, err := tx.Exec(ctx, sqlDueBound, account, dataset, now)

	return tag.RowsAffected(), err
}

// eraseOwn returns how many files are left.
func eraseOwn(ctx context.Context, tx pgx.Tx, account uuid.UUID, now time.Time) (left int64, err error) {
	if _, err := tx.Exec(ctx, sqlForgetOwn, account); err != nil {
		return 0, err
	}

	tag, err := tx.Exec(ctx, sqlDueOwn, account, now)
	if err != nil || tag.RowsAffected() > 0 {
		return tag.RowsAffected(), err
	}

	_, err = tx.Exec(ctx, sqlForgetSessions, account)

	return 0, err
}
