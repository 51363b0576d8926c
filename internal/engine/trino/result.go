package trino

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

// Result is a running statement. Only one goroutine may use it.
type Result struct {
	Columns []engine.Column

	trino     *Trino
	ctx       context.Context //nolint:containedctx // the life of the statement
	statement Statement
	columns   []cell
	names     [][]byte // of the columns, as JSON with a colon
	next      string   // address of the next page; empty after the last one
	data      [][]json.RawMessage
	ran       engine.Ran
	bytes     int64
	isOver    bool
	line      []byte

	isDescribed bool
}

const maxColumns = 5000

// describe sets the columns. Repeated names get a number, as in the sealed processes.
func (r *Result) describe(found []column) error {
	if len(found) > maxColumns {
		return fault.New(fault.LimitExceeded, fmt.Sprintf("The result has %d columns; %d are allowed.", len(found), maxColumns))
	}

	if want := r.statement.Columns; want != nil {
		if len(want) != len(found) {
			return broken("other columns")
		}

		for i := range found {
			found[i].Name = want[i].Name
		}
	}

	r.isDescribed = true
	met := map[string]bool{}

	for i, c := range found {
		c.Name = r.shown(c.Name)
		name := c.Name

		for n := 1; met[strings.ToLower(name)]; n++ {
			name = fmt.Sprintf("%s_%d", c.Name, n)
		}

		met[strings.ToLower(name)] = true

		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}

		kind := cellOf(c.Signature)
		if want := r.statement.Columns; want != nil {
			if kind, err = cellAs(want[i].Type, c.Signature); err != nil {
				return err
			}
		}

		r.columns, r.names = append(r.columns, kind), append(r.names, append(quoted, ':'))
		r.Columns = append(r.Columns, engine.Column{Name: name, Type: kind.name})
	}

	return nil
}

var schemaName = regexp.MustCompile(`q_[0-9a-f]{32}(_[0-9]+)?`)

// shown returns a text of Trino without the names of the catalog and the schemas.
func (r *Result) shown(text string) string {
	if schemaName.MatchString(text) {
		text = strings.ReplaceAll(text, r.trino.config.Catalog+".", "")
		text = schemaName.ReplaceAllString(strings.ReplaceAll(text, `"`, ""), "")
		text = strings.NewReplacer("'.", "'", " .", " ").Replace(text)
	}

	return strings.ToValidUTF8(text, "\uFFFD")
}

// Next returns the next row, and io.EOF after the last one or when a limit is reached. The row is valid until the next
// call.
func (r *Result) Next() (engine.Row, error) {
	if r.isOver {
		return engine.Row{}, io.EOF
	}

	for len(r.data) == 0 {
		if r.next == "" {
			r.isOver = true

			return engine.Row{}, io.EOF
		}

		if err := r.advance(); err != nil {
			return engine.Row{}, err
		}
	}

	line, err := r.object(r.data[0])
	if err != nil {
		return engine.Row{}, err
	}

	r.data = r.data[1:]

	switch r.bytes += int64(len(line)) + 1; {
	case r.statement.Rows > 0 && r.ran.Rows == r.statement.Rows:
		return r.cut(engine.ByRows)
	case r.statement.Bytes > 0 && r.bytes > r.statement.Bytes:
		return r.cut(engine.ByBytes)
	}

	r.ran.Rows++

	return engine.Row{JSON: line}, nil
}

// cut ends the result before its last row.
func (r *Result) cut(by string) (engine.Row, error) {
	r.ran.Truncated, r.isOver = by, true
	r.Close()

	return engine.Row{}, io.EOF
}

// Finish reads the rest of the result and returns how the statement ended.
func (r *Result) Finish() (engine.Ran, error) {
	for {
		if _, err := r.Next(); err == io.EOF { //nolint:errorlint // never wrapped
			return r.ran, nil
		} else if err != nil {
			return engine.Ran{}, err
		}
	}
}

// object returns a row as a JSON object.
func (r *Result) object(row []json.RawMessage) ([]byte, error) {
	r.line = append(r.line[:0], '{')

	for i, value := range row {
		if i > 0 {
			r.line = append(r.line, ',')
		}

		r.line = append(r.line, r.names[i]...)

		var err error
		if r.line, err = r.columns[i].append(r.line, value); err != nil {
			return nil, broken("a value that is not " + r.columns[i].name) // err would quote the value
		}
	}

	return append(r.line, '}'), nil
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || bytes.Equal(value, []byte("null")) }
