package duckdb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"quern.dev/quern/internal/engine"
)

const maxDepth = 500

// isLines reports whether the JSON already has one object per line. Such a file is not converted, so that a broken line
// affects one row and not the rest of the file.
func (f *plainFile) isLines() bool {
	line, more := firstLine(bytes.TrimLeft(f.text(), " \t\r\n"))

	return f.format == engine.FormatJSON && more && line[0] == '{' && json.Valid(line)
}

// toLines replaces the file with a copy that has one JSON value per line. If the file is an object that contains the
// rows, rowsAt is the name of the member with the rows.
func (f *plainFile) toLines(tmp, name, rowsAt string, bounds engine.Bounds) error {
	from, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer from.Close()

	path := filepath.Join(tmp, name+".ndjson")

	to, err := os.Create(path)
	if err != nil {
		return err
	}
	defer to.Close()

	if _, err := from.Seek(int64(len(f.head)-len(f.text())), io.SeekStart); err != nil {
		return err
	}

	if f.format == engine.FormatRows {
		rowsAt = "data"
	}

	lines := lineWriter{file: *f, rowsAt: rowsAt, to: bufio.NewWriterSize(to, 1<<16), limit: bounds.Record}
	if err := lines.copyFrom(json.NewDecoder(f.counted(from))); err != nil {
		return err
	}

	if err := errors.Join(lines.to.Flush(), to.Close()); err != nil {
		return err
	}

	return f.become(path)
}

type lineWriter struct {
	file   plainFile
	rowsAt string // the member with the rows; "" if the rows are at the top level
	to     *bufio.Writer
	limit  int64
	line   bytes.Buffer
	count  int64
}

func (l *lineWriter) copyFrom(decoder *json.Decoder) error {
	decoder.UseNumber() // without it, a number that is too large would be an error

	switch {
	case l.rowsAt != "":
		return l.copyEnvelope(decoder)
	case bytes.HasPrefix(bytes.TrimLeft(l.file.text(), " \t\r\n"), []byte("[")):
		return l.copyWhole(decoder)
	default:
		return l.copyValues(decoder)
	}
}

// copyValues copies a sequence of values.
func (l *lineWriter) copyValues(decoder *json.Decoder) error {
	for {
		var value json.RawMessage

		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return l.broken(decoder, err)
		}

		if err := l.write(value); err != nil {
			return err
		}
	}
}

// copyWhole copies a file that is one array.
func (l *lineWriter) copyWhole(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		return l.broken(decoder, err)
	}

	if err := l.copyArray(decoder); err != nil {
		return err
	}

	return l.nothingAfter(decoder)
}

func (l *lineWriter) copyArray(decoder *json.Decoder) error {
	for decoder.More() {
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return l.broken(decoder, err)
		}

		switch isRows := l.file.format == engine.FormatRows; {
		case value[0] == '{' && isRows && hasTwins(numberDecoder(value)):
			return invalid("Object %d has a duplicate key.", l.count+1)
		case value[0] != '{' && isRows:
			return &failure{code: engine.InvalidOptions, message: fmt.Sprintf(`data.%d: must be an object with the columns of one row: {"column": "value"}`, l.count)}
		case value[0] != '{':
			return invalid("The JSON array must contain objects, one for each row. Its element %d is not an object.", l.count+1)
		}

		if err := l.write(value); err != nil {
			return err
		}
	}

	if _, err := decoder.Token(); err != nil {
		return l.broken(decoder, err)
	}

	return nil
}

// copyEnvelope copies the rows of {"data": [...]}, or of another member with the name rowsAt. Other members are
// ignored.
func (l *lineWriter) copyEnvelope(decoder *json.Decoder) error {
	open, err := decoder.Token()
	if err != nil {
		return l.broken(decoder, err)
	}

	if open != json.Delim('{') {
		return l.noData()
	}

	seen := map[string]bool{}

	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return l.broken(decoder, err)
		}

		name, _ := key.(string)
		if seen[name] {
			return invalid("The JSON object has a duplicate key.")
		}

		seen[name] = true

		if err := l.copyMember(decoder, name); err != nil {
			return err
		}
	}

	if _, err := decoder.Token(); err != nil {
		return l.broken(decoder, err)
	}

	if !seen[l.rowsAt] {
		return l.noData()
	}

	return l.nothingAfter(decoder)
}

