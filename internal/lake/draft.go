package lake

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// object is an Iceberg object (manifest, manifest list or metadata) that a commit writes.
type object struct {
	id      uuid.UUID
	key     string
	content []byte
	decoded any

	isManifest bool
}

// draft is a prepared commit.
type draft struct {
	table      Table
	base       state
	made       entry
	newSchema  bool
	generation int64
	staged     []Staged
	source     uuid.UUID               // snapshot that is restored
	restored   []string                // keys of files and manifests that the restored snapshot adds again
	left       []string                // keys of files and manifests that leave the table while its generation stays the same
	adopted    []string                // keys of manifests of an older release, which did not record their generation
	moved      []iceberg.ManifestEntry // entries of manifests that leave the table
	out        Snapshot                // totals of the files that were taken out
	written    []object
	attach     Attachment
	location   string // address of the new metadata
	retired    string // key of the metadata that is replaced
}

func dataKey(t Table, id uuid.UUID) string {
	hash := fnv.New32a()
	_, _ = hash.Write(id[:])

	return fmt.Sprintf("lake/data/%02x/%s/%s.parquet", hash.Sum32()&0xff, t.Dataset, id)
}

func tableKey(t Table) string { return "lake/" + t.Dataset.String() }

// keyOf returns the key of an address in Iceberg's metadata.
func (l *Lake) keyOf(address string) (string, error) {
	key, ours := strings.CutPrefix(address, l.base)
	if !ours {
		return "", errors.New("the table has files outside of the store")
	}

	return key, nil
}

func (d *draft) add(name string, content []byte, decoded any) string {
	id := uuid.Must(uuid.NewV7())
	key := tableKey(d.table) + "/metadata/" + fmt.Sprintf(name, id)
	d.written = append(d.written, object{id: id, key: key, content: content, decoded: decoded})

	return key
}

// draft prepares the snapshot that the change makes from the table, with all objects that it needs. It returns nil if
// there is nothing to do.
func (l *Lake) draft(ctx context.Context, change Change, base state, staged []Staged) (*draft, error) {
	d := &draft{table: change.Table, base: base, staged: staged, generation: base.generation, made: entry{Snapshot: Snapshot{
		ID: uuid.Must(uuid.NewV7()), Operation: change.Mode, Sequence: 1, Number: newNumber(), CommittedAt: l.now().UTC().Truncate(time.Millisecond),
	}}}

	var manifests []iceberg.ManifestFile

	if base.current != nil {
		d.made.Sequence = base.current.Sequence + 1
		d.made.BytesBefore = base.current.Bytes
		// Clocks of replicas differ, but the time of a table must never go back.
		d.made.CommittedAt = latest(d.made.CommittedAt, base.current.CommittedAt)
	}

	if !change.Mode.exchanges() {
		d.generation++
	}

	nothing, err := l.content(ctx, change, d, &manifests)
	if err != nil || nothing {
		return nil, err
	}

	if err := l.adopt(ctx, d); err != nil {
		return nil, err
	}

	if base.current != nil && slices.Equal(d.made.Columns, base.current.Columns) {
		d.made.schema = base.current.schema
	} else {
		d.made.schema, d.newSchema = uuid.Must(uuid.NewV7()), true
	}

	return d, l.encode(ctx, d, manifests)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}

// newNumber returns a random id for a snapshot in Iceberg's format.
func newNumber() int64 {
	id := uuid.New()

	return int64((binary.BigEndian.Uint64(id[:8]) ^ binary.BigEndian.Uint64(id[8:])) & math.MaxInt64)
}

