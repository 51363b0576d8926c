package lake

import (
	"context"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/postgres"
)

const sqlSelectOrigins = `
	SELECT object_key, size, row_count, ingestion_id, source_id, coalesce(source_name, ''), first_row, coalesce(shape, ''),
		place IS NOT NULL, coalesce(address, ''),
		CASE WHEN address IS NOT NULL THEN (SELECT attached FROM lake_tables WHERE account_id = $1 AND dataset_id = $2) END
	FROM lake_files
	WHERE account_id = $1 AND dataset_id = $2 AND object_key = ANY($3) ORDER BY coalesce(place, id)`

// selectOrigins returns the files with these keys, in the same order as the files of the current snapshot.
func selectOrigins(ctx context.Context, q postgres.Querier, t Table, keys []string) ([]File, error) {
	rows, err := q.Query(ctx, sqlSelectOrigins, t.Account, t.Dataset, keys)
	if err != nil {
		return nil, err
	}

	var (
		found             = make([]File, 0, len(keys))
		f                 File
		ingestion, source uuid.NullUUID
		attached          *Attachment
	)

	_, err = pgx.ForEachRow(rows, []any{&f.Key, &f.Size, &f.Rows, &ingestion, &source, &f.Name, &f.FirstRow, &f.Shape, &f.Compacted, &f.Address, &attached}, func() error {
		f.Ingestion, f.Source, f.At = ingestion.UUID, source.UUID, attachmentOf(f.Address, attached)
		found = append(found, f)

		return nil
	})

	return found, err
}

const sqlSelectPlaces = `
	SELECT object_key, skipped, pages FROM lake_files
	WHERE account_id = $1 AND dataset_id = $2 AND object_key = ANY($3) AND (skipped <> '{}' OR pages IS NOT NULL)`

// selectPlaces returns, by key, which rows of the uploaded file are in the data file.
func selectPlaces(ctx context.Context, q postgres.Querier, t Table, keys []string) (map[string]Places, error) {
	rows, err := q.Query(ctx, sqlSelectPlaces, t.Account, t.Dataset, keys)
	if err != nil {
		return nil, err
	}

	var (
		found  = map[string]Places{}
		key    string
		places Places
	)

	_, err = pgx.ForEachRow(rows, []any{&key, &places.Skipped, &places.Pages}, func() error {
		found[key] = places
		places = Places{}

		return nil
	})

	return found, err
}

const sqlSelectBounds = `
	SELECT f.object_key, (SELECT jsonb_object_agg(c.id, f.bounds -> c.id) FROM unnest($4::text[]) AS c (id) WHERE f.bounds ? c.id)
	FROM lake_files f WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.object_key = ANY($3) AND f.bounds ?| $4::text[]`

// selectBounds returns the bounds of the given columns, by key of the file and id of the column.
func selectBounds(ctx context.Context, q postgres.Querier, t Table, keys []string, columns []int) (map[string]map[int]bound, error) {
	ids := make([]string, len(columns))
	for i, id := range columns {
		ids[i] = strconv.Itoa(id)
	}

	rows, err := q.Query(ctx, sqlSelectBounds, t.Account, t.Dataset, keys, ids)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	found := make(map[string]map[int]bound, len(keys))

	for rows.Next() {
		var (
			key    string
			bounds map[int]bound // a new map for each row, because Scan keeps existing entries
		)

		if err := rows.Scan(&key, &bounds); err != nil {
			return nil, err
		}

		found[key] = bounds
	}

	return found, rows.Err()
}

const (
	sqlSelectKnown     = `SELECT object_key, '' FROM lake_files WHERE object_key = ANY($1)`
	sqlSelectCommitted = `
		SELECT object_key, size FROM lake_files WHERE state IN ('committed', 'ready') AND address IS NULL AND object_key > $1 ORDER BY object_key LIMIT $2`
)

// stored describes the objects that the store should have for tables. A file may have several open uploads.
func stored(db *postgres.DB) blob.Rows {
	return blob.Rows{
		Prefix: "lake/",
		Known: func(ctx context.Context, keys []string) (map[string]string, error) {
			return postgres.Map[string](ctx, db, sqlSelectKnown, keys)
		},
		Next: func(ctx context.Context, after string, limit int) (map[string]int64, error) {
			return postgres.Map[int64](ctx, db, sqlSelectCommitted, after, limit)
		},
	}
}
