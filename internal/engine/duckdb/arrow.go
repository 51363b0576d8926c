package duckdb

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	mathbits "math/bits"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/engine"
)

const (
	arrowFile  = "result.arrow"
	arrowBatch = 16 << 10 // rows
	arrowBytes = 16 << 20 // of the values of a record batch, so that long texts do not fill the memory
)

// toArrow writes the result as an Arrow stream. It calls each after every record batch with the rows of the batch and the
// size of the file so far.
//
// Columns of the common types are copied from DuckDB's memory while the statement runs. If the result has a column of
// another type, such as a list, DuckDB writes a Parquet file first, which is then converted.
func (p *program) toArrow(d described, q engine.Query, each func(rows, size int64)) (ran engine.Ran, err error) {
	to, err := os.OpenFile(filepath.Join(p.tmp, arrowFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return ran, err
	}
	defer to.Close()

	out := &arrowWriter{to: &counted{to: bufio.NewWriterSize(to, 1<<20)}, each: each}

	if slices.ContainsFunc(d.columns, func(c resultColumn) bool { return c.kind.arrow == nil }) {
		if ran, err = p.copyTo(d, q); err == nil {
			err = p.convertParquet(out)
		}
	} else if ran.Truncated, err = p.cut(q); err == nil {
		err = p.copyVectors(d, q, out)
	}

	ran.File, ran.Rows = arrowFile, out.rows

	if err == nil {
		err = out.close()
	}

	return ran, errors.Join(err, to.Close())
}

// arrowWriter writes record batches.
type arrowWriter struct {
	to     *counted
	each   func(rows, size int64)
	writer *ipc.Writer
	rows   int64
}

func (w *arrowWriter) begin(schema *arrow.Schema) {
	w.writer = ipc.NewWriter(w.to, ipc.WithSchema(schema))
}

func (w *arrowWriter) write(batch arrow.RecordBatch) error {
	if err := w.writer.Write(batch); err != nil {
		return err
	}

	w.rows += batch.NumRows()
	w.each(batch.NumRows(), w.to.size)

	return nil
}

func (w *arrowWriter) close() error { return errors.Join(w.writer.Close(), w.to.to.Flush()) }

// convertParquet writes the rows of the Parquet file of the result, and removes the file.
func (p *program) convertParquet(out *arrowWriter) error {
	path := filepath.Join(p.tmp, outputFile)

	from, err := file.OpenParquetFile(path, false, file.WithReadProps(parquet.NewReaderProperties(memory.DefaultAllocator)))
	if err != nil {
		return err
	}
	defer from.Close()

	reader, err := pqarrow.NewFileReader(from, pqarrow.ArrowReadProperties{BatchSize: arrowBatch, Parallel: true}, memory.DefaultAllocator)
	if err != nil {
		return err
	}

	records, err := reader.GetRecordReader(context.Background(), nil, nil)
	if err != nil {
		return err
	}
	defer records.Release()

	out.begin(records.Schema())

	for records.Next() {
		if err := out.write(records.RecordBatch()); err != nil {
			return err
		}
	}

	return errors.Join(records.Err(), os.Remove(path))
}

// copyVectors writes the rows of the statement while it runs.
func (p *program) copyVectors(d described, q engine.Query, out *arrowWriter) error {
	fields, columns := make([]arrow.Field, len(d.columns)), make([]*arrowColumn, len(d.columns))
	for i, c := range d.columns {
		fields[i] = arrow.Field{Name: c.name, Type: c.kind.arrow, Nullable: true}
		columns[i] = newArrowColumn(c.kind.arrow)
	}

	batch := &vectorBatch{schema: arrow.NewSchema(fields, nil), columns: columns, out: out}
	out.begin(batch.schema)

	var failed error

	err := p.db.chunks(p.all(d, q, ``, ``), func(chunk duckdb.DataChunk, size int) bool {
		failed = batch.add(chunk, size)

		return failed == nil
	})

	return errors.Join(err, failed, batch.flush())
}

// vectorBatch is a record batch that is not full yet.
type vectorBatch struct {
	schema  *arrow.Schema
	columns []*arrowColumn
	rows    int
	out     *arrowWriter
}

func (b *vectorBatch) add(chunk duckdb.DataChunk, size int) error {
	var bytes int

	for i, c := range b.columns {
		if err := c.add(vectorOf(chunk, i, size), b.rows); err != nil {
			return err
		}

		bytes += len(c.data)
	}

	if b.rows += size; b.rows < arrowBatch && bytes < arrowBytes {
		return nil
	}

	return b.flush()
}

// flush writes the batch. The memory of its columns is used again for the next one.
func (b *vectorBatch) flush() error {
	if b.rows == 0 {
		return nil
	}

	arrays := make([]arrow.Array, len(b.columns))
	for i, c := range b.columns {
		arrays[i] = c.array(b.rows)
	}

	err := b.out.write(array.NewRecordBatch(b.schema, arrays, int64(b.rows)))

	b.rows = 0
	for _, c := range b.columns {
		c.reset()
	}

	return err
}

// vector is one column of a chunk in DuckDB's memory.
type vector struct {
	cells // of texts; of other types only which values are NULL

	data unsafe.Pointer
	size int
}

func vectorOf(chunk duckdb.DataChunk, column, size int) vector {
	found := cellsOf(chunk, column, size)

	return vector{found, unsafe.Pointer(unsafe.SliceData(found.texts)), size}
}

// arrowColumn is the column of a record batch that is not full yet.
type arrowColumn struct {
	kind    arrow.DataType
	copy    func(v vector, rows int) error // appends the values to a column that has rows already
	data    []byte
	offsets []byte // where the texts in data begin and end; empty for other types
	valid   []byte // a bit for each row
	nulls   int
}

func newArrowColumn(kind arrow.DataType) *arrowColumn {
	c := &arrowColumn{kind: kind}

	switch kind := kind.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		c.copy = c.copyTexts
	case *arrow.BooleanType:
		c.copy = c.copyBooleans
	case *arrow.Decimal128Type:
		c.copy = c.decimals(kind.Precision)
	case arrow.FixedWidthDataType:
		c.copy = c.fixed(kind.BitWidth() / 8)
	}

	return c
}

