package duckdb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"quern.dev/quern/internal/engine"
)

const (
	sampleLines = 20_000
	sampleBytes = 8 << 20
)

// lineEnds records which kinds of line ends a text has.
type lineEnds struct {
	lf, crlf, cr bool
	last         byte
}

func (e *lineEnds) add(block []byte) {
	if len(block) == 0 {
		return
	}

	if e.last == '\r' {
		if block[0] == '\n' {
			e.crlf, block = true, block[1:]
		} else {
			e.cr = true
		}
	}

	for len(block) > 0 {
		i := bytes.IndexByte(block, '\r')
		lines := block

		if i >= 0 {
			lines = block[:i]
		}

		e.lf = e.lf || bytes.IndexByte(lines, '\n') >= 0

		switch {
		case i < 0:
			e.last = 0

			return
		case i+1 == len(block):
			e.last = '\r'

			return
		case block[i+1] == '\n':
			e.crlf, block = true, block[i+2:]
		default:
			e.cr, block = true, block[i+1:]
		}
	}

	e.last = 0
}

func (e *lineEnds) mixed() bool {
	cr := e.cr || e.last == '\r'

	return (e.lf && e.crlf) || (e.lf && cr) || (e.crlf && cr)
}

// lineAt returns the number of the line that contains a byte. It is used in messages; it returns 0 if the file cannot
// be read.
func (f *plainFile) lineAt(offset int64) int64 {
	file, err := os.Open(f.path)
	if err != nil {
		return 0
	}
	defer file.Close()

	var (
		counted lineCounter
		buffer  = make([]byte, 1<<20)
	)

	_, _ = io.CopyBuffer(&counted, io.LimitReader(file, offset), buffer)

	return counted.lines + 1
}

type lineCounter struct {
	lines int64
	last  byte
}

func (c *lineCounter) Write(p []byte) (int, error) {
	c.lines += int64(bytes.Count(p, []byte("\n")))

	for rest := p; ; {
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			break
		}

		if i+1 == len(rest) || rest[i+1] != '\n' {
			c.lines++
		}

		rest = rest[i+1:]
	}

	if len(p) > 0 {
		if c.last == '\r' && p[0] == '\n' {
			c.lines-- // it was already counted with the previous block
		}

		c.last = p[len(p)-1]
	}

	return len(p), nil
}

// oneLineEnd replaces the file with a copy in which all records end in \n. Line ends inside quotes are not changed.
func (f *plainFile) oneLineEnd(tmp, name string, d dialect) error {
	from, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer from.Close()

	path := filepath.Join(tmp, name+".lines")

	to, err := os.Create(path)
	if err != nil {
		return err
	}
	defer to.Close()

	writer := bufio.NewWriterSize(to, 1<<20)

	switch err := d.copyLines(f.counted(from), writer); {
	case errors.Is(err, bufio.ErrTooLong):
		return &failure{code: engine.LineTooLong, message: fmt.Sprintf("A line has more than %d bytes.", d.longest)}
	case err != nil:
		return err
	}

	if err := errors.Join(writer.Flush(), to.Close()); err != nil {
		return err
	}

	return f.become(path)
}

func (d dialect) copyLines(from io.Reader, to *bufio.Writer) error {
	lines, quoted := scanLines(from, 0, d.longest), false

	for lines.Scan() {
		line := lines.Bytes()
		bare := bytes.TrimRight(line, "\r\n")

		if quoted = d.quotedAfter(line, quoted); !quoted && len(bare) < len(line) {
			line = line[:len(bare)+1]
			line[len(bare)] = '\n'
		}

		if _, err := to.Write(line); err != nil {
			return err
		}
	}

	return lines.Err()
}

// sample returns a file with the first lines, or the file itself if it is small. The dialect and the types are detected
// from the sample.
func (f *plainFile) sample(tmp string, longest int64) (plainFile, error) {
	from, err := f.open()
	if err != nil {
		return *f, err
	}
	defer from.Close()

	data, err := io.ReadAll(io.LimitReader(from, sampleBytes))
	if err != nil {
		return *f, err
	}

	end := firstLines(data)
	if end == 0 { // the first line is longer than sampleBytes
		more, err := io.ReadAll(io.LimitReader(from, longest+1-int64(len(data))))
		if err != nil {
			return *f, err
		}

		data = append(data, more...)
		end = firstLines(data)
	}

	switch {
	case int64(end) == f.size, end == 0 && int64(len(data)) == f.size && f.size <= longest:
		return *f, nil
	case end == 0:
		return *f, &failure{code: engine.LineTooLong, message: fmt.Sprintf("The first line has more than %d bytes.", longest)}
	}

	path := filepath.Join(tmp, filepath.Base(f.path)+".sample")
	if err := os.WriteFile(path, data[:end], 0o600); err != nil {
		return *f, err
	}

	first := *f
	err = first.become(path)
	first.onlyCR = f.onlyCR

	return first, err
}

// firstLines returns the size of the first sampleLines complete lines, in bytes.
func firstLines(data []byte) (end int) {
	sign := byte('\n')
	if bytes.IndexByte(data, sign) < 0 {
		sign = '\r'
	}

	for range sampleLines {
		i := bytes.IndexByte(data[end:], sign)
		if i < 0 {
			break
		}

		end += i + 1
	}

	return end
}
