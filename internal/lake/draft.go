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

// object is one of Iceberg's own that a commit writes.
type object struct {
	id      uuid.UUID
	key     string
	content []byte
	decoded any

	isManifest bool
}

// draft is a commit before it is made.
type draft struct {
	table      Table
	base       state
	made       entry
	newSchema  bool
	generation int64
	staged     []Staged
	source     uuid.UUID               // the snapshot that is restored
	restored   []string                // keys of the files and manifests that the table has again
	left       []string                // keys of those that it has no longer, while the generation stays
	adopted    []string                // keys of manifests that an older release did not say enough of
	moved      []iceberg.ManifestEntry // of manifests that it has no longer
	out        Snapshot                // what files count for that were taken out
	written    []object
	location   string // of the new metadata
	retired    string // key of the metadata that it replaces
}

func dataKey(t Table, id uuid.UUID) string {
	hash := fnv.New32a()
	_, _ = hash.Write(id[:])

	return fmt.Sprintf("lake/data/%02x/%s/%s.parquet", hash.Sum32()&0xff, t.Dataset, id)
}

func tableKey(t Table) string { return "lake/" + t.Dataset.String() }

// keyOf is the key of an address that Iceberg's metadata has.
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

// draft works out the snapshot that the change makes of the table, and all objects that it needs. It is nil if
// there is nothing to do.
func (l *Lake) draft(ctx context.Context, change Change, base state, staged []Staged) (*draft, error) {
	d := &draft{table: change.Table, base: base, staged: staged, generation: base.generation, made: entry{Snapshot: Snapshot{
		ID: uuid.Must(uuid.NewV7()), Operation: change.Mode, Sequence: 1, Number: newNumber(), CommittedAt: l.now().UTC().Truncate(time.Millisecond),
	}}}

	var manifests []iceberg.ManifestFile

	if base.current != nil {
		d.made.Sequence = base.current.Sequence + 1
		// Clocks differ, time in a table does not go back.
		d.made.CommittedAt = latest(d.made.CommittedAt, base.current.CommittedAt)
	}

	if change.Mode != Append && change.Mode != Compacted {
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

// newNumber is an id for a snapshot as Iceberg has them.
func newNumber() int64 {
	id := uuid.New()

	return int64((binary.BigEndian.Uint64(id[:8]) ^ binary.BigEndian.Uint64(id[8:])) & math.MaxInt64)
}

// content sets columns, totals, and the manifests that stay.
func (l *Lake) content(ctx context.Context, change Change, d *draft, manifests *[]iceberg.ManifestFile) (nothing bool, err error) {
	current := d.base.current

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
	default:
		err = fmt.Errorf("a commit cannot be of the kind %q", change.Mode)
	}

	for _, s := range d.staged {
		d.made.Rows += s.Rows
		d.made.Bytes += s.Size
		d.made.Files++
	}

	return false, err
}

// mergeColumns adds the columns that the change and its files bring.
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

// keepWide: a decimal that became wider under its id stays so, whatever the files of a later snapshot need.
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

// adopt: a release that did not say what a snapshot means for manifests made the current one, so it is said now.
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
