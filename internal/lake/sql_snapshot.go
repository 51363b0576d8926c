package lake

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

// entry is a snapshot with the references to its files.
type entry struct {
	Snapshot

	schema     uuid.UUID
	list       string // key of the manifest list
	generation *int64 // nil for a snapshot of an older release
}

// nullable is the row of a snapshot from an outer join; all fields are nil if there is no snapshot.
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

const sqlFromSnapshots = `
	FROM lake_snapshots s
	JOIN lake_schemas c ON c.account_id = s.account_id AND c.dataset_id = s.dataset_id AND c.id = s.schema_id
	JOIN lake_tables t ON t.account_id = s.account_id AND t.dataset_id = s.dataset_id
	WHERE s.account_id = $1 AND s.dataset_id = $2`

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

// A single statement, so that the snapshot and its files are consistent at any isolation level of the caller's
// transaction.
const sqlSelectCurrent = `
	SELECT t.removed_at IS NOT NULL, t.attached, f.addresses, f.keys, f.sizes, f.counts, f.ingestions, f.sources, f.names, f.firsts, f.shapes, f.compacted,` + sqlSnapshotColumns + sqlFromTable + `
	LEFT JOIN LATERAL (
		SELECT array_agg(o.object_key) AS keys, array_agg(o.size) AS sizes, array_agg(o.row_count) AS counts,
			array_agg(o.ingestion_id) AS ingestions, array_agg(o.source_id) AS sources, array_agg(coalesce(o.source_name, '')) AS names,
			array_agg(o.first_row) AS firsts, array_agg(coalesce(o.shape, '')) AS shapes, array_agg(o.place IS NOT NULL) AS compacted,
			array_agg(coalesce(o.address, '')) AS addresses
		FROM (
			SELECT object_key, size, row_count, ingestion_id, source_id, source_name, first_row, shape, place, address FROM lake_files
			WHERE account_id = t.account_id AND dataset_id = t.dataset_id AND generation = t.generation ORDER BY coalesce(place, id)) o) f ON true` +
	sqlWhereTable

// selectCurrent returns nil if the table has no snapshot or was removed.
func selectCurrent(ctx context.Context, q postgres.Querier, t Table) (*Snapshot, []File, error) {
	var (
		removed             bool
		attached            *Attachment
		addresses           []string
		keys, names, shapes []string
		sizes, rows, firsts []int64
		ingestions, sources []uuid.NullUUID
		compacted           []bool
		id                  *uuid.UUID
		e                   nullable
	)

	err := q.QueryRow(ctx, sqlSelectCurrent, t.Account, t.Dataset).Scan(append(
		[]any{&removed, &attached, &addresses, &keys, &sizes, &rows, &ingestions, &sources, &names, &firsts, &shapes, &compacted, &id}, e.targets()...)...)
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
			FirstRow: firsts[i], Shape: shapes[i], Compacted: compacted[i], Address: addresses[i],
			At: attachmentOf(addresses[i], attached),
		}
	}

	current := e.entry(*id).Snapshot
	current.Current = true

	return &current, files, nil
}

const sqlSelectSnapshots = `
	SELECT t.snapshot_id = s.id,` + sqlSnapshotColumns + sqlFromSnapshots + ` AND s.sequence < $3 ORDER BY s.sequence DESC LIMIT $4`

func selectSnapshots(ctx context.Context, q postgres.Querier, t Table, before int64, limit int) ([]entry, error) {
	rows, err := q.Query(ctx, sqlSelectSnapshots, t.Account, t.Dataset, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanSnapshot)
}

const sqlSelectSnapshot = `SELECT t.snapshot_id = s.id,` + sqlSnapshotColumns + sqlFromSnapshots + ` AND s.id = $3`

// selectSnapshot returns nil if the snapshot does not exist.
func selectSnapshot(ctx context.Context, q postgres.Querier, t Table, id uuid.UUID) (*entry, error) {
	return selectOne(ctx, q, sqlSelectSnapshot, t, id)
}

const sqlSelectMoment = `
	SELECT t.snapshot_id = s.id,` + sqlSnapshotColumns + sqlFromSnapshots + ` AND s.committed_at <= $3 ORDER BY s.sequence DESC LIMIT 1`

// selectMoment returns the snapshot that was current at a moment, or nil if there was none.
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

const sqlHasSnapshot = `SELECT EXISTS (SELECT 1 FROM lake_snapshots WHERE account_id = $1 AND dataset_id = $2 AND id = $3)`

func hasSnapshot(ctx context.Context, q postgres.Querier, t Table, id uuid.UUID) (has bool, err error) {
	err = q.QueryRow(ctx, sqlHasSnapshot, t.Account, t.Dataset, id).Scan(&has)

	return has, err
}
