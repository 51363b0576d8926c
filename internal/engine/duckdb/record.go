package duckdb

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
)

// firstLine returns the first line with its line end, which is \n, \r\n or \r.
func firstLine(data []byte) (line []byte, more bool) {
	i := bytes.IndexAny(data, "\r\n")

	switch {
	case i < 0:
		return data, false
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return data[:i+2], true
	default:
		return data[:i+1], true
	}
}

// splitRecord splits the first record into cells and returns the data after it. complete reports whether the end of the
// record was found.
func splitRecord(data []byte, delimiter, quote string) (cells []string, rest []byte, complete bool) {
	var (
		cell   strings.Builder
		quoted bool
		begins = true
	)

	for i := 0; i < len(data); {
		rest := data[i:]

		switch {
		case quote != "" && begins && bytes.HasPrefix(rest, []byte(quote)):
			quoted, begins = true, false
			i += len(quote)
		case quoted && bytes.HasPrefix(rest, []byte(quote+quote)):
			cell.WriteString(quote)
			i += 2 * len(quote)
		case quoted && bytes.HasPrefix(rest, []byte(quote)):
			quoted = false
			i += len(quote)
		case !quoted && bytes.HasPrefix(rest, []byte(delimiter)):
			cells = append(cells, cell.String())
			cell.Reset()
			begins = true
			i += len(delimiter)
		case !quoted && (rest[0] == '\n' || rest[0] == '\r'):
			end, _ := firstLine(rest)

			return append(cells, cell.String()), rest[len(end):], true
		default:
			cell.WriteByte(rest[0])
			begins = false
			i++
		}
	}

	return append(cells, cell.String()), nil, false
}

// quotedAfter reports whether a line ends inside quotes, given whether it starts inside quotes. A quote opens only at
// the start of a cell. Two quotes inside quotes represent one quote.
func (d dialect) quotedAfter(line []byte, quoted bool) bool {
	if d.quote == "" {
		return false
	}

	for at := 0; ; at++ {
		i := bytes.IndexByte(line[at:], d.quote[0])
		if i < 0 {
			return quoted
		}

		switch at += i; {
		case !quoted:
			quoted = at == 0 || d.endsCell(line[:at])
		case at+1 < len(line) && line[at+1] == d.quote[0]:
			at++
		default:
			quoted = false
		}
	}
}

func (d dialect) endsCell(before []byte) bool {
	if d.delimiter == "" { // the delimiter has not been detected yet
		return strings.IndexByte(delimiters, before[len(before)-1]) >= 0
	}

	return bytes.HasSuffix(before, []byte(d.delimiter))
}

// survey is the result of a pass over all records.
type survey struct {
	records  int64   // records that are rows
	blank    int64   // records that are blank
	longest  int64   // bytes of the longest record
	inQuotes bool    // a line end is inside quotes
	unclosed int64   // start of a record whose quote is never closed; -1 if there is none
	blanks   []int64 // for each position, the number of blank records before it

	totals, firstTotal int64 // number of rows that look like totals, and row number of the first
}

// look reads the records of a text in which all lines end in the same byte. Users do not count records that are blank
// or contain only delimiters, but DuckDB does. So look returns the number of such records before each of DuckDB's
// positions. Positions start at 1, and a position can be that of a blank line before the record.
func (d dialect) look(from io.Reader, newline byte, positions []int64) (survey, error) {
	var (
		s      = survey{unclosed: -1}
		lines  = scanLines(from, newline, d.longest)
		record = recordKind{dialect: &d}
		skip   = d.skip
		header = d.header
		quoted bool
		start  int64
		at     int64
	)

	end := func() {
		switch {
		case header:
			header = false
		case record.blank():
			s.blank++
		default:
			s.records++

			for len(s.blanks) < len(positions) && positions[len(s.blanks)] <= at {
				s.blanks = append(s.blanks, s.blank)
			}
		}

		s.longest = max(s.longest, at-start)
		start, record = at, recordKind{dialect: &d}
	}

	for lines.Scan() {
		line := lines.Bytes()
		at += int64(len(line))

		if skip > 0 {
			skip--
			start = at

			continue
		}

		if !record.other {
			record.feed(line)
		}

		if at-int64(len(line)) == start && !header && d.isTotal(line) {
			if s.totals++; s.firstTotal == 0 {
				s.firstTotal = s.records + 1
			}
		}

		if quoted = d.quotedAfter(line, quoted); quoted {
			s.inQuotes = true
		} else {
			end()
		}
	}

	for len(s.blanks) < len(positions) {
		s.blanks = append(s.blanks, s.blank)
	}

	if quoted {
		s.unclosed = start
	}

	return s, lines.Err()
}

// scanLines splits a text into lines with their ends. The line end is the given byte or, if it is 0, any of \n, \r\n
// and \r. Scan fails with bufio.ErrTooLong if a line is longer than allowed.
func scanLines(from io.Reader, newline byte, longest int64) *bufio.Scanner {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, min(1<<20, longest+2)), int(longest+2))
	lines.Split(func(data []byte, last bool) (int, []byte, error) {
		i := bytes.IndexByte(data, newline)
		if newline == 0 {
			i = bytes.IndexAny(data, "\r\n")
		}

		switch {
		case i >= 0 && newline == 0 && data[i] == '\r' && i+1 == len(data) && !last:
			return 0, nil, nil // the \n of a \r\n may follow
		case i >= 0 && newline == 0 && data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
			return i + 2, data[:i+2], nil
		case i >= 0:
			return i + 1, data[:i+1], nil
		case last && len(data) > 0:
			return len(data), data, nil
		default:
			return 0, nil, nil
		}
	})

	return lines
}

// look does the same for a file, in which lines end in \n, or in \r if there is no \n.
func (f *plainFile) look(d dialect, positions []int64) (survey, error) {
	file, err := f.open()
	if err != nil {
		return survey{}, err
	}
	defer file.Close()

	newline := byte('\n')
	if f.onlyCR {
		newline = '\r'
	}

	s, err := d.look(f.counted(file), newline, positions)
	if errors.Is(err, bufio.ErrTooLong) {
		s.longest, err = math.MaxInt64, nil
	}

	return s, err
}

// recordKind detects records that contain only blanks or only delimiters.
type recordKind struct {
	*dialect

	other    bool // contains other characters
	spaces   bool
	delimits bool
}

func (r *recordKind) feed(data []byte) {
	for i := 0; i < len(data) && !r.other; i++ {
		switch c := data[i]; {
		case strings.IndexByte(r.delimiter, c) >= 0:
			r.delimits = true
		case c == ' ' || c == '\t':
			r.spaces = true
		case c != '\r' && c != '\n':
			r.other = true
		}
	}
}

// blank reports whether the record is blank. In a file with one column, blanks are a value.
func (r *recordKind) blank() bool {
	return !r.other && (!r.spaces || (!r.delimits && !r.single))
}
