package source

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlRunColumns = `account_id, source_id, id, status, files, rows, bytes, changed, deleted, notes, reason, ingestion_id, created_at, started_at, finished_at, slot_at,
		replaced, removed, rows_replaced, rows_removed, rows_set_aside, empty, left_out, pinned FROM source_runs`

const (
	sqlInsertRun = `
		INSERT INTO source_runs (account_id, source_id, id, status, created_at, slot_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (account_id, source_id, slot_at) DO NOTHING`
	sqlTrimRuns = `
		DELETE FROM source_runs WHERE account_id = $1 AND source_id = $2 AND id < (
			SELECT id FROM source_runs WHERE account_id = $1 AND source_id = $2 ORDER BY id DESC OFFSET $3 LIMIT 1)`
	sqlSelectRun  = `SELECT ` + sqlRunColumns + ` WHERE account_id = $1 AND source_id = $2 AND id = $3`
	sqlSelectRuns = `
		SELECT ` + sqlRunColumns + ` WHERE account_id = $1 AND source_id = $2 AND ($3 = '00000000-0000-0000-0000-000000000000'::uuid OR id < $3)
		ORDER BY id DESC LIMIT $4`
	sqlSelectLast = `
		SELECT r.account_id, r.source_id, r.id, r.status, r.files, r.rows, r.bytes, r.changed, r.deleted, r.notes, r.reason, r.ingestion_id, r.created_at, r.started_at, r.finished_at, r.slot_at,
			r.replaced, r.removed, r.rows_replaced, r.rows_removed, r.rows_set_aside, r.empty, r.left_out, r.pinned
		FROM unnest($2::uuid[]) AS s(id)
		CROSS JOIN LATERAL (SELECT ` + sqlRunColumns + ` WHERE account_id = $1 AND source_id = s.id ORDER BY id DESC LIMIT 1) r`
	sqlSelectFailedBefore = `
		SELECT coalesce((SELECT status = 'failed' FROM source_runs WHERE account_id = $1 AND source_id = $2 AND id < $3 ORDER BY id DESC LIMIT 1), false)`
	sqlLockOpen = `
		SELECT s.status FROM sources s JOIN source_runs r ON r.account_id = s.account_id AND r.source_id = s.id
		WHERE s.account_id = $1 AND s.id = $2 AND r.account_id = $1 AND r.id = $3 AND r.finished_at IS NULL FOR SHARE OF s`
	sqlStartRun = `
		UPDATE source_runs SET status = 'running', started_at = coalesce(started_at, $4) WHERE account_id = $1 AND source_id = $2 AND id = $3`
	sqlFinishRun = `
		UPDATE source_runs SET status = $4, reason = $5, ingestion_id = $6, finished_at = $7
		WHERE account_id = $1 AND source_id = $2 AND id = $3 AND finished_at IS NULL`
	sqlAddLoaded = `
		UPDATE source_runs SET files = files + 1, rows = rows + $4, bytes = bytes + $5, rows_set_aside = rows_set_aside + $6, replaced = replaced + least($7::bigint, 1),
			rows_replaced = rows_replaced + $7
		WHERE account_id = $1 AND source_id = $2 AND id = $3`
	sqlAddRemoved = `UPDATE source_runs SET removed = removed + $4, rows_removed = rows_removed + $5 WHERE account_id = $1 AND source_id = $2 AND id = $3`
	sqlAddTold    = `
		UPDATE source_runs SET changed = changed + $4, deleted = deleted + $5, empty = $6, left_out = $7 WHERE account_id = $1 AND source_id = $2 AND id = $3`
	sqlAddNotes = `
		UPDATE source_runs SET notes = jsonb_path_query_array(notes || $4::jsonb, '$[0 to 19]') WHERE account_id = $1 AND source_id = $2 AND id = $3`
)

func scanRun(row pgx.CollectableRow) (r Run, err error) {
	var (
		ingestion               *uuid.UUID
		started, finished, slot *time.Time
	)

	err = row.Scan(&r.account, &r.source, &r.ID, &r.Status, &r.Files, &r.Rows, &r.Bytes, &r.Changed, &r.Deleted, &r.Notes, &r.Stop.Reason, &ingestion, &r.CreatedAt, &started, &finished, &slot,
		&r.Replaced, &r.Removed, &r.RowsReplaced, &r.RowsRemoved, &r.RowsSetAside, &r.Empty, &r.LeftOut, &r.Pinned)
	r.Stop.Ingestion = orNil(ingestion)

	if started != nil {
		r.StartedAt = *started
	}

	if finished != nil {
		r.FinishedAt = *finished
	}

	if slot != nil {
		r.Slot = *slot
	}

	return r, err
}

// insertRun also deletes the oldest runs that are too many. It reports false if the slot of the run has had one.
func insertRun(ctx context.Context, tx pgx.Tx, r Run) (bool, error) {
	done, err := tx.Exec(ctx, sqlInsertRun, r.account, r.source, r.ID, r.Status, r.CreatedAt, timeOrNull(r.Slot))
	if err != nil || done.RowsAffected() == 0 {
		return false, err
	}

	_, err = tx.Exec(ctx, sqlTrimRuns, r.account, r.source, maxRuns-1)

	return true, err
}

// selectFailedBefore reports whether the run before this one has failed.
func selectFailedBefore(ctx context.Context, q postgres.Querier, r Run) (hadFailed bool, err error) {
	err = q.QueryRow(ctx, sqlSelectFailedBefore, r.account, r.source, r.ID).Scan(&hadFailed)

	return hadFailed, err
}

func selectRun(ctx context.Context, q postgres.Querier, of RunArgs) (*Run, error) {
	rows, err := q.Query(ctx, sqlSelectRun, of.Account, of.Source, of.Run)
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanRun)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func selectRuns(ctx context.Context, q postgres.Querier, account, source, before uuid.UUID, limit int) ([]Run, error) {
	rows, err := q.Query(ctx, sqlSelectRuns, account, source, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanRun)
}

// selectLast returns the last run of each source that has one.
func selectLast(ctx context.Context, q postgres.Querier, account uuid.UUID, sources []uuid.UUID) ([]Run, error) {
	rows, err := q.Query(ctx, sqlSelectLast, account, sources)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanRun)
}

// lockOpen returns the status of the source of a run that has not ended, and empty if there is none. The source is not changed before the transaction ends.
func lockOpen(ctx context.Context, tx pgx.Tx, r Run) (status Status, err error) {
	err = tx.QueryRow(ctx, sqlLockOpen, r.account, r.source, r.ID).Scan(&status)
	if postgres.NoRows(err) {
		err = nil
	}

	return status, err
}

func startRun(ctx context.Context, tx pgx.Tx, r Run, now time.Time) error {
	_, err := tx.Exec(ctx, sqlStartRun, r.account, r.source, r.ID, now)

	return err
}

func finishRun(ctx context.Context, tx pgx.Tx, r Run) (bool, error) {
	done, err := tx.Exec(ctx, sqlFinishRun, r.account, r.source, r.ID, r.Status, r.Stop.Reason, optional(r.Stop.Ingestion), r.FinishedAt)

	return done.RowsAffected() > 0, err
}
