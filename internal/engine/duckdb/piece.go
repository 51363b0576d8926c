package duckdb

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

const endsFile = "ends"

// pieces writes the whole result to a file and cuts the file into pieces, without copying it. DuckDB can write several
// files itself, but then the rows are not in the order of the statement.
func (p *program) pieces(d described, q engine.Query, conn *sandbox.Conn) (engine.Ran, error) {
	stop := p.report(conn, func() engine.Progress { return engine.Progress{Part: p.db.progress()} })
	ran, err := p.cutResult(d, q)

	return ran, errors.Join(err, stop())
}

func (p *program) cutResult(d described, q engine.Query) (ran engine.Ran, err error) {
	cut := &cutter{limit: *q.Pieces}

	switch q.Form {
	case engine.Rows:
		ran.File, err = outputFile, p.writeLines(d, cut)
		ran.Rows = cut.rows
	case engine.Arrow:
		ran, err = p.arrowPieces(d, q, cut)
	case engine.Parquet:
		if ran, err = p.copyTo(d, q); err == nil {
			err = p.cutParquet(cut)
		}
	case engine.CSV, engine.EscapedCSV:
		if ran, err = p.copyTo(d, q); err == nil {
			err = p.cutCSV(cut)
		}
	}

	if err != nil {
		return ran, err
	}

	return ran, p.finishPieces(&ran, cut)
}

// finishPieces closes the last piece at the end of the file and writes the heads and tails.
func (p *program) finishPieces(ran *engine.Ran, cut *cutter) error {
	info, err := os.Stat(filepath.Join(p.tmp, ran.File))
	if err != nil {
		return err
	}

	cut.end(info.Size())
	ran.Pieces, ran.End = cut.pieces, engine.Span{From: cut.pieces[len(cut.pieces)-1].Body.To, To: info.Size()}

	if len(cut.ends) == 0 {
		return nil
	}

	ran.Ends = endsFile

	return os.WriteFile(filepath.Join(p.tmp, endsFile), cut.ends, 0o600)
}

// cutter decides where a file is cut.
type cutter struct {
	limit  engine.PieceSize
	pieces []engine.Piece
	ends   []byte // heads and tails
	rows   int64  // of all pieces

	from, size int64       // where the current piece begins, and how far the file is cut
	count      int64       // rows of the current piece
	head, tail engine.Span // of the pieces that follow the first one, and of those before the last one
}

// add notes that the file has more rows and now has this size. It ends the piece if that is large enough.
func (c *cutter) add(rows, size int64) {
	if c.count > 0 && (c.count >= c.limit.Rows || c.size-c.from >= c.limit.Bytes) {
		c.close(c.size)
	}

	c.count, c.rows, c.size = c.count+rows, c.rows+rows, size
}

func (c *cutter) close(at int64) {
	piece := engine.Piece{Rows: c.count, Body: engine.Span{From: c.from, To: at}, Tail: c.tail}
	if len(c.pieces) > 0 {
		piece.Head = c.head
	}

	c.pieces = append(c.pieces, piece)
	c.from, c.count = at, 0
}

// end closes the last piece, unless the pieces are already complete. The rest of the file belongs to it.
func (c *cutter) end(size int64) {
	if len(c.pieces) == 0 || c.count > 0 {
		c.close(size)
		c.pieces[len(c.pieces)-1].Tail = engine.Span{}
	}
}

func (c *cutter) keep(data []byte) engine.Span {
	from := int64(len(c.ends))
	c.ends = append(c.ends, data...)

	return engine.Span{From: from, To: int64(len(c.ends))}
}

