package ingest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	// The answer to the same ingestion and file comes first: only then its tokens count for them.
	sqlSelectChunk = `
		SELECT answer, input_tokens, output_tokens, ingestion_id = $4 AND position = $5 FROM document_chunks
		WHERE account_id = $1 AND dataset_id = $2 AND hash = $3 ORDER BY 4 DESC LIMIT 1`
	sqlInsertChunk = `
		INSERT INTO document_chunks (account_id, dataset_id, ingestion_id, position, hash, answer, input_tokens, output_tokens)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8
		WHERE EXISTS (SELECT FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status = 'running')
		ON CONFLICT DO NOTHING`
	sqlMoveChunks    = `UPDATE document_chunks SET account_id = $2 WHERE account_id = $1 AND dataset_id = $3`
	sqlRemoveChunks  = `DELETE FROM document_chunks WHERE account_id = $1 AND dataset_id = $2`
	sqlForgetRecords = `
		DELETE FROM document_records r USING ingestions i
		WHERE r.account_id = $1 AND r.dataset_id = $2 AND i.account_id = r.account_id AND i.dataset_id = r.dataset_id AND i.id = r.ingestion_id
			AND i.status IN ('completed', 'failed', 'cancelled')`
	sqlForgetChunks = `
		DELETE FROM document_chunks c USING ingestions i
		WHERE c.account_id = $1 AND c.dataset_id = $2 AND i.account_id = c.account_id AND i.dataset_id = c.dataset_id AND i.id = c.ingestion_id
			AND i.status IN ('completed', 'failed', 'cancelled')`
	sqlDeleteRecords = `DELETE FROM document_records WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3`
	sqlInsertRecords = `
		INSERT INTO document_records (account_id, dataset_id, ingestion_id, position, number, row_number, page, fields, anchor, flagged)
		SELECT $1, $2, $3, $4, number, nullif(row_number, 0), page, fields, anchor, flagged
		FROM unnest($5::bigint[], $6::bigint[], $7::int[], $8::jsonb[], $9::jsonb[], $10::boolean[]) AS given (number, row_number, page, fields, anchor, flagged)`
	sqlMoveRecords   = `UPDATE document_records SET account_id = $2 WHERE account_id = $1 AND dataset_id = $3`
	sqlRemoveRecords = `DELETE FROM document_records WHERE account_id = $1 AND dataset_id = $2`
	sqlSetTokens     = `
		UPDATE ingestion_files SET pages = $5, input_tokens = $6, output_tokens = $7, document = $8
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 AND position = $4`
	sqlRecordColumns = `
		r.position, coalesce(f.filename, ''), r.number, coalesce(r.row_number, 0), r.page, r.fields
		FROM document_records r LEFT JOIN ingestion_files f USING (account_id, dataset_id, ingestion_id, position)
		WHERE r.account_id = $1 AND r.dataset_id = $2 AND r.ingestion_id = $3`
	sqlSelectRecords = `SELECT ` + sqlRecordColumns + `
		AND (r.position, r.number) > ($4, $5) AND (r.flagged OR NOT $7) ORDER BY r.position, r.number LIMIT $6`
	sqlSelectRecord = `SELECT ` + sqlRecordColumns + ` AND r.position = $4 AND r.number = $5`
)

// chunkAnswer is the answer about a chunk, nil if it was too long, with its tokens.
type chunkAnswer struct {
	Answer        *string
	Input, Output int64
}

// storedChunk returns the answer to the same request, whichever ingestion of the dataset has made it. It costs nothing for another one than that.
func (w *working) storedChunk(ctx context.Context, position int, hash []byte) (found chunkAnswer, known bool, err error) {
	err = w.DB.Do(ctx, func(q postgres.Querier) error {
		var isOwn bool

		err := q.QueryRow(ctx, sqlSelectChunk, w.i.Account, w.i.Dataset, hash, w.i.ID, position).Scan(&found.Answer, &found.Input, &found.Output, &isOwn)
		if postgres.NoRows(err) {
			return nil
		}

		if known = err == nil; !isOwn {
			found.Input, found.Output = 0, 0
		}

		return err
	})

	return found, known, err
}

// insertChunk stores an answer. It reports whether the ingestion is still wanted.
func insertChunk(ctx context.Context, tx pgx.Tx, i Ingestion, position int, hash []byte, said chunkAnswer) (bool, error) {
	return met(ctx, tx, sqlInsertChunk, i.Account, i.Dataset, i.ID, position, hash, said.Answer, said.Input, said.Output)
}

const recordsBatch = 5000

// insertPapers replaces the records of an earlier attempt.
func insertPapers(ctx context.Context, tx pgx.Tx, i Ingestion, papers []*paper) error {
	if len(papers) == 0 {
		return nil
	}

	for _, statement := range []string{sqlDeleteRecords, sqlDeletePages} {
		if _, err := tx.Exec(ctx, statement, i.Account, i.Dataset, i.ID); err != nil {
			return err
		}
	}

	for position, p := range papers {
		if _, err := tx.Exec(ctx, sqlSetTokens, i.Account, i.Dataset, i.ID, position, len(p.pages), p.input, p.output, p.document); err != nil {
			return err
		}

		if err := insertPages(ctx, tx, i, position, p); err != nil {
			return err
		}

		row := int64(0)

		for from := 0; from < len(p.records.Records); from += recordsBatch {
			var (
				numbers, rows   []int64
				pages           []int32
				fields, anchors [][]byte
				flagged         []bool
			)

			for n := from; n < min(from+recordsBatch, len(p.records.Records)); n++ {
				r := p.records.Records[n]
				numbers, pages = append(numbers, int64(n)+1), append(pages, int32(r.Page)) //nolint:gosec // at most engine.MaxPages
				found := provenance(p.records.Fields, r, p.anchors[n])
				fields, anchors, flagged = append(fields, asJSON(found)), append(anchors, asJSON(p.anchors[n])), append(flagged, isFlagged(found))

				if r.IsEmpty() || i.DryRun {
					rows = append(rows, 0)
				} else {
					row++
					rows = append(rows, row)
				}
			}

			if _, err := tx.Exec(ctx, sqlInsertRecords, i.Account, i.Dataset, i.ID, position, numbers, rows, pages, fields, anchors, flagged); err != nil {
				return err
			}
		}
	}

	return nil
}

func isFlagged(fields map[string]RecordField) bool {
	for _, f := range fields {
		if f.IsFlagged() {
			return true
		}
	}

	return false
}

// selectRecords returns records in the order of the files.
func selectRecords(ctx context.Context, q postgres.Querier, i Ingestion, page RecordsPage) ([]Record, error) {
	rows, err := q.Query(ctx, sqlSelectRecords, i.Account, i.Dataset, i.ID, page.After.File, page.After.Row, page.Limit, page.Flagged)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Record, error) { return scanRecord(row) })
}

// selectRecord returns one record.
//
// Faults: NotFound.
func selectRecord(ctx context.Context, q postgres.Querier, i Ingestion, of Place) (Record, error) {
	r, err := scanRecord(q.QueryRow(ctx, sqlSelectRecord, i.Account, i.Dataset, i.ID, of.File, of.Row))
	if postgres.NoRows(err) {
		err = fault.Absent()
	}

	return r, err
}

func scanRecord(row pgx.Row) (r Record, err error) {
	err = row.Scan(&r.position, &r.File, &r.number, &r.Row, &r.Page, &r.Fields)

	return r, err
}
