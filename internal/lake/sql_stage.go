package lake

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlInsertStaged = `
	INSERT INTO lake_files (account_id, dataset_id, id, kind, state, object_key, ingestion_id, source_id, source_name, first_row,
		skipped, remove_at)
	SELECT $1, $2, $3, 'data', 'writing', $4, $5, nullif($6, '00000000-0000-0000-0000-000000000000'::uuid), $7, $8, $9, $10
	WHERE NOT EXISTS (SELECT 1 FROM lake_tables WHERE account_id = $1 AND dataset_id = $2 AND removed_at IS NOT NULL)`

func insertStaged(ctx context.Context, tx pgx.Tx, s Staged, removeAt time.Time) (done bool, err error) {
	tag, err := tx.Exec(ctx, sqlInsertStaged, s.Table.Account, s.Table.Dataset, s.ID, s.Key, s.Ingestion, s.Source.File, s.Source.Name,
		s.Source.FirstRow, s.Source.skipped(), removeAt)

	return tag.RowsAffected() == 1, err
}

// skipped returns the rows that were skipped, in order. An empty list, not NULL: it is known that no row was skipped.
func (s Source) skipped() []int64 {
	skipped := slices.AppendSeq([]int64{}, slices.Values(s.Skipped))
	slices.Sort(skipped)

	return skipped
}

const sqlUpdateReady = `
	UPDATE lake_files SET state = 'ready', size = $4, row_count = $5, entry = $6, columns = $7::jsonb, shape = $8, bounds = $9::jsonb,
		skipped = $10, pages = $11, remove_at = NULL
	WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND state = 'writing'`

func updateReady(ctx context.Context, tx pgx.Tx, s Staged) (done bool, err error) {
	tag, err := tx.Exec(ctx, sqlUpdateReady, s.Table.Account, s.Table.Dataset, s.ID, s.Size, s.Rows, s.entry, document{s.Columns},
		shapeOf(s.Columns), document{s.bounds}, s.Source.skipped(), s.Source.Pages)

	return tag.RowsAffected() == 1, err
}

const sqlDropStaged = `
	UPDATE lake_files SET state = 'dropped', remove_at = CASE state WHEN 'writing' THEN $4::timestamptz ELSE $5::timestamptz END
	WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 AND state IN ('writing', 'ready')
		AND ($6 = '00000000-0000-0000-0000-000000000000'::uuid OR source_id = $6)`

func dropStaged(ctx context.Context, tx pgx.Tx, t Table, ingestion, file uuid.UUID, written, ready time.Time) error {
	_, err := tx.Exec(ctx, sqlDropStaged, t.Account, t.Dataset, ingestion, written, ready, file)

	return err
}

const sqlDropReady = `
	UPDATE lake_files SET state = 'dropped', remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND object_key = ANY($3) AND state = 'ready'`

// dropReady reports whether all of the files were staged until now.
func dropReady(ctx context.Context, tx pgx.Tx, t Table, keys []string, removeAt time.Time) (all bool, err error) {
	tag, err := tx.Exec(ctx, sqlDropReady, t.Account, t.Dataset, keys, removeAt)

	return tag.RowsAffected() == int64(len(keys)), err
}

const sqlSelectReady = `
	SELECT id, ingestion_id, source_id, first_row, object_key, size, row_count, entry, columns FROM lake_files
	WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = ANY($3) AND state = 'ready' ORDER BY id`

func selectReady(ctx context.Context, q postgres.Querier, t Table, ingestions []uuid.UUID) ([]Staged, error) {
	rows, err := q.Query(ctx, sqlSelectReady, t.Account, t.Dataset, ingestions)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Staged, error) {
		s := Staged{Table: t}
		source := uuid.NullUUID{}
		err := row.Scan(&s.ID, &s.Ingestion, &source, &s.Source.FirstRow, &s.Key, &s.Size, &s.Rows, &s.entry, &s.Columns)
		s.Source.File = source.UUID

		return s, err
	})
}
