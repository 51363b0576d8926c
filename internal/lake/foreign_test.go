package lake

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// foreignTable is a table of another catalog in memory.
type foreignTable struct {
	version    int
	schema     string // fields, as JSON
	properties map[string]string
	objects    map[string][]byte
}

func newForeignTable() *foreignTable {
	return &foreignTable{version: 2, schema: `{"id": 1, "name": "id", "required": false, "type": "int"}, {"id": 2, "name": "name", "required": false, "type": "string"}`, objects: map[string][]byte{}}
}

func (f *foreignTable) metadata() []byte {
	properties, _ := json.Marshal(f.properties)

	return fmt.Appendf(nil, `{"format-version": %d, "table-uuid": "0199c0f5-3c4d-7e5f-8061-7c8d9e0f1a21", "current-schema-id": 3, "schemas": [{"schema-id": 3, "type": "struct", "fields": [%s]}],
		"current-snapshot-id": 77, "snapshots": [{"snapshot-id": 77, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "s3://b/list"}], "properties": %s}`, f.version, f.schema, properties)
}

func (f *foreignTable) read(_ context.Context, address string, _ int64) ([]byte, error) {
	if content, isThere := f.objects[address]; isThere {
		return content, nil
	}

	return nil, errors.New("no " + address)
}

func (f *foreignTable) readAll(t *testing.T) (Foreign, error) {
	t.Helper()

	return ReadForeign(t.Context(), f.metadata(), f.read)
}

// dataFile returns a builder for the entry of a data file with 10 rows.
func dataFile(t *testing.T, format iceberg.FileFormat, name string) *iceberg.DataFileBuilder {
	t.Helper()

	builder, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "s3://b/"+name, format, nil, nil, nil, 10, 1000)
	require.NoError(t, err)

	return builder
}

// list writes a manifest for each group of files, and the list of them.
func (f *foreignTable) list(t *testing.T, groups ...[]iceberg.DataFile) {
	t.Helper()

	var (
		manifests []iceberg.ManifestFile
		snapshot  = int64(77)
		schema    = iceberg.NewSchema(3, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int32}, iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String})
	)

	for n, files := range groups {
		var (
			content bytes.Buffer
			entries []iceberg.ManifestEntry
		)

		for _, file := range files {
			entries = append(entries, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &snapshot, nil, nil, file))
		}

		manifest, err := iceberg.WriteManifest(fmt.Sprintf("s3://b/m%d", n), &content, formatVersion, *iceberg.UnpartitionedSpec, schema, snapshot, entries)
		require.NoError(t, err)

		f.objects[manifest.FilePath()] = content.Bytes()
		manifests = append(manifests, manifest)
	}

	var (
		list     bytes.Buffer
		sequence = int64(1)
	)

	require.NoError(t, iceberg.WriteManifestList(formatVersion, &list, snapshot, nil, &sequence, 0, manifests))
	f.objects["s3://b/list"] = list.Bytes()
}

func TestReadForeign(t *testing.T) {
	t.Parallel()

	f := newForeignTable()
	one := dataFile(t, iceberg.ParquetFile, "a.parquet").NullValueCounts(map[int]int64{1: 2, 9: 1}).
		LowerBoundValues(map[int][]byte{1: binary.LittleEndian.AppendUint32(nil, uint32(math.MaxUint32-4)), 2: []byte("a")}). // -5
		UpperBoundValues(map[int][]byte{1: binary.LittleEndian.AppendUint32(nil, 7), 2: []byte("b")}).Build()
	f.list(t, []iceberg.DataFile{one}, []iceberg.DataFile{dataFile(t, iceberg.ParquetFile, "b.parquet").Build()})

	found, err := f.readAll(t)
	require.NoError(t, err)
	require.Equal(t, []Column{{1, "id", Bigint}, {2, "name", Varchar}}, found.Columns)
	require.EqualValues(t, 77, found.Snapshot)
	require.Equal(t, uuid.MustParse("0199c0f5-3c4d-7e5f-8061-7c8d9e0f1a21"), found.Table)
	require.Len(t, found.Files, 2)

	nulls, least, most := int64(2), int64(-5), uint64(7)
	require.Equal(t, ForeignFile{Address: "s3://b/a.parquet", Size: 1000, Rows: 10, Snapshot: 77, bounds: map[int]bound{
		1: {Lower: binary.LittleEndian.AppendUint64(nil, uint64(least)), Upper: binary.LittleEndian.AppendUint64(nil, most), Nulls: &nulls}, 2: {Lower: []byte("a"), Upper: []byte("b")},
	}}, found.Files[0])

	rows, size := found.Totals()
	require.Equal(t, []int64{20, 2000}, []int64{rows, size})

	// A manifest of deletes.
	_, err = foreignManifest{isDeletes: true}.decode(f.objects["s3://b/m0"], map[int]string{1: "int"})
	require.ErrorContains(t, err, "has delete files")

	_, err = decodeFile(map[string]any{"content": int64(1)}, false, nil)
	require.ErrorContains(t, err, "has delete files")

	// What stays, goes and is new.
	gone, fresh := found.compare([]File{{Address: "s3://b/a.parquet", Size: 1000, Rows: 10}, {Address: "s3://b/b.parquet", Size: 999, Rows: 10}, {Address: "s3://b/c.parquet", Size: 1000, Rows: 10}})
	require.Len(t, gone, 2)
	require.Len(t, fresh, 1)
	require.Equal(t, "s3://b/b.parquet", fresh[0].Address)
}

