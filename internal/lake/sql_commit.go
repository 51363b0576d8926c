package lake

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quern.dev/quern/internal/postgres"
)

const sqlInsertWritten = `
	INSERT INTO lake_files (account_id, dataset_id, id, kind, state, object_key, size, remove_at)
	SELECT $1, $2, id, 'metadata', 'writing', object_key, size, $6
	FROM unnest($3::uuid[], $4::text[], $5::bigint[]) AS written (id, object_key, size)`

func insertWritten(ctx context.Context, q postgres.Querier, t Table, written []object, removeAt time.Time) error {
	ids, keys, sizes := make([]uuid.UUID, len(written)), make([]string, len(written)), make([]int64, len(written))
	for i, o := range written {
		ids[i], keys[i], sizes[i] = o.id, o.key, int64(len(o.content))
	}

	_, err := q.Exec(ctx, sqlInsertWritten, t.Account, t.Dataset, ids, keys, sizes, removeAt)

	return err
}

const sqlReleaseWritten = `
	UPDATE lake_files SET remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND id = ANY($3) AND state = 'writing'`

func releaseWritten(ctx context.Context, q postgres.Querier, t Table, written []object, now time.Time) error {
	_, err := q.Exec(ctx, sqlReleaseWritten, t.Account, t.Dataset, idsOf(written), now)

	return err
}

func idsOf(written []object) []uuid.UUID {
	ids := make([]uuid.UUID, len(written))
	for i, o := range written {
		ids[i] = o.id
	}

	return ids
}

func manifestsOf(written []object) []uuid.UUID {
	ids := []uuid.UUID{}

	for _, o := range written {
		if o.isManifest {
			ids = append(ids, o.id)
		}
	}

	return ids
}

// commitTimes are the times that a commit stores.
type commitTimes struct{ now, retire, profile time.Time }

const (
	// The changes of a commit, in this order: every writer locks the row of the table first.
	sqlCommitTable = `
		UPDATE lake_tables SET snapshot_id = $4, generation = $5, superseded_at = CASE WHEN snapshot_id IS NOT NULL THEN coalesce(superseded_at, $6) END,
			replaced_sequence = CASE WHEN $7 THEN $8 ELSE replaced_sequence END
		WHERE account_id = $1 AND dataset_id = $2 AND snapshot_id IS NOT DISTINCT FROM $3 AND removed_at IS NULL`
	sqlCommitPointer = `
		UPDATE iceberg_tables SET metadata_location = $4, previous_metadata_location = $3
		WHERE catalog_name = 'quern' AND table_namespace = $1 AND table_name = $2 AND metadata_location = $3`
	sqlCommitFirstPointer = `
		INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
		VALUES ('quern', $1, $2, $3, 'TABLE') ON CONFLICT DO NOTHING`
	sqlCommitNamespace = `
		INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
		VALUES ('quern', $1, 'exists', 'true') ON CONFLICT DO NOTHING`
	sqlCommitSchema = `
		INSERT INTO lake_schemas (account_id, dataset_id, id, columns) VALUES ($1, $2, $3, $4::jsonb)`
	sqlCommitSnapshot = `
		INSERT INTO lake_snapshots (account_id, dataset_id, id, sequence, number, operation, schema_id, row_count, byte_count, file_count,
			manifest_list, committed_at, generation)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`
	sqlCommitFiles = `
		UPDATE lake_files SET state = 'committed', entry = NULL, columns = NULL, remove_at = NULL,
			ingestion_id = CASE WHEN place IS NULL THEN ingestion_id END,
			generation = CASE kind WHEN 'data' THEN $4::bigint END, manifest_generation = CASE WHEN id = ANY($5) THEN $4::bigint END
		WHERE account_id = $1 AND dataset_id = $2 AND id = ANY($3) AND state = CASE kind WHEN 'data' THEN 'ready' ELSE 'writing' END`
	sqlCommitAttached = `UPDATE lake_tables SET attached = $3::jsonb WHERE account_id = $1 AND dataset_id = $2`
	sqlCommitRetired  = `
		UPDATE lake_files SET remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND object_key = $3`
)