// content sets the columns, the totals, and the manifests that stay. nothing reports that there is nothing to commit.
func (l *Lake) content(ctx context.Context, change Change, d *draft, manifests *[]iceberg.ManifestFile) (nothing bool, err error) {
	current := d.base.current

	if isAttached := current != nil && current.Operation == Attached; isAttached && change.Mode != Attached {
		return false, ErrAttached
	}

	switch change.Mode {
	case Append:
		if current != nil {
			d.made.Columns, d.made.Rows, d.made.Bytes, d.made.Files = current.Columns, current.Rows, current.Bytes, current.Files
		}

		if err := d.mergeColumns(change.Columns); err != nil {
			return false, err
		}

		if len(d.staged) == 0 && (current == nil || slices.Equal(d.made.Columns, current.Columns)) {
			return true, nil
		}

		if current != nil {
			*manifests, err = l.recallList(ctx, current.list)
		}
	case Replace:
		err = d.mergeColumns(change.Columns)
		d.keepWide()
	case Clear:
		if current == nil {
			return true, nil
		}

		d.made.Columns = current.Columns
	case Restore:
		err = l.restore(ctx, change, d, manifests)
	case Compacted:
		err = l.compact(ctx, change, d, manifests)
	case Attached:
		err = l.attach(ctx, change, d, manifests)
	case Deleted, Merged:
		if len(change.Files) == 0 && len(d.staged) == 0 {
			return true, nil
		}

		err = l.changeRows(ctx, change, d, manifests)
	default:
		err = fmt.Errorf("unknown mode of a commit: %q", change.Mode)
	}

	for _, s := range d.staged {
		d.made.Rows += s.Rows
		d.made.Bytes += s.Size
		d.made.Files++
	}

	return false, err
}

// mergeColumns adds the columns of the change and of its files.
func (d *draft) mergeColumns(more []Column) (err error) {
	if d.made.Columns, err = merge(d.made.Columns, more); err != nil {
		return err
	}

	var before []Column

	for _, s := range d.staged {
		if slices.Equal(s.Columns, before) {
			continue
		}

		if d.made.Columns, err = merge(d.made.Columns, s.Columns); err != nil {
			return err
		}

		before = s.Columns
	}

	return nil
}

// keepWide keeps the width of decimals: a decimal that became wider under its id stays wide, even if the files of a
// later snapshot need less.
func (d *draft) keepWide() {
	if d.base.current == nil {
		return
	}

	known := index(d.base.current.Columns)
	for i, column := range d.made.Columns {
		if at, ok := known.ids[column.ID]; ok {
			d.made.Columns[i].Type, _ = column.Type.wider(d.base.current.Columns[at].Type)
		}
	}
}

func (l *Lake) restore(ctx context.Context, change Change, d *draft, manifests *[]iceberg.ManifestFile) error {
	snapshot, err := l.find(ctx, change.Table, change.Snapshot)
	if err != nil {
		return err
	}

	d.made.Columns, d.made.Rows, d.made.Bytes, d.made.Files = snapshot.Columns, snapshot.Rows, snapshot.Bytes, snapshot.Files

	if *manifests, err = l.recallList(ctx, snapshot.list); err != nil {
		return err
	}

	lists, err := l.manifestKeys(*manifests)
	if err != nil {
		return err
	}

	files, err := l.keysOf(ctx, *manifests)
	d.source, d.restored = snapshot.ID, slices.Concat(files, lists)

	return err
}

func (l *Lake) manifestKeys(manifests []iceberg.ManifestFile) (keys []string, err error) {
	keys = make([]string, len(manifests))
	for i, manifest := range manifests {
		if keys[i], err = l.keyOf(manifest.FilePath()); err != nil {
			return nil, err
		}
	}

	return keys, nil
}

// adopt prepares a table whose current snapshot was made by an older release. That release did not record the
// generation of manifests, so this commit records it.
func (l *Lake) adopt(ctx context.Context, d *draft) error {
	if d.base.current == nil || d.base.current.generation != nil {
		return nil
	}

	manifests, err := l.recallList(ctx, d.base.current.list)
	if err != nil {
		return err
	}

	d.adopted, err = l.manifestKeys(manifests)

	return err
}
