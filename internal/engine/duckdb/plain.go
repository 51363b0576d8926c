package duckdb

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"unicode/utf8"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/document"
	"quern.dev/quern/internal/engine/xlsx"
)

const mark = "\xef\xbb\xbf" // the byte order mark of UTF-8

// plainFile is an uncompressed file in UTF-8: the mounted file itself, or a copy in tmp.
type plainFile struct {
	path   string
	format engine.Format
	head   []byte
	size   int64
	onlyCR bool // all lines end in a single \r
	read   *byteCount
	sheet  *xlsx.Table       // set if the file was converted from a workbook
	paper  *document.Written // set if the file was converted from a document
}

// newPlain opens a file to read its first bytes. The file may still be arriving if its size is given; 0 means the size that it has.
func newPlain(path string, format engine.Format, size int64) (plainFile, error) {
	f := plainFile{path: path, format: format, size: size}

	if size == 0 {
		info, err := os.Stat(path)
		if err != nil {
			return f, err
		}

		f.size = info.Size()
	}

	file, err := f.open()
	if err != nil {
		return f, err
	}
	defer file.Close()

	f.head, err = io.ReadAll(io.LimitReader(file, headSize))

	return f, err
}

// become replaces the file with a copy that was made from it.
func (f *plainFile) become(path string) error {
	made, err := newPlain(path, f.format, 0)
	made.read, made.sheet, made.paper = f.read, f.sheet, f.paper
	*f = made

	return err
}

// counted returns a reader that counts the bytes read, for the progress.
func (f *plainFile) counted(from io.Reader) io.Reader {
	if f.read == nil {
		return from
	}

	return io.TeeReader(from, f.read)
}

// byteCount counts the bytes that are written to it.
type byteCount struct{ atomic.Int64 }

func (c *byteCount) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))

	return len(p), nil
}

// text returns the first bytes of the file without the byte order mark.
func (f *plainFile) text() []byte { return bytes.TrimPrefix(f.head, []byte(mark)) }

// check checks that the file is UTF-8 text without NUL bytes, and returns which line ends it has. DuckDB would accept a
// NUL, and fails on mixed line ends.
func (f *plainFile) check() (ends lineEnds, err error) {
	var (
		rest   int // bytes of a character that was split by the end of the last block
		at     int64
		buffer = make([]byte, min(1<<20, f.size+utf8.UTFMax))
	)

	file, err := f.open()
	if err != nil {
		return ends, err
	}
	defer file.Close()

	from := f.counted(file)

	for {
		n, err := io.ReadFull(from, buffer[rest:])
		whole := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)

		if err != nil && !whole {
			return ends, err
		}

		block := buffer[:rest+n]
		if i := bytes.IndexByte(block, 0); i >= 0 {
			return ends, undecoded(wide(), "The file has a NUL byte in line %d: it is binary, or its encoding must be given with the option encoding.", f.lineAt(at+int64(i)))
		}

		ends.add(block[rest:])

		good := validPrefix(block)
		if len(block)-good >= utf8.UTFMax || (whole && good < len(block)) || (good < len(block) && utf8.FullRune(block[good:])) {
			return ends, undecoded(bytewise(), "Line %d is not in UTF-8. Give the encoding of the file with the option encoding, for example windows-1252 or latin-1.", f.lineAt(at+int64(good)))
		}

		if whole {
			f.onlyCR = !ends.lf && !ends.crlf && (ends.cr || ends.last == '\r')

			return ends, nil
		}

		at += int64(good)
		rest = copy(buffer, block[good:])
	}
}

// validPrefix returns the length of the longest prefix that consists of complete UTF-8 characters.
func validPrefix(block []byte) int {
	if utf8.Valid(block) {
		return len(block)
	}

	n := 0

	for n < len(block) {
		r, size := utf8.DecodeRune(block[n:])
		if r == utf8.RuneError && size <= 1 {
			break
		}

		n += size
	}

	return n
}