func (l *lineWriter) copyMember(decoder *json.Decoder, name string) error {
	if name != l.rowsAt {
		var ignored json.RawMessage
		if err := decoder.Decode(&ignored); err != nil {
			return l.broken(decoder, err)
		}

		switch {
		case engine.Depth(ignored) > maxDepth:
			return invalid("The JSON is nested deeper than %d levels.", maxDepth)
		case hasTwins(numberDecoder(ignored)):
			return invalid("The JSON object has a duplicate key.")
		}

		return nil
	}

	open, err := decoder.Token()

	switch {
	case err != nil:
		return l.broken(decoder, err)
	case open != json.Delim('[') && l.file.format != engine.FormatRows:
		return &failure{code: engine.InvalidOptions, message: fmt.Sprintf("rowsAt: the member %q is not an array of objects.", shorten(l.rowsAt))}
	case open != json.Delim('['):
		return &failure{code: engine.InvalidOptions, message: "data: must be an array of objects"}
	default:
		return l.copyArray(decoder)
	}
}

// noData returns the error for a file without the member that should contain the rows. If a request body is not valid
// JSON, it reports that instead.
func (l *lineWriter) noData() error {
	if l.file.format != engine.FormatRows {
		return &failure{code: engine.InvalidOptions, message: fmt.Sprintf("rowsAt: the file is not an object with the member %q.", shorten(l.rowsAt))}
	}

	body, err := os.ReadFile(l.file.path)

	switch {
	case err != nil:
		return err
	case !json.Valid(body):
		return invalid("The body is not valid JSON.")
	default:
		return &failure{code: engine.InvalidOptions, message: "data: is required; send the rows as {\"data\": [{\"column\": \"value\"}]}"}
	}
}

func numberDecoder(value []byte) *json.Decoder {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()

	return decoder
}

// hasTwins reports whether any object in a valid JSON value, at any depth, has a duplicate key.
func hasTwins(decoder *json.Decoder) bool {
	open, _ := decoder.Token()
	seen := map[json.Token]bool{}

	switch open {
	case json.Delim('{'), json.Delim('['):
	default:
		return false
	}

	for decoder.More() {
		if open == json.Delim('{') {
			key, err := decoder.Token()
			if err != nil || seen[key] {
				return err == nil
			}

			seen[key] = true
		}

		if hasTwins(decoder) {
			return true
		}
	}

	_, _ = decoder.Token()

	return false
}

func (l *lineWriter) nothingAfter(decoder *json.Decoder) error {
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return invalid("The JSON value is followed by other text in line %d.", l.file.lineAt(l.offset(decoder)))
	}

	return nil
}

func (l *lineWriter) broken(decoder *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid("The JSON ends too early, in line %d.", l.file.lineAt(l.file.size))
	}

	return invalid("The JSON is broken in line %d: %v.", l.file.lineAt(l.offset(decoder)), err)
}

// offset returns the position at which a decoder failed. The decoder only reports where the value starts, so a second
// decoder parses the value again to find the exact position.
func (l *lineWriter) offset(decoder *json.Decoder) int64 {
	at := decoder.InputOffset() + int64(len(l.file.head)-len(l.file.text()))

	file, err := os.Open(l.file.path)
	if err != nil {
		return at
	}
	defer file.Close()

	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return at
	}

	// Skip the comma and blanks before the next value.
	reader := bufio.NewReader(file)
	for {
		c, err := reader.ReadByte()
		if err != nil {
			return at
		}

		if !strings.ContainsRune(", \t\r\n", rune(c)) {
			_ = reader.UnreadByte()

			break
		}

		at++
	}

	var ignored json.RawMessage
	if stumbled, ok := errors.AsType[*json.SyntaxError](json.NewDecoder(reader).Decode(&ignored)); ok {
		at += stumbled.Offset
	}

	return at
}

func (l *lineWriter) write(value json.RawMessage) error {
	l.count++

	if int64(len(value)) > l.limit {
		return &failure{code: engine.LineTooLong, message: fmt.Sprintf("Object %d has more than %d bytes.", l.count, l.limit)}
	}

	if engine.Depth(value) > maxDepth {
		return invalid("Object %d is nested deeper than %d levels.", l.count, maxDepth)
	}

	l.line.Reset()

	if err := json.Compact(&l.line, value); err != nil {
		return err
	}

	l.line.WriteByte('\n')

	_, err := l.to.Write(l.line.Bytes())

	return err
}
