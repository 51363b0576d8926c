package source

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlSelectFiles = `
		SELECT path, etag, seen, size, state, session_id, owner_id, dataset_id, ingestion_id, origin_id, replaces, validator FROM source_files WHERE account_id = $1 AND source_id = $2`
	sqlClaimFile = `
		INSERT INTO source_files AS f (account_id, source_id, path, etag, seen, size, state, session_id, origin_id, replaces, validator)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (account_id, source_id, path) DO UPDATE SET etag = excluded.etag, seen = excluded.seen, size = excluded.size, state = excluded.state,
			session_id = excluded.session_id, ingestion_id = NULL, replaces = excluded.replaces, validator = excluded.validator
		WHERE f.origin_id = excluded.origin_id AND f.state NOT IN ('loading', 'removing')`
	sqlForgetFile = `
		DELETE FROM source_files WHERE account_id = $1 AND source_id = $2 AND path = $3 AND state = $4 AND session_id = $5 AND NOT replaces`
	sqlLapseFile = `
		UPDATE source_files SET state = 'stale', etag = '', session_id = NULL, ingestion_id = NULL
		WHERE account_id = $1 AND source_id = $2 AND path = $3 AND state = $4 AND session_id = $5 AND replaces`
	sqlNameIngestion = `
		UPDATE source_files SET state = 'loading', owner_id = $5, dataset_id = $6, ingestion_id = $7
		WHERE account_id = $1 AND source_id = $2 AND path = $3 AND session_id = $4 AND state = 'claimed'`
	sqlUpdateState = `
		UPDATE source_files SET state = $5 WHERE account_id = $1 AND source_id = $2 AND path = $3 AND ingestion_id = $4 AND state IN ('loading', 'failed', 'skipped')`
	sqlForgetContent = `
		UPDATE source_files SET state = 'failed', etag = '', validator = '{}'
		WHERE account_id = $1 AND source_id = $2 AND path = $3 AND ingestion_id = $4 AND state IN ('loading', 'failed', 'skipped')`
	sqlRetryFailed      = `UPDATE source_files SET etag = '', validator = '{}' WHERE account_id = $1 AND source_id = $2 AND state = 'failed'`
	sqlForgetValidators = `UPDATE source_files SET validator = '{}' WHERE account_id = $1 AND source_id = $2 AND validator <> '{}'`
	sqlNameRemoval      = `
		UPDATE source_files SET state = 'removing', owner_id = $4, dataset_id = $5, ingestion_id = $6, session_id = NULL, replaces = true
		WHERE account_id = $1 AND source_id = $2 AND path = ANY($3) AND state <> 'loading'`
	sqlSettleRemoval = `
		UPDATE source_files SET state = 'removed', etag = '' WHERE account_id = $1 AND source_id = $2 AND ingestion_id = $3 AND state = 'removing'`
	sqlKeepDataset = `UPDATE sources SET dataset_id = $3 WHERE account_id = $1 AND id = $2 AND dataset_id IS NULL`
	sqlSelectOpen  = `
		SELECT path, owner_id, dataset_id, ingestion_id FROM source_files
		WHERE account_id = $1 AND source_id = $2 AND state IN ('loading', 'failed') ORDER BY state = 'failed', path LIMIT $3`
	sqlTellFile = `UPDATE source_files SET seen = $4, validator = $5 WHERE account_id = $1 AND source_id = $2 AND path = $3`
)

// selectFiles returns the files that a source has claimed, by path.
func selectFiles(ctx context.Context, q postgres.Querier, s Source) (map[string]file, error) {
	rows, err := q.Query(ctx, sqlSelectFiles, s.Account, s.ID)
	if err != nil {
		return nil, err
	}

	var (
		list                               = map[string]file{}
		f                                  file
		session, owner, dataset, ingestion *uuid.UUID
	)

	_, err = pgx.ForEachRow(rows, []any{&f.path, &f.etag, &f.seen, &f.size, &f.state, &session, &owner, &dataset, &ingestion, &f.origin, &f.replaces, &f.validator}, func() error {
		f.session, f.owner, f.dataset, f.ingestion = orNil(session), orNil(owner), orNil(dataset), orNil(ingestion)
		list[f.path] = f
		f.validator = connection.Validator{} // a field that is absent in JSON would stay

		return nil
	})

	return list, err
}

// selectOpen returns files whose ingestions have not ended well when they were last looked at, those in progress first.
func selectOpen(ctx context.Context, q postgres.Querier, s Source) ([]file, error) {
	rows, err := q.Query(ctx, sqlSelectOpen, s.Account, s.ID, maxOpen)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f file, err error) {
		var owner, dataset, ingestion *uuid.UUID

		err = row.Scan(&f.path, &owner, &dataset, &ingestion)
		f.owner, f.dataset, f.ingestion = orNil(owner), orNil(dataset), orNil(ingestion)

		return f, err
	})
}

// exactlyOne returns job.ErrLost if a statement changed no row: another worker was faster.
func exactlyOne(ctx context.Context, tx pgx.Tx, statement string, arguments ...any) error {
	done, err := tx.Exec(ctx, statement, arguments...)
	if err == nil && done.RowsAffected() != 1 {
		err = job.ErrLost
	}

	return err
}

