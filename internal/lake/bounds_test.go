package lake

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/codec"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

// TestEntryAsIcebergGo checks that describe produces the same entries as iceberg-go, for files with all kinds of
// values.
func TestEntryAsIcebergGo(t *testing.T) {
	t.Parallel()

	columns := append(everyType(), Column{12, "twenty", Decimal(20, 4)}, Column{13, "one", Decimal(1, 0)}, Column{14, "void", Varchar})

	var bounds, partial, dictionaries int

	random := newRandom(t)

	for range 100 {
		content := randomParquet(t, random, columns, random.IntN(4), random.Float64())
		ours, err := describeBytes(content, columns)
		require.NoError(t, err)

		encoded, err := footer(bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)

		meta, err := metadata.NewFileMetaData(encoded, nil)
		require.NoError(t, err)

		theirs := entryByIcebergGo(t, meta, int64(len(content)), columns)
		entries, err := decodeEntries([]Staged{{entry: ours.entry}, {entry: theirs}, {entry: ours.entry}}, 77)
		require.NoError(t, err)
		require.Len(t, entries, 3)
		require.Len(t, ours.entry, len(theirs), "the order of columns is any, all else the same")

		decoded, err := codec.DecodeDataFile(ours.entry, *iceberg.UnpartitionedSpec, schemaOf(columns), formatVersion)
		require.NoError(t, err)

		expected, err := codec.DecodeDataFile(theirs, *iceberg.UnpartitionedSpec, schemaOf(columns), formatVersion)
		require.NoError(t, err)

		for _, found := range []iceberg.DataFile{decoded, entries[0].DataFile(), entries[1].DataFile(), entries[2].DataFile()} {
			require.Equal(t, facts(expected), facts(found))
		}

		require.Equal(t, int64(77), entries[0].SnapshotID())
		require.Equal(t, iceberg.EntryStatusADDED, entries[0].Status())

		require.Equal(t, expected.Count(), ours.rows)
		require.Len(t, ours.bounds, len(expected.NullValueCounts()))

		for id, b := range ours.bounds {
			require.Equal(t, expected.LowerBoundValues()[id], b.Lower)
			require.Equal(t, expected.UpperBoundValues()[id], b.Upper)
			require.Equal(t, expected.NullValueCounts()[id], *b.Nulls)
		}

		bounds += len(expected.LowerBoundValues())

		if meta.NumRowGroups() > 0 {
			partial += len(columns) - len(ours.bounds)

			if chunk, err := meta.RowGroup(0).ColumnChunk(0); err == nil && chunk.HasDictionaryPage() {
				dictionaries++
			}
		}
	}

	require.Greater(t, bounds, 100)
	require.Positive(t, partial)
	require.Positive(t, dictionaries)
}

func entryByIcebergGo(t *testing.T, meta *metadata.FileMetaData, size int64, columns []Column) []byte {
	t.Helper()

	properties := iceberg.Properties{table.DefaultWriteMetricsModeKey: "none"}

	for i, column := range columns {
		isWhole := true

		for g := range meta.NumRowGroups() {
			chunk, err := meta.RowGroup(g).ColumnChunk(i)
			require.NoError(t, err)

			isWhole = isWhole && covered(chunk)
		}

		if isWhole {
			properties[table.MetricsModeColumnConfPrefix+"."+column.Name] = table.DefaultWriteMetricsModeDefault
		}
	}

	described, err := table.DataFileFromMetadata(table.DataFileArgs{
		Schema: schemaOf(columns), Spec: *iceberg.UnpartitionedSpec, Format: iceberg.ParquetFile, Metadata: meta,
		FilePath: "s3://bucket/key", FileSize: size, Content: iceberg.EntryContentData, FormatVersion: formatVersion, Properties: properties,
	})
	require.NoError(t, err)

	entry, err := codec.EncodeDataFile(described, *iceberg.UnpartitionedSpec, schemaOf(columns), formatVersion)
	require.NoError(t, err)

	return entry
}

func facts(f iceberg.DataFile) []any {
	return []any{
		f.ContentType(), f.FilePath(), f.FileFormat(), f.Partition(), f.Count(), f.FileSizeBytes(), f.SpecID(), f.ColumnSizes(), f.ValueCounts(),
		f.NullValueCounts(), f.NaNValueCounts(), f.DistinctValueCounts(), f.LowerBoundValues(), f.UpperBoundValues(), f.KeyMetadata(),
		f.SplitOffsets(), f.EqualityFieldIDs(), f.SortOrderID(), f.FirstRowID(), f.ReferencedDataFile(), f.ContentOffset(), f.ContentSizeInBytes(),
	}
}

