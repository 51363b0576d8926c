package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlCountSpread = `
		SELECT count(*) FROM ingestions WHERE account_id = $1 AND spread AND status = 'running' AND step <> '' AND ready_at IS NULL AND id <> $2`
	sqlBeginSpread = `
		UPDATE ingestions SET status = 'running', started_at = coalesce(started_at, $5), step = 'inspect', round = round + 1, parts_left = $6, parts_next = $7,
			phase = 'inspecting', planned = NULL, doubts = '[]', bytes_done = 0, rows_done = 0, rows_set_aside = 0
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND round = $4 AND status IN ('queued', 'running') AND ready_at IS NULL`
	sqlBeginParts = `
		UPDATE ingestion_files SET part_step = '', part_found = NULL, part_bytes = 0, part_rows = 0
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3`
	sqlPlanSpread = `
		UPDATE ingestions SET step = 'convert', phase = 'converting', planned = $5, doubts = $6, parts_left = $7, parts_next = $8
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND round = $4 AND status = 'running' AND step = 'inspect' AND parts_left = 0`
	sqlPlanParts = `
		UPDATE ingestion_files SET part_found = NULL, part_bytes = 0 WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3`
	sqlSelectPlanned = `SELECT coalesce(planned, '[]') FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND id = $3`
	sqlSelectParts   = `
		SELECT coalesce(part_found, '{}') FROM ingestion_files WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 ORDER BY position`
	sqlPartProgress = `
		UPDATE ingestion_files f SET part_bytes = $7, part_rows = $8 FROM ingestions i
		WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.ingestion_id = $3 AND f.position = $6
			AND i.account_id = f.account_id AND i.dataset_id = f.dataset_id AND i.id = f.ingestion_id AND i.round = $4 AND i.step = $5 AND i.status = 'running'`
	sqlDone = `
		UPDATE ingestions SET parts_left = parts_left - 1, parts_next = parts_next + 1, rows_set_aside = rows_set_aside + $6
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND round = $4 AND step = $5 AND status = 'running' AND parts_left > 0
		RETURNING parts_left, parts_next - 1`
	sqlForgetFound = `UPDATE ingestion_files SET part_found = NULL WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3`
	sqlPartDone    = `
		UPDATE ingestion_files SET part_step = $5, part_found = $6, part_bytes = size, part_rows = $7
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 AND position = $4 AND part_step <> $5`
)

// countSpread returns how many other ingestions of the account are spread now.
func countSpread(ctx context.Context, q postgres.Querier, i Ingestion) (others int, err error) {
	err = q.QueryRow(ctx, sqlCountSpread, i.Account, i.ID).Scan(&others)

	return others, err
}

// beginSpread begins a round. The rows that an earlier one set aside are deleted.
func beginSpread(ctx context.Context, tx pgx.Tx, i Ingestion, now time.Time) (begun bool, err error) {
	begun, err = met(ctx, tx, sqlBeginSpread, i.Account, i.Dataset, i.ID, i.round, now, len(i.Files), min(len(i.Files), partsAtOnce))
	if err != nil || !begun {
		return begun, err
	}

	for _, statement := range []string{sqlBeginParts, sqlDeleteSetAside} {
		if _, err := tx.Exec(ctx, statement, i.Account, i.Dataset, i.ID); err != nil {
			return false, err
		}
	}

	return true, nil
}

// planSpread begins the step in which the files are converted to these columns.
func planSpread(ctx context.Context, tx pgx.Tx, i Ingestion, columns []lake.Column) (begun bool, err error) {
	begun, err = met(ctx, tx, sqlPlanSpread, i.Account, i.Dataset, i.ID, i.round, asJSON(columns), asJSON(append([]engine.Doubt{}, i.Doubts...)), len(i.Files),
		min(len(i.Files), partsAtOnce))
	if err != nil || !begun {
		return begun, err
	}

	_, err = tx.Exec(ctx, sqlPlanParts, i.Account, i.Dataset, i.ID)

	return true, err
}

// selectPlanned returns the columns to which the files are converted, and nil before they are known.
func selectPlanned(ctx context.Context, q postgres.Querier, i Ingestion) (columns []lake.Column, err error) {
	var encoded []byte
	if err := q.QueryRow(ctx, sqlSelectPlanned, i.Account, i.Dataset, i.ID).Scan(&encoded); err != nil {
		return nil, err
	}

	return columns, json.Unmarshal(encoded, &columns)
}

// selectParts returns what the step has found in each file.
func selectParts(ctx context.Context, q postgres.Querier, i Ingestion) ([]partFound, error) {
	rows, err := q.Query(ctx, sqlSelectParts, i.Account, i.Dataset, i.ID)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p partFound, err error) {
		var encoded []byte
		if err := row.Scan(&encoded); err != nil {
			return p, err
		}

		return p, json.Unmarshal(encoded, &p)
	})
}

// forgetFound deletes what the steps have found.
func forgetFound(ctx context.Context, tx pgx.Tx, i Ingestion) error {
	_, err := tx.Exec(ctx, sqlForgetFound, i.Account, i.Dataset, i.ID)

	return err
}

// updatePart stores the progress of a file. It reports whether the job is still needed.
func updatePart(ctx context.Context, tx pgx.Tx, p partProgress) (bool, error) {
	return met(ctx, tx, sqlPartProgress, p.Account, p.Dataset, p.Ingestion, p.Round, p.Step, p.Position, p.bytes, p.rows)
}

// updateDone counts a file of a step as done. It returns how many are left, and the position of the next file that needs a job. left is -1 if the job is no
// longer needed.
func updateDone(ctx context.Context, tx pgx.Tx, a PartArgs, setAside int64) (left, next int, err error) {
	err = tx.QueryRow(ctx, sqlDone, a.Account, a.Dataset, a.Ingestion, a.Round, a.Step, setAside).Scan(&left, &next)
	if errors.Is(err, pgx.ErrNoRows) {
		return -1, 0, nil
	}

	return left, next, err
}

// updatePartDone returns false if another attempt has already finished this step of the file.
func updatePartDone(ctx context.Context, tx pgx.Tx, a PartArgs, i Ingestion, found partFound) (bool, error) {
	return met(ctx, tx, sqlPartDone, a.Account, a.Dataset, a.Ingestion, a.Position, a.Step, asJSON(found), i.RowsDone)
}

// addSetAsideAt stores the rows of one file that are set aside.
func addSetAsideAt(ctx context.Context, tx pgx.Tx, i Ingestion, position int, aside []engine.SetAside) error {
	files := make([][]engine.SetAside, position+1)
	files[position] = aside

	return addSetAside(ctx, tx, i, files)
}
