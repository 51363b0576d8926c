package lake

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"
)

// errManifest is for anything in a manifest of another catalog that does not follow Iceberg's format.
var errManifest = &UnfitError{"A manifest of the table is not in the format of Iceberg."}

const (
	// avroDepth is how deep values of a manifest are nested: entry, data file, array of bounds, bound, union, value. Partitions may be deeper.
	avroDepth = 24
	// avroValues is how many values one entry may have: a few for each column.
	avroValues = 16 * maxForeignColumns
	// avroEntries is how many entries one manifest may have, including those of files that were deleted.
	avroEntries = 100_000
)

// avroRead decodes values of hostile input. Values without bytes could be endless, so it also counts them.
type avroRead struct {
	avroCopy

	left  int // values of this entry
	whole int // values of this block
}

// value returns nil, a bool, int64, []byte, map[string]any for a record, or []any for an array. Maps are skipped: Iceberg has none in manifests.
func (r *avroRead) value(t *avroType, depth int) any {
	r.left, r.whole = r.left-1, r.whole-1
	if r.left < 0 || r.whole < 0 || depth > avroDepth {
		r.err = errManifest
	}

	if r.err != nil {
		return nil
	}

	switch t.kind {
	case "null":
		return nil
	case "boolean":
		if one := r.take(1); r.err == nil {
			return one[0] == 1
		}
	case "float":
		return r.take(4)
	case "double":
		return r.take(8)
	case "fixed":
		return r.take(int64(t.size))
	case "int", "long", "enum":
		return r.long()
	case "bytes", "string":
		return r.take(r.long())
	case "record":
		record := make(map[string]any, min(len(t.fields), 32))
		for _, f := range t.fields {
			record[f.name] = r.value(f.of, depth+1)
		}

		return record
	case "union":
		if branch := r.long(); r.err == nil && branch >= 0 && branch < int64(len(t.branches)) {
			return r.value(t.branches[branch], depth+1)
		}

		r.err = errManifest
	case "array":
		return r.array(t, depth)
	default:
		r.err = errManifest
	}

	return nil
}

func (r *avroRead) array(t *avroType, depth int) (items []any) {
	if len(t.branches) != 1 {
		r.err = errManifest
	}

	for r.err == nil {
		count := r.long()
		if count < 0 {
			count = -count
			_ = r.long()
		}

		if count <= 0 || r.err != nil {
			return items
		}

		for ; count > 0 && r.err == nil; count-- {
			items = append(items, r.value(t.branches[0], depth+1))
		}
	}

	return items
}

// eachRecord calls use with every record of an Avro file.
func eachRecord(content []byte, use func(map[string]any) error) error {
	file, err := parseAvroFile(content)
	if err != nil || file.of.kind != "record" || len(file.header) < blockEnd {
		return errManifest
	}

	if file.codec != "" && file.codec != "null" && file.codec != "deflate" {
		return unfit("A manifest of the table is compressed with %q. Write manifests with deflate (write.avro.compression-codec).", shortened(file.codec))
	}

	var (
		sync    = file.header[len(file.header)-blockEnd:]
		entries = 0
	)

	for from := (&avroCopy{in: file.blocks}); len(from.in) > 0; {
		count := from.long()
		packed := from.take(from.long())

		if end := from.take(blockEnd); from.err != nil || !bytes.Equal(end, sync) || count < 0 || count > avroEntries {
			return errManifest
		}

		if entries += int(count); entries > avroEntries {
			return unfit("A manifest of the table has more than %d entries. Rewrite the manifests of the table.", avroEntries)
		}

		plain, err := file.unpackAtMost(packed, maxForeignAvro)
		if err != nil {
			return errManifest
		}

		r := &avroRead{avroCopy: avroCopy{in: plain}, whole: 4*len(plain) + avroValues}

		for range count {
			r.left = avroValues

			record, _ := r.value(file.of, 0).(map[string]any)
			if r.err != nil {
				return errManifest
			}

			if err := use(record); err != nil {
				return err
			}
		}

		if len(r.in) > 0 {
			return errManifest
		}
	}

	return nil
}

// foreignManifest is a manifest of a snapshot.
type foreignManifest struct {
	path      string
	isDeletes bool
	snapshot  int64 // that added it
}

func decodeManifestList(content []byte) (manifests []foreignManifest, err error) {
	err = eachRecord(content, func(record map[string]any) error {
		path, _ := record["manifest_path"].([]byte)
		kind, _ := record["content"].(int64) // absent in version 1
		added, _ := record["added_snapshot_id"].(int64)

		switch {
		case len(path) == 0 || kind < 0 || kind > 1:
			return errManifest
		case record["key_metadata"] != nil:
			return unfit("The manifests of the table are encrypted.")
		case len(manifests) == maxForeignManifests:
			return unfit("The table has more than %d manifests. Rewrite the manifests of the table.", maxForeignManifests)
		}

		manifests = append(manifests, foreignManifest{path: string(path), isDeletes: kind == 1, snapshot: added})

		return nil
	})

	return manifests, err
}

