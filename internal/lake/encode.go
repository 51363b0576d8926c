package lake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/codec"
	"github.com/apache/iceberg-go/table"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
)

const (
	// A snapshot with more manifests than maxManifests merges those that have fewer than fullManifest files.
	maxManifests = 50
	fullManifest = 2000

	readers = 8
)

// encode writes the manifest, the manifest list and the metadata, in memory.
func (l *Lake) encode(ctx context.Context, d *draft, manifests []iceberg.ManifestFile) error {
	builder, err := l.builder(ctx, d)
	if err != nil {
		return err
	}

	schema := schemaOf(d.made.Columns)
	if err := errors.Join(builder.AddSchema(schema), builder.SetCurrentSchemaID(-1)); err != nil {
		return err
	}

	schema = builder.CurrentSchema()

	if d.base.location == "" {
		if err := found(builder, l.base+tableKey(d.table)); err != nil {
			return err
		}
	}

	manifests, err = l.encodeManifest(ctx, d, schema, manifests)
	if err != nil {
		return err
	}

	var (
		content bytes.Buffer
		parent  *int64
	)

	if d.base.current != nil {
		parent = &d.base.current.Number
	}

	err = iceberg.WriteManifestList(formatVersion, &content, d.made.Number, parent, &d.made.Sequence, 0, manifests)
	if err != nil {
		return err
	}

	// Sequence numbers are set while it is written, so it is remembered as others read it.
	manifests, err = iceberg.ReadManifestList(bytes.NewReader(content.Bytes()))
	if err != nil {
		return err
	}

	d.made.list = d.add("%s.avro", content.Bytes(), manifests)

	return l.encodeMetadata(d, builder, table.Snapshot{
		SnapshotID: d.made.Number, ParentSnapshotID: parent, SequenceNumber: d.made.Sequence, TimestampMs: d.made.CommittedAt.UnixMilli(),
		ManifestList: l.base + d.made.list, Summary: d.summary(), SchemaID: &schema.ID,
	})
}

// builder starts from the metadata that the table has.
func (l *Lake) builder(ctx context.Context, d *draft) (*table.MetadataBuilder, error) {
	if d.base.location == "" {
		builder, err := table.NewMetadataBuilder(formatVersion)
		if err != nil {
			return nil, err
		}

		return builder, builder.SetUUID(d.table.Dataset)
	}

	var err error
	if d.retired, err = l.keyOf(d.base.location); err != nil {
		return nil, err
	}

	metadata, err := l.recallMetadata(ctx, d.retired)
	if fault.Is(err, fault.NotFound) {
		return nil, fmt.Errorf("%w: %s is gone", errLost, d.retired) // replaced long ago, and we were very slow
	}

	if err != nil {
		return nil, err
	}

	if last := metadata.CurrentSnapshot(); d.base.current == nil || last == nil || last.SnapshotID != d.base.current.Number {
		return nil, errors.New("the table was changed by another program")
	}

	return table.MetadataBuilderFromBase(metadata, d.base.location)
}

// found gives a new table what it keeps for ever.
func found(builder *table.MetadataBuilder, location string) error {
	return errors.Join(
		builder.AddSortOrder(&table.UnsortedSortOrder), builder.SetDefaultSortOrderID(-1),
		builder.AddPartitionSpec(iceberg.UnpartitionedSpec, true), builder.SetDefaultSpecID(-1),
		builder.SetLoc(location),
		builder.SetProperties(iceberg.Properties{
			table.MetadataPreviousVersionsMaxKey: "1",
			"gc.enabled":                         "false", // whoever else expires snapshots deletes no files: we keep them
		}),
	)
}

