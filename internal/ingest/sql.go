package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsertIngestion = `
		INSERT INTO ingestions (account_id, dataset_id, id, kind, caller_id, session_id, status, mode, dry_run, epoch, options, phase,
			bytes_total, warnings, created_at, started_at, audit, accepted, key_columns, origin_id, reloads_id, spread, source_id)
		VALUES ($1, $2, $3, $4, $5, nullif($6, '00000000-0000-0000-0000-000000000000'::uuid), $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
			nullif($20, '00000000-0000-0000-0000-000000000000'::uuid), nullif($21, '00000000-0000-0000-0000-000000000000'::uuid), $22,
			nullif($23, '00000000-0000-0000-0000-000000000000'::uuid))`
	sqlInsertFile = `
		INSERT INTO ingestion_files (account_id, dataset_id, ingestion_id, position, file_id, filename, size, object_key)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	sqlColumns = `
		account_id, dataset_id, id, kind, caller_id, coalesce(session_id, '00000000-0000-0000-0000-000000000000'::uuid), status, mode, dry_run, epoch,
		options, phase, bytes_done, bytes_total, rows_done, rows_set_aside, warnings, doubts, accepted, preview, error_code, error_message,
		coalesce(snapshot_id, '00000000-0000-0000-0000-000000000000'::uuid), created_at, started_at, ready_at IS NOT NULL, finished_at, key_columns,
		coalesce(origin_id, '00000000-0000-0000-0000-000000000000'::uuid), rows_replaced, pages_done, pages_total,
		coalesce(reloads_id, '00000000-0000-0000-0000-000000000000'::uuid), spread, step, round, parts_left,
		coalesce(source_id, '00000000-0000-0000-0000-000000000000'::uuid) FROM ingestions`
	sqlSelectIngestion = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND dataset_id = $2 AND id = $3`
	sqlLockIngestion   = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND dataset_id = $2 AND id = $3 FOR UPDATE`
	sqlSelectListed    = `SELECT ` + sqlColumns + `
		WHERE account_id = $1 AND dataset_id = $2 AND kind = 'files' AND id < $3 ORDER BY id DESC LIMIT $4`
	sqlSelectReady = `SELECT ` + sqlColumns + `
		WHERE account_id = $1 AND dataset_id = $2 AND status = 'running' AND ready_at IS NOT NULL AND mode <> 'merge' ORDER BY ready_at, id LIMIT $3`
	sqlSelectReadyMerges = `SELECT ` + sqlColumns + `
		WHERE account_id = $1 AND dataset_id = $2 AND status = 'running' AND ready_at IS NOT NULL AND mode = 'merge' ORDER BY ready_at, id LIMIT $3`
	sqlSelectFiles = `
		SELECT f.ingestion_id, i.round, i.step, f.file_id, f.filename, f.size, f.object_key, coalesce(f.pages, 0), coalesce(f.input_tokens, 0),
			coalesce(f.output_tokens, 0), f.part_step, f.part_bytes, f.part_rows
		FROM ingestion_files f JOIN ingestions i ON i.account_id = f.account_id AND i.dataset_id = f.dataset_id AND i.id = f.ingestion_id
		WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.ingestion_id = ANY($3) ORDER BY f.ingestion_id, f.position`
	sqlSelectSetAside = `
		SELECT s.position, coalesce(f.filename, ''), s.row_number, s.reason
		FROM set_aside_rows s LEFT JOIN ingestion_files f USING (account_id, dataset_id, ingestion_id, position)
		WHERE s.account_id = $1 AND s.dataset_id = $2 AND s.ingestion_id = $3 AND (s.position, s.row_number) > ($4, $5)
		ORDER BY s.position, s.row_number LIMIT $6`
	sqlSelectStatus = `
		SELECT status, rows_done, rows_set_aside, coalesce(snapshot_id, '00000000-0000-0000-0000-000000000000'::uuid), error_code, error_message
		FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND id = $3`

	sqlRequeue = `
		UPDATE ingestions SET status = 'queued', phase = 'queued', bytes_done = 0, rows_done = 0, rows_set_aside = 0, error_code = '',
			error_message = '', started_at = NULL, ready_at = NULL, finished_at = NULL, doubts = '[]', accepted = $4, step = ''
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3`
	sqlStart = `
		UPDATE ingestions SET status = 'running', started_at = coalesce(started_at, $4)
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status IN ('queued', 'running')`
	sqlProgress = `
		UPDATE ingestions SET phase = $4, bytes_done = $5, rows_done = $6, rows_set_aside = $7, pages_done = $8, pages_total = $9
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status = 'running'`
	sqlReady = `
		UPDATE ingestions SET ready_at = $4, phase = 'committing', bytes_done = bytes_total, rows_done = $5, rows_set_aside = $6, doubts = $7
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status = 'running'`
	sqlComplete = `
		UPDATE ingestions SET status = 'completed', phase = 'done', snapshot_id = $4, finished_at = $5
		WHERE account_id = $1 AND dataset_id = $2 AND id = ANY($3) AND status = 'running' AND ready_at IS NOT NULL`
	sqlCompleteDeletion = `
		UPDATE ingestions SET status = 'completed', phase = 'done', snapshot_id = nullif($4, '00000000-0000-0000-0000-000000000000'::uuid),
			rows_done = $5, finished_at = $6
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status = 'running'`
	sqlSelectAudit = `
		SELECT audit FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND id = ANY($3) AND audit IS NOT NULL ORDER BY id`
	sqlFinish = `
		UPDATE ingestions SET status = $4, phase = 'done', preview = $5, error_code = $6, error_message = $7, finished_at = $8, ready_at = NULL,
			doubts = coalesce($9, doubts)
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status IN ('queued', 'running', 'waiting')`
	sqlDeleteSetAside = `DELETE FROM set_aside_rows WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3`
	sqlInsertSetAside = `
		INSERT INTO set_aside_rows (account_id, dataset_id, ingestion_id, position, row_number, reason)
		SELECT $1, $2, $3, $4, * FROM unnest($5::bigint[], $6::text[]) ON CONFLICT DO NOTHING`
	sqlMoreAside = `
		UPDATE ingestions SET rows_done = rows_done - $4, rows_set_aside = rows_set_aside + $4
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status = 'running' AND ready_at IS NOT NULL`
	sqlSelectStranded = `
		SELECT DISTINCT account_id, dataset_id FROM ingestions WHERE status = 'running' AND ready_at IS NOT NULL AND ready_at < $1 LIMIT $2`
	sqlSelectForgotten = `
		SELECT account_id, dataset_id, id FROM ingestions
		WHERE kind = 'rows' AND status = 'running' AND ready_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2`
	sqlHasUnfinished = `
		SELECT EXISTS (SELECT FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND status IN ('queued', 'running'))`
	sqlCountUnfinished = `
		SELECT count(*) FROM (SELECT FROM ingestions WHERE account_id = $1 AND kind = 'files' AND status IN ('queued', 'running') LIMIT $2) AS counted`
	sqlMoveIngestions   = `UPDATE ingestions SET account_id = $2 WHERE account_id = $1 AND dataset_id = $3`
	sqlMoveFiles        = `UPDATE ingestion_files SET account_id = $2 WHERE account_id = $1 AND dataset_id = $3`
	sqlMoveSetAside     = `UPDATE set_aside_rows SET account_id = $2 WHERE account_id = $1 AND dataset_id = $3`
	sqlRemoveSetAside   = `DELETE FROM set_aside_rows WHERE account_id = $1 AND dataset_id = $2`
	sqlRemoveFiles      = `DELETE FROM ingestion_files WHERE account_id = $1 AND dataset_id = $2`
	sqlRemoveIngestions = `DELETE FROM ingestions WHERE account_id = $1 AND dataset_id = $2`
	sqlHasIngestion     = `SELECT EXISTS (SELECT FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND id = $3)`
)

func insertIngestion(ctx context.Context, tx pgx.Tx, i Ingestion) error {
	var started *time.Time
	if !i.StartedAt.IsZero() {
		started = &i.StartedAt
	}

	var entry []byte
	if i.audit != nil {
		entry = asJSON(i.audit)
	}

	if _, err := tx.Exec(ctx, sqlInsertIngestion, i.Account, i.Dataset, i.ID, i.kind, i.Caller, i.Session, i.Status, i.Mode, i.DryRun, i.Epoch,
		asJSON(i.Options), i.Phase, i.BytesTotal, append([]string{}, i.Warnings...), i.CreatedAt, started, entry, append([]string{}, i.Accepted...), append([]string{}, i.Key...), i.Origin, i.Reloads, i.spread, i.Source); err != nil || len(i.Files) == 0 {
		return err
	}

	batch := &pgx.Batch{}
	for position, f := range i.Files {
		batch.Queue(sqlInsertFile, i.Account, i.Dataset, i.ID, position, f.ID, f.Name, f.Size, f.Key)
	}

	return tx.SendBatch(ctx, batch).Close()
}

func scanIngestion(row pgx.CollectableRow) (i Ingestion, err error) {
	var (
		options, preview  []byte
		started, finished *time.Time
	)

	if err := row.Scan(&i.Account, &i.Dataset, &i.ID, &i.kind, &i.Caller, &i.Session, &i.Status, &i.Mode, &i.DryRun, &i.Epoch, &options, &i.Phase,
		&i.BytesDone, &i.BytesTotal, &i.RowsDone, &i.RowsSetAside, &i.Warnings, &i.Doubts, &i.Accepted, &preview, &i.ErrorCode, &i.ErrorMessage,
		&i.Snapshot, &i.CreatedAt, &started, &i.ready, &finished, &i.Key, &i.Origin, &i.RowsReplaced, &i.PagesDone, &i.PagesTotal, &i.Reloads,
		&i.spread, &i.step, &i.round, &i.partsLeft, &i.Source); err != nil {
		return i, err
	}

	if started != nil {
		i.StartedAt = *started
	}

	if finished != nil {
		i.FinishedAt = *finished
	}

	if preview != nil {
		i.Preview = &Preview{}
		if err := json.Unmarshal(preview, i.Preview); err != nil {
			return i, err
		}
	}

	return i, json.Unmarshal(options, &i.Options)
}

func collect(ctx context.Context, q postgres.Querier, statement string, args ...any) ([]Ingestion, error) {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}

	list, err := pgx.CollectRows(rows, scanIngestion)
	if err != nil || len(list) == 0 {
		return nil, err
	}

	ids, at := make([]uuid.UUID, len(list)), map[uuid.UUID]int{}
	for n, i := range list {
		ids[n], at[i.ID] = i.ID, n
	}

	if rows, err = q.Query(ctx, sqlSelectFiles, list[0].Account, list[0].Dataset, ids); err != nil {
		return nil, err
	}

	var (
		owner    uuid.UUID
		round    int
		in       step
		file     File
		hasMoved bool
	)

	_, err = pgx.ForEachRow(rows, []any{
		&owner, &round, &in, &file.ID, &file.Name, &file.Size, &file.Key, &file.Pages, &file.InputTokens, &file.OutputTokens, &file.done, &file.bytesDone, &file.rowsDone,
	}, func() error {
		i := &list[at[owner]]
		i.Files = append(i.Files, file)
		hasMoved = hasMoved || i.round != round || i.step != in

		return nil
	})

	// The files of another step than that of the ingestion would show progress that goes back.
	if err == nil && hasMoved {
		return collect(ctx, q, statement, args...)
	}

	for n, i := range list {
		list[n] = i.addedUp()
	}

	return list, err
}

func first(list []Ingestion, err error) (*Ingestion, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}

	return &list[0], nil
}

const shownSetAside = 100

// selectIngestion returns nil if the ingestion does not exist.
func selectIngestion(ctx context.Context, q postgres.Querier, account, dataset, id uuid.UUID) (*Ingestion, error) {
	found, err := first(collect(ctx, q, sqlSelectIngestion, account, dataset, id))
	if err != nil || found == nil || found.RowsSetAside == 0 {
		return found, err
	}

	found.SetAside, err = selectSetAside(ctx, q, *found, Place{}, shownSetAside)

	return found, err
}

// selectSetAside returns the rows set aside that follow a place, in the order of the files.
func selectSetAside(ctx context.Context, q postgres.Querier, i Ingestion, after Place, limit int) ([]SetAside, error) {
	rows, err := q.Query(ctx, sqlSelectSetAside, i.Account, i.Dataset, i.ID, after.File, after.Row, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s SetAside, err error) {
		err = row.Scan(&s.position, &s.File, &s.Row, &s.Reason)

		return s, err
	})
}

func lockIngestion(ctx context.Context, tx pgx.Tx, account, dataset, id uuid.UUID) (*Ingestion, error) {
	return first(collect(ctx, tx, sqlLockIngestion, account, dataset, id))
}

func selectIngestions(ctx context.Context, q postgres.Querier, account, dataset, before uuid.UUID, limit int) ([]Ingestion, error) {
	if before == uuid.Nil {
		before = uuid.Max
	}

	return collect(ctx, q, sqlSelectListed, account, dataset, before, limit)
}

func selectReady(ctx context.Context, q postgres.Querier, t lake.Table, limit int) ([]Ingestion, error) {
	return collect(ctx, q, sqlSelectReady, t.Account, t.Dataset, limit)
}

// selectReadyMerges is selectReady for merges.
func selectReadyMerges(ctx context.Context, q postgres.Querier, t lake.Table, limit int) ([]Ingestion, error) {
	return collect(ctx, q, sqlSelectReadyMerges, t.Account, t.Dataset, limit)
}

// outcome is the current status of an ingestion.
type outcome struct {
	status        Status
	stored        Stored
	code, message string
}

func selectOutcome(ctx context.Context, q postgres.Querier, i Ingestion) (o outcome, err error) {
	err = q.QueryRow(ctx, sqlSelectStatus, i.Account, i.Dataset, i.ID).Scan(&o.status, &o.stored.Rows, &o.stored.SetAsideCount, &o.stored.Snapshot, &o.code, &o.message)
	if err == nil && o.status == Completed && o.stored.SetAsideCount > 0 {
		o.stored.SetAside, err = selectSetAside(ctx, q, i, Place{}, shownSetAside)
	}

	return o, err
}

// met runs a statement that changes the row only if the ingestion has the right status. It reports whether the row
// was changed.
func met(ctx context.Context, tx pgx.Tx, statement string, args ...any) (bool, error) {
	tag, err := tx.Exec(ctx, statement, args...)

	return tag.RowsAffected() > 0, err
}

// requeue also deletes the rows that the earlier attempt set aside: the next one decides again.
func requeue(ctx context.Context, tx pgx.Tx, i Ingestion) error {
	if _, err := tx.Exec(ctx, sqlDeleteSetAside, i.Account, i.Dataset, i.ID); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, sqlRequeue, i.Account, i.Dataset, i.ID, append([]string{}, i.Accepted...))

	return err
}

func start(ctx context.Context, tx pgx.Tx, i Ingestion, now time.Time) (bool, error) {
	return met(ctx, tx, sqlStart, i.Account, i.Dataset, i.ID, now)
}

func updateProgress(ctx context.Context, tx pgx.Tx, i Ingestion) (bool, error) {
	return met(ctx, tx, sqlProgress, i.Account, i.Dataset, i.ID, i.Phase, i.BytesDone, i.RowsDone, i.RowsSetAside, i.PagesDone, i.PagesTotal)
}

func updateReady(ctx context.Context, tx pgx.Tx, i Ingestion, now time.Time) (bool, error) {
	return met(ctx, tx, sqlReady, i.Account, i.Dataset, i.ID, now, i.RowsDone, i.RowsSetAside, asJSON(append([]engine.Doubt{}, i.Doubts...)))
}

func complete(ctx context.Context, tx pgx.Tx, t lake.Table, ids []uuid.UUID, snapshot uuid.UUID, now time.Time) (done int, err error) {
	var made *uuid.UUID
	if snapshot != uuid.Nil {
		made = &snapshot
	}

	tag, err := tx.Exec(ctx, sqlComplete, t.Account, t.Dataset, ids, made, now)
	if err != nil {
		return 0, err
	}

	return int(tag.RowsAffected()), nil
}

// completeDeletion ends a request to delete rows. It returns false if it has ended already.
func completeDeletion(ctx context.Context, tx pgx.Tx, i Ingestion, removed Stored, now time.Time) (bool, error) {
	return met(ctx, tx, sqlCompleteDeletion, i.Account, i.Dataset, i.ID, removed.Snapshot, removed.Rows, now)
}

// finish ends an ingestion without a snapshot: a dry run with its preview, a failure with its reason. It reports whether the ingestion had not
// ended before.
func finish(ctx context.Context, tx pgx.Tx, i Ingestion, status Status, reason error, now time.Time) (bool, error) {
	var preview []byte
	if i.Preview != nil {
		preview = asJSON(i.Preview)
	}

	code, message := "", ""
	if reason != nil {
		code, message = failure(reason)
	}

	var doubts []byte
	if f, ok := errors.AsType[*engine.FileError](reason); ok && f.Doubt != nil {
		doubts = asJSON([]engine.Doubt{*f.Doubt})
	}

	return met(ctx, tx, sqlFinish, i.Account, i.Dataset, i.ID, status, preview, code, message, now, doubts)
}

// insertSetAside replaces the rows set aside by an earlier attempt.
func insertSetAside(ctx context.Context, tx pgx.Tx, i Ingestion, files [][]engine.SetAside) error {
	if _, err := tx.Exec(ctx, sqlDeleteSetAside, i.Account, i.Dataset, i.ID); err != nil {
		return err
	}

	return addSetAside(ctx, tx, i, files)
}

// insertMoreAside sets rows of a staged ingestion aside. ErrDropped if it is not staged any more.
func insertMoreAside(ctx context.Context, tx pgx.Tx, i Ingestion, files [][]engine.SetAside, count int64) error {
	if isStaged, err := met(ctx, tx, sqlMoreAside, i.Account, i.Dataset, i.ID, count); err != nil {
		return err
	} else if !isStaged {
		return lake.ErrDropped
	}

	return addSetAside(ctx, tx, i, files)
}

func addSetAside(ctx context.Context, tx pgx.Tx, i Ingestion, files [][]engine.SetAside) error {
	for position, aside := range files {
		if len(aside) == 0 {
			continue
		}

		numbers, reasons := make([]int64, len(aside)), make([]string, len(aside))
		for n, s := range aside {
			numbers[n], reasons[n] = s.Row, s.Reason
		}

		if _, err := tx.Exec(ctx, sqlInsertSetAside, i.Account, i.Dataset, i.ID, position, numbers, reasons); err != nil {
			return err
		}
	}

	return nil
}

// mostCounted is the largest number that countUnfinished returns.
const mostCounted = 100

// countUnfinished returns how many ingestions of files of an account have not ended.
func countUnfinished(ctx context.Context, tx pgx.Tx, account uuid.UUID, most int) (count int, err error) {
	err = tx.QueryRow(ctx, sqlCountUnfinished, account, most).Scan(&count)

	return count, err
}

func hasIngestion(ctx context.Context, q postgres.Querier, account, dataset, id uuid.UUID) (has bool, err error) {
	err = q.QueryRow(ctx, sqlHasIngestion, account, dataset, id).Scan(&has)

	return has, err
}

// selectStranded returns tables with an ingestion that was staged before since.
func selectStranded(ctx context.Context, q postgres.Querier, since time.Time, limit int) ([]lake.Table, error) {
	rows, err := q.Query(ctx, sqlSelectStranded, since, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[lake.Table])
}

// selectForgotten returns ingestions of posted rows that were created before since and are not staged.
func selectForgotten(ctx context.Context, q postgres.Querier, since time.Time, limit int) ([]RunArgs, error) {
	rows, err := q.Query(ctx, sqlSelectForgotten, since, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[RunArgs])
}

// MoveTx moves all ingestions of a dataset to another account. It fails if an ingestion is in progress, because
// its worker could no longer find it.
//
// Faults: Conflict if an ingestion is queued or running.
func MoveTx(ctx context.Context, tx pgx.Tx, from, to lake.Table) error {
	var unfinished bool
	if err := tx.QueryRow(ctx, sqlHasUnfinished, from.Account, from.Dataset).Scan(&unfinished); err != nil {
		return err
	}

	if unfinished {
		return fault.New(fault.Conflict, "An ingestion of the dataset has not ended. If the dataset is deleted, restore it. Wait for the ingestion or cancel it, then transfer again.")
	}

	for _, statement := range []string{sqlMoveIngestions, sqlMoveFiles, sqlMoveSetAside, sqlMoveChunks, sqlMoveRecords, sqlMovePages, sqlMoveCorrections} {
		if _, err := tx.Exec(ctx, statement, from.Account, to.Account, from.Dataset); err != nil {
			return err
		}
	}

	return nil
}

// selectAudit returns the audit entries to write when these ingestions are completed.
func selectAudit(ctx context.Context, tx pgx.Tx, t lake.Table, ids []uuid.UUID) ([]audit.Entry, error) {
	rows, err := tx.Query(ctx, sqlSelectAudit, t.Account, t.Dataset, ids)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e audit.Entry, err error) {
		err = row.Scan(&e)

		return e, err
	})
}

// remove deletes all rows about the ingestions of a dataset.
func remove(ctx context.Context, tx pgx.Tx, t lake.Table) error {
	for _, statement := range []string{sqlRemoveChunks, sqlRemoveRecords, sqlRemovePages, sqlRemoveCorrections, sqlRemoveSetAside, sqlRemoveFiles, sqlRemoveIngestions} {
		if _, err := tx.Exec(ctx, statement, t.Account, t.Dataset); err != nil {
			return err
		}
	}

	return nil
}