// statusDeleted is the status of an entry of a file that is no longer in the table.
const statusDeleted = 2

// decode returns the data files of a manifest. Files without rows are left out.
func (m foreignManifest) decode(content []byte, kinds map[int]string) (files []ForeignFile, err error) {
	err = eachRecord(content, func(entry map[string]any) error {
		if status, _ := entry["status"].(int64); status == statusDeleted {
			return nil
		}

		data, isRecord := entry["data_file"].(map[string]any)
		if !isRecord {
			return errManifest
		}

		file, err := decodeFile(data, m.isDeletes, kinds)
		if err != nil || file.Rows == 0 {
			return err
		}

		file.Snapshot = m.snapshot
		if added, isKnown := entry["snapshot_id"].(int64); isKnown {
			file.Snapshot = added
		}

		files = append(files, file)

		return nil
	})

	return files, err
}

func decodeFile(data map[string]any, isDeletes bool, kinds map[int]string) (file ForeignFile, err error) {
	var (
		address, _ = data["file_path"].([]byte)
		format, _  = data["file_format"].([]byte)
		kind, _    = data["content"].(int64)
		hasSize    bool
		hasRows    bool
	)

	file.Size, hasSize = data["file_size_in_bytes"].(int64)
	file.Rows, hasRows = data["record_count"].(int64)

	switch {
	case isDeletes || kind != 0:
		return file, unfit("The table has delete files: rows were deleted or changed without writing the data files again (merge-on-read). Compact the table, or write it with copy-on-write.")
	case len(address) == 0 || !utf8.Valid(address) || len(address) > 4096 || !hasSize || !hasRows || file.Size < 0 || file.Size > maxFileBytes || file.Rows < 0 || file.Rows > maxFileRows:
		return file, errManifest
	case !bytes.EqualFold(format, []byte("parquet")):
		return file, unfit("The table has a data file in the format %q. Only Parquet can be attached.", shortened(string(format)))
	case data["key_metadata"] != nil:
		return file, unfit("The data files of the table are encrypted.")
	}

	file.Address = string(address)
	file.bounds = decodeBounds(data, kinds)

	return file, nil
}

// decodeBounds returns the bounds of the first columns, encoded for the types in which they are read. Bounds that cannot be used are left out.
func decodeBounds(data map[string]any, kinds map[int]string) map[int]bound {
	bounds := map[int]bound{}

	numbers, _ := data["null_value_counts"].([]any)
	for id, value := range keyed(numbers) {
		if nulls, isNumber := value.(int64); isNumber && nulls >= 0 && kinds[id] != "" {
			bounds[id] = bound{Nulls: &nulls}
		}
	}

	for name, place := range map[string]func(*bound) *[]byte{
		"lower_bounds": func(b *bound) *[]byte { return &b.Lower }, "upper_bounds": func(b *bound) *[]byte { return &b.Upper },
	} {
		list, _ := data[name].([]any)
		for id, value := range keyed(list) {
			if encoded, _ := value.([]byte); kinds[id] != "" {
				b := bounds[id]
				*place(&b) = convertBound(kinds[id], encoded)
				bounds[id] = b
			}
		}
	}

	if len(bounds) > measured {
		ids := make([]int, 0, len(bounds))
		for id := range bounds {
			ids = append(ids, id)
		}

		slices.SortFunc(ids, cmp.Compare[int])

		for _, id := range ids[measured:] {
			delete(bounds, id)
		}
	}

	return bounds
}

// keyed returns the entries of a map as Iceberg writes it: an array of records with key and value.
func keyed(list []any) map[int]any {
	found := make(map[int]any, len(list))

	for _, item := range list {
		record, _ := item.(map[string]any)
		if key, isKey := record["key"].(int64); isKey && key > 0 && key < math.MaxInt32 {
			found[int(key)] = record["value"]
		}
	}

	return found
}

// convertBound returns a bound as it is encoded for the type in which the column is read; nil if it cannot be used. A file that was written before its column was promoted has bounds
// of the earlier type.
func convertBound(kind string, encoded []byte) []byte {
	switch foreignType(kind) {
	case Bigint:
		if len(encoded) == 4 {
			return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(binary.LittleEndian.Uint32(encoded))))) //nolint:gosec // its bits
		}

		return ofLength(encoded, 8)
	case Double:
		if len(encoded) == 4 {
			encoded = binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(encoded)))))
		}

		if len(encoded) != 8 || math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(encoded))) {
			return nil
		}

		return encoded
	case Boolean:
		return ofLength(encoded, 1)
	case Date:
		return ofLength(encoded, 4)
	case Timestamp, Time:
		return ofLength(encoded, 8)
	case Varchar:
		if kind == "uuid" || len(encoded) > maxBound || !utf8.Valid(encoded) {
			return nil
		}

		return encoded
	default: // a decimal
		if len(encoded) == 0 || len(encoded) > maxDecimal {
			return nil
		}

		return encoded
	}
}

func ofLength(encoded []byte, length int) []byte {
	if len(encoded) != length {
		return nil
	}

	return encoded
}
