package ingest

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlWait = `
		UPDATE ingestions SET status = 'waiting', phase = 'waiting', step = '', doubts = $4, bytes_done = 0, rows_done = 0, rows_set_aside = 0, ready_at = NULL
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status = 'running'`
	sqlSetContent = `
		UPDATE ingestion_files SET digest = $5, sketch = $6 WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 AND position = $4`
	sqlLoadedFiles = ` FROM ingestion_files f JOIN ingestions i ON i.account_id = f.account_id AND i.dataset_id = f.dataset_id AND i.id = f.ingestion_id
		WHERE f.account_id = $1 AND f.dataset_id = $2 AND i.id <> $3 AND NOT i.dry_run
			AND (i.status = 'completed' OR (i.status = 'running' AND i.ready_at IS NOT NULL))`
	sqlSelectSameBytes = `SELECT f.digest, f.filename, coalesce(i.finished_at, i.ready_at)` + sqlLoadedFiles + ` AND f.digest = ANY($4) ORDER BY i.id`
	sqlSelectSketches  = `SELECT f.sketch` + sqlLoadedFiles + ` AND f.sketch IS NOT NULL ORDER BY i.id DESC LIMIT $4`
	sqlSetSourceNames  = `UPDATE ingestions SET source_names = $4 WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status = 'running'`
	sqlSelectLastNames = `
		SELECT source_names FROM ingestions
		WHERE account_id = $1 AND dataset_id = $2 AND source_id = $3 AND status = 'completed' AND source_names IS NOT NULL ORDER BY id DESC LIMIT 1`
	// Ids of snapshots are in the order of creation.
	sqlForgetSince = `
		UPDATE ingestion_files f SET digest = NULL, sketch = NULL FROM ingestions i
		WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.digest IS NOT NULL
			AND i.account_id = f.account_id AND i.dataset_id = f.dataset_id AND i.id = f.ingestion_id AND i.snapshot_id > $3`
	sqlForgetOthers = `
		UPDATE ingestion_files SET digest = NULL, sketch = NULL
		WHERE account_id = $1 AND dataset_id = $2 AND digest IS NOT NULL AND NOT ingestion_id = ANY($3)`
	sqlForgetThese = `
		UPDATE ingestion_files SET digest = NULL, sketch = NULL
		WHERE account_id = $1 AND dataset_id = $2 AND digest IS NOT NULL AND ingestion_id = ANY($3)`
)

func updateWaiting(ctx context.Context, tx pgx.Tx, i Ingestion) (bool, error) {
	return met(ctx, tx, sqlWait, i.Account, i.Dataset, i.ID, asJSON(append([]engine.Doubt{}, i.Doubts...)))
}

func updateSourceNames(ctx context.Context, tx pgx.Tx, i Ingestion, names []string) (bool, error) {
	return met(ctx, tx, sqlSetSourceNames, i.Account, i.Dataset, i.ID, names)
}

// selectLastNames returns the column names of the last completed load of the ingestion's source. The first load has none.
func selectLastNames(ctx context.Context, q postgres.Querier, i Ingestion) (names []string, err error) {
	err = q.QueryRow(ctx, sqlSelectLastNames, i.Account, i.Dataset, i.Source).Scan(&names)
	if postgres.NoRows(err) {
		return nil, nil
	}

	return names, err
}

// updateContent stores the digest and the sketch of each file of an ingestion.
func updateContent(ctx context.Context, tx pgx.Tx, i Ingestion, contents []fileContent) error {
	batch := &pgx.Batch{}
	for position, c := range contents {
		batch.Queue(sqlSetContent, i.Account, i.Dataset, i.ID, position, c.digest, c.sketch.bytes())
	}

	return tx.SendBatch(ctx, batch).Close()
}

// loadedFile is a file whose rows are in the dataset.
type loadedFile struct {
	Digest []byte
	Name   string
	At     time.Time
}

func selectSameBytes(ctx context.Context, q postgres.Querier, i Ingestion, digests [][]byte) ([]loadedFile, error) {
	rows, err := q.Query(ctx, sqlSelectSameBytes, i.Account, i.Dataset, i.ID, digests)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[loadedFile])
}

func selectSketches(ctx context.Context, q postgres.Querier, i Ingestion, limit int) ([][]byte, error) {
	rows, err := q.Query(ctx, sqlSelectSketches, i.Account, i.Dataset, i.ID, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[[]byte])
}

// forgetSince deletes the digests and sketches of files loaded after a snapshot, because their rows are no longer in
// the dataset.
func forgetSince(ctx context.Context, tx pgx.Tx, t lake.Table, snapshot uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlForgetSince, t.Account, t.Dataset, snapshot)

	return err
}

// forgetOthers deletes the digests and sketches of all other ingestions, because only the rows of these are in the
// dataset.
func forgetOthers(ctx context.Context, tx pgx.Tx, t lake.Table, ids []uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlForgetOthers, t.Account, t.Dataset, append([]uuid.UUID{}, ids...))

	return err
}

// forgetThese deletes the digests and sketches of ingestions whose rows are no longer in the dataset.
func forgetThese(ctx context.Context, tx pgx.Tx, t lake.Table, ids []uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlForgetThese, t.Account, t.Dataset, append([]uuid.UUID{}, ids...))

	return err
}
