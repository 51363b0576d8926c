package ingest

import (
	"context"
	"crypto/sha256"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlSelectChunks = `
		SELECT position, hash, answer, input_tokens, output_tokens FROM document_chunks WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3`
	sqlInsertChunk = `
		INSERT INTO document_chunks (account_id, dataset_id, ingestion_id, position, hash, answer, input_tokens, output_tokens)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8
		WHERE EXISTS (SELECT FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND status = 'running')
		ON CONFLICT DO NOTHING`
	sqlDropChunks    = `DELETE FROM document_chunks WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = ANY($3)`
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
		INSERT INTO document_records (account_id, dataset_id, ingestion_id, position, number, row_number, page, fields)
		SELECT $1, $2, $3, $4, number, nullif(row_number, 0), page, fields
		FROM unnest($5::bigint[], $6::bigint[], $7::int[], $8::jsonb[]) AS given (number, row_number, page, fields)`
	sqlMoveRecords   = `UPDATE document_records SET account_id = $2 WHERE account_id = $1 AND dataset_id = $3`
	sqlRemoveRecords = `DELETE FROM document_records WHERE account_id = $1 AND dataset_id = $2`
	sqlSetTokens     = `
		UPDATE ingestion_files SET pages = $5, input_tokens = $6, output_tokens = $7
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 AND position = $4`
	sqlSelectRecords = `
		SELECT r.position, coalesce(f.filename, ''), r.number, coalesce(r.row_number, 0), r.page, r.fields
		FROM document_records r LEFT JOIN ingestion_files f USING (account_id, dataset_id, ingestion_id, position)
		WHERE r.account_id = $1 AND r.dataset_id = $2 AND r.ingestion_id = $3 AND (r.position, r.number) > ($4, $5)
		ORDER BY r.position, r.number LIMIT $6`
)

// chunkAnswer is the answer about a chunk, nil if it was too long, with its tokens.
type chunkAnswer struct {
	Answer        *string
	Input, Output int64
}

// storedChunks returns the answers that were stored, by the position of the file and the hash of the request.
func (w *working) storedChunks(ctx context.Context) (found []map[[sha256.Size]byte]chunkAnswer, err error) {
	for range w.i.Files {
		found = append(found, map[[sha256.Size]byte]chunkAnswer{})
	}

	err = w.DB.Do(ctx, func(q postgres.Querier) error {
		rows, err := q.Query(ctx, sqlSelectChunks, w.i.Account, w.i.Dataset, w.i.ID)
		if err != nil {
			return err
		}

		var (
			position int
			hash     []byte
			one      chunkAnswer
		)

		_, err = pgx.ForEachRow(rows, []any{&position, &hash, &one.Answer, &one.Input, &one.Output}, func() error {
			if position < len(found) && len(hash) == sha256.Size {
				found[position][[sha256.Size]byte(hash)] = one
			}

			one.Answer = nil

			return nil
		})

		return err
	})

	return found, err
}

// insertChunk stores an answer. It reports whether the ingestion is still wanted.
func insertChunk(ctx context.Context, tx pgx.Tx, i Ingestion, position int, hash []byte, said chunkAnswer) (bool, error) {
	return met(ctx, tx, sqlInsertChunk, i.Account, i.Dataset, i.ID, position, hash, said.Answer, said.Input, said.Output)
}

// dropChunks deletes the answers for completed ingestions.
func dropChunks(ctx context.Context, tx pgx.Tx, t lake.Table, ids []uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlDropChunks, t.Account, t.Dataset, ids)

	return err
}

const recordsBatch = 5000

// insertPapers replaces the records of an earlier attempt.
func insertPapers(ctx context.Context, tx pgx.Tx, i Ingestion, papers []*paper) error {
	if len(papers) == 0 {
		return nil
	}

	if _, err := tx.Exec(ctx, sqlDeleteRecords, i.Account, i.Dataset, i.ID); err != nil {
		return err
	}

	for position, p := range papers {
		if _, err := tx.Exec(ctx, sqlSetTokens, i.Account, i.Dataset, i.ID, position, len(p.pages), p.input, p.output); err != nil {
			return err
		}

		row := int64(0)

		for from := 0; from < len(p.records.Records); from += recordsBatch {
			var (
				numbers, rows []int64
				pages         []int32
				fields        [][]byte
			)

			for n := from; n < min(from+recordsBatch, len(p.records.Records)); n++ {
				r := p.records.Records[n]
				numbers, pages = append(numbers, int64(n)+1), append(pages, int32(r.Page)) //nolint:gosec // at most engine.MaxPages
				fields = append(fields, asJSON(provenance(p.records.Fields, r)))

				if r.IsEmpty() {
					rows = append(rows, 0)
				} else {
					row++
					rows = append(rows, row)
				}
			}

			if _, err := tx.Exec(ctx, sqlInsertRecords, i.Account, i.Dataset, i.ID, position, numbers, rows, pages, fields); err != nil {
				return err
			}
		}
	}

	return nil
}

// selectRecords returns the records that follow a place, in the order of the files.
func selectRecords(ctx context.Context, q postgres.Querier, i Ingestion, after Place, limit int) ([]Record, error) {
	rows, err := q.Query(ctx, sqlSelectRecords, i.Account, i.Dataset, i.ID, after.File, after.Row, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Record, err error) {
		err = row.Scan(&r.position, &r.File, &r.number, &r.Row, &r.Page, &r.Fields)

		return r, err
	})
}
