package lake

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
)

const (
	// A commit to a table with more than maxManifests manifests merges those that have fewer than fullManifest files.
	maxManifests = 50
	fullManifest = 2000

	readers = 8

	// blockEnd is the length of the sync marker at the end of a block in an Avro file, in bytes.
	blockEnd = 16
)

var errChanged = errors.New("the table was changed by another program")

// encode encodes the manifest, the manifest list and the metadata in memory.
func (l *Lake) encode(ctx context.Context, d *draft, manifests []iceberg.ManifestFile) error {
	metadata, err := l.metadata(ctx, d)
	if err != nil {
		return err
	}

	schema := metadata.adopt(schemaOf(d.made.Columns))

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

	// Sequence numbers are set during encoding, so the list is decoded again before it is kept in memory.
	manifests, err = iceberg.ReadManifestList(bytes.NewReader(content.Bytes()))
	if err != nil {
		return err
	}

	d.made.list = d.add("%s.avro", content.Bytes(), manifests)

	return l.encodeMetadata(d, metadata, tableSnapshot{
		ID: d.made.Number, Parent: parent, Sequence: d.made.Sequence, Timestamp: d.made.CommittedAt.UnixMilli(),
		List: l.base + d.made.list, Summary: d.summary(), Schema: &schema.ID,
	})
}

// metadata returns a copy of the current metadata of the table, or new metadata before the first commit. The caller
// adds the new snapshot to it.
func (l *Lake) metadata(ctx context.Context, d *draft) (*tableMetadata, error) {
	if d.base.location == "" {
		return newMetadata(d.table, l.base+tableKey(d.table)), nil
	}

	var err error
	if d.retired, err = l.keyOf(d.base.location); err != nil {
		return nil, err
	}

	known, err := l.recallMetadata(ctx, d.retired)
	if fault.Is(err, fault.NotFound) {
		return nil, fmt.Errorf("%w: %s was removed", errLost, d.retired) // replaced and removed since the state was read
	}

	if err != nil {
		return nil, err
	}

	if d.base.current == nil || known.CurrentSnapshot != d.base.current.Number {
		return nil, errChanged
	}

	copied := *known
	copied.MetadataLog = []metadataLogEntry{{d.base.location, known.Updated}}

	return &copied, nil
}

// encodeManifest encodes one manifest with the new files and, if the table has too many manifests, with the entries
// of the small ones. It returns the manifests of the snapshot.
func (l *Lake) encodeManifest(ctx context.Context, d *draft, schema *iceberg.Schema, manifests []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	entries, err := decodeEntries(d.staged, d.made.Number)
	if err != nil {
		return nil, err
	}

	if len(manifests) > maxManifests {
		var small []iceberg.ManifestFile

		manifests, small = divide(manifests)

		merged, err := l.entries(ctx, small)
		if err != nil {
			return nil, err
		}

		keys, err := l.manifestKeys(small)
		if err != nil {
			return nil, err
		}

		d.moved, d.left = append(d.moved, merged...), append(d.left, keys...)
	}

	for _, e := range d.moved {
		number, sequence := e.SnapshotID(), e.SequenceNum()
		entries = append(entries, iceberg.NewManifestEntry(iceberg.EntryStatusEXISTING, &number, &sequence, e.FileSequenceNum(), e.DataFile()))
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
	last.content, last.decoded, last.isManifest = content.Bytes(), content.Bytes(), true

	return append(slices.Clone(manifests), manifest), nil
}

// decodeEntries decodes the entries of staged files. iceberg-go decodes entries only from a manifest, so they are
// wrapped in one.
func decodeEntries(staged []Staged, number int64) ([]iceberg.ManifestEntry, error) {
	if len(staged) == 0 {
		return nil, nil
	}

	var manifest, packed bytes.Buffer

	// The writer starts with the header of an Avro file. The header ends with the sync marker that also ends each
	// block.
	_, err := iceberg.NewManifestWriter(formatVersion, &manifest, *iceberg.UnpartitionedSpec, schemaOf(nil), number)
	if err != nil {
		return nil, err
	}

	end := bytes.Clone(manifest.Bytes()[manifest.Len()-blockEnd:])

	pack, err := flate.NewWriter(&packed, flate.NoCompression)
	if err != nil {
		return nil, err
	}

	for _, s := range staged {
		packed.Reset()
		pack.Reset(&packed)

		_, err := pack.Write(s.entry)
		if err := errors.Join(err, pack.Close()); err != nil {
			return nil, err
		}

		_, _ = manifest.Write(binary.AppendVarint(binary.AppendVarint(nil, 1), int64(packed.Len())))
		_, _ = manifest.Write(packed.Bytes())
		_, _ = manifest.Write(end)
	}

	entries, err := iceberg.ReadManifest(iceberg.NewManifestFile(formatVersion, "", 0, 0, number).Build(), &manifest, false)
	if err == nil && len(entries) != len(staged) {
		err = errors.New("entries of staged files are missing")
	}

	for i, e := range entries {
		entries[i] = iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &number, nil, nil, e.DataFile())
	}

	return entries, err
}

// divide separates full manifests from those that can be merged.
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

// entries returns the file entries of all manifests, in order.
func (l *Lake) entries(ctx context.Context, manifests []iceberg.ManifestFile) ([]iceberg.ManifestEntry, error) {
	lists, err := l.entryLists(ctx, manifests)

	return slices.Concat(lists...), err
}

// entryLists returns the file entries of each manifest.
func (l *Lake) entryLists(ctx context.Context, manifests []iceberg.ManifestFile) ([][]iceberg.ManifestEntry, error) {
	lists := make([][]iceberg.ManifestEntry, len(manifests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)

	for i, manifest := range manifests {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			if manifest.ManifestContent() != iceberg.ManifestContentData {
				return errors.New("the table has delete files, which Quern does not write")
			}

			entries, err := l.recallEntries(ctx, manifest)
			lists[i] = entries

			return err
		})
	}

	return lists, group.Wait()
}

// encodeMetadata adds the snapshot, and removes snapshots beyond the limit and schemas that are no longer used.
func (l *Lake) encodeMetadata(d *draft, metadata *tableMetadata, snapshot tableSnapshot) error {
	if err := errors.Join(metadata.add(snapshot), metadata.expire(l.keep)); err != nil {
		return err
	}

	content, err := json.Marshal(metadata)
	if err != nil {
		return err
	}

	d.location = l.base + d.add(fmt.Sprintf("%05d-%%s.metadata.json", d.made.Sequence), content, metadata)

	return nil
}

// summary returns the summary of the snapshot that Iceberg readers show.
func (d *draft) summary() map[string]string {
	var addedRows, addedBytes int64
	for _, s := range d.staged {
		addedRows += s.Rows
		addedBytes += s.Size
	}

	count := func(n int64) string { return strconv.FormatInt(n, 10) }

	summary := map[string]string{
		"operation":        d.made.Operation.iceberg(),
		"added-data-files": count(int64(len(d.staged))), "added-records": count(addedRows), "added-files-size": count(addedBytes),
		"total-data-files": count(int64(d.made.Files)), "total-records": count(d.made.Rows), "total-files-size": count(d.made.Bytes),
		"total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0",
		"quern.operation": string(d.made.Operation),
	}

	if d.out.Files > 0 {
		summary["deleted-data-files"], summary["deleted-records"] = count(int64(d.out.Files)), count(d.out.Rows)
		summary["removed-files-size"] = count(d.out.Bytes)
	}

	return summary
}
