package extract

import (
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pqfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// A group of rows is written when it has this many values' bytes or rows. Only one is in memory.
const (
	groupBytes = 32 << 20
	groupRows  = 100_000
)

// file is a Parquet file that is being written.
type file struct {
	writer  *pqfile.Writer
	columns []buffer
	rows    int64
	bytes   int64 // of the values

	groupRows, groupBytes int64
}

// buffer has the values of one column of the group. Only one of the lists is used.
type buffer struct {
	column

	present  []int16 // 0 for NULL
	ints     []int64
	days     []int32
	doubles  []float64
	booleans []bool
	texts    []parquet.ByteArray
	decimals []parquet.FixedLenByteArray
}

func newFile(to io.Writer, columns []column) (*file, error) {
	f := &file{}
	fields := make(schema.FieldList, len(columns))

	for i, c := range columns {
		node, err := c.node()
		if err != nil {
			return nil, err
		}

		fields[i] = node
		f.columns = append(f.columns, buffer{column: c})
	}

	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return nil, err
	}

	f.writer, err = pqfile.NewParquetWriterWithError(to, root, pqfile.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDictionaryDefault(false), parquet.WithStats(false))))

	return f, err
}

// add adds a row. The values are not used after it returns.
func (f *file) add(values [][]byte) error {
	if len(values) != len(f.columns) {
		return errors.New("a row has another number of columns than was described")
	}

	size := int64(0)

	for i, value := range values {
		if err := f.columns[i].add(value); err != nil {
			return err
		}

		size += int64(len(value)) + 1
	}

	f.rows++
	f.bytes += size
	f.groupRows++
	f.groupBytes += size

	if f.groupBytes >= groupBytes || f.groupRows >= groupRows {
		return f.flush()
	}

	return nil
}

func (b *buffer) add(value []byte) (err error) {
	if value == nil {
		b.present = append(b.present, 0)

		return nil
	}

	b.present = append(b.present, 1)

	switch b.kind {
	case integer:
		b.ints, err = with(b.ints, value, b.integerOf)
	case timestamp, timestamptz:
		b.ints, err = with(b.ints, value, b.timestampOf)
	case clock:
		b.ints, err = with(b.ints, value, b.clockOf)
	case date:
		b.days, err = with(b.days, value, b.dateOf)
	case double:
		b.doubles, err = with(b.doubles, value, b.doubleOf)
	case boolean:
		b.booleans = append(b.booleans, string(value) == "t")
	case decimal:
		b.decimals, err = with(b.decimals, value, b.decimalOf)
	case text, document:
		var whole parquet.ByteArray

		whole, err = b.textOf(value)
		b.texts = append(b.texts, whole)
	}

	return err
}

func with[V any](list []V, value []byte, parse func(string) (V, error)) ([]V, error) {
	parsed, err := parse(string(value))

	return append(list, parsed), err
}

// flush writes the group.
func (f *file) flush() error {
	if f.groupRows == 0 {
		return nil
	}

	group, err := f.writer.AppendRowGroupChecked()
	if err != nil {
		return err
	}

	for i := range f.columns {
		column, err := group.NextColumn()
		if err != nil {
			return err
		}

		if err := errors.Join(f.columns[i].write(column), column.Close()); err != nil {
			return err
		}
	}

	f.groupRows, f.groupBytes = 0, 0

	return group.Close()
}

func (b *buffer) write(to pqfile.ColumnChunkWriter) (err error) {
	switch to := to.(type) {
	case *pqfile.Int64ColumnChunkWriter:
		_, err = to.WriteBatch(b.ints, b.present, nil)
	case *pqfile.Int32ColumnChunkWriter:
		_, err = to.WriteBatch(b.days, b.present, nil)
	case *pqfile.Float64ColumnChunkWriter:
		_, err = to.WriteBatch(b.doubles, b.present, nil)
	case *pqfile.BooleanColumnChunkWriter:
		_, err = to.WriteBatch(b.booleans, b.present, nil)
	case *pqfile.FixedLenByteArrayColumnChunkWriter:
		_, err = to.WriteBatch(b.decimals, b.present, nil)
	case *pqfile.ByteArrayColumnChunkWriter:
		_, err = to.WriteBatch(b.texts, b.present, nil)
	default:
		err = errors.New("a column has a type that is not written")
	}

	clear(b.texts) // so that the values can be freed
	clear(b.decimals)
	b.present, b.ints, b.days, b.doubles = b.present[:0], b.ints[:0], b.days[:0], b.doubles[:0]
	b.booleans, b.texts, b.decimals = b.booleans[:0], b.texts[:0], b.decimals[:0]

	return err
}

// close writes the rest of the file.
func (f *file) close() error {
	if err := f.flush(); err != nil {
		return err
	}

	return f.writer.Close()
}
