package lake

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlSelectAllParts = `
		SELECT coalesce(p.first, 0), coalesce(p.row_count, f.row_count), coalesce(p.ingestion_id, f.ingestion_id),
			coalesce(p.source_id, f.source_id), coalesce(p.source_name, f.source_name, ''), coalesce(p.first_row, f.first_row),
			coalesce(p.skipped, f.skipped, '{}'), coalesce(p.pages, f.pages)
		FROM lake_files f
		LEFT JOIN lake_parts p ON p.account_id = f.account_id AND p.dataset_id = f.dataset_id AND p.file_id = f.id
		WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.object_key = $3 ORDER BY 1`
	sqlSelectStaged = `
		SELECT object_key, size, row_count, ingestion_id, coalesce(source_id, '00000000-0000-0000-0000-000000000000'::uuid), coalesce(source_name, ''), first_row,
			coalesce(shape, ''), columns FROM lake_files
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = ANY($3) AND state = 'ready' ORDER BY id`
)

// selectAllParts returns the parts of a file in order. A file that was not made from others is one part.
func selectAllParts(ctx context.Context, q postgres.Querier, t Table, key string) ([]ingestedPart, error) {
	rows, err := q.Query(ctx, sqlSelectAllParts, t.Account, t.Dataset, key)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p ingestedPart, err error) {
		source := uuid.NullUUID{}
		err = row.Scan(&p.First, &p.Rows, &p.ingestion, &source, &p.Name, &p.FirstRow, &p.Skipped, &p.Pages)
		p.File = source.UUID

		return p, err
	})
}

// insertRewritten sets the position and the parts of a rewritten file.
func insertRewritten(ctx context.Context, tx pgx.Tx, s Staged, from string, parts []ingestedPart, removeAt time.Time) error {
	t := s.Table
	if _, err := tx.Exec(ctx, sqlUpdatePlace, t.Account, t.Dataset, s.ID, removeAt, from); err != nil {
		return err
	}

	columns := []string{"account_id", "dataset_id", "file_id", "first", "row_count", "ingestion_id", "source_id", "source_name", "first_row", "skipped", "pages"}

	// COPY, because a file can have many thousands of parts.
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"lake_parts"}, columns, pgx.CopyFromSlice(len(parts), func(n int) ([]any, error) {
		p := parts[n]

		return []any{
			t.Account, t.Dataset, s.ID, p.First, p.Rows, p.ingestion, uuid.NullUUID{UUID: p.File, Valid: p.File != uuid.Nil}, p.Name, p.FirstRow, append([]int64{}, p.Skipped...), p.Pages,
		}, nil
	}))

	return err
}

// selectStagedFiles returns the staged files of ingestions in the order in which they were staged, with their columns.
func selectStagedFiles(ctx context.Context, q postgres.Querier, t Table, ingestions []uuid.UUID) (files []File, columns [][]Column, err error) {
	rows, err := q.Query(ctx, sqlSelectStaged, t.Account, t.Dataset, ingestions)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()

	for rows.Next() {
		var (
			f File
			c []Column
		)

		if err := rows.Scan(&f.Key, &f.Size, &f.Rows, &f.Ingestion, &f.Source, &f.Name, &f.FirstRow, &f.Shape, &c); err != nil {
			return nil, nil, err
		}

		files, columns = append(files, f), append(columns, c)
	}

	return files, columns, rows.Err()
}

const sqlSelectLoadedBy = `
	SELECT f.object_key, coalesce(p.first, 0), coalesce(p.row_count, f.row_count) FROM lake_files f
	LEFT JOIN lake_parts p ON p.account_id = f.account_id AND p.dataset_id = f.dataset_id AND p.file_id = f.id
	WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.object_key = ANY($3) AND f.row_count > 0 AND coalesce(p.ingestion_id, f.ingestion_id) = ANY($4)`

// selectLoadedBy returns the parts of files that the ingestions have loaded, by key.
func selectLoadedBy(ctx context.Context, q postgres.Querier, t Table, keys []string, ingestions []uuid.UUID) (map[string][]Part, error) {
	rows, err := q.Query(ctx, sqlSelectLoadedBy, t.Account, t.Dataset, keys, ingestions)
	if err != nil {
		return nil, err
	}

	var (
		parts = map[string][]Part{}
		key   string
		p     Part
	)

	_, err = pgx.ForEachRow(rows, []any{&key, &p.First, &p.Rows}, func() error {
		parts[key] = append(parts[key], p)

		return nil
	})

	return parts, err
}
