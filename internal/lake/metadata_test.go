package lake

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

const testLocation = "s3://bucket/lake/table"

func marshal(t *testing.T, value any) string {
	t.Helper()

	content, err := json.Marshal(value)
	require.NoError(t, err)

	return string(content)
}

// TestMetadataAsIcebergGo builds a history in parallel with the builder of iceberg-go. Every version is equal, byte
// for byte, and each version starts from what iceberg-go wrote.
func TestMetadataAsIcebergGo(t *testing.T) {
	t.Parallel()

	const keep = 4

	var (
		at     = newTable()
		theirs table.Metadata
		before string
		counts = map[int]bool{}
		random = newRandom(t)
	)

	for n := range int64(30) {
		columns := everyType()[random.IntN(4):]
		ours := newMetadata(at, testLocation)
		made := tableSnapshot{
			ID: newNumber(), Sequence: n + 1, Timestamp: 1_700_000_000_000 + n, List: fmt.Sprintf("%s/%d.avro", testLocation, n),
			Summary: map[string]string{"operation": "append", "quern.operation": "<append>"},
		}

		if n > 0 {
			var err error

			ours, err = parseMetadata([]byte(marshal(t, theirs)))
			require.NoError(t, err)
			require.Equal(t, marshal(t, theirs), marshal(t, ours))

			made.Parent = new(ours.CurrentSnapshot)
			ours.MetadataLog = []metadataLogEntry{{before, ours.Updated}}
		}

		made.Schema = &ours.adopt(schemaOf(columns)).ID
		require.NoError(t, ours.add(made))
		require.NoError(t, ours.expire(keep))

		theirs = builtByIcebergGo(t, at, theirs, before, columns, made, keep)
		require.Equal(t, marshal(t, theirs), marshal(t, ours))

		parsed, err := table.ParseMetadataString(marshal(t, ours))
		require.NoError(t, err)
		require.True(t, parsed.Equals(theirs))

		before = fmt.Sprintf("%s/%05d.metadata.json", testLocation, n)
		counts[len(ours.Schemas)] = true
	}

	require.Greater(t, len(counts), 1, "schemas come and go")
}

func builtByIcebergGo(
	t *testing.T, at Table, base table.Metadata, before string, columns []Column, made tableSnapshot, keep int,
) table.Metadata {
	t.Helper()

	var (
		builder *table.MetadataBuilder
		err     error
	)

	if base == nil {
		builder, err = table.NewMetadataBuilder(formatVersion)
		require.NoError(t, errors.Join(err, builder.SetUUID(at.Dataset)))
	} else {
		builder, err = table.MetadataBuilderFromBase(base, before)
		require.NoError(t, err)
	}

	require.NoError(t, errors.Join(builder.AddSchema(schemaOf(columns)), builder.SetCurrentSchemaID(-1)))

	if base == nil {
		require.NoError(t, errors.Join(
			builder.AddSortOrder(&table.UnsortedSortOrder), builder.SetDefaultSortOrderID(-1),
			builder.AddPartitionSpec(iceberg.UnpartitionedSpec, true), builder.SetDefaultSpecID(-1), builder.SetLoc(testLocation),
			builder.SetProperties(iceberg.Properties{table.MetadataPreviousVersionsMaxKey: "1", "gc.enabled": "false"})))
	}

	schema := builder.CurrentSchema().ID
	summary := &table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{"quern.operation": "<append>"}}

	require.NoError(t, errors.Join(
		builder.AddSnapshot(&table.Snapshot{
			SnapshotID: made.ID, ParentSnapshotID: made.Parent, SequenceNumber: made.Sequence, TimestampMs: made.Timestamp,
			ManifestList: made.List, Summary: summary, SchemaID: &schema,
		}),
		builder.SetSnapshotRef(table.MainBranch, made.ID, table.BranchRef)))

	built, err := builder.Build()
	require.NoError(t, err)

	var (
		all     = built.Snapshots()
		old     = all[:max(0, len(all)-keep)]
		expired []int64
		unused  []int
		used    = map[int]bool{schema: true}
	)

	for _, s := range old {
		expired = append(expired, s.SnapshotID)
	}

	for _, s := range all[len(old):] {
		used[*s.SchemaID] = true
	}

	for _, s := range built.Schemas() {
		if !used[s.ID] {
			unused = append(unused, s.ID)
		}
	}

	if len(expired) > 0 {
		require.NoError(t, errors.Join(builder.RemoveSnapshots(expired, false), builder.RemoveSchemas(unused)))

		built, err = builder.Build()
		require.NoError(t, err)
	}

	return built
}

