package ingest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/record"
)

const (
	sqlLockRecord = `
		SELECT r.anchor, f.document FROM document_records r LEFT JOIN ingestion_files f USING (account_id, dataset_id, ingestion_id, position)
		WHERE r.account_id = $1 AND r.dataset_id = $2 AND r.ingestion_id = $3 AND r.position = $4 AND r.number = $5 FOR UPDATE OF r`
	sqlUpdateRecord = `
		UPDATE document_records SET fields = $6, flagged = $7
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 AND position = $4 AND number = $5`

	sqlSelectCorrections = `
		SELECT field, page, begins, ends, rank, ranks, key, value FROM document_corrections
		WHERE account_id = $1 AND dataset_id = $2 AND document = $3 ORDER BY corrected_at, field, page, begins, ends, rank`
	sqlInsertCorrection = `
		INSERT INTO document_corrections (account_id, dataset_id, document, field, page, begins, ends, rank, ranks, key, value, corrected_by, corrected_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		ON CONFLICT (account_id, dataset_id, document, field, page, begins, ends, rank) DO UPDATE
		SET ranks = excluded.ranks, key = excluded.key, value = excluded.value, corrected_by = excluded.corrected_by, corrected_at = excluded.corrected_at`
	sqlDeleteCorrection = `
		DELETE FROM document_corrections
		WHERE account_id = $1 AND dataset_id = $2 AND document = $3 AND field = $4 AND page = $5 AND begins = $6 AND ends = $7 AND rank = $8`
	sqlMoveCorrections   = `UPDATE document_corrections SET account_id = $2 WHERE account_id = $1 AND dataset_id = $3`
	sqlRemoveCorrections = `DELETE FROM document_corrections WHERE account_id = $1 AND dataset_id = $2`

	sqlDeletePages = `DELETE FROM document_pages WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3`
	sqlInsertPage  = `
		INSERT INTO document_pages (account_id, dataset_id, ingestion_id, position, page, text) VALUES ($1, $2, $3, $4, $5, $6)`
	sqlSelectPages = `
		SELECT page, text FROM document_pages
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 AND position = $4 AND page = ANY($5) ORDER BY page`
	sqlMovePages   = `UPDATE document_pages SET account_id = $2 WHERE account_id = $1 AND dataset_id = $3`
	sqlRemovePages = `DELETE FROM document_pages WHERE account_id = $1 AND dataset_id = $2`
	sqlForgetPages = `
		DELETE FROM document_pages p USING ingestions i
		WHERE p.account_id = $1 AND p.dataset_id = $2 AND i.account_id = p.account_id AND i.dataset_id = p.dataset_id AND i.id = p.ingestion_id
			AND i.status IN ('completed', 'failed', 'cancelled')`
)

// lockRecord returns a record and locks it. Other transactions that change the record wait until this one ends.
//
// Faults: NotFound.
func lockRecord(ctx context.Context, tx pgx.Tx, i Ingestion, of Place) (r storedRecord, err error) {
	err = tx.QueryRow(ctx, sqlLockRecord, i.Account, i.Dataset, i.ID, of.File, of.Row).Scan(&r.anchor, &r.document)
	if postgres.NoRows(err) {
		err = fault.Absent()
	}

	if err == nil {
		r.Record, err = selectRecord(ctx, tx, i, of)
	}

	return r, err
}

func updateRecord(ctx context.Context, tx pgx.Tx, i Ingestion, r Record) error {
	_, err := tx.Exec(ctx, sqlUpdateRecord, i.Account, i.Dataset, i.ID, r.position, r.number, asJSON(r.Fields), isFlagged(r.Fields))

	return err
}

// selectCorrections returns the corrections of a document, oldest first.
func selectCorrections(ctx context.Context, q postgres.Querier, t lake.Table, document []byte) ([]record.Correction, error) {
	rows, err := q.Query(ctx, sqlSelectCorrections, t.Account, t.Dataset, document)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c record.Correction, err error) {
		a := &c.Anchor
		err = row.Scan(&c.Field, &a.Page, &a.From, &a.To, &a.Rank, &a.Ranks, &c.Key, &c.Value)

		return c, err
	})
}

func insertCorrection(ctx context.Context, tx pgx.Tx, t lake.Table, document []byte, c record.Correction, by uuid.UUID, now time.Time) error {
	a := c.Anchor
	_, err := tx.Exec(ctx, sqlInsertCorrection, t.Account, t.Dataset, document, c.Field, a.Page, a.From, a.To, a.Rank, a.Ranks, asJSON(c.Key), c.Value, by, now)

	return err
}

func deleteCorrection(ctx context.Context, tx pgx.Tx, t lake.Table, document []byte, field string, a record.Anchor) error {
	_, err := tx.Exec(ctx, sqlDeleteCorrection, t.Account, t.Dataset, document, field, a.Page, a.From, a.To, a.Rank)

	return err
}

// insertPages stores the pages that the records of a document and their quotes stand on.
func insertPages(ctx context.Context, tx pgx.Tx, i Ingestion, position int, p *paper) error {
	var numbers []int

	for _, r := range p.records.Records {
		numbers = append(numbers, r.Page)
		for _, c := range r.Cells {
			numbers = append(numbers, c.Place.Page)
		}
	}

	slices.Sort(numbers)

	batch := &pgx.Batch{}

	for _, number := range slices.Compact(numbers) {
		if number > 0 && number <= len(p.pages) {
			text := strings.ReplaceAll(p.pages[number-1], "\x00", "\uFFFD") // PostgreSQL stores no NUL, and the characters are counted
			batch.Queue(sqlInsertPage, i.Account, i.Dataset, i.ID, position, number, text)
		}
	}

	return tx.SendBatch(ctx, batch).Close()
}

func selectPages(ctx context.Context, q postgres.Querier, i Ingestion, of Place, numbers []int32) ([]PageText, error) {
	rows, err := q.Query(ctx, sqlSelectPages, i.Account, i.Dataset, i.ID, of.File, numbers)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[PageText])
}
