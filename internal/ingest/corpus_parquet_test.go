package ingest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

func parquetCases() []corpusCase {
	return slices.Concat(parquetTypeCases(), parquetShapeCases(), parquetLieCases())
}

func parquetTypeCases() []corpusCase {
	utc := func(unit arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: unit, TimeZone: "UTC"} }
	local := func(unit arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: unit} }
	decimal := func(precision, scale int32) arrow.DataType {
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}

	return []corpusCase{
		made("parquet-plain", "Parquet, whatever it is called.",
			`{`+idAndName+`, "rows": [[1, "Ann"], [2, null], [3, "Çelik"]]}`,
			parquetFile(plainFields(), `[{"id": 1, "name": "Ann"}, {"id": 2, "name": null}, {"id": 3, "name": "Çelik"}]`)),
		made("parquet-integers", "Every width of whole numbers, at its ends.",
			`{"columns": [{"name": "i8", "type": "bigint"}, {"name": "i16", "type": "bigint"}, {"name": "i32", "type": "bigint"}, {"name": "i64", "type": "bigint"},
			  {"name": "u8", "type": "bigint"}, {"name": "u16", "type": "bigint"}, {"name": "u32", "type": "bigint"}, {"name": "u64", "type": "decimal(20,0)"}],
			  "rows": [[-128, -32768, -2147483648, -9223372036854775808, 0, 0, 0, 0], [127, 32767, 2147483647, 9223372036854775807, 255, 65535, 4294967295, "18446744073709551615"], [null,null,null,null,null,null,null,null]]}`,
			parquetFile([]arrow.Field{
				nullable("i8", arrow.PrimitiveTypes.Int8), nullable("i16", arrow.PrimitiveTypes.Int16), nullable("i32", arrow.PrimitiveTypes.Int32), nullable("i64", arrow.PrimitiveTypes.Int64),
				nullable("u8", arrow.PrimitiveTypes.Uint8), nullable("u16", arrow.PrimitiveTypes.Uint16), nullable("u32", arrow.PrimitiveTypes.Uint32), nullable("u64", arrow.PrimitiveTypes.Uint64),
			}, `[{"i8": -128, "i16": -32768, "i32": -2147483648, "i64": -9223372036854775808, "u8": 0, "u16": 0, "u32": 0, "u64": 0},
			  {"i8": 127, "i16": 32767, "i32": 2147483647, "i64": 9223372036854775807, "u8": 255, "u16": 65535, "u32": 4294967295, "u64": 18446744073709551615}, {}]`)),
		made("parquet-numbers", "Floats with their special values, decimals, booleans.",
			`{"columns": [{"name": "f16", "type": "double"}, {"name": "f32", "type": "double"}, {"name": "f64", "type": "double"}, {"name": "small", "type": "decimal(5,2)"}, {"name": "wide", "type": "decimal(38,10)"}, {"name": "flag", "type": "boolean"}],
			  "rows": [[0.5, 0.5, 1e308, "-999.99", "1234567890123456789012345678.0123456789", true], [-2, "NaN", "NaN", "0.01", "-0.0000000001", false], [1.5, "Infinity", "-Infinity", null,null,null], [null,null,-0.0, "5", "0", null]]}`,
			parquetFile([]arrow.Field{
				nullable("f16", arrow.FixedWidthTypes.Float16), nullable("f32", arrow.PrimitiveTypes.Float32), nullable("f64", arrow.PrimitiveTypes.Float64), nullable("small", decimal(5, 2)), nullable("wide", decimal(38, 10)), nullable("flag", arrow.FixedWidthTypes.Boolean),
			}, `[{"f16": 0.5, "f32": 0.5, "f64": 1e308, "small": "-999.99", "wide": "1234567890123456789012345678.0123456789", "flag": true},
			  {"f16": -2, "f32": "NaN", "f64": "NaN", "small": "0.01", "wide": "-0.0000000001", "flag": false},
			  {"f16": 1.5, "f32": "Inf", "f64": "-Inf"}, {"f64": -0.0, "small": "5", "wide": "0"}]`)),
		made("parquet-dates", "Dates, times and timestamps of every unit, with and without a zone, become microseconds of UTC.",
			`{"columns": [{"name": "day", "type": "date"}, {"name": "t_ms", "type": "time"}, {"name": "t_us", "type": "time"}, {"name": "t_ns", "type": "time"},
			  {"name": "ms", "type": "timestamp"}, {"name": "us", "type": "timestamp"}, {"name": "ns", "type": "timestamp"}, {"name": "z_ms", "type": "timestamp"}, {"name": "z_us", "type": "timestamp"}, {"name": "z_ns", "type": "timestamp"}],
			  "rows": [["0001-01-01", "00:00:00", "00:00:00", "00:00:00", "1969-12-31T23:59:59.999", "0001-01-01T00:00:00", "1969-12-31T23:59:59.999999", "2026-03-29T01:30:00", "2026-03-29T01:30:00", "2026-03-29T01:30:00"],
			  ["9999-12-31", "23:59:59.999", "23:59:59.999999", "23:59:59.999999", "9999-12-31T23:59:59.999", "9999-12-31T23:59:59.999999", "2200-01-01T00:00:00.000001", "2026-10-25T00:30:00.5", "2026-10-25T00:30:00.5", "2026-10-25T00:30:00.5"],
			  [null,null,null,null,null,null,null,null,null,null]]}`,
			parquetFile([]arrow.Field{
				nullable("day", arrow.FixedWidthTypes.Date32), nullable("t_ms", arrow.FixedWidthTypes.Time32ms), nullable("t_us", arrow.FixedWidthTypes.Time64us), nullable("t_ns", arrow.FixedWidthTypes.Time64ns),
				nullable("ms", local(arrow.Millisecond)), nullable("us", local(arrow.Microsecond)), nullable("ns", local(arrow.Nanosecond)), nullable("z_ms", utc(arrow.Millisecond)), nullable("z_us", utc(arrow.Microsecond)), nullable("z_ns", utc(arrow.Nanosecond)),
			}, `[{"day": "0001-01-01", "t_ms": "00:00:00", "t_us": "00:00:00", "t_ns": "00:00:00", "ms": "1969-12-31 23:59:59.999", "us": "0001-01-01 00:00:00", "ns": "1969-12-31 23:59:59.999999", "z_ms": "2026-03-29T01:30:00Z", "z_us": "2026-03-29T01:30:00Z", "z_ns": "2026-03-29T01:30:00Z"},
			  {"day": "9999-12-31", "t_ms": "23:59:59.999", "t_us": "23:59:59.999999", "t_ns": "23:59:59.999999000", "ms": "9999-12-31 23:59:59.999", "us": "9999-12-31 23:59:59.999999", "ns": "2200-01-01 00:00:00.000001", "z_ms": "2026-10-25T00:30:00.5Z", "z_us": "2026-10-25T00:30:00.5Z", "z_ns": "2026-10-25T00:30:00.5Z"}, {}]`)),
		made("parquet-int96", "Timestamps as old Spark and Impala wrote them.",
			`{"columns": [{"name": "at", "type": "timestamp"}], "rows": [["1969-12-31T23:59:59.5"], [null], ["2026-03-01T10:20:30.123456"]]}`,
			parquetFile([]arrow.Field{nullable("at", local(arrow.Nanosecond))}, `[{"at": "1969-12-31 23:59:59.5"}, {}, {"at": "2026-03-01 10:20:30.123456"}]`,
				func(p *parquetOptions) { p.arrow = append(p.arrow, pqarrow.WithDeprecatedInt96Timestamps(true)) })),
		made("parquet-text", "Texts, bytes as hexadecimal digits, UUIDs, dictionaries.",
			`{"columns": [{"name": "s", "type": "varchar"}, {"name": "bytes", "type": "varchar"}, {"name": "four", "type": "varchar"}, {"name": "uuid", "type": "varchar"}, {"name": "enum", "type": "varchar"}],
			  "rows": [["007", "00ff41", "01020304", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "red"], ["", "", "ffffffff", null,"blue"], ["👩‍👩‍👧‍👦", null,null,"00000000-0000-0000-0000-000000000000", "red"], [null,"616263", "61626364", null,null]]}`,
			parquetFile([]arrow.Field{
				nullable("s", arrow.BinaryTypes.String), nullable("bytes", arrow.BinaryTypes.Binary), nullable("four", &arrow.FixedSizeBinaryType{ByteWidth: 4}), nullable("uuid", extensions.NewUUIDType()),
				nullable("enum", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}),
			}, `[{"s": "007", "bytes": "AP9B", "four": "AQIDBA==", "uuid": "f47ac10b-58cc-4372-a567-0e02b2c3d479", "enum": "red"}, {"s": "", "bytes": "", "four": "/////w==", "enum": "blue"},
			  {"s": "👩‍👩‍👧‍👦", "uuid": "00000000-0000-0000-0000-000000000000", "enum": "red"}, {"bytes": "YWJj", "four": "YWJjZA=="}]`)),
		made("parquet-nested", "Lists, structs and maps become JSON.",
			`{"columns": [{"name": "id", "type": "bigint"}, {"name": "list", "type": "json"}, {"name": "struct", "type": "json"}, {"name": "map", "type": "json"}, {"name": "deep", "type": "json"}],
			  "rows": [[1, [1, null,3], {"a": 1, "b": "x"}, {"k": 1, "l": 2}, [{"d": "2026-01-01", "l": [["a"], []]}]], [2, [], {"a": null,"b": null}, {}, []], [3, null,null,null,null]]}`,
			parquetFile([]arrow.Field{
				nullable("id", arrow.PrimitiveTypes.Int64), nullable("list", arrow.ListOf(arrow.PrimitiveTypes.Int32)),
				nullable("struct", arrow.StructOf(nullable("a", arrow.PrimitiveTypes.Int64), nullable("b", arrow.BinaryTypes.String))),
				nullable("map", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)),
				nullable("deep", arrow.ListOf(arrow.StructOf(nullable("d", arrow.FixedWidthTypes.Date32), nullable("l", arrow.ListOf(arrow.ListOf(arrow.BinaryTypes.String)))))),
			}, `[{"id": 1, "list": [1, null,3], "struct": {"a": 1, "b": "x"}, "map": [{"key": "k", "value": 1}, {"key": "l", "value": 2}], "deep": [{"d": "2026-01-01", "l": [["a"], []]}]},
			  {"id": 2, "list": [], "struct": {"a": null,"b": null}, "map": [], "deep": []}, {"id": 3}]`)),
	}
}

