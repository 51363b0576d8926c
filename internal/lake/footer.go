package lake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"

	"quern.dev/quern/internal/fault"
)

const (
	maxFooter = 32 << 20
	magic     = "PAR1"
	// trailer is the length of the end of a Parquet file, in bytes: the length of the footer and the magic word.
	trailer = 8

	formatVersion = 2
)

// description is what a commit needs to know about a data file.
type description struct {
	entry  []byte // encoded as in a manifest
	rows   int64
	bounds map[int]bound
}

// describe reads the footer of a Parquet file that must have exactly these columns. A malicious footer causes an
// error and nothing worse.
func describe(file io.ReaderAt, size int64, address string, columns []Column) (d description, err error) {
	defer fault.Recover(&err)

	content, err := footer(file, size)
	if err != nil {
		return d, err
	}

	meta, err := metadata.NewFileMetaData(content, nil)
	if err != nil {
		return d, fmt.Errorf("the footer of the data file: %w", err)
	}

	if err := check(meta, columns); err != nil {
		return d, err
	}

	metrics, err := measure(meta, columns)
	if err != nil {
		return d, err
	}

	d.rows, d.bounds = meta.GetNumRows(), map[int]bound{}
	d.entry, err = d.encode(meta, metrics, address, size)

	return d, err
}

// encode returns the manifest entry and sets the bounds.
func (d *description) encode(meta *metadata.FileMetaData, metrics map[int]*metric, address string, size int64) ([]byte, error) {
	var (
		sizes, values, nulls = map[int]int64{}, map[int]int64{}, map[int]int64{}
		lower, upper         = map[int][]byte{}, map[int][]byte{}
	)

	for id, m := range metrics {
		low, high, err := m.bounds()
		if err != nil {
			return nil, err
		}

		sizes[id], values[id], nulls[id] = m.size, m.values, m.nulls
		b := bound{Nulls: &m.nulls}

		if len(low) > 0 {
			lower[id] = low
		}

		if len(high) > 0 {
			upper[id] = high
		}

		if len(low) <= maxBound {
			b.Lower = lower[id]
		}

		if len(high) <= maxBound {
			b.Upper = upper[id]
		}

		d.bounds[id] = b
	}

	offsets, err := offsetsOf(meta)
	if err != nil {
		return nil, err
	}

	builder, err := iceberg.NewDataFileBuilder(
		*iceberg.UnpartitionedSpec, iceberg.EntryContentData, address, iceberg.ParquetFile, nil, nil, nil, d.rows, size)
	if err != nil {
		return nil, err
	}

	builder.ColumnSizes(sizes).ValueCounts(values).NullValueCounts(nulls).NaNValueCounts(map[int]int64{}).SplitOffsets(offsets)

	if len(lower) > 0 {
		builder.LowerBoundValues(lower)
	}

	if len(upper) > 0 {
		builder.UpperBoundValues(upper)
	}

	entry, canBeEncoded := builder.Build().(iceberg.AvroEntryMarshaler)
	if !canBeEncoded {
		return nil, errors.ErrUnsupported
	}

	return entry.MarshalAvroEntry(*iceberg.UnpartitionedSpec, schemaOf(nil), formatVersion)
}

// offsetsOf returns the offsets of the row groups.
func offsetsOf(meta *metadata.FileMetaData) ([]int64, error) {
	offsets := make([]int64, meta.NumRowGroups())

	for i := range offsets {
		first, err := meta.RowGroup(i).ColumnChunk(0)
		if err != nil {
			return nil, err
		}

		offsets[i] = first.DataPageOffset()
		if first.HasDictionaryPage() {
			offsets[i] = min(offsets[i], first.DictionaryPageOffset())
		}
	}

	slices.Sort(offsets)

	return offsets, nil
}

// footer returns the encoded footer. It checks only that decoding the footer is cheap; the contents are not verified.
func footer(file io.ReaderAt, size int64) ([]byte, error) {
	if size < int64(len(magic))+trailer {
		return nil, errors.New("the data file is too short for Parquet")
	}

	end := make([]byte, trailer)
	if _, err := file.ReadAt(end, size-trailer); err != nil {
		return nil, err
	}

	length := int64(binary.LittleEndian.Uint32(end))
	if string(end[4:]) != magic || length > maxFooter || length > size-trailer-int64(len(magic)) {
		return nil, errors.New("the data file does not end with a Parquet footer")
	}

	content := make([]byte, length)
	if _, err := file.ReadAt(content, size-trailer-length); err != nil {
		return nil, err
	}

	walk := walker{rest: content, elements: maxElements}
	if err := walk.structure(0); err != nil {
		return nil, fmt.Errorf("the footer of the data file: %w", err)
	}

	return content, nil
}

// check compares the schema and row groups of the file with the required columns.
func check(meta *metadata.FileMetaData, columns []Column) error {
	if meta.IsSetEncryptionAlgorithm() {
		return errors.New("the data file is encrypted")
	}

	root := meta.Schema.Root()
	if root.NumFields() != len(columns) || meta.Schema.NumColumns() != len(columns) {
		return fmt.Errorf("the data file has %d columns instead of %d", root.NumFields(), len(columns))
	}

	known := index(columns)

	for i := range root.NumFields() {
		field := root.Field(i)

		at, isKnown := known.ids[int(field.FieldID())]
		if !isKnown || columns[at].Name != field.Name() {
			return fmt.Errorf("the data file has an unexpected column %q with the field id %d", field.Name(), field.FieldID())
		}

		delete(known.ids, columns[at].ID)

		leaf, isLeaf := field.(*schema.PrimitiveNode)
		if !isLeaf || leaf.RepetitionType() == parquet.Repetitions.Repeated || !columns[at].Type.matches(leaf) {
			return fmt.Errorf("the column %q of the data file does not have the type %s", field.Name(), columns[at].Type)
		}
	}

	return checkRowGroups(meta, len(columns))
}