// commitRows makes all changes of a commit in the database, in one round trip. It returns false if the table has
// changed since the draft was made, or one of its files was removed.
func commitRows(ctx context.Context, tx pgx.Tx, d draft, times commitTimes) (done bool, err error) {
	var (
		t        = d.table
		account  = t.Account.String()
		dataset  = t.Dataset.String()
		previous *uuid.UUID
		ids      = idsOf(d.written)
		batch    = &pgx.Batch{}
	)

	done = true
	must := func(rows int, statement string, arguments ...any) {
		batch.Queue(statement, arguments...).Exec(func(tag pgconn.CommandTag) error {
			done = done && tag.RowsAffected() == int64(rows)

			return nil
		})
	}

	if d.base.current != nil {
		previous = &d.base.current.ID
	}

	for _, staged := range d.staged {
		ids = append(ids, staged.ID)
	}

	must(1, sqlCommitTable, t.Account, t.Dataset, previous, d.made.ID, d.generation, d.made.CommittedAt, d.made.Operation.takesAway(), d.made.Sequence)

	if d.base.location == "" {
		must(1, sqlCommitFirstPointer, account, dataset, d.location)
		batch.Queue(sqlCommitNamespace, account)
	} else {
		must(1, sqlCommitPointer, account, dataset, d.base.location, d.location)
		must(1, sqlCommitRetired, t.Account, t.Dataset, d.retired, times.retire)
	}

	if d.newSchema {
		must(1, sqlCommitSchema, t.Account, t.Dataset, d.made.schema, document{d.made.Columns})
	}

	must(1, sqlCommitSnapshot, t.Account, t.Dataset, d.made.ID, d.made.Sequence, d.made.Number, d.made.Operation, d.made.schema,
		d.made.Rows, d.made.Bytes, d.made.Files, d.made.list, d.made.CommittedAt, d.generation)
	if d.made.Operation == Attached {
		must(1, sqlCommitAttached, t.Account, t.Dataset, document{d.attach})
	}

	must(len(ids), sqlCommitFiles, t.Account, t.Dataset, ids, d.generation, manifestsOf(d.written))
	d.moveFiles(must)
	d.ask(batch, times)

	return done, tx.SendBatch(ctx, batch).Close()
}

const (
	sqlCommitAdopted = `
		UPDATE lake_files SET manifest_generation = $4, left_sequence = NULL
		WHERE account_id = $1 AND dataset_id = $2 AND object_key = ANY($3) AND state = 'committed'`
	sqlCommitRestored = `
		UPDATE lake_files SET left_sequence = NULL,
			generation = CASE kind WHEN 'data' THEN $4::bigint END, manifest_generation = CASE kind WHEN 'metadata' THEN $4::bigint END
		WHERE account_id = $1 AND dataset_id = $2 AND object_key = ANY($3) AND state = 'committed' AND remove_at IS NULL`
	sqlCommitLeft = `
		UPDATE lake_files SET left_sequence = $4, generation = NULL, manifest_generation = NULL
		WHERE account_id = $1 AND dataset_id = $2 AND object_key = ANY($3) AND state = 'committed' AND (kind = 'metadata' OR generation = $5)`
	sqlCommitKept = `
		SELECT id FROM lake_snapshots WHERE account_id = $1 AND dataset_id = $2 AND id = $3`
)

// moveFiles records what the snapshot means for files and manifests that already existed.
func (d *draft) moveFiles(must func(rows int, statement string, arguments ...any)) {
	t := d.table

	if len(d.adopted) > 0 {
		must(len(d.adopted), sqlCommitAdopted, t.Account, t.Dataset, d.adopted, d.base.generation)
	}

	if d.made.Operation == Restore {
		must(1, sqlCommitKept, t.Account, t.Dataset, d.source)
		must(len(d.restored), sqlCommitRestored, t.Account, t.Dataset, d.restored, d.generation)
	}

	if len(d.left) > 0 {
		must(len(d.left), sqlCommitLeft, t.Account, t.Dataset, d.left, d.made.Sequence, d.base.generation)
	}
}

const (
	// A table that was never profiled is profiled at once: people ask about the values of a dataset right after they loaded it. Otherwise a
	// commit postpones a waiting profile, up to patientFor, unless the table has grown by a tenth since the last profile.
	sqlCommitProfile = `
		INSERT INTO lake_upkeep (account_id, dataset_id, chore, snapshot_id, since, due_at)
		SELECT account_id, dataset_id, 'profile', $3, $4, CASE WHEN profiled_rows IS NULL THEN $4::timestamptz ELSE $5 END
		FROM lake_tables WHERE account_id = $1 AND dataset_id = $2
		ON CONFLICT (account_id, dataset_id, chore) DO UPDATE SET snapshot_id = excluded.snapshot_id, due_at = CASE
			WHEN $6 >= 1.1 * (SELECT coalesce(profiled_rows, 0) FROM lake_tables WHERE account_id = $1 AND dataset_id = $2)
			THEN least(lake_upkeep.due_at, excluded.due_at) ELSE least(lake_upkeep.since + $7::interval, excluded.due_at) END`
	sqlCommitCompact = `
		INSERT INTO lake_upkeep (account_id, dataset_id, chore, snapshot_id, since, due_at) VALUES ($1, $2, 'compact', $3, $4, $4)
		ON CONFLICT (account_id, dataset_id, chore) DO NOTHING`
)

// ask records which chores are due after the snapshot. A compaction does not make a new profile due, because it changes
// nothing that a profile shows.
func (d *draft) ask(batch *pgx.Batch, times commitTimes) {
	t := d.table
	if d.made.Operation == Compacted {
		return
	}

	batch.Queue(sqlCommitProfile, t.Account, t.Dataset, d.made.ID, times.now, times.profile, d.made.Rows, patientFor)

	if d.made.Files >= compactFrom && d.made.Operation != Attached {
		batch.Queue(sqlCommitCompact, t.Account, t.Dataset, d.made.ID, times.now)
	}
}