// foreignMetadata has every field that version 2 allows, as other programs may leave it.
const foreignMetadata = `{
	"format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://bucket/table",
	"last-sequence-number": 34, "last-updated-ms": 1602638573590, "last-column-id": 30, "current-schema-id": 1,
	"schemas": [
		{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": true, "type": "long"}]},
		{"type": "struct", "schema-id": 1, "identifier-field-ids": [1, 2], "fields": [
			{"id": 1, "name": "x", "required": true, "type": "long"},
			{"id": 2, "name": "y", "required": true, "type": "long", "doc": "comment"},
			{"id": 3, "name": "l", "required": false, "type": {"type": "list", "element-id": 4, "element-required": true, "element": "uuid"}}]}
	],
	"default-spec-id": 0, "last-partition-id": 1000, "partition-specs": [
		{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": [{"name": "x", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}]}],
	"default-sort-order-id": 3, "sort-orders": [{"order-id": 3, "fields": [
		{"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"}]}],
	"properties": {"read.split.target.size": "134217728", "theirs": "kept"},
	"current-snapshot-id": 3055729675574597004,
	"snapshots": [
		{"snapshot-id": 3051729675574597004, "timestamp-ms": 1515100955770, "sequence-number": 0, "summary": {"operation": "append"}, "manifest-list": "s3://a/b/1.avro"},
		{"snapshot-id": 3055729675574597004, "parent-snapshot-id": 3051729675574597004, "timestamp-ms": 1555100955770, "sequence-number": 34,
			"summary": {"operation": "overwrite", "theirs": "kept"}, "manifest-list": "s3://a/b/2.avro", "schema-id": 1}
	],
	"snapshot-log": [{"snapshot-id": 3051729675574597004, "timestamp-ms": 1515100955770}, {"snapshot-id": 3055729675574597004, "timestamp-ms": 1555100955770}],
	"metadata-log": [{"metadata-file": "s3://bucket/.../v1.json", "timestamp-ms": 1515100}],
	"refs": {
		"main": {"snapshot-id": 3055729675574597004, "type": "branch", "min-snapshots-to-keep": 5, "max-snapshot-age-ms": 6, "max-ref-age-ms": 7},
		"audit": {"snapshot-id": 3051729675574597004, "type": "tag", "max-ref-age-ms": 10000000}},
	"statistics": [
		{"snapshot-id": 3051729675574597004, "statistics-path": "s3://a/1.puffin", "file-size-in-bytes": 413, "file-footer-size-in-bytes": 42, "blob-metadata": []},
		{"snapshot-id": 3055729675574597004, "statistics-path": "s3://a/2.puffin", "file-size-in-bytes": 413, "file-footer-size-in-bytes": 42, "blob-metadata": []}],
	"partition-statistics": [{"snapshot-id": 3055729675574597004, "statistics-path": "s3://a/p.parquet", "file-size-in-bytes": 43}]
}`

// TestForeignMetadata checks that fields written by another program are kept.
func TestForeignMetadata(t *testing.T) {
	t.Parallel()

	parsed, err := parseMetadata([]byte(foreignMetadata))
	require.NoError(t, err)

	// iceberg-go adds an empty list of identifier fields where there was none.
	with := strings.Replace(foreignMetadata, `"schema-id": 0,`, `"schema-id": 0, "identifier-field-ids": [],`, 1)
	require.JSONEq(t, with, marshal(t, parsed), "it is read and written as it was")

	var (
		untouched = marshal(t, parsed)
		next      = *parsed
		last      = next.CurrentSnapshot
	)

	next.adopt(schemaOf(everyType()))
	require.NoError(t, next.add(tableSnapshot{ID: 7, Sequence: 35, Timestamp: 1602638573600, Schema: &next.CurrentSchema}))
	require.NoError(t, next.expire(3))
	require.Equal(t, untouched, marshal(t, parsed), "what others may be reading does not change")

	require.Equal(t, 2, next.CurrentSchema)
	require.Equal(t, 30, next.LastColumn, "ids of columns are not given again")
	require.Equal(t, 1000, next.LastPartition)
	require.Equal(t, parsed.Properties, next.Properties)
	require.Equal(t, parsed.Refs["audit"], next.Refs["audit"])
	require.Equal(t, int64(7), next.Refs[mainBranch].Snapshot)
	require.Equal(t, 5, *next.Refs[mainBranch].MinSnapshots)
	require.Len(t, next.Snapshots, 3)
	require.Len(t, next.SnapshotLog, 3)
	require.Len(t, next.Schemas, 2, "the first one has no snapshot")
	require.Len(t, next.Statistics, 2)

	_, err = table.ParseMetadataString(marshal(t, &next))
	require.NoError(t, err)

	require.NoError(t, next.expire(2))
	require.Equal(t, []int64{last, 7}, []int64{next.Snapshots[0].ID, next.Snapshots[1].ID})
	require.NotContains(t, next.Refs, "audit", "of a snapshot that is gone")
	require.Len(t, next.Statistics, 1)
	require.Len(t, next.PartitionStatistics, 1)
	require.Len(t, next.SnapshotLog, 2)

	require.ErrorIs(t, next.add(tableSnapshot{ID: 8, Sequence: 35}), errChanged)
}

// TestBrokenMetadata checks that metadata is rejected if a required field is missing or a value is not valid.
func TestBrokenMetadata(t *testing.T) {
	t.Parallel()

	var fields map[string]json.RawMessage

	require.NoError(t, json.Unmarshal([]byte(foreignMetadata), &fields))

	for _, name := range []string{
		"format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id", "current-schema-id", "schemas",
		"default-spec-id", "last-partition-id", "partition-specs", "default-sort-order-id", "sort-orders", "current-snapshot-id", "snapshots",
	} {
		kept := fields[name]
		delete(fields, name)

		_, err := parseMetadata([]byte(marshal(t, fields)))
		require.Error(t, err, name)

		fields[name] = kept
	}

	for name, value := range map[string]string{
		"format-version": "3", "current-schema-id": "9", "current-snapshot-id": "9", "schemas": "[null]", "snapshots": "[]",
		"refs": `{"main": {"snapshot-id": 3051729675574597004, "type": "branch"}}`,
	} {
		kept := fields[name]
		fields[name] = json.RawMessage(value)

		_, err := parseMetadata([]byte(marshal(t, fields)))
		require.Error(t, err, name)

		fields[name] = kept
	}

	_, err := parseMetadata([]byte(marshal(t, fields)))
	require.NoError(t, err)
}
