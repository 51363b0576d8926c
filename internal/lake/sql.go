package lake

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsertTable = `INSERT INTO lake_tables (account_id, dataset_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`

	sqlSnapshotColumns = `
		s.id, s.sequence, s.number, s.operation, s.schema_id, c.columns, s.row_count, s.byte_count, s.file_count, s.manifest_list, s.committed_at, s.generation`
	sqlFromTable = `
		FROM lake_tables t
		LEFT JOIN iceberg_tables i ON i.catalog_name = 'quern' AND i.table_namespace = t.account_id::text AND i.table_name = t.dataset_id::text
		LEFT JOIN lake_snapshots s ON s.account_id = t.account_id AND s.dataset_id = t.dataset_id AND s.id = t.snapshot_id
		LEFT JOIN lake_schemas c ON c.account_id = s.account_id AND c.dataset_id = s.dataset_id AND c.id = s.schema_id`
	sqlWhereTable  = ` WHERE t.account_id = $1 AND t.dataset_id = $2`
	sqlSelectState = `
		SELECT t.removed_at IS NOT NULL, coalesce(i.metadata_location, ''), t.given, t.last_column_id, t.generation,` +
		sqlSnapshotColumns + sqlFromTable + sqlWhereTable
	// One statement, so that snapshot and files are of one moment whatever the caller's transaction is.
	sqlSelectCurrent = `
		SELECT t.removed_at IS NOT NULL, f.keys, f.sizes, f.counts, f.ingestions, f.sources, f.names, f.firsts, f.shapes, f.compacted,` + sqlSnapshotColumns + sqlFromTable + `
		LEFT JOIN LATERAL (
			SELECT array_agg(o.object_key) AS keys, array_agg(o.size) AS sizes, array_agg(o.row_count) AS counts,
				array_agg(o.ingestion_id) AS ingestions, array_agg(o.source_id) AS sources, array_agg(coalesce(o.source_name, '')) AS names,
				array_agg(o.first_row) AS firsts, array_agg(coalesce(o.shape, '')) AS shapes, array_agg(o.place IS NOT NULL) AS compacted
			FROM (
				SELECT object_key, size, row_count, ingestion_id, source_id, source_name, first_row, shape, place FROM lake_files
				WHERE account_id = t.account_id AND dataset_id = t.dataset_id AND generation = t.generation ORDER BY coalesce(place, id)) o) f ON true` +
		sqlWhereTable
	sqlLockTable   = `SELECT dataset_id FROM lake_tables WHERE account_id = $1 AND dataset_id = $2 FOR UPDATE`
	sqlUpdateGiven = `UPDATE lake_tables SET given = $3::jsonb, last_column_id = $4 WHERE account_id = $1 AND dataset_id = $2`

	sqlFromSnapshots = `
		FROM lake_snapshots s
		JOIN lake_schemas c ON c.account_id = s.account_id AND c.dataset_id = s.dataset_id AND c.id = s.schema_id
		JOIN lake_tables t ON t.account_id = s.account_id AND t.dataset_id = s.dataset_id
		WHERE s.account_id = $1 AND s.dataset_id = $2`
	sqlSelectSnapshots = `
		SELECT t.snapshot_id = s.id,` + sqlSnapshotColumns + sqlFromSnapshots + ` AND s.sequence < $3 ORDER BY s.sequence DESC LIMIT $4`
	sqlSelectSnapshot = `SELECT t.snapshot_id = s.id,` + sqlSnapshotColumns + sqlFromSnapshots + ` AND s.id = $3`
	sqlSelectMoment   = `
		SELECT t.snapshot_id = s.id,` + sqlSnapshotColumns + sqlFromSnapshots + ` AND s.committed_at <= $3 ORDER BY s.sequence DESC LIMIT 1`
	sqlHasSnapshot = `SELECT EXISTS (SELECT 1 FROM lake_snapshots WHERE account_id = $1 AND dataset_id = $2 AND id = $3)`

	sqlInsertStaged = `
		INSERT INTO lake_files (account_id, dataset_id, id, kind, state, object_key, ingestion_id, source_id, source_name, first_row,
			skipped, remove_at)
		SELECT $1, $2, $3, 'data', 'writing', $4, $5, nullif($6, '00000000-0000-0000-0000-000000000000'::uuid), $7, $8, $9, $10
		WHERE NOT EXISTS (SELECT 1 FROM lake_tables WHERE account_id = $1 AND dataset_id = $2 AND removed_at IS NOT NULL)`
	sqlUpdateReady = `
		UPDATE lake_files SET state = 'ready', size = $4, row_count = $5, entry = $6, columns = $7::jsonb, shape = $8, bounds = $9::jsonb,
			remove_at = NULL
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND state = 'writing'`
	sqlDropStaged = `
		UPDATE lake_files SET state = 'dropped', remove_at = CASE state WHEN 'writing' THEN $4::timestamptz ELSE $5::timestamptz END
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = $3 AND state IN ('writing', 'ready')`
	sqlSelectReady = `
		SELECT id, ingestion_id, source_id, first_row, object_key, size, row_count, entry, columns FROM lake_files
		WHERE account_id = $1 AND dataset_id = $2 AND ingestion_id = ANY($3) AND state = 'ready' ORDER BY id`
	sqlSelectOrigins = `
		SELECT object_key, size, row_count, ingestion_id, source_id, coalesce(source_name, ''), first_row, coalesce(shape, ''),
			place IS NOT NULL FROM lake_files
		WHERE account_id = $1 AND dataset_id = $2 AND object_key = ANY($3) ORDER BY coalesce(place, id)`
	sqlSelectBounds = `
		SELECT f.object_key, (SELECT jsonb_object_agg(c.id, f.bounds -> c.id) FROM unnest($4::text[]) AS c (id) WHERE f.bounds ? c.id)
		FROM lake_files f WHERE f.account_id = $1 AND f.dataset_id = $2 AND f.object_key = ANY($3) AND f.bounds ?| $4::text[]`
	sqlSelectSkipped = `
		SELECT object_key, skipped FROM lake_files
		WHERE account_id = $1 AND dataset_id = $2 AND object_key = ANY($3) AND skipped <> '{}'`

	sqlInsertWritten = `
		INSERT INTO lake_files (account_id, dataset_id, id, kind, state, object_key, size, remove_at)
		SELECT $1, $2, id, 'metadata', 'writing', object_key, size, $6
		FROM unnest($3::uuid[], $4::text[], $5::bigint[]) AS written (id, object_key, size)`
	sqlReleaseWritten = `
		UPDATE lake_files SET remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND id = ANY($3) AND state = 'writing'`

	// What a commit changes, in this order: the row of the table is what everybody locks first.
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
	sqlCommitRetired = `
		UPDATE lake_files SET remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND object_key = $3`

	// A chore that waits is put off by a commit, but not for ever, and not if there is much more to see than before.
	sqlCommitProfile = `
		INSERT INTO lake_upkeep (account_id, dataset_id, chore, snapshot_id, since, due_at) VALUES ($1, $2, 'profile', $3, $4, $5)
		ON CONFLICT (account_id, dataset_id, chore) DO UPDATE SET snapshot_id = excluded.snapshot_id, due_at = CASE
			WHEN $6 >= 1.1 * (SELECT coalesce(profiled_rows, 0) FROM lake_tables WHERE account_id = $1 AND dataset_id = $2)
			THEN least(lake_upkeep.due_at, excluded.due_at) ELSE least(lake_upkeep.since + $7::interval, excluded.due_at) END`
	sqlCommitCompact = `
		INSERT INTO lake_upkeep (account_id, dataset_id, chore, snapshot_id, since, due_at) VALUES ($1, $2, 'compact', $3, $4, $4)
		ON CONFLICT (account_id, dataset_id, chore) DO NOTHING`
	sqlSelectDue = `
		SELECT account_id, dataset_id, snapshot_id FROM lake_upkeep WHERE chore = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3`
	sqlUpdateDue = `UPDATE lake_upkeep SET due_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND chore = $3`
	sqlDeleteDue = `
		WITH done AS (
			DELETE FROM lake_upkeep u WHERE u.account_id = $1 AND u.dataset_id = $2 AND u.chore = $3 AND NOT EXISTS (
				SELECT 1 FROM lake_snapshots later JOIN lake_snapshots seen USING (account_id, dataset_id)
				WHERE later.account_id = $1 AND later.dataset_id = $2 AND later.id = u.snapshot_id AND seen.id = $4 AND later.sequence > seen.sequence)
			RETURNING 1)
		UPDATE lake_upkeep SET since = $5 WHERE account_id = $1 AND dataset_id = $2 AND chore = $3 AND NOT EXISTS (SELECT 1 FROM done)`
	sqlUpdateProfiled = `
		UPDATE lake_tables SET profiled_rows = $3
		WHERE account_id = $1 AND dataset_id = $2 AND removed_at IS NULL AND replaced_sequence <= $4`
	sqlSelectProfiles = `
		SELECT p.dataset_id, p.snapshot_id, p.sequence, p.row_count, p.computed_at, p.profile_key, p.profile_size, p.values_key, p.values_size,
			CASE WHEN $3 THEN p.summary END
		FROM lake_profiles p JOIN lake_tables t USING (account_id, dataset_id)
		WHERE p.account_id = $1 AND p.dataset_id = ANY($2) AND p.sequence >= t.replaced_sequence AND t.removed_at IS NULL`
	sqlDeleteProfile = `
		DELETE FROM lake_profiles WHERE account_id = $1 AND dataset_id = $2 RETURNING profile_key, values_key`
	sqlInsertProfile = `
		INSERT INTO lake_profiles (account_id, dataset_id, snapshot_id, sequence, row_count, computed_at, profile_key, profile_size, values_key,
			values_size, summary)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb)`
	// In one order, so that two who delete at once do not wait for each other.
	sqlDeleteJoins = `
		DELETE FROM lake_joins WHERE (account_id, dataset_id, other_id, column_name, other_column) IN (
			SELECT account_id, dataset_id, other_id, column_name, other_column FROM lake_joins
			WHERE account_id = $1 AND (dataset_id = $2 OR other_id = $2)
			ORDER BY least(dataset_id, other_id), greatest(dataset_id, other_id), dataset_id, column_name, other_column FOR UPDATE)`
	sqlInsertJoins = `
		INSERT INTO lake_joins (account_id, dataset_id, column_name, other_id, other_column, share)
		SELECT $1, a, b, c, d, share FROM (
			SELECT $2::uuid AS a, column_name AS b, other_id AS c, other_column AS d, share
			FROM unnest($3::text[], $4::uuid[], $5::text[], $6::real[]) AS found (column_name, other_id, other_column, share)
			UNION ALL
			SELECT other_id, other_column, $2::uuid, column_name, share
			FROM unnest($3::text[], $4::uuid[], $5::text[], $6::real[]) AS found (column_name, other_id, other_column, share)) both_ways
		ORDER BY least(a, c), greatest(a, c), a, b, d
		ON CONFLICT (account_id, dataset_id, other_id, column_name, other_column) DO UPDATE SET share = excluded.share`
	sqlSelectJoins = `
		SELECT d.id, j.* FROM unnest($2::uuid[]) AS d(id), LATERAL (
			SELECT column_name, other_id, other_column, share FROM lake_joins
			WHERE account_id = $1 AND dataset_id = d.id ORDER BY share DESC, other_id, column_name, other_column LIMIT $3) j`

	sqlInsertObject = `
		INSERT INTO lake_files (account_id, dataset_id, id, kind, state, object_key, remove_at)
		SELECT $1, $2, $3, 'derived', 'writing', $4, $5
		WHERE NOT EXISTS (SELECT 1 FROM lake_tables WHERE account_id = $1 AND dataset_id = $2 AND removed_at IS NOT NULL)`
	sqlKeepObject = `
		UPDATE lake_files SET state = 'committed', size = $4, remove_at = NULL
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND state = 'writing'`
	sqlDropObject = `
		UPDATE lake_files SET remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND object_key = $3 AND kind = 'derived'`

	sqlRemoveTable = `
		INSERT INTO lake_tables (account_id, dataset_id, removed_at) VALUES ($1, $2, $3)
		ON CONFLICT (account_id, dataset_id) DO UPDATE SET removed_at = coalesce(lake_tables.removed_at, excluded.removed_at)`
	sqlKeepTable = `
		UPDATE lake_tables SET removed_at = CASE WHEN removing THEN removed_at END WHERE account_id = $1 AND dataset_id = $2 RETURNING removing`
	sqlSelectRemoved = `
		SELECT account_id, dataset_id FROM lake_tables WHERE removed_at < $1 ORDER BY removed_at LIMIT $2`
	sqlBeginRemoval = `
		UPDATE lake_tables SET removing = true WHERE account_id = $1 AND dataset_id = $2 AND removed_at < $3`
	sqlDeletePointer = `
		DELETE FROM iceberg_tables WHERE catalog_name = 'quern' AND table_namespace = $1 AND table_name = $2`
	sqlRemoveFiles = `
		UPDATE lake_files SET remove_at = $3 WHERE account_id = $1 AND dataset_id = $2 AND (remove_at IS NULL OR remove_at > $3)`
	sqlEndRemoval = `
		WITH gone AS (
			DELETE FROM lake_tables t WHERE t.account_id = $1 AND t.dataset_id = $2 AND t.removing
				AND NOT EXISTS (SELECT 1 FROM lake_files f WHERE f.account_id = $1 AND f.dataset_id = $2)
			RETURNING t.account_id, t.dataset_id),
		snapshots AS (DELETE FROM lake_snapshots s USING gone WHERE s.account_id = gone.account_id AND s.dataset_id = gone.dataset_id),
		schemas AS (DELETE FROM lake_schemas c USING gone WHERE c.account_id = gone.account_id AND c.dataset_id = gone.dataset_id),
		upkeep AS (DELETE FROM lake_upkeep u USING gone WHERE u.account_id = gone.account_id AND u.dataset_id = gone.dataset_id),
		profiles AS (DELETE FROM lake_profiles p USING gone WHERE p.account_id = gone.account_id AND p.dataset_id = gone.dataset_id),
		joins AS (
			DELETE FROM lake_joins j USING gone
			WHERE j.account_id = gone.account_id AND (j.dataset_id = gone.dataset_id OR j.other_id = gone.dataset_id)),
		parts AS (DELETE FROM lake_parts p USING gone WHERE p.account_id = gone.account_id AND p.dataset_id = gone.dataset_id)
		SELECT count(*) = 1 FROM gone`

	sqlMoveTable     = `UPDATE lake_tables SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveSchemas   = `UPDATE lake_schemas SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveSnapshots = `UPDATE lake_snapshots SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveUpkeep    = `UPDATE lake_upkeep SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveProfiles  = `UPDATE lake_profiles SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveFiles     = `UPDATE lake_files SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveParts     = `UPDATE lake_parts SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMovePointer   = `
		UPDATE iceberg_tables SET table_namespace = $3, table_name = $4
		WHERE catalog_name = 'quern' AND table_namespace = $1 AND table_name = $2`

	sqlClaimRemovable = `
		UPDATE lake_files SET state = 'removing' WHERE (account_id, dataset_id, id) IN (
			SELECT account_id, dataset_id, id FROM lake_files WHERE remove_at < $1 ORDER BY remove_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING account_id, dataset_id, id, object_key, CASE kind WHEN 'data' THEN row_count = 0 WHEN 'derived' THEN size = 0 ELSE false END`
	sqlDeleteFile = `
		WITH gone AS (
			DELETE FROM lake_files WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND state = 'removing'
			RETURNING account_id, dataset_id, id)
		DELETE FROM lake_parts p USING gone WHERE p.account_id = gone.account_id AND p.dataset_id = gone.dataset_id AND p.file_id = gone.id`

	sqlSelectKnown     = `SELECT object_key, '' FROM lake_files WHERE object_key = ANY($1)`
	sqlSelectCommitted = `
		SELECT object_key, size FROM lake_files WHERE state = 'committed' AND object_key > $1 ORDER BY object_key LIMIT $2`
)

// state is all that a commit or a plan has to know of a table.
type state struct {
	removed    bool
	location   string // of Iceberg's metadata, empty before the first commit
	given      []Column
	last       int // the highest id that a column got
	generation int64
	current    *entry
}

// entry is a snapshot with what leads to its files.
type entry struct {
	Snapshot

	schema     uuid.UUID
	list       string // key of the manifest list
	generation *int64 // nil if it was not said
}

func insertTable(ctx context.Context, q postgres.Querier, t Table) error {
	_, err := q.Exec(ctx, sqlInsertTable, t.Account, t.Dataset)

	return err
}

// selectState returns nil if nobody ever planned anything for the table.
func selectState(ctx context.Context, q postgres.Querier, t Table) (*state, error) {
	var (
		s  state
		id *uuid.UUID
		e  nullable
	)

	err := q.QueryRow(ctx, sqlSelectState, t.Account, t.Dataset).Scan(append(
		[]any{&s.removed, &s.location, &s.given, &s.last, &s.generation, &id}, e.targets()...)...)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	if id != nil {
		s.current = e.entry(*id)
		s.current.Current = true
	}

	return &s, err
}

// selectCurrent returns nil if there is no snapshot, or its table was removed.
func selectCurrent(ctx context.Context, q postgres.Querier, t Table) (*Snapshot, []File, error) {
	var (
		removed             bool
		keys, names, shapes []string
		sizes, rows, firsts []int64
		ingestions, sources []uuid.NullUUID
		compacted           []bool
		id                  *uuid.UUID
		e                   nullable
	)

	err := q.QueryRow(ctx, sqlSelectCurrent, t.Account, t.Dataset).Scan(append(
		[]any{&removed, &keys, &sizes, &rows, &ingestions, &sources, &names, &firsts, &shapes, &compacted, &id}, e.targets()...)...)
	if postgres.NoRows(err) || (err == nil && (removed || id == nil)) {
		return nil, nil, nil
	}

	if err != nil {
		return nil, nil, err
	}

	files := make([]File, len(keys))
	for i, key := range keys {
		files[i] = File{
			Key: key, Size: sizes[i], Rows: rows[i], Ingestion: ingestions[i].UUID, Source: sources[i].UUID, Name: names[i],
			FirstRow: firsts[i], Shape: shapes[i], Compacted: compacted[i],
		}
	}

	current := e.entry(*id).Snapshot
	current.Current = true

	return &current, files, nil
}

// nullable is a snapshot's row, which an outer join may leave out.
type nullable struct {
	sequence, number, rows, bytes, generation *int64
	operation, list                           *string
	schema                                    *uuid.UUID
	columns                                   []Column
	files                                     *int
	committedAt                               *time.Time
}

func (n *nullable) targets() []any {
	return []any{&n.sequence, &n.number, &n.operation, &n.schema, &n.columns, &n.rows, &n.bytes, &n.files, &n.list, &n.committedAt, &n.generation}
}

func (n *nullable) entry(id uuid.UUID) *entry {
	return &entry{schema: *n.schema, list: *n.list, generation: n.generation, Snapshot: Snapshot{
		ID: id, Sequence: *n.sequence, Number: *n.number, Operation: Mode(*n.operation), Columns: n.columns,
		Rows: *n.rows, Bytes: *n.bytes, Files: *n.files, CommittedAt: *n.committedAt,
	}}
}

func lockTable(ctx context.Context, tx pgx.Tx, t Table) error {
	_, err := tx.Exec(ctx, sqlLockTable, t.Account, t.Dataset)

	return err
}

func updateGiven(ctx context.Context, tx pgx.Tx, t Table, given []Column, last int) error {
	_, err := tx.Exec(ctx, sqlUpdateGiven, t.Account, t.Dataset, document{given}, last)

	return err
}

func selectSnapshots(ctx context.Context, q postgres.Querier, t Table, before int64, limit int) ([]entry, error) {
	rows, err := q.Query(ctx, sqlSelectSnapshots, t.Account, t.Dataset, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanSnapshot)
}

// selectSnapshot returns nil if there is none.
func selectSnapshot(ctx context.Context, q postgres.Querier, t Table, id uuid.UUID) (*entry, error) {
	return selectOne(ctx, q, sqlSelectSnapshot, t, id)
}

// selectMoment returns the snapshot that was in force at a moment, nil if there was none.
func selectMoment(ctx context.Context, q postgres.Querier, t Table, moment time.Time) (*entry, error) {
	return selectOne(ctx, q, sqlSelectMoment, t, moment)
}

func selectOne(ctx context.Context, q postgres.Querier, statement string, t Table, which any) (*entry, error) {
	rows, err := q.Query(ctx, statement, t.Account, t.Dataset, which)
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanSnapshot)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func scanSnapshot(row pgx.CollectableRow) (entry, error) {
	var (
		current *bool
		id      uuid.UUID
		e       nullable
	)

	if err := row.Scan(append([]any{&current, &id}, e.targets()...)...); err != nil {
		return entry{}, err
	}

	found := e.entry(id)
	found.Current = current != nil && *current

	return *found, nil
}

func hasSnapshot(ctx context.Context, q postgres.Querier, t Table, id uuid.UUID) (has bool, err error) {
	err = q.QueryRow(ctx, sqlHasSnapshot, t.Account, t.Dataset, id).Scan(&has)

	return has, err
}

func insertStaged(ctx context.Context, tx pgx.Tx, s Staged, removeAt time.Time) (done bool, err error) {
	// An empty list is not NULL: it is known that nothing was skipped.
	skipped := slices.AppendSeq([]int64{}, slices.Values(s.Source.Skipped))
	slices.Sort(skipped)

	tag, err := tx.Exec(ctx, sqlInsertStaged, s.Table.Account, s.Table.Dataset, s.ID, s.Key, s.Ingestion, s.Source.File, s.Source.Name,
		s.Source.FirstRow, skipped, removeAt)

	return tag.RowsAffected() == 1, err
}

func updateReady(ctx context.Context, tx pgx.Tx, s Staged) (done bool, err error) {
	tag, err := tx.Exec(ctx, sqlUpdateReady, s.Table.Account, s.Table.Dataset, s.ID, s.Size, s.Rows, s.entry, document{s.Columns},
		shapeOf(s.Columns), document{s.bounds})

	return tag.RowsAffected() == 1, err
}

func dropStaged(ctx context.Context, tx pgx.Tx, t Table, ingestion uuid.UUID, written, ready time.Time) error {
	_, err := tx.Exec(ctx, sqlDropStaged, t.Account, t.Dataset, ingestion, written, ready)

	return err
}

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

// selectOrigins returns the files of these keys, in the order that the current snapshot's have too.
func selectOrigins(ctx context.Context, q postgres.Querier, t Table, keys []string) ([]File, error) {
	rows, err := q.Query(ctx, sqlSelectOrigins, t.Account, t.Dataset, keys)
	if err != nil {
		return nil, err
	}

	var (
		found             = make([]File, 0, len(keys))
		f                 File
		ingestion, source uuid.NullUUID
	)

	_, err = pgx.ForEachRow(rows, []any{&f.Key, &f.Size, &f.Rows, &ingestion, &source, &f.Name, &f.FirstRow, &f.Shape, &f.Compacted}, func() error {
		f.Ingestion, f.Source = ingestion.UUID, source.UUID
		found = append(found, f)

		return nil
	})

	return found, err
}

// selectSkipped returns the rows that are not in the files of these keys, by key.
func selectSkipped(ctx context.Context, q postgres.Querier, t Table, keys []string) (map[string][]int64, error) {
	rows, err := q.Query(ctx, sqlSelectSkipped, t.Account, t.Dataset, keys)
	if err != nil {
		return nil, err
	}

	var (
		found   = map[string][]int64{}
		key     string
		skipped []int64
	)

	_, err = pgx.ForEachRow(rows, []any{&key, &skipped}, func() error {
		found[key] = skipped

		return nil
	})

	return found, err
}

// selectBounds returns the bounds of some columns of the files, by key and id of the column.
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
			bounds map[int]bound // a new one for each row: what is there already would stay
		)

		if err := rows.Scan(&key, &bounds); err != nil {
			return nil, err
		}

		found[key] = bounds
	}

	return found, rows.Err()
}

func insertWritten(ctx context.Context, q postgres.Querier, t Table, written []object, removeAt time.Time) error {
	ids, keys, sizes := make([]uuid.UUID, len(written)), make([]string, len(written)), make([]int64, len(written))
	for i, o := range written {
		ids[i], keys[i], sizes[i] = o.id, o.key, int64(len(o.content))
	}

	_, err := q.Exec(ctx, sqlInsertWritten, t.Account, t.Dataset, ids, keys, sizes, removeAt)

	return err
}

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

// commitTimes are the moments that a commit writes down.
type commitTimes struct{ now, retire, profile time.Time }

// commitRows does all of a commit that is in the database, in one round trip. It returns false if the table is
// not what the draft was made of, or one of its files is no longer to be had.
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
	must(len(ids), sqlCommitFiles, t.Account, t.Dataset, ids, d.generation, manifestsOf(d.written))
	d.moveFiles(must)
	d.ask(batch, times)

	return done, tx.SendBatch(ctx, batch).Close()
}

// moveFiles says of files and manifests that were there before what the snapshot means for them.
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

// ask notes which chores the snapshot makes due. Compacting changes nothing that a profile would show.
func (d *draft) ask(batch *pgx.Batch, times commitTimes) {
	t := d.table
	if d.made.Operation == Compacted {
		return
	}

	batch.Queue(sqlCommitProfile, t.Account, t.Dataset, d.made.ID, times.now, times.profile, d.made.Rows, patientFor)

	if d.made.Files >= compactFrom {
		batch.Queue(sqlCommitCompact, t.Account, t.Dataset, d.made.ID, times.now)
	}
}

// document is sent as JSON, also where the driver does not know what the column is.
type document struct{ content any }

// Value implements driver.Valuer.
func (d document) Value() (driver.Value, error) {
	content, err := json.Marshal(d.content)

	return string(content), err
}

func selectDue(ctx context.Context, q postgres.Querier, chore Chore, now time.Time, limit int) ([]Due, error) {
	rows, err := q.Query(ctx, sqlSelectDue, chore, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Due, error) {
		due := Due{Chore: chore}
		err := row.Scan(&due.Table.Account, &due.Table.Dataset, &due.Snapshot)

		return due, err
	})
}

func updateDue(ctx context.Context, tx pgx.Tx, due Due, at time.Time) error {
	_, err := tx.Exec(ctx, sqlUpdateDue, due.Table.Account, due.Table.Dataset, due.Chore, at)

	return err
}

func deleteDue(ctx context.Context, tx pgx.Tx, due Due, now time.Time) error {
	_, err := tx.Exec(ctx, sqlDeleteDue, due.Table.Account, due.Table.Dataset, due.Chore, due.Snapshot, now)

	return err
}

// updateProfiled tells whether the table is there, with all rows of the snapshot.
func updateProfiled(ctx context.Context, tx pgx.Tx, t Table, rows, sequence int64) (there bool, err error) {
	tag, err := tx.Exec(ctx, sqlUpdateProfiled, t.Account, t.Dataset, rows, sequence)

	return tag.RowsAffected() == 1, err
}

func selectProfiles(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID, summarized bool) (map[uuid.UUID]Profiled, error) {
	rows, err := q.Query(ctx, sqlSelectProfiles, account, datasets, summarized)
	if err != nil {
		return nil, err
	}

	found := map[uuid.UUID]Profiled{}

	var (
		dataset uuid.UUID
		p       Profiled
	)

	_, err = pgx.ForEachRow(rows, []any{
		&dataset, &p.Snapshot, &p.Sequence, &p.Rows, &p.ComputedAt, &p.Profile.Key, &p.Profile.Size, &p.Values.Key, &p.Values.Size, &p.Summary,
	}, func() error {
		p.Profile.Table = Table{Account: account, Dataset: dataset}
		p.Values.Table = p.Profile.Table
		found[dataset] = p
		p.Summary = nil

		return nil
	})

	return found, err
}

// deleteProfile returns the keys of its objects.
func deleteProfile(ctx context.Context, tx pgx.Tx, t Table) (keys []string, err error) {
	if _, err := tx.Exec(ctx, sqlDeleteJoins, t.Account, t.Dataset); err != nil {
		return nil, err
	}

	var profile, values string

	err = tx.QueryRow(ctx, sqlDeleteProfile, t.Account, t.Dataset).Scan(&profile, &values)
	if postgres.NoRows(err) {
		return nil, nil
	}

	keys = append(keys, profile)
	if values != "" {
		keys = append(keys, values)
	}

	return keys, err
}

func insertProfile(ctx context.Context, tx pgx.Tx, t Table, p Profiled, joins []Join) error {
	_, err := tx.Exec(ctx, sqlInsertProfile, t.Account, t.Dataset, p.Snapshot, p.Sequence, p.Rows, p.ComputedAt, p.Profile.Key, p.Profile.Size,
		p.Values.Key, p.Values.Size, string(p.Summary))
	if err != nil || len(joins) == 0 {
		return err
	}

	var (
		columns, to []string
		others      []uuid.UUID
		shares      []float64
	)

	for _, j := range joins {
		columns, others, to, shares = append(columns, j.Column), append(others, j.Other), append(to, j.To), append(shares, j.Share)
	}

	_, err = tx.Exec(ctx, sqlInsertJoins, t.Account, t.Dataset, columns, others, to, shares)

	return err
}

const maxJoins = 100

func selectJoins(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID][]Join, error) {
	rows, err := q.Query(ctx, sqlSelectJoins, account, datasets, maxJoins)
	if err != nil {
		return nil, err
	}

	var (
		found = map[uuid.UUID][]Join{}
		of    uuid.UUID
		j     Join
	)

	_, err = pgx.ForEachRow(rows, []any{&of, &j.Column, &j.Other, &j.To, &j.Share}, func() error {
		found[of] = append(found[of], j)

		return nil
	})

	return found, err
}

func insertObject(ctx context.Context, tx pgx.Tx, o Object, removeAt time.Time) (done bool, err error) {
	tag, err := tx.Exec(ctx, sqlInsertObject, o.Table.Account, o.Table.Dataset, o.ID, o.Key, removeAt)

	return tag.RowsAffected() == 1, err
}

func keepObject(ctx context.Context, tx pgx.Tx, o Object) (done bool, err error) {
	tag, err := tx.Exec(ctx, sqlKeepObject, o.Table.Account, o.Table.Dataset, o.ID, o.Size)

	return tag.RowsAffected() == 1, err
}

func dropObject(ctx context.Context, tx pgx.Tx, t Table, key string, at time.Time) error {
	_, err := tx.Exec(ctx, sqlDropObject, t.Account, t.Dataset, key, at)

	return err
}

func removeTable(ctx context.Context, tx pgx.Tx, t Table, now time.Time) error {
	_, err := tx.Exec(ctx, sqlRemoveTable, t.Account, t.Dataset, now)

	return err
}

func keepTable(ctx context.Context, tx pgx.Tx, t Table) (tooLate bool, err error) {
	err = tx.QueryRow(ctx, sqlKeepTable, t.Account, t.Dataset).Scan(&tooLate)
	if postgres.NoRows(err) {
		return true, nil // a mark is left for every dataset that is deleted, so it is gone for good
	}

	return tooLate, err
}

func selectRemoved(ctx context.Context, q postgres.Querier, before time.Time, limit int) ([]Table, error) {
	rows, err := q.Query(ctx, sqlSelectRemoved, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Table, err error) {
		err = row.Scan(&t.Account, &t.Dataset)

		return t, err
	})
}

// beginRemoval does nothing if the table is to be kept after all.
func beginRemoval(ctx context.Context, tx pgx.Tx, t Table, before, now time.Time) (begun bool, err error) {
	tag, err := tx.Exec(ctx, sqlBeginRemoval, t.Account, t.Dataset, before)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}

	if _, err := tx.Exec(ctx, sqlDeletePointer, t.Account.String(), t.Dataset.String()); err != nil {
		return false, err
	}

	_, err = tx.Exec(ctx, sqlRemoveFiles, t.Account, t.Dataset, now)

	return err == nil, err
}

// endRemoval returns false while there are objects left.
func endRemoval(ctx context.Context, q postgres.Querier, t Table) (ended bool, err error) {
	err = q.QueryRow(ctx, sqlEndRemoval, t.Account, t.Dataset).Scan(&ended)

	return ended, err
}

func moveTable(ctx context.Context, tx pgx.Tx, from, to Table) error {
	batch := &pgx.Batch{}

	for _, statement := range []string{sqlMoveTable, sqlMoveSchemas, sqlMoveSnapshots, sqlMoveFiles, sqlMoveUpkeep, sqlMoveProfiles, sqlMoveParts} {
		batch.Queue(statement, from.Account, from.Dataset, to.Account, to.Dataset)
	}

	batch.Queue(sqlMovePointer, from.Account.String(), from.Dataset.String(), to.Account.String(), to.Dataset.String())
	batch.Queue(sqlCommitNamespace, to.Account.String())
	batch.Queue(sqlDeleteJoins, from.Account, from.Dataset) // they are of one account

	return tx.SendBatch(ctx, batch).Close()
}

// removable is an object that may go. One that was never complete may have an upload that was begun.
type removable struct {
	table      Table
	id         uuid.UUID
	key        string
	incomplete bool
}

func claimRemovable(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]removable, error) {
	rows, err := q.Query(ctx, sqlClaimRemovable, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r removable, err error) {
		err = row.Scan(&r.table.Account, &r.table.Dataset, &r.id, &r.key, &r.incomplete)

		return r, err
	})
}

func deleteFile(ctx context.Context, q postgres.Querier, r removable) error {
	_, err := q.Exec(ctx, sqlDeleteFile, r.table.Account, r.table.Dataset, r.id)

	return err
}

// stored is all that is in the store for tables. A file may have been begun several times.
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