func parquetShapeCases() []corpusCase {
	const count = 12_000

	names := []string{`id"; DROP TABLE x; --`, "Id", "ID", "__row", "", "/etc/passwd", "a.b", " padded "}
	named := []string{`id\"; DROP TABLE x; --`, "Id", "ID_1", "x__row", "column_5", "/etc/passwd", "a.b", "padded"}

	var (
		fields  []arrow.Field
		columns []string
		many    []arrow.Field
	)

	for i, name := range names {
		fields = append(fields, nullable(name, arrow.PrimitiveTypes.Int64))
		columns = append(columns, fmt.Sprintf(`{"name": "%s", "type": "bigint"}`, named[i]))
	}

	for i := range 2001 {
		many = append(many, nullable(fmt.Sprintf("c%d", i), arrow.PrimitiveTypes.Int64))
	}

	codecs := map[string]compress.Compression{"snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip, "zstd": compress.Codecs.Zstd, "brotli": compress.Codecs.Brotli, "lz4": compress.Codecs.Lz4Raw, "none": compress.Codecs.Uncompressed}

	var packed []arrow.Field
	for _, name := range []string{"snappy", "gzip", "zstd", "brotli", "lz4", "none"} {
		packed = append(packed, nullable(name, arrow.PrimitiveTypes.Int64))
	}

	return []corpusCase{
		made("parquet-no-rows", "A schema and no row.", `{`+idAndName+`, "rows": []}`, parquetFile(plainFields(), `[]`)),
		made("parquet-names", "Names that SQL, the service and people stumble over.",
			`{"columns": [`+strings.Join(columns, ", ")+`], "rows": [[1, 2, 3, 4, 5, 6, 7, 8]], "doubts": [{"column": "ID_1"}, {"column": "x__row"}, {"column": "column_5"}, {"column": "padded", "optional": true}]}`,
			parquetFile(fields, `[{"id\"; DROP TABLE x; --": 1, "Id": 2, "ID": 3, "__row": 4, "": 5, "/etc/passwd": 6, "a.b": 7, " padded ": 8}]`)),
		made("parquet-row-groups", "Several row groups and pages of version 2; the order of the rows is kept.",
			fmt.Sprintf(`{%s, "rows": {"count": %d, "sums": {"id": %d}}}`, idAndName, count, count*(count+1)/2), parquetRows(count,
				parquet.WithMaxRowGroupLength(1000), parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithDictionaryDefault(false), parquet.WithEncodingFor("id", parquet.Encodings.DeltaBinaryPacked), parquet.WithEncodingFor("name", parquet.Encodings.DeltaByteArray))),
		made("parquet-codecs", "Each column in another compression.",
			`{"columns": [{"name": "snappy", "type": "bigint"}, {"name": "gzip", "type": "bigint"}, {"name": "zstd", "type": "bigint"}, {"name": "brotli", "type": "bigint"}, {"name": "lz4", "type": "bigint"}, {"name": "none", "type": "bigint"}], "rows": [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]}`,
			parquetFile(packed, `[{"snappy": 1, "gzip": 2, "zstd": 3, "brotli": 4, "lz4": 5, "none": 6}, {"snappy": 7, "gzip": 8, "zstd": 9, "brotli": 10, "lz4": 11, "none": 12}]`, func(p *parquetOptions) {
				for name, codec := range codecs {
					p.file = append(p.file, parquet.WithCompressionFor(name, codec))
				}
			})),
		made("parquet-types-option", "Types by option; what does not fit is set aside.",
			`{"options": {"types": {"id": "varchar", "name": "bigint"}}, "columns": [{"name": "id", "type": "varchar"}, {"name": "name", "type": "bigint"}], "rows": [["1", 10], ["3", null]], "setAside": [{"row": 2, "reasonContains": "x9"}]}`,
			parquetFile(plainFields(), `[{"id": 1, "name": "10"}, {"id": 2, "name": "x9"}, {"id": 3}]`)),
		made("parquet-columns-2001", "One column too many.", tooManyColumns, parquetFile(many, `[{"c0": 1, "c2000": 2}]`)),
	}
}

// parquetLieCases returns files whose footer or pages are wrong.
func parquetLieCases() []corpusCase {
	const count = 11_111

	whole := parquetRows(count, parquet.WithCompression(compress.Codecs.Uncompressed), parquet.WithDictionaryDefault(false))
	lie := func(name, about string, change func(testing.TB, []byte) []byte) corpusCase {
		return made(name, about, invalidFile, func(tb testing.TB) []byte {
			tb.Helper()

			return change(tb, slices.Clone(whole(tb)))
		})
	}
	length := func(says uint32) func(testing.TB, []byte) []byte {
		return func(_ testing.TB, content []byte) []byte {
			binary.LittleEndian.PutUint32(content[len(content)-8:], says)

			return content
		}
	}
	// footer replaces every occurrence of a number in the footer with another one that has as many bytes.
	footer := func(from, to func(testing.TB, []byte) int64) func(testing.TB, []byte) []byte {
		return func(tb testing.TB, content []byte) []byte {
			tb.Helper()

			at := len(content) - 8 - int(binary.LittleEndian.Uint32(content[len(content)-8:]))
			was, is := binary.AppendVarint(nil, from(tb, content)), binary.AppendVarint(nil, to(tb, content))
			require.Len(tb, is, len(was))
			require.Positive(tb, bytes.Count(content[at:], was))

			return append(content[:at:at], bytes.ReplaceAll(content[at:], was, is)...)
		}
	}
	value := func(n int64) func(testing.TB, []byte) int64 { return func(testing.TB, []byte) int64 { return n } }
	// offset returns the offset of the pages of the second column.
	offset := func(tb testing.TB, content []byte) int64 {
		tb.Helper()

		open, err := file.NewParquetReader(bytes.NewReader(content))
		require.NoError(tb, err)

		chunk, err := open.MetaData().RowGroup(0).ColumnChunk(1)
		require.NoError(tb, err)

		return chunk.DataPageOffset()
	}

	return []corpusCase{
		lie("parquet-footer-longer", "A footer that is longer than the file.", length(1<<30)),
		lie("parquet-footer-longest", "A footer of 4 GiB.", length(1<<32-1)),
		lie("parquet-footer-none", "A footer without bytes.", length(0)),
		lie("parquet-footer-short", "A footer that begins in its own middle.", length(40)),
		lie("parquet-footer-noise", "A footer of noise.", func(_ testing.TB, content []byte) []byte {
			size := int(binary.LittleEndian.Uint32(content[len(content)-8:]))
			for i := range size {
				content[len(content)-8-size+i] = byte(i*167 + 13)
			}

			return content
		}),
		lie("parquet-rows-more", "A footer that counts more rows than there are.", footer(value(count), value(99_999))),
		lie("parquet-offset-beyond", "A column whose pages begin beyond the file.", footer(offset, value(1_000_000))),
		lie("parquet-truncated", "The end is missing.", func(_ testing.TB, content []byte) []byte { return content[:len(content)/2] }),
		lie("parquet-hole", "Pages that were overwritten with zeros.", func(_ testing.TB, content []byte) []byte {
			clear(content[4:60_000])

			return content
		}),
		lie("parquet-magic-twice", "The magic at both ends and text between.", func(testing.TB, []byte) []byte {
			return []byte("PAR1id,name\n1,Ann\n2,Bob\n\x10\x00\x00\x00PAR1")
		}),
	}
}

type parquetOptions struct {
	file  []parquet.WriterProperty
	arrow []pqarrow.WriterOption
}

func nullable(name string, kind arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: kind, Nullable: true}
}

func plainFields() []arrow.Field {
	return []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64), nullable("name", arrow.BinaryTypes.String)}
}

func parquetRows(count int, properties ...parquet.WriterProperty) func(testing.TB) []byte {
	rows := make([]string, count)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id": %d, "name": "n%d"}`, i+1, i+1)
	}

	return parquetFile(plainFields(), "["+strings.Join(rows, ",")+"]", func(p *parquetOptions) { p.file = properties })
}

// parquetFile writes rows given as JSON in the notation of arrow.
func parquetFile(fields []arrow.Field, rows string, change ...func(*parquetOptions)) func(testing.TB) []byte {
	return func(tb testing.TB) []byte {
		tb.Helper()

		var (
			options parquetOptions
			content bytes.Buffer
			schema  = arrow.NewSchema(fields, nil)
		)

		for _, one := range change {
			one(&options)
		}

		writer, err := pqarrow.NewFileWriter(schema, &content, parquet.NewWriterProperties(options.file...), pqarrow.NewArrowWriterProperties(options.arrow...))
		require.NoError(tb, err)

		record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
		require.NoError(tb, err)

		defer record.Release()

		require.NoError(tb, writer.Write(record))
		require.NoError(tb, writer.Close())

		return content.Bytes()
	}
}