// randomParquet returns a file with this number of row groups and about this fraction of nulls.
func randomParquet(t *testing.T, random *rand.Rand, columns []Column, groups int, nulls float64) []byte {
	t.Helper()

	fields := make([]arrow.Field, len(columns))
	for i, column := range columns {
		fields[i] = arrow.Field{Name: column.Name, Type: arrowType(column.Type), Nullable: true, Metadata: fieldID(column.ID)}
	}

	var (
		content bytes.Buffer
		shape   = arrow.NewSchema(fields, nil)
	)

	writer, err := pqarrow.NewFileWriter(shape, &content, parquet.NewWriterProperties(
		parquet.WithStats(true), parquet.WithStoreDecimalAsInteger(random.IntN(2) == 0), parquet.WithDictionaryDefault(random.IntN(2) == 0),
	), pqarrow.DefaultWriterProps())
	require.NoError(t, err)

	for range groups {
		builder := array.NewRecordBuilder(arrowmemory.DefaultAllocator, shape)
		rows := []int{0, 1, 2, 4, 200}[random.IntN(5)] // only many rows make the writer use a dictionary

		for i, column := range columns {
			for range rows {
				if random.Float64() < nulls || column.Name == "void" {
					builder.Field(i).AppendNull()
				} else {
					appendRandom(random, builder.Field(i), column.Type)
				}
			}
		}

		record := builder.NewRecordBatch()
		require.NoError(t, writer.Write(record))
		record.Release()
		builder.Release()
	}

	require.NoError(t, writer.Close())

	return content.Bytes()
}

func appendRandom(random *rand.Rand, builder array.Builder, t Type) {
	edges := []int64{0, 1, -1, 127, 128, -128, -129, math.MaxInt32, math.MaxInt64, math.MinInt64, random.Int64() - random.Int64()}
	edge := edges[random.IntN(len(edges))]

	switch b := builder.(type) {
	case *array.BooleanBuilder:
		b.Append(edge > 0)
	case *array.Int64Builder:
		b.Append(edge)
	case *array.Float64Builder:
		numbers := []float64{0, math.Copysign(0, -1), 1.5, -2.25, math.Inf(1), math.Inf(-1), math.MaxFloat64, random.NormFloat64()}
		if random.IntN(40) == 0 {
			numbers = []float64{math.NaN()}
		}

		b.Append(numbers[random.IntN(len(numbers))])
	case *array.Date32Builder:
		b.Append(arrow.Date32(edge))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(edge))
	case *array.Time64Builder:
		b.Append(arrow.Time64(random.Int64N(24 * 60 * 60 * 1_000_000)))
	case *array.StringBuilder:
		alphabet := []string{"a", "z", "ä", "\ud7ff", "\ue000", string(utf8.MaxRune), "0123456789", strings.Repeat(string(utf8.MaxRune), 20)}

		var text strings.Builder
		for range random.IntN(25) {
			text.WriteString(alphabet[random.IntN(len(alphabet))])
		}

		b.Append(text.String())
	case *array.Decimal128Builder:
		precision, _, _ := t.Decimal()
		unscaled := decimal128.FromI64(edge)

		if precision > 19 && random.IntN(2) == 0 {
			unscaled = decimal128.New(random.Int64N(100_000)-50_000, random.Uint64())
			if precision == 20 {
				unscaled = decimal128.New(random.Int64N(2)-1, random.Uint64())
			}
		}

		for !unscaled.FitsInPrecision(int32(precision)) {
			unscaled, _ = unscaled.Div(decimal128.FromI64(10))
		}

		b.Append(unscaled)
	}
}

// TestWideDecimals covers decimals that the engine writes with more bytes than their digits need.
func TestWideDecimals(t *testing.T) {
	t.Parallel()

	node, err := schema.NewPrimitiveNodeLogical(
		"n", parquet.Repetitions.Optional, schema.NewDecimalLogicalType(20, 4), parquet.Types.FixedLenByteArray, 16, 1)
	require.NoError(t, err)

	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{node}, -1)
	require.NoError(t, err)

	var content bytes.Buffer

	writer := file.NewParquetWriter(&content, root)

	group, err := writer.AppendRowGroupChecked()
	require.NoError(t, err)

	column, err := group.NextColumn()
	require.NoError(t, err)

	values, isFixed := column.(*file.FixedLenByteArrayColumnChunkWriter)
	require.True(t, isFixed)

	low, high := bytes.Repeat([]byte{0xff}, 16), make([]byte, 16)
	low[15], high[14], high[15] = 0x7e, 1, 2

	_, err = values.WriteBatch([]parquet.FixedLenByteArray{high, low}, []int16{1, 0, 1}, nil)
	require.NoError(t, err)
	require.NoError(t, writer.Close())

	found, err := describeBytes(content.Bytes(), []Column{{1, "n", Decimal(20, 4)}})
	require.NoError(t, err)

	one := int64(1)
	require.Equal(t, map[int]bound{1: {Lower: []byte{0xff, 0x7e}, Upper: []byte{1, 2}, Nulls: &one}}, found.bounds)
}