func (c *arrowColumn) reset() {
	c.data, c.offsets, c.valid, c.nulls = c.data[:0], c.offsets[:0], c.valid[:0], 0
}

func (c *arrowColumn) add(v vector, rows int) error {
	c.valid = grown(c.valid, bytesOf(rows+v.size))
	bitutil.SetBitsTo(c.valid, int64(rows), int64(v.size), true)

	for row := range v.nulls() {
		bitutil.ClearBit(c.valid, rows+row)

		c.nulls++
	}

	return c.copy(v, rows)
}

// nulls returns the rows that are NULL.
func (v vector) nulls() iter.Seq[int] {
	return func(yield func(int) bool) {
		for word, bits := range v.valid {
			for missing := ^bits; missing != 0; missing &= missing - 1 {
				row := 64*word + mathbits.TrailingZeros64(missing)
				if row >= v.size || !yield(row) {
					return
				}
			}
		}
	}
}

func (c *arrowColumn) copyTexts(v vector, _ int) error {
	if len(c.offsets) == 0 {
		c.offsets = append(c.offsets, 0, 0, 0, 0)
	}

	for row := range v.size {
		c.data = append(c.data, v.at(row)...)
		c.offsets = binary.LittleEndian.AppendUint32(c.offsets, uint32(len(c.data))) //nolint:gosec // is checked below
	}

	if len(c.data) > math.MaxInt32 {
		return &refusal{engine.StatementError{Kind: "out of range", Message: "the texts of a column are too long for Arrow", Position: -1}}
	}

	return nil
}

func (c *arrowColumn) copyBooleans(v vector, rows int) error {
	c.data = grown(c.data, bytesOf(rows+v.size))

	for row, value := range unsafe.Slice((*byte)(v.data), v.size) {
		bitutil.SetBitTo(c.data, rows+row, value != 0)
	}

	for row := range v.nulls() {
		bitutil.ClearBit(c.data, rows+row)
	}

	return nil
}

// fixed returns a function that copies values whose bytes are the same in DuckDB and Arrow. DuckDB leaves any bytes in the
// place of a NULL, so these are cleared.
func (c *arrowColumn) fixed(width int) func(vector, int) error {
	return func(v vector, rows int) error {
		c.data = append(c.data, unsafe.Slice((*byte)(v.data), v.size*width)...)

		for row := range v.nulls() {
			clear(c.data[(rows+row)*width:][:width])
		}

		return nil
	}
}

// decimals returns a function that copies decimals, which have 16 bytes in Arrow, and in DuckDB only as many as they need.
func (c *arrowColumn) decimals(precision int32) func(vector, int) error {
	switch {
	case precision <= 4:
		return widened[int16](c)
	case precision <= 9:
		return widened[int32](c)
	case precision <= 18:
		return widened[int64](c)
	default:
		return c.fixed(arrow.Decimal128SizeBytes)
	}
}

func widened[T int16 | int32 | int64](c *arrowColumn) func(vector, int) error {
	return func(v vector, rows int) error {
		c.data = slices.Grow(c.data, v.size*arrow.Decimal128SizeBytes)

		for _, value := range unsafe.Slice((*T)(v.data), v.size) {
			c.data = binary.LittleEndian.AppendUint64(c.data, uint64(value))
			c.data = binary.LittleEndian.AppendUint64(c.data, uint64(int64(value)>>63)) //nolint:gosec // the sign
		}

		for row := range v.nulls() {
			clear(c.data[(rows+row)*arrow.Decimal128SizeBytes:][:arrow.Decimal128SizeBytes])
		}

		return nil
	}
}

// array returns the column. It is valid until the column is reset.
func (c *arrowColumn) array(rows int) arrow.Array {
	buffers := []*memory.Buffer{nil, memory.NewBufferBytes(c.data)}
	if c.nulls > 0 {
		buffers[0] = memory.NewBufferBytes(c.valid)
	}

	if len(c.offsets) > 0 {
		buffers = slices.Insert(buffers, 1, memory.NewBufferBytes(c.offsets))
	}

	return array.MakeFromData(array.NewData(c.kind, rows, buffers, nil, c.nulls, 0))
}

func bytesOf(bits int) int { return (bits + 7) / 8 }

// grown returns a slice with zeros at its end, so that it has this length.
func grown(data []byte, length int) []byte {
	before := len(data)
	data = slices.Grow(data, length-before)[:length]
	clear(data[before:])

	return data
}
