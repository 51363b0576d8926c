package extract

import (
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pqfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"quern.dev/quern/internal/fault"
)

// A group of rows is written when it has this many values' bytes or rows. Two are in memory: one is filled while the other is written.
const (
	groupBytes = 32 << 20
	groupRows  = 100_000
)

// file is a Parquet file that is being written.
type file struct {
	writer  *pqfile.Writer
	filling *group
	other   *group
	written chan error // of the group that is being written; nil if there is none
	rows    int64
	bytes   int64 // of the values
}

// group is a group of rows.
type group struct {
	columns     []buffer
	rows, bytes int64
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
	content  []byte // of texts and decimals
}

func newFile(to io.Writer, columns []column) (*file, error) {
	f := &file{filling: &group{}, other: &group{}}
	fields := make(schema.FieldList, len(columns))

	for i, c := range columns {
		node, err := c.node()
		if err != nil {
			return nil, err
		}

		fields[i] = node
		f.filling.columns = append(f.filling.columns, buffer{column: c})
		f.other.columns = append(f.other.columns, buffer{column: c})
	}

	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return nil, err
	}

	f.writer, err = pqfile.NewParquetWriterWithError(to, root, pqfile.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDictionaryDefault(false), parquet.WithStats(false))))

	return f, err
}

// formats returns how the server sends the values of each column.
func (f *file) formats() []int16 {
	formats := make([]int16, len(f.filling.columns))
	for i, c := range f.filling.columns {
		formats[i] = c.format()
	}

	return formats
}

// add adds a row. The values are not used after it returns.
func (f *file) add(values [][]byte) error {
	g := f.filling
	if len(values) != len(g.columns) {
		return errors.New("a row has another number of columns than was described")
	}

	size := int64(0)

	for i, value := range values {
		if err := g.columns[i].add(value); err != nil {
			return err
		}

		size += int64(len(value)) + 1
	}

	f.rows++
	f.bytes += size
	g.rows++
	g.bytes += size

	if g.bytes >= groupBytes || g.rows >= groupRows {
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
		b.booleans, err = with(b.booleans, value, b.booleanOf)
	case decimal:
		var number [decimalBytes]byte

		number, err = b.decimalOf(value)
		b.decimals = append(b.decimals, b.keep(number[:]))
	case text, document:
		err = b.checkText(value)
		b.texts = append(b.texts, b.keep(value))
	}

	return err
}

// keep returns a copy of a value. The copies of a group share memory: if it grows, earlier copies stay where they are.
func (b *buffer) keep(value []byte) []byte {
	from := len(b.content)
	b.content = append(b.content, value...)

	return b.content[from:len(b.content):len(b.content)]
}

func with[V any](list []V, value []byte, parse func([]byte) (V, error)) ([]V, error) {
	parsed, err := parse(value)

	return append(list, parsed), err
}

// flush begins to write the group, and lets the other one be filled.
func (f *file) flush() error {
	if err := f.wait(); err != nil || f.filling.rows == 0 {
		return err
	}

	full, written := f.filling, make(chan error, 1)
	f.filling, f.other, f.written = f.other, full, written

	go func() { written <- fault.Try(func() error { return full.write(f.writer) }) }()

	return nil
}

// wait waits until no group is being written.
func (f *file) wait() error {
	if f.written == nil {
		return nil
	}

	err := <-f.written
	f.written = nil

	return err
}

func (g *group) write(to *pqfile.Writer) error {
	rows, err := to.AppendRowGroupChecked()
	if err != nil {
		return err
	}

	for i := range g.columns {
		column, err := rows.NextColumn()
		if err != nil {
			return err
		}

		if err := errors.Join(g.columns[i].write(column), column.Close()); err != nil {
			return err
		}
	}

	g.rows, g.bytes = 0, 0

	return rows.Close()
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

	clear(b.texts) // so that outgrown content can be freed
	clear(b.decimals)
	b.present, b.ints, b.days, b.doubles = b.present[:0], b.ints[:0], b.days[:0], b.doubles[:0]
	b.booleans, b.texts, b.decimals, b.content = b.booleans[:0], b.texts[:0], b.decimals[:0], b.content[:0]

	return err
}

// close writes the rest of the file.
func (f *file) close() error {
	if err := errors.Join(f.flush(), f.wait()); err != nil {
		return err
	}

	return f.writer.Close()
}