func TestReadForeignRefuses(t *testing.T) {
	t.Parallel()

	parquetFile := func(t *testing.T) []iceberg.DataFile {
		t.Helper()

		return []iceberg.DataFile{dataFile(t, iceberg.ParquetFile, "a.parquet").Build()}
	}

	for reason, change := range map[string]func(t *testing.T, f *foreignTable){
		"version 3": func(_ *testing.T, f *foreignTable) { f.version = 3 },
		"has a name mappi": func(_ *testing.T, f *foreignTable) {
			f.properties = map[string]string{"schema.name-mapping.default": "[]"}
		},
		"is encrypted": func(_ *testing.T, f *foreignTable) { f.properties = map[string]string{"encryption.key-id": "k"} },
		`"tags" (nested)`: func(_ *testing.T, f *foreignTable) {
			f.schema = `{"id": 1, "name": "tags", "type": {"type": "list", "element-id": 2, "element": "string"}}`
		},
		`"raw" (binary)`: func(_ *testing.T, f *foreignTable) { f.schema = `{"id": 1, "name": "raw", "type": "binary"}` },
		"Two columns": func(_ *testing.T, f *foreignTable) {
			f.schema = strings.ReplaceAll(f.schema, `"name": "name"`, `"name": "ID"`)
		},
		"no unique ids":     func(_ *testing.T, f *foreignTable) { f.schema = strings.ReplaceAll(f.schema, `"id": 2`, `"id": 1`) },
		"no current schema": func(_ *testing.T, f *foreignTable) { f.schema = "" },
		`in the format "ORC"`: func(t *testing.T, f *foreignTable) {
			t.Helper()
			f.list(t, []iceberg.DataFile{dataFile(t, iceberg.OrcFile, "a.orc").Build()})
		},
		"files of the table are": func(t *testing.T, f *foreignTable) {
			t.Helper()
			f.list(t, []iceberg.DataFile{dataFile(t, iceberg.ParquetFile, "a.parquet").KeyMetadata([]byte("k")).Build()})
		},
		"data file twice": func(t *testing.T, f *foreignTable) { t.Helper(); f.list(t, parquetFile(t), parquetFile(t)) },
		"not in the format of Iceberg": func(t *testing.T, f *foreignTable) {
			t.Helper()
			f.list(t, parquetFile(t))
			f.objects["s3://b/m0"] = f.objects["s3://b/m0"][:200]
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()

			f := newForeignTable()
			f.list(t, parquetFile(t))
			change(t, f)

			_, err := f.readAll(t)

			var unfit *UnfitError

			require.ErrorAs(t, err, &unfit)
			require.Contains(t, unfit.Reason, reason)
		})
	}
}

// FuzzReadForeign gives hostile bytes as the manifests of a table.
func FuzzReadForeign(f *testing.F) {
	f.Add([]byte("Obj\x01"), []byte("Obj\x01"))
	f.Add([]byte("Obj\x01\x02\x16avro.schema\x8e\x01{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"a\",\"type\":{\"type\":\"array\",\"items\":\"null\"}}]}\x000123456789abcdef\x02\x04\xfe\xff0123456789abcdef"), []byte{})

	f.Fuzz(func(t *testing.T, list, manifest []byte) {
		table := newForeignTable()
		table.objects["s3://b/list"] = list

		_, _ = table.readAll(t)
		_, _ = foreignManifest{}.decode(manifest, map[int]string{1: "int", 2: "string"})
	})
}

func TestForeignType(t *testing.T) {
	t.Parallel()

	for kind, want := range map[string]Type{"decimal(9, 2)": "decimal(9,2)", "decimal(39, 2)": "", "timestamptz": Timestamp, "timestamp_ns": "", "fixed[16]": "", "uuid": Varchar, "float": Double, "variant": ""} {
		require.Equal(t, want, foreignType(kind), kind)
	}

	nan := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	require.Nil(t, convertBound("float", nan))
	require.Equal(t, binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.5)), convertBound("float", binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.5))))
	require.Nil(t, convertBound("uuid", make([]byte, 16)))
	require.Nil(t, convertBound("string", bytes.Repeat([]byte("a"), maxBound+1)))
	require.Nil(t, convertBound("date", []byte{1}))
}

// TestCheckForeign checks which files of attached tables are read.
func TestCheckForeign(t *testing.T) {
	t.Parallel()

	write := func(ids ...string) *os.File {
		var fields []arrow.Field
		for n, id := range ids {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", n), Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{id})})
		}

		schema := arrow.NewSchema(fields, nil)
		file, err := os.Create(filepath.Join(t.TempDir(), "a.parquet"))
		require.NoError(t, err)

		builder := array.NewRecordBuilder(arrowmemory.DefaultAllocator, schema)
		for n := range ids {
			builder.Field(n).AppendNull()
		}

		w, err := pqarrow.NewFileWriter(schema, struct{ *os.File }{file}, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
		require.NoError(t, err)
		require.NoError(t, w.Write(builder.NewRecordBatch()))
		require.NoError(t, w.Close())

		read, err := os.Open(file.Name())
		require.NoError(t, err)
		t.Cleanup(func() { _ = read.Close() })

		return read
	}
	check := func(file *os.File, rows int64) error {
		info, err := file.Stat()
		require.NoError(t, err)

		return checkForeign(file, info.Size(), rows)
	}

	require.NoError(t, check(write("1", "7"), 1))
	require.ErrorContains(t, check(write("1"), 2), "another number of rows")
	require.ErrorContains(t, check(write("1", "1"), 1), "no unique ids")
	require.ErrorContains(t, check(write("-1"), 1), "no unique ids")
	require.ErrorContains(t, checkForeign(strings.NewReader("PAR1 nothing PAR1"), 17, 1), "not a Parquet file")
	require.ErrorContains(t, checkForeign(strings.NewReader("PARE nothing PARE"), 17, 1), "encrypted")
}