func checkRowGroups(meta *metadata.FileMetaData, columns int) error {
	rest := meta.GetNumRows()

	for i, group := range meta.RowGroups {
		if group.NumRows < 0 || group.NumRows > rest || len(group.Columns) != columns {
			return fmt.Errorf("row group %d of the data file contradicts its footer", i)
		}

		rest -= group.NumRows

		for _, chunk := range group.Columns {
			if chunk.FilePath != nil || chunk.MetaData == nil {
				return fmt.Errorf("row group %d of the data file is not completely in the file", i)
			}
		}
	}

	if rest != 0 {
		return errors.New("the row groups of the data file do not add up to its rows")
	}

	return nil
}

// matches reports whether a Parquet column is encoded as Iceberg requires for the type.
func (t Type) matches(leaf *schema.PrimitiveNode) bool {
	var (
		physical = leaf.PhysicalType()
		logical  = leaf.LogicalType()
		plain    = logical.IsNone()
	)

	switch t {
	case Boolean:
		return physical == parquet.Types.Boolean && plain
	case Bigint:
		whole, isWhole := logical.(schema.IntLogicalType)

		return physical == parquet.Types.Int64 && (plain || (isWhole && whole.BitWidth() == 64 && whole.IsSigned()))
	case Double:
		return physical == parquet.Types.Double && plain
	case Date:
		return physical == parquet.Types.Int32 && logical.Equals(schema.DateLogicalType{})
	case Timestamp:
		moment, isMoment := logical.(schema.TimestampLogicalType)

		return physical == parquet.Types.Int64 && isMoment && moment.TimeUnit() == schema.TimeUnitMicros && !moment.IsAdjustedToUTC()
	case Time:
		clock, isClock := logical.(schema.TimeLogicalType)

		return physical == parquet.Types.Int64 && isClock && clock.TimeUnit() == schema.TimeUnitMicros
	case Varchar, JSON:
		return physical == parquet.Types.ByteArray && logical.Equals(schema.StringLogicalType{})
	}

	precision, scale, isDecimal := t.Decimal()
	written, isWritten := logical.(schema.DecimalLogicalType)

	return isDecimal && isWritten && int(written.Precision()) == precision && int(written.Scale()) == scale &&
		(physical == parquet.Types.Int32 || physical == parquet.Types.Int64 || physical == parquet.Types.FixedLenByteArray)
}

const (
	maxElements = 4 << 20
	maxDepth    = 16
)

var errMalformed = errors.New("it is malformed")

// walker walks through a structure of Thrift's compact protocol without decoding it. Decoders allocate as many
// elements as a list declares, so walker first checks that the elements exist.
type walker struct {
	rest     []byte
	elements int // remaining limit for the elements of all lists together
}

// Types of the compact protocol.
const (
	thriftTrue = iota + 1
	thriftFalse
	thriftByte
	thriftInt16
	thriftInt32
	thriftInt64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

func (w *walker) structure(depth int) error {
	if depth > maxDepth {
		return errMalformed
	}

	for {
		header, err := w.take(1)
		if err != nil || header[0] == 0 {
			return err
		}

		if header[0]>>4 == 0 { // the id of the field follows separately
			if _, err := w.number(); err != nil {
				return err
			}
		}

		kind := header[0] & 0x0f
		if kind == thriftTrue || kind == thriftFalse {
			continue // the type is the value
		}

		if err := w.value(kind, depth); err != nil {
			return err
		}
	}
}

func (w *walker) value(kind byte, depth int) error {
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		return w.skip(1)
	case thriftInt16, thriftInt32, thriftInt64:
		_, err := w.number()

		return err
	case thriftDouble:
		return w.skip(8)
	case thriftBinary:
		length, err := w.number()
		if err != nil {
			return err
		}

		return w.skip(length)
	case thriftList, thriftSet:
		return w.list(depth)
	case thriftStruct:
		return w.structure(depth + 1)
	default: // including maps, which a Parquet footer does not have
		return errMalformed
	}
}

func (w *walker) list(depth int) error {
	header, err := w.take(1)
	if err != nil {
		return err
	}

	length := uint64(header[0] >> 4)
	if length == 15 {
		if length, err = w.number(); err != nil {
			return err
		}
	}

	if length > uint64(len(w.rest)) || length > uint64(w.elements) { //nolint:gosec // elements is never negative
		return errMalformed
	}

	w.elements -= int(length)

	for range length {
		if err := w.value(header[0]&0x0f, depth+1); err != nil {
			return err
		}
	}

	return nil
}

// number reads a variable-length integer. The value is not zigzag-decoded, which does not matter here.
func (w *walker) number() (uint64, error) {
	value, length := binary.Uvarint(w.rest)
	if length <= 0 {
		return 0, errMalformed
	}

	w.rest = w.rest[length:]

	return value, nil
}

func (w *walker) skip(length uint64) error {
	if length > math.MaxInt32 {
		return errMalformed
	}

	_, err := w.take(int(length))

	return err
}

func (w *walker) take(length int) ([]byte, error) {
	if length > len(w.rest) {
		return nil, errMalformed
	}

	taken := w.rest[:length]
	w.rest = w.rest[length:]

	return taken, nil
}