// writeLines writes each row as a JSON object on its own line.
func (p *program) writeLines(d described, cut *cutter) error {
	to, err := os.OpenFile(filepath.Join(p.tmp, outputFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()

	out := &counted{to: bufio.NewWriterSize(to, 1<<20)}
	lines := p.narrowLines

	if len(d.columns) > wideColumns {
		lines = p.wideLines
	}

	var written error

	err = lines(d, 0, func(line []byte) bool {
		_, first := out.Write(line)
		_, second := out.Write([]byte{'\n'})
		written = errors.Join(first, second)
		cut.add(1, out.size)

		return written == nil
	})

	return errors.Join(err, written, out.to.Flush(), to.Close())
}

// arrowEnd ends an Arrow stream.
var arrowEnd = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0} //nolint:gochecknoglobals // read only

// arrowPieces writes the result as an Arrow stream. Each piece is a stream with the same schema.
func (p *program) arrowPieces(d described, q engine.Query, cut *cutter) (ran engine.Ran, err error) {
	cut.tail = cut.keep(arrowEnd)

	if ran, err = p.toArrow(d, q, cut.add); err != nil {
		return ran, err
	}

	from, err := os.Open(filepath.Join(p.tmp, arrowFile))
	if err != nil {
		return ran, err
	}
	defer from.Close()

	// A message begins with a mark and the length of its metadata. A schema has nothing else.
	start := make([]byte, 8)
	if _, err := io.ReadFull(from, start); err != nil {
		return ran, err
	}

	schema := make([]byte, 8+int64(binary.LittleEndian.Uint32(start[4:])))
	if _, err := from.ReadAt(schema, 0); err != nil {
		return ran, err
	}

	cut.setHead(cut.keep(schema))

	return ran, nil
}

// setHead sets the head of the pieces that follow the first one, also of those that were made before it was known.
func (c *cutter) setHead(head engine.Span) {
	c.head = head

	for i := 1; i < len(c.pieces); i++ {
		c.pieces[i].Head = head
	}
}

// cutCSV finds the ends of rows: the line ends that are not in quotes. Each piece has the names of the columns.
func (p *program) cutCSV(cut *cutter) error {
	from, err := os.Open(filepath.Join(p.tmp, outputFile))
	if err != nil {
		return err
	}
	defer from.Close()

	var (
		read     = make([]byte, 1<<20)
		header   []byte
		at       int64 // of the first byte of read
		isQuoted bool
		isBody   bool
	)

	for {
		n, err := from.Read(read)
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		for i, c := range read[:n] {
			switch {
			case c == '"':
				isQuoted = !isQuoted
			case c != '\n' || isQuoted:
			case isBody:
				cut.add(1, at+int64(i)+1)
			default:
				cut.head, isBody = cut.keep(append(header, read[:i+1]...)), true
			}
		}

		if at += int64(n); !isBody {
			header = append(header, bytes.Clone(read[:n])...)
		}
	}
}

// parquetMagic begins and ends a Parquet file.
const parquetMagic = "PAR1"

// cutParquet cuts between row groups. Each piece has the metadata of its own row groups.
func (p *program) cutParquet(cut *cutter) error {
	from, err := file.OpenParquetFile(filepath.Join(p.tmp, outputFile), false)
	if err != nil {
		return err
	}
	defer from.Close()

	whole := from.MetaData()
	cut.head = cut.keep([]byte(parquetMagic))

	first := 0 // of the row groups of the current piece

	for i, group := range whole.RowGroups {
		start, end := extent(whole, i)
		if start < cut.size || end < start {
			return fmt.Errorf("the row group %d is not in order", i)
		}

		before := len(cut.pieces)
		if cut.add(group.NumRows, end); len(cut.pieces) > before {
			if err := cut.footer(whole, first, i); err != nil {
				return err
			}

			first = i
		}
	}

	if len(cut.pieces) == 0 {
		return nil // one piece is the file itself
	}

	cut.close(cut.size)

	return cut.footer(whole, first, len(whole.RowGroups))
}

// extent returns where the data of a row group is.
func extent(whole *metadata.FileMetaData, group int) (start, end int64) {
	for i, chunk := range whole.RowGroups[group].Columns {
		from := chunk.MetaData.DataPageOffset
		if dictionary := chunk.MetaData.DictionaryPageOffset; dictionary != nil && *dictionary > 0 {
			from = min(from, *dictionary)
		}

		if i == 0 || from < start {
			start = from
		}

		end = max(end, from+chunk.MetaData.TotalCompressedSize)
	}

	return start, end
}

// footer gives the last piece its tail: the metadata of the row groups from first to before last. Offsets are those in
// the piece. Filters and indexes stand after all row groups of the file, so a piece has none.
func (c *cutter) footer(whole *metadata.FileMetaData, first, last int) error {
	var groups []int
	for i := first; i < last; i++ {
		groups = append(groups, i)
	}

	own, err := whole.Subset(groups)
	if err != nil {
		return err
	}

	piece := &c.pieces[len(c.pieces)-1]
	moved := piece.Body.From - piece.Head.Size()

	for _, group := range own.RowGroups {
		group.FileOffset = nil

		for _, chunk := range group.Columns {
			chunk.FileOffset = 0
			chunk.OffsetIndexOffset, chunk.OffsetIndexLength, chunk.ColumnIndexOffset, chunk.ColumnIndexLength = nil, nil, nil, nil

			m := chunk.MetaData
			m.DataPageOffset -= moved
			m.BloomFilterOffset, m.BloomFilterLength = nil, nil

			for _, offset := range []*int64{m.DictionaryPageOffset, m.IndexPageOffset} {
				if offset != nil {
					*offset -= moved
				}
			}
		}
	}

	encoded, err := own.Serialize(context.Background())
	if err != nil {
		return err
	}

	length := binary.LittleEndian.AppendUint32(nil, uint32(len(encoded))) //nolint:gosec // Parquet has no larger footers
	piece.Tail = c.keep(append(append(encoded, length...), parquetMagic...))

	return nil
}
