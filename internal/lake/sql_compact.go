package lake

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlUpdatePlace = `
		UPDATE lake_files f SET remove_at = $4, place = (
			SELECT coalesce(o.place, o.id) FROM lake_files o WHERE o.account_id = $1 AND o.dataset_id = $2 AND o.object_key = $5)
		WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.id = $3`
	sqlInsertParts = `
		INSERT INTO lake_parts (account_id, dataset_id, file_id, first, row_count, ingestion_id, source_id, source_name, first_row, skipped, pages)
		SELECT $1, $2, $3, i.first + coalesce(p.first, 0), coalesce(p.row_count, f.row_count), coalesce(p.ingestion_id, f.ingestion_id),
			coalesce(p.source_id, f.source_id), coalesce(p.source_name, f.source_name, ''), coalesce(p.first_row, f.first_row),
			coalesce(p.skipped, f.skipped, '{}'), coalesce(p.pages, f.pages)
		FROM unnest($4::text[], $5::bigint[]) AS i (object_key, first)
		JOIN lake_files f ON f.account_id = $1 AND f.dataset_id = $2 AND f.object_key = i.object_key AND f.row_count > 0
		LEFT JOIN lake_parts p ON p.account_id = f.account_id AND p.dataset_id = f.dataset_id AND p.file_id = f.id`
)

// takeOver sets the position and the parts of a compacted file.
func takeOver(ctx context.Context, tx pgx.Tx, s Staged, files []File, removeAt time.Time) error {
	var (
		keys, firsts = make([]string, len(files)), make([]int64, len(files))
		next         int64
		batch        = &pgx.Batch{}
		t            = s.Table
	)

	for i, f := range files {
		keys[i], firsts[i] = f.Key, next
		next += f.Rows
	}

	batch.Queue(sqlUpdatePlace, t.Account, t.Dataset, s.ID, removeAt, keys[0])
	batch.Queue(sqlInsertParts, t.Account, t.Dataset, s.ID, keys, firsts)

	return tx.SendBatch(ctx, batch).Close()
}

// nearParts is how many parts before and after a row are read at once.
const nearParts = 2000

const sqlSelectParts = `
	WITH file AS (SELECT id FROM lake_files WHERE account_id = $1 AND dataset_id = $2 AND object_key = $3),
	near AS (
		(SELECT p.first, p.row_count, p.source_id, p.source_name, p.first_row, p.skipped, p.pages FROM lake_parts p JOIN file ON p.file_id = file.id
			WHERE p.account_id = $1 AND p.dataset_id = $2 AND p.first <= $4 ORDER BY p.first DESC LIMIT $5)
		UNION ALL
		(SELECT p.first, p.row_count, p.source_id, p.source_name, p.first_row, p.skipped, p.pages FROM lake_parts p JOIN file ON p.file_id = file.id
			WHERE p.account_id = $1 AND p.dataset_id = $2 AND p.first > $4 ORDER BY p.first LIMIT $5))
	SELECT first, row_count, source_id, source_name, first_row, skipped, pages FROM near ORDER BY first`

func selectParts(ctx context.Context, q postgres.Querier, t Table, key string, row int64) ([]Part, error) {
	rows, err := q.Query(ctx, sqlSelectParts, t.Account, t.Dataset, key, row, nearParts)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Part, err error) {
		source := uuid.NullUUID{}
		err = row.Scan(&p.First, &p.Rows, &source, &p.Name, &p.FirstRow, &p.Skipped, &p.Pages)
		p.File = source.UUID

		return p, err
	})
}
