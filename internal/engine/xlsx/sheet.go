package xlsx

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

const (
	maxRow    = 1 << 20 // the limits of spreadsheet programs
	maxColumn = 1 << 14
	maxMerges = 1 << 20
)

// kind is the kind of content of a cell.
type kind byte

const (
	nothing    kind = iota
	numeric         //
	textual         //
	dated           // a date, a timestamp or a time
	boolean         //
	uncomputed      // a formula without a stored result
	failed          // an error such as #N/A
	impossible      // a date that does not exist
)

// isValue reports whether a cell of this kind has a value. Cells of the other kinds become NULL.
func (k kind) isValue() bool { return k >= numeric && k <= boolean }

// cell is a cell with its value in canonical form.
type cell struct {
	column int // starting at 1
	kind   kind
	text   string
}

// isFilled reports whether a person would see something in the cell. A text of blanks is a value, but it is not
// visible.
func (c cell) isFilled() bool {
	return c.kind != nothing && (c.kind != textual || strings.TrimSpace(c.text) != "")
}

// area is a range of cells, with both corners included.
type area struct{ top, left, bottom, right int }

func (a area) String() string {
	if a.top == a.bottom && a.left == a.right {
		return cellName(a.top, a.left)
	}

	return cellName(a.top, a.left) + ":" + cellName(a.bottom, a.right)
}

func cellName(row, column int) string {
	name := ""
	for ; column > 0; column = (column - 1) / 26 {
		name = string(rune('A'+(column-1)%26)) + name
	}

	return name + strconv.Itoa(row)
}

// position parses a cell name such as BC12.
func position(name string) (row, column int, ok bool) {
	at := 0
	for ; at < len(name) && at < 4 && name[at]|0x20 >= 'a' && name[at]|0x20 <= 'z'; at++ {
		column = column*26 + int(name[at]|0x20-'a') + 1
	}

	row, err := strconv.Atoi(name[at:])

	return row, column, err == nil && row >= 1 && row <= maxRow && column >= 1 && column <= maxColumn
}

// sheetReader reads a sheet. It passes each row that is not empty to a callback. The merged areas are complete after
// the last row.
type sheetReader struct {
	*scanner

	book   *book
	merges []area
	row    int
	cells  []cell
	seen   []int // by column: the last row that has a cell in it
	column int
}

func (b *book) readSheet(s sheet, each func(row int, cells []cell) error) (merges []area, err error) {
	scanned, err := b.scan(s.part)
	if err != nil {
		return nil, err
	}
	defer scanned.Close()

	r := &sheetReader{scanner: scanned, book: b, seen: make([]int, maxColumn+1)}

	for {
		token, err := r.next()
		if errors.Is(err, io.EOF) {
			return r.merges, nil
		}

		if err == nil {
			err = r.take(token, each)
		}

		if err != nil {
			return nil, err
		}
	}
}

func (r *sheetReader) take(token xml.Token, each func(row int, cells []cell) error) error {
	switch t := token.(type) {
	case xml.StartElement:
		switch name := t.Name.Local; {
		case name == "row" && r.in("worksheet", "sheetData"):
			return r.beginRow(t)
		case name == "c" && r.in("worksheet", "sheetData", "row"):
			return r.readCell(t)
		case name == "mergeCell" && r.in("worksheet", "mergeCells"):
			return r.merge(attribute(t, "ref"))
		}

		return r.root("worksheet")
	case xml.EndElement:
		if t.Name.Local == "row" && len(r.within) == 2 && len(r.cells) > 0 {
			return each(r.row, r.cells)
		}
	}

	return nil
}

func (r *sheetReader) beginRow(element xml.StartElement) error {
	row := r.row + 1

	if given := attribute(element, "r"); given != "" {
		var err error
		if row, err = strconv.Atoi(given); err != nil {
			return r.broken(fmt.Sprintf("%q is not a row number", shorten(given)))
		}
	}

	switch {
	case row > maxRow || row < 1:
		return r.broken(fmt.Sprintf("row %d is outside the sheet", row))
	case row <= r.row:
		return r.broken(fmt.Sprintf("row %d comes after row %d", row, r.row))
	}

	r.row, r.column, r.cells = row, 0, r.cells[:0]

	return nil
}

func (r *sheetReader) merge(ref string) error {
	from, to, _ := strings.Cut(ref, ":")
	top, left, ok := position(from)
	merged := area{top, left, top, left}

	if to != "" && ok {
		merged.bottom, merged.right, ok = position(to)
	}

	switch {
	case !ok || merged.bottom < top || merged.right < left:
		return r.broken(fmt.Sprintf("%q is not a range of cells", shorten(ref)))
	case len(r.merges) >= maxMerges:
		return exceeded("The sheet has more than %d merged ranges.", maxMerges)
	}

	r.merges = append(r.merges, merged)

	return nil
}

