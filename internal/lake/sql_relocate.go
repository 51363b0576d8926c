package lake

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlMovePointers = `
	UPDATE iceberg_tables SET
		metadata_location = CASE WHEN starts_with(metadata_location, $1) THEN $2 || substr(metadata_location, length($1) + 1) ELSE metadata_location END,
		previous_metadata_location = CASE WHEN starts_with(previous_metadata_location, $1) THEN $2 || substr(previous_metadata_location, length($1) + 1)
			ELSE previous_metadata_location END
	WHERE catalog_name = 'quern'`

func movePointers(ctx context.Context, tx pgx.Tx, from, to string) error {
	_, err := tx.Exec(ctx, sqlMovePointers, from, to)

	return err
}

const (
	sqlSelectEntries = `SELECT account_id, dataset_id, id, entry FROM lake_files WHERE state = 'ready' AND entry IS NOT NULL`
	sqlUpdateEntry   = `UPDATE lake_files SET entry = $4 WHERE account_id = $1 AND dataset_id = $2 AND id = $3`
)

// moveEntries changes the entries of staged files.
func moveEntries(ctx context.Context, tx pgx.Tx, change func([]byte) ([]byte, error)) error {
	rows, err := tx.Query(ctx, sqlSelectEntries)
	if err != nil {
		return err
	}

	staged, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s stagedEntry, err error) {
		return s, row.Scan(&s.account, &s.dataset, &s.id, &s.entry)
	})
	if err != nil {
		return err
	}

	for _, s := range staged {
		entry, err := change(s.entry)
		if err != nil {
			return err
		}

		if _, err := tx.Exec(ctx, sqlUpdateEntry, s.account, s.dataset, s.id, entry); err != nil {
			return err
		}
	}

	return nil
}

const sqlSelectMoved = `
	SELECT DISTINCT account_id, dataset_id FROM lake_files
	WHERE kind = 'metadata' AND state = 'committed' AND (account_id, dataset_id) > ($1, $2) ORDER BY account_id, dataset_id LIMIT $3`

// selectMoved returns the next tables that have metadata.
func selectMoved(ctx context.Context, q postgres.Querier, after Table, limit int) ([]Table, error) {
	rows, err := q.Query(ctx, sqlSelectMoved, after.Account, after.Dataset, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Table, err error) { return t, row.Scan(&t.Account, &t.Dataset) })
}

const sqlSelectMetadata = `
	SELECT object_key FROM lake_files WHERE account_id = $1 AND dataset_id = $2 AND kind = 'metadata' AND state = 'committed' ORDER BY object_key`

func selectMetadata(ctx context.Context, q postgres.Querier, t Table) ([]string, error) {
	rows, err := q.Query(ctx, sqlSelectMetadata, t.Account, t.Dataset)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[string])
}

const sqlUpdateSizes = `
	UPDATE lake_files f SET size = n.size FROM unnest($3::text[], $4::bigint[]) AS n (key, size)
	WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.object_key = n.key AND f.size <> n.size`

func updateSizes(ctx context.Context, q postgres.Querier, t Table, sizes map[string]int64) error {
	keys := slices.Sorted(maps.Keys(sizes))
	values := make([]int64, len(keys))

	for i, key := range keys {
		values[i] = sizes[key]
	}

	_, err := q.Exec(ctx, sqlUpdateSizes, t.Account, t.Dataset, keys, values)

	return err
}
