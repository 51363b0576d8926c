package lake

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quern.dev/quern/internal/postgres"
)

// superseded is a table with at least one snapshot that is not current, and the time at which the oldest such
// snapshot was replaced.
type superseded struct {
	table Table
	at    time.Time
}

const sqlSelectSuperseded = `
	SELECT account_id, dataset_id, superseded_at FROM lake_tables
	WHERE superseded_at <= $1 AND (superseded_at, account_id, dataset_id) > ($2, $3, $4) AND removed_at IS NULL
	ORDER BY superseded_at, account_id, dataset_id LIMIT $5`

func selectSuperseded(ctx context.Context, q postgres.Querier, before time.Time, after superseded, limit int) ([]superseded, error) {
	rows, err := q.Query(ctx, sqlSelectSuperseded, before, after.at, after.table.Account, after.table.Dataset, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s superseded, err error) {
		err = row.Scan(&s.table.Account, &s.table.Dataset, &s.at)

		return s, err
	})
}

// Selects the snapshot that was current at a moment, or an earlier one if more than $4 snapshots would be
// deleted.
const sqlSelectOldest = `
	WITH first AS (SELECT min(sequence) AS sequence FROM lake_snapshots WHERE account_id = $1 AND dataset_id = $2)
	SELECT false, s.id, s.sequence, s.number, s.operation, s.schema_id, c.columns, s.row_count, s.byte_count, s.file_count, s.manifest_list,
		s.committed_at, s.generation
	FROM first
	JOIN lake_snapshots s ON s.sequence > first.sequence AND s.sequence <= first.sequence + $4
	JOIN lake_schemas c ON c.account_id = s.account_id AND c.dataset_id = s.dataset_id AND c.id = s.schema_id
	WHERE s.account_id = $1 AND s.dataset_id = $2 AND s.committed_at <= $3 AND s.generation IS NOT NULL
	ORDER BY s.sequence DESC LIMIT 1`

// selectOldest returns the oldest snapshot to keep, or nil if no snapshot is to be deleted.
func selectOldest(ctx context.Context, q postgres.Querier, t Table, before time.Time, most int) (*entry, error) {
	rows, err := q.Query(ctx, sqlSelectOldest, t.Account, t.Dataset, before, most)
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanSnapshot)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

const (
	sqlExpireTable = `
		UPDATE lake_tables SET superseded_at = (
			SELECT committed_at FROM lake_snapshots WHERE account_id = $1 AND dataset_id = $2 AND sequence > $4 ORDER BY sequence LIMIT 1)
		WHERE account_id = $1 AND dataset_id = $2 AND snapshot_id = $3 AND removed_at IS NULL`
	// A schema is shared only by consecutive snapshots. The schemas of deleted snapshots are therefore deleted too,
	// except that of the oldest kept snapshot.
	sqlExpireSnapshots = `
		WITH gone AS (
			DELETE FROM lake_snapshots WHERE account_id = $1 AND dataset_id = $2 AND sequence < $3 RETURNING manifest_list, schema_id),
		schemas AS (
			DELETE FROM lake_schemas WHERE account_id = $1 AND dataset_id = $2 AND id IN (SELECT schema_id FROM gone) AND id <> $4)
		UPDATE lake_files f SET remove_at = $5 FROM gone WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.object_key = gone.manifest_list`
	sqlExpireFiles = `
		UPDATE lake_files SET remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND generation < $3 AND remove_at IS NULL`
	// Snapshots of an older release do not record a generation. While one exists, no manifest can be removed.
	sqlExpireManifests = `
		UPDATE lake_files SET remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND manifest_generation < $3 AND remove_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM lake_snapshots s WHERE s.account_id = $1 AND s.dataset_id = $2 AND s.generation IS NULL)`
	sqlExpireLeft = `
		UPDATE lake_files SET remove_at = $4
		WHERE account_id = $1 AND dataset_id = $2 AND left_sequence <= $3 AND generation IS NULL AND manifest_generation IS NULL AND remove_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM lake_snapshots s WHERE s.account_id = $1 AND s.dataset_id = $2 AND s.generation IS NULL)`
)

// expireRows makes all changes of an expiry in the database, in one round trip. It returns false if the table has
// changed.
func expireRows(ctx context.Context, tx pgx.Tx, e expiry, removeAt time.Time) (done bool, err error) {
	var (
		t     = e.table
		batch = &pgx.Batch{}
	)

	done = true
	must := func(statement string, arguments ...any) {
		batch.Queue(statement, arguments...).Exec(func(tag pgconn.CommandTag) error {
			done = done && tag.RowsAffected() == 1

			return nil
		})
	}

	must(sqlExpireTable, t.Account, t.Dataset, e.base.current.ID, e.oldest.Sequence)

	if e.location != "" {
		must(sqlCommitPointer, t.Account.String(), t.Dataset.String(), e.base.location, e.location)
		must(sqlCommitRetired, t.Account, t.Dataset, e.retired, removeAt)
		must(sqlCommitFiles, t.Account, t.Dataset, idsOf(e.written), 0, manifestsOf(e.written))
	}

	batch.Queue(sqlExpireSnapshots, t.Account, t.Dataset, e.oldest.Sequence, e.oldest.schema, removeAt)
	batch.Queue(sqlExpireFiles, t.Account, t.Dataset, *e.oldest.generation, removeAt)
	batch.Queue(sqlExpireManifests, t.Account, t.Dataset, *e.oldest.generation, removeAt)
	batch.Queue(sqlExpireLeft, t.Account, t.Dataset, e.oldest.Sequence, removeAt)

	return done, tx.SendBatch(ctx, batch).Close()
}

const sqlHasForgotten = `
	SELECT coalesce(min(sequence) > 1, false) FROM lake_snapshots WHERE account_id = $1 AND dataset_id = $2`

// hasForgotten reports whether snapshots of the table were deleted.
func hasForgotten(ctx context.Context, q postgres.Querier, t Table) (has bool, err error) {
	err = q.QueryRow(ctx, sqlHasForgotten, t.Account, t.Dataset).Scan(&has)

	return has, err
}