// place sets the column of the current cell.
func (r *sheetReader) place(name string) error {
	r.column++

	if name != "" {
		row, column, ok := position(name)
		if !ok || row != r.row {
			return r.broken(fmt.Sprintf("row %d has no cell %q", r.row, shorten(name)))
		}

		r.column = column
	}

	switch {
	case r.column > maxColumn:
		return r.broken(fmt.Sprintf("row %d has more than %d columns", r.row, maxColumn))
	case r.seen[r.column] == r.row:
		return r.broken(fmt.Sprintf("the cell %s occurs twice", cellName(r.row, r.column)))
	}

	r.seen[r.column] = r.row

	return nil
}

// rawCell is a cell as it is stored in the file.
type rawCell struct {
	kind, value string
	style       int
	hasValue    bool
	isFormula   bool
}

func (r *sheetReader) readCell(element xml.StartElement) error {
	raw := rawCell{kind: attribute(element, "t")}

	if style := attribute(element, "s"); style != "" {
		raw.style, _ = strconv.Atoi(style)
	}

	if err := r.place(attribute(element, "r")); err != nil {
		return err
	}

	for {
		token, err := r.next()
		if err != nil {
			return err
		}

		switch t := token.(type) {
		case xml.StartElement:
			err = r.readContent(t.Name.Local, &raw)
		case xml.EndElement:
			if t.Name.Local != "c" || len(r.within) != 3 {
				continue
			}

			k, text, err := r.value(raw)
			if err == nil && k != nothing {
				r.cells = append(r.cells, cell{r.column, k, text})
			}

			return err
		}

		if err != nil {
			return err
		}
	}
}

func (r *sheetReader) readContent(name string, raw *rawCell) (err error) {
	switch {
	case len(r.within) != 5:
	case name == "f":
		raw.isFormula = true
	case name == "v":
		raw.value, err = r.chars()
		raw.hasValue = true
	case name == "is":
		raw.value, err = r.text()
		raw.hasValue = true
	}

	return err
}

// chars returns the text of the current element, which has no child elements.
func (s *scanner) chars() (string, error) {
	var text strings.Builder

	for depth := len(s.within); ; {
		token, err := s.next()
		if err != nil {
			return "", err
		}

		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			if len(s.within) < depth {
				return text.String(), nil
			}
		}

		if int64(text.Len()) > s.archive.bounds.Record {
			return "", &engine.FileError{Code: engine.LineTooLong, Message: fmt.Sprintf("A cell has more than %d bytes.", s.archive.bounds.Record)}
		}
	}
}

// value converts a raw cell to its kind and text.
func (r *sheetReader) value(raw rawCell) (kind, string, error) {
	switch {
	case !raw.hasValue && raw.isFormula:
		return uncomputed, "", nil
	case !raw.hasValue:
		return nothing, "", nil
	}

	switch raw.kind {
	case "inlineStr":
		return textual, raw.value, nil
	case "str":
		return textual, unescape(raw.value), nil
	case "e":
		return failed, "", nil
	}

	value := strings.TrimSpace(raw.value)

	switch {
	case value == "" && raw.isFormula:
		return uncomputed, "", nil
	case value == "":
		return nothing, "", nil
	}

	switch raw.kind {
	case "s":
		i, err := strconv.Atoi(value)
		if err != nil || i < 0 || i >= len(r.book.texts) {
			return nothing, "", r.broken(fmt.Sprintf("%s refers to the text number %s, but the workbook has %d texts", cellName(r.row, r.column), shorten(value), len(r.book.texts)))
		}

		return textual, r.book.texts[i], nil
	case "", "n":
		return r.number(value, raw.style)
	case "b":
		if value == "0" || value == "false" || isTrue(value) {
			return boolean, strconv.FormatBool(isTrue(value)), nil
		}
	case "d":
		if strings.Trim(value, "0123456789-:.TZ") == "" {
			return dated, strings.TrimSuffix(value, "Z"), nil
		}
	}

	return nothing, "", r.broken(fmt.Sprintf("%s has %q, which is not a value of the type %q", cellName(r.row, r.column), shorten(value), shorten(raw.kind)))
}

func (r *sheetReader) number(value string, style int) (kind, string, error) {
	f := r.book.style(style)
	if f.isNumber() && isWhole(value) {
		return numeric, value, nil
	}

	x, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || strings.ContainsAny(value, "xXpP_") {
		return nothing, "", r.broken(fmt.Sprintf("%s has %q, which is not a number", cellName(r.row, r.column), shorten(value)))
	}

	if f.isNumber() {
		return numeric, number(x), nil
	}

	text, k := f.moment(x, r.book.date1904)

	return k, text, nil
}

// isWhole reports whether the text is an integer that can be kept as it is. Such numbers are not converted to a double,
// which could lose digits.
func isWhole(value string) bool {
	digits := strings.TrimPrefix(value, "-")

	return len(digits) > 0 && len(digits) <= 18 && (digits[0] != '0' || value == "0") && strings.Trim(digits, "0123456789") == ""
}
