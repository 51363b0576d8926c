package ingest

import (
	"bufio"
	"io"
	"os"
	"strings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/record"
)

// The dialect of the rows of documents.
const (
	paperDelimiter = ","
	paperQuote     = `"`
)

// options returns how the files are read. The rows of documents have a form of their own, and only types of columns that they have can be given.
func (w *working) options() engine.Options {
	if w.papers == nil {
		return w.i.Options
	}

	o := engine.Options{Delimiter: paperDelimiter, Quote: new(paperQuote), Decimal: ".", Thousands: new(""), Header: new(true), Types: map[string]string{}}

	for _, name := range w.papers[0].columns {
		if kind := w.kinds[name]; kind != "" {
			o.Types[name] = kind
		}
	}

	return o
}

// write writes the records that have a value as delimited text.
func (p *paper) write(limited func(io.Writer) io.Writer, columns []int) error {
	file, err := os.OpenFile(p.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	defer file.Close()

	out := bufio.NewWriterSize(limited(file), 1<<20)

	for _, i := range columns {
		p.columns = append(p.columns, p.records.Fields[i].Name)
	}

	writeLine(out, p.columns)

	cells, row := make([]string, len(columns)), int64(0)

	for n := range p.records.Records {
		r := &p.records.Records[n]
		if r.IsEmpty() {
			continue
		}

		for at, i := range columns {
			cells[at] = r.Cells[i].Value
		}

		writeLine(out, cells)

		for row++; len(p.first) < r.Page; {
			p.first = append(p.first, row)
		}
	}

	if err := out.Flush(); err != nil {
		return err
	}

	return file.Close()
}

// writeLine writes a line. A missing value has no quotes.
func writeLine(out *bufio.Writer, cells []string) {
	for i, cell := range cells {
		if i > 0 {
			_, _ = out.WriteString(paperDelimiter) // the writer keeps its first error for Flush
		}

		if cell != "" {
			_, _ = out.WriteString(paperQuote + strings.ReplaceAll(cell, paperQuote, paperQuote+paperQuote) + paperQuote)
		}
	}

	_, _ = out.WriteString("\n")
}

// RecordField says where a field of a record was read, and what is in doubt.
type RecordField struct {
	Quote string      `json:"quote"`
	Page  int         `json:"page,omitempty"` // 0 if the quote was not found
	From  int         `json:"from,omitempty"` // characters of the text of the page
	To    int         `json:"to,omitempty"`
	Flag  record.Flag `json:"flag,omitempty"`
	Said  string      `json:"said,omitempty"` // what the model said, if it is flagged

	Value      string         `json:"value,omitempty"`      // what the document proves
	Corrected  bool           `json:"corrected,omitempty"`  // a person decided the value
	Correction string         `json:"correction,omitempty"` // that value; "" if there is none
	Anchor     *record.Anchor `json:"anchor,omitempty"`     // of the correction, if it is not that of the record
	Loaded     *string        `json:"loaded,omitempty"`     // what the row has, if that is another value
}

// Now returns the value that the field has now.
func (f RecordField) Now() string {
	if f.Corrected {
		return f.Correction
	}

	return f.Value
}

// IsFlagged reports whether the field is in doubt and nobody has corrected it.
func (f RecordField) IsFlagged() bool { return f.Flag != "" && !f.Corrected }

// IsPending reports whether the row does not have the value yet.
func (f RecordField) IsPending() bool { return f.Loaded != nil }

// provenance returns where the fields of a record at a place were read.
func provenance(fields []record.Field, r record.Record, at record.Anchor) map[string]RecordField {
	found := map[string]RecordField{}

	for i, c := range r.Cells {
		if c.Said == "" && c.Corrected == nil {
			continue
		}

		f := RecordField{Quote: c.Quote, Page: c.Place.Page, From: c.Place.From, To: c.Place.To, Flag: c.Flag, Value: c.Read()}
		if c.Corrected != nil {
			if f.Corrected, f.Correction = true, c.Value; *c.Corrected != at {
				f.Anchor = c.Corrected
			}
		}

		if c.Flag != "" {
			f.Said = c.Said
		}

		found[fields[i].Name] = f
	}

	return found
}
