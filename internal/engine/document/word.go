package document

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

const (
	wordPart = "word/document.xml"
	maxParts = 10_000
	maxDepth = 256
)

func (r *reading) readWord(data []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return invalid("The Word document is broken or truncated: %s.", shorten(err.Error()))
	}

	if len(archive.File) > maxParts {
		return exceeded("The Word document has %d parts; %d are allowed.", len(archive.File), maxParts)
	}

	var part *zip.File

	for _, one := range archive.File {
		if !strings.EqualFold(strings.TrimPrefix(one.Name, "/"), wordPart) {
			continue
		}

		if part != nil {
			return invalid("The Word document is broken: it has the part %q twice.", wordPart)
		}

		part = one
	}

	switch {
	case part == nil:
		return invalid("The Word document is broken: it has no part %q.", wordPart)
	case part.Flags&1 != 0:
		return invalid("The Word document is encrypted. Save it without a password.")
	case part.UncompressedSize64 > maxMarkup: // archive/zip never unpacks more than this size
		return exceeded("The text of the Word document has more than %d bytes when it is unpacked.", maxMarkup)
	}

	packed, err := part.Open()
	if err != nil {
		return invalid("The Word document cannot be unpacked: %s.", shorten(err.Error()))
	}
	defer packed.Close()

	w := &word{reading: r, page: &composer{}, decoder: xml.NewDecoder(packed)}
	if err := w.read(); err != nil {
		return err
	}

	return r.add(w.page)
}

// word reads the body of a Word document.
type word struct {
	*reading

	page    *composer
	decoder *xml.Decoder
	within  []string // names of the open elements
	text    strings.Builder
	heading bool
	hidden  bool // the current run is not shown
	tables  []*wordTable
}

// wordTable is a table that is being read.
type wordTable struct {
	rows  [][]string
	cell  strings.Builder
	span  int
	joins bool // the cell continues the one above
}

func (w *word) read() error {
	for {
		token, err := w.decoder.RawToken()

		switch {
		case errors.Is(err, io.EOF) && len(w.within) == 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return invalid("The Word document is broken: its text ends too early.")
		case err != nil:
			return invalid("The Word document is broken: %s.", shorten(err.Error()))
		}

		switch t := token.(type) {
		case xml.Directive: // entities are never expanded, and Word does not write directives
			return invalid("The Word document is broken: it has a document type.")
		case xml.StartElement:
			if w.within = append(w.within, t.Name.Local); len(w.within) > maxDepth {
				return exceeded("The elements of the Word document are nested in more than %d levels.", maxDepth)
			}

			if err := w.begin(t); err != nil {
				return err
			}
		case xml.EndElement:
			last := len(w.within) - 1
			if last < 0 || w.within[last] != t.Name.Local {
				return invalid("The Word document is broken: </%s> closes no element.", shorten(t.Name.Local))
			}

			w.within = w.within[:last]
			w.end(t.Name.Local)
		case xml.CharData:
			if len(w.within) > 0 && w.within[len(w.within)-1] == "t" && !w.hidden {
				w.write(string(t))
			}
		}
	}
}

func (w *word) begin(e xml.StartElement) error {
	switch e.Name.Local {
	case "Fallback", "del", "moveFrom": // another form of what comes before; what was deleted
		return w.skip()
	case "p":
		w.heading = false
	case "pStyle":
		w.heading = strings.HasPrefix(strings.ToLower(value(e)), "heading") || strings.HasPrefix(strings.ToLower(value(e)), "berschrift") || strings.EqualFold(value(e), "title")
	case "outlineLvl":
		w.heading = true
	case "r":
		w.hidden = false
	case "vanish":
		w.hidden = !isOff(value(e))
	case "tab":
		w.write("\t")
	case "br", "lastRenderedPageBreak":
		return w.breaks(e)
	case "tbl":
		w.flush()
		w.tables = append(w.tables, &wordTable{})
	case "tr", "tc", "gridSpan", "vMerge":
		w.inTable(e)
	}

	return nil
}

// breaks ends a line or a page. A page that ends in a table ends with the table.
func (w *word) breaks(e xml.StartElement) error {
	isPage := e.Name.Local == "lastRenderedPageBreak" || attribute(e, "type") == "page"

	switch {
	case !isPage:
		w.write("\n")
	case len(w.tables) == 0 && (w.page.text.Len() > 0 || w.text.Len() > 0):
		w.flush()

		if err := w.add(w.page); err != nil {
			return err
		}

		w.page = &composer{}
	}

	return nil
}

func (w *word) inTable(e xml.StartElement) {
	if len(w.tables) == 0 {
		return
	}

	t := w.tables[len(w.tables)-1]

	switch e.Name.Local {
	case "tr":
		t.rows = append(t.rows, nil)
	case "tc":
		t.cell.Reset()
		t.span, t.joins = 1, false
	case "gridSpan":
		t.span = min(max(number(value(e)), 1), maxSpan)
	case "vMerge":
		t.joins = value(e) != "restart"
	}
}

func (w *word) end(name string) {
	switch {
	case name == "p" && len(w.tables) == 0:
		w.flush()
	case name == "p":
		w.write(" ")
	case len(w.tables) == 0:
	case name == "tc":
		w.endCell()
	case name == "tbl":
		w.endTable()
	}
}

func (w *word) endCell() {
	t := w.tables[len(w.tables)-1]
	last := len(t.rows) - 1

	if last < 0 {
		return
	}

	text := t.cell.String()
	if at := len(t.rows[last]); t.joins && last > 0 && at < len(t.rows[last-1]) {
		text = t.rows[last-1][at]
	}

	t.rows[last] = append(t.rows[last], text)
	for range t.span - 1 {
		t.rows[last] = append(t.rows[last], "")
	}

	t.span = 1
	t.cell.Reset()
}

// endTable adds a table, or adds the text of an inner table to the cell around it.
func (w *word) endTable() {
	last := len(w.tables) - 1
	t := w.tables[last]
	w.tables = w.tables[:last]

	if last == 0 {
		w.page.addTable(t.rows)

		return
	}

	for _, row := range t.rows {
		w.write(" " + strings.Join(row, " "))
	}
}

func (w *word) write(text string) {
	if last := len(w.tables) - 1; last >= 0 {
		w.tables[last].cell.WriteString(text)
	} else {
		w.text.WriteString(text)
	}
}

func (w *word) flush() {
	kind := Paragraph
	if w.heading {
		kind = Heading
	}

	w.page.add(kind, w.text.String())
	w.text.Reset()
}

// skip reads to the end of the current element.
func (w *word) skip() error {
	for depth := 1; depth > 0; {
		token, err := w.decoder.RawToken()
		if err != nil {
			return invalid("The Word document is broken: %s.", shorten(err.Error()))
		}

		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}

	w.within = w.within[:len(w.within)-1]

	return nil
}

func value(e xml.StartElement) string { return attribute(e, "val") }

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}

	return ""
}

func isOff(value string) bool { return value == "0" || value == "false" || value == "off" }