// encodeManifest makes one manifest of the new files and, if there are too many small ones, of what those
// have. It returns the manifests of the snapshot.
func (l *Lake) encodeManifest(ctx context.Context, d *draft, schema *iceberg.Schema, manifests []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	entries := make([]iceberg.ManifestEntry, 0, len(d.staged))

	for _, s := range d.staged {
		file, err := codec.DecodeDataFile(s.entry, *iceberg.UnpartitionedSpec, schemaOf(s.Columns), formatVersion)
		if err != nil {
			return nil, err
		}

		entries = append(entries, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &d.made.Number, nil, nil, file))
	}

	if len(manifests) > maxManifests {
		var small []iceberg.ManifestFile

		manifests, small = divide(manifests)

		merged, err := l.entries(ctx, small)
		if err != nil {
			return nil, err
		}

		for _, e := range merged {
			number, sequence := e.SnapshotID(), e.SequenceNum()
			entries = append(entries, iceberg.NewManifestEntry(iceberg.EntryStatusEXISTING, &number, &sequence, e.FileSequenceNum(), e.DataFile()))
		}
	}

	if len(entries) == 0 {
		return manifests, nil
	}

	var content bytes.Buffer

	key := d.add("%s-m0.avro", nil, nil)

	manifest, err := iceberg.WriteManifest(l.base+key, &content, formatVersion, *iceberg.UnpartitionedSpec, schema, d.made.Number, entries)
	if err != nil {
		return nil, err
	}

	last := &d.written[len(d.written)-1]
	last.content, last.decoded = content.Bytes(), content.Bytes()

	return append(slices.Clone(manifests), manifest), nil
}

// divide separates the manifests that are full from those that can be merged.
func divide(manifests []iceberg.ManifestFile) (full, small []iceberg.ManifestFile) {
	for _, manifest := range manifests {
		if manifest.AddedDataFiles()+manifest.ExistingDataFiles() >= fullManifest {
			full = append(full, manifest)
		} else {
			small = append(small, manifest)
		}
	}

	return full, small
}

// entries returns what manifests say of their files, in their order.
func (l *Lake) entries(ctx context.Context, manifests []iceberg.ManifestFile) ([]iceberg.ManifestEntry, error) {
	lists := make([][]iceberg.ManifestEntry, len(manifests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)

	for i, manifest := range manifests {
		group.Go(func() error {
			if manifest.ManifestContent() != iceberg.ManifestContentData {
				return errors.New("the table has deletes, which we never write")
			}

			entries, err := l.recallEntries(ctx, manifest)
			lists[i] = entries

			return err
		})
	}

	err := group.Wait()

	return slices.Concat(lists...), err
}

// encodeMetadata adds the snapshot, and takes out those that are too old and schemas that none has any more.
func (l *Lake) encodeMetadata(d *draft, builder *table.MetadataBuilder, snapshot table.Snapshot) error {
	err := errors.Join(builder.AddSnapshot(&snapshot), builder.SetSnapshotRef(table.MainBranch, snapshot.SnapshotID, table.BranchRef))
	if err != nil {
		return err
	}

	metadata, err := builder.Build()
	if err != nil {
		return err
	}

	if expired, unused := l.expired(metadata); len(expired)+len(unused) > 0 {
		if err := errors.Join(builder.RemoveSnapshots(expired, false), builder.RemoveSchemas(unused)); err != nil {
			return err
		}

		if metadata, err = builder.Build(); err != nil {
			return err
		}
	}

	content, err := json.Marshal(metadata)
	if err != nil {
		return err
	}

	d.location = l.base + d.add(fmt.Sprintf("%05d-%%s.metadata.json", d.made.Sequence), content, metadata)

	return nil
}

func (l *Lake) expired(metadata table.Metadata) (snapshots []int64, schemas []int) {
	all := metadata.Snapshots()
	used := map[int]bool{metadata.CurrentSchema().ID: true}

	for i, snapshot := range all {
		if i < len(all)-l.keep {
			snapshots = append(snapshots, snapshot.SnapshotID)
		} else if snapshot.SchemaID != nil {
			used[*snapshot.SchemaID] = true
		}
	}

	for _, schema := range metadata.Schemas() {
		if !used[schema.ID] {
			schemas = append(schemas, schema.ID)
		}
	}

	return snapshots, schemas
}

// summary is what Iceberg's readers show of a snapshot.
func (d *draft) summary() *table.Summary {
	var addedRows, addedBytes int64
	for _, s := range d.staged {
		addedRows += s.Rows
		addedBytes += s.Size
	}

	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	summary := &table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{
		"added-data-files": count(int64(len(d.staged))), "added-records": count(addedRows), "added-files-size": count(addedBytes),
		"total-data-files": count(int64(d.made.Files)), "total-records": count(d.made.Rows), "total-files-size": count(d.made.Bytes),
		"total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0",
		"quern.operation": string(d.made.Operation),
	}}

	switch d.made.Operation {
	case Replace, Restore:
		summary.Operation = table.OpOverwrite
	case Clear:
		summary.Operation = table.OpDelete
	case Append:
	}

	return summary
}