func claimFile(ctx context.Context, tx pgx.Tx, s Source, f file) error {
	return exactlyOne(ctx, tx, sqlClaimFile, s.Account, s.ID, f.path, f.etag, f.seen, f.size, f.state, optional(f.session), f.origin, f.replaces, f.validator)
}

// forgetFile makes a file new again whose content was not submitted. A file with rows of an earlier content becomes stale instead.
func forgetFile(ctx context.Context, tx pgx.Tx, s Source, f file) error {
	for _, statement := range []string{sqlForgetFile, sqlLapseFile} {
		if _, err := tx.Exec(ctx, statement, s.Account, s.ID, f.path, f.state, f.session); err != nil {
			return err
		}
	}

	return nil
}

// nameRemoval records that the rows of files are going to be removed.
func nameRemoval(ctx context.Context, tx pgx.Tx, s Source, r removal) error {
	paths := make([]string, len(r.files))
	for n, f := range r.files {
		paths[n] = f.path
	}

	done, err := tx.Exec(ctx, sqlNameRemoval, s.Account, s.ID, paths, r.owner, r.dataset, r.id)
	if err == nil && int(done.RowsAffected()) != len(paths) {
		err = job.ErrLost
	}

	return err
}

// settleRemoval records that the rows of files are removed, and counts them for the run.
func settleRemoval(ctx context.Context, tx pgx.Tx, r Run, done removal, rows int64) error {
	settled, err := tx.Exec(ctx, sqlSettleRemoval, r.account, r.source, done.id)
	if err != nil || settled.RowsAffected() == 0 {
		return err
	}

	if err := exactlyOne(ctx, tx, sqlAddRemoved, r.account, r.source, r.ID, settled.RowsAffected(), rows); err != nil {
		return err
	}

	notes := make([]Note, len(done.files))
	for n, f := range done.files {
		notes[n] = Note{f.path, Removed}
	}

	return addNotes(ctx, tx, r, notes)
}

// addNotes adds to what a run tells, up to maxNotes.
func addNotes(ctx context.Context, tx pgx.Tx, r Run, notes []Note) error {
	if len(notes) == 0 {
		return nil
	}

	encoded, err := json.Marshal(notes[:min(len(notes), maxNotes)])
	if err != nil {
		return err
	}

	return exactlyOne(ctx, tx, sqlAddNotes, r.account, r.source, r.ID, encoded)
}

func nameIngestion(ctx context.Context, tx pgx.Tx, s Source, f file) error {
	return exactlyOne(ctx, tx, sqlNameIngestion, s.Account, s.ID, f.path, f.session, f.owner, f.dataset, f.ingestion)
}

func updateState(ctx context.Context, tx pgx.Tx, s Source, f file) error {
	return exactlyOne(ctx, tx, sqlUpdateState, s.Account, s.ID, f.path, f.ingestion, f.state)
}

// forgetContent records that the ingestion of a file was given up. The next content of the file is loaded, also if it is the same.
func forgetContent(ctx context.Context, tx pgx.Tx, s Source, f file) error {
	return exactlyOne(ctx, tx, sqlForgetContent, s.Account, s.ID, f.path, f.ingestion)
}

// loadedFile records that a file is loaded, and counts it for the run.
func loadedFile(ctx context.Context, tx pgx.Tx, r Run, f file, made ingest.Ingestion) error {
	if err := exactlyOne(ctx, tx, sqlUpdateState, r.account, r.source, f.path, f.ingestion, f.state); err != nil {
		return err
	}

	if err := exactlyOne(ctx, tx, sqlAddLoaded, r.account, r.source, r.ID, made.RowsDone, f.size, made.RowsSetAside, made.RowsReplaced); err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, sqlKeepDataset, r.account, r.source, f.dataset); err != nil || made.RowsReplaced == 0 {
		return err
	}

	return addNotes(ctx, tx, r, []Note{{f.path, Replaced}})
}

// tellFiles records what was seen of files, and what the run tells about them.
func tellFiles(ctx context.Context, tx pgx.Tx, r Run, now findings) error {
	batch := &pgx.Batch{}
	for _, f := range now.files {
		batch.Queue(sqlTellFile, r.account, r.source, f.path, f.seen, f.validator)
	}

	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}

	if err := exactlyOne(ctx, tx, sqlAddTold, r.account, r.source, r.ID, now.changed, now.deleted, now.empty, now.leftOut); err != nil {
		return err
	}

	return addNotes(ctx, tx, r, now.notes)
}

// retryFailed lets the next run load the files that could not be loaded, as if their content had changed.
func retryFailed(ctx context.Context, tx pgx.Tx, s Source) error {
	_, err := tx.Exec(ctx, sqlRetryFailed, s.Account, s.ID)

	return err
}

// forgetValidators lets the next run compare the contents of files, because another server may mean something else by the same validators.
func forgetValidators(ctx context.Context, tx pgx.Tx, s Source) error {
	_, err := tx.Exec(ctx, sqlForgetValidators, s.Account, s.ID)

	return err
}
