package xlsx

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// Delimiter and Quote are the delimiter and the quote of the text that Write produces.
const (
	Delimiter = ","
	Quote     = `"`
)

// Table describes a sheet that was converted to text.
type Table struct {
	Header *bool // set only if merged cells show that there is a header
	Doubts []engine.Doubt

	typed, typedFirst []bool // by column: a value that is not a text is below the first row, or in it
}

// IsText reports whether a column contains only texts. The author of the workbook stored them as texts, so they stay
// texts even if they look like numbers.
func (t Table) IsText(column int, header bool) bool {
	return !t.typed[column] && (header || !t.typedFirst[column])
}

// Write converts a sheet of a workbook to delimited text. While it runs, it uses a second file next to the output, with
// the suffix .rows.
func Write(workbook io.ReaderAt, size int64, to string, options engine.Options, bounds engine.Bounds) (table Table, err error) {
	book, err := openBook(workbook, size, bounds)
	if err != nil {
		return table, err
	}

	chosen, doubts, err := book.choose(options.Sheet)
	if err != nil {
		return table, err
	}

	rows, err := os.Create(to + ".rows")
	if err != nil {
		return table, err
	}
	defer rows.Close()

	found, merges, err := book.spill(chosen, rows, options.SkipRows)
	if err != nil {
		return table, err
	}

	begins := options.SkipRows > 0 || (options.Header != nil && !*options.Header)

	block, more, err := found.table(merges, begins)
	if err != nil {
		return table, err
	}

	area := block.area()
	if columns := area.right - area.left + 1; columns > bounds.Columns {
		return table, &engine.FileError{Code: engine.TooManyColumns, Message: fmt.Sprintf("The sheet has %d columns; %d are allowed.", columns, bounds.Columns)}
	}

	if _, err := rows.Seek(0, io.SeekStart); err != nil {
		return table, err
	}

	w := &writer{area: area, merges: within(merges, area), bounds: bounds, given: options.Header, typed: slices.Contains(block.typed, true), first: true}
	w.table.Doubts = slices.Concat(doubts, more)

	err = w.write(rows, to)

	return w.table, errors.Join(err, os.Remove(rows.Name()))
}

// within returns the merged areas that start in the table, ordered by row and column.
func within(merges []area, table area) []area {
	merges = slices.DeleteFunc(merges, func(m area) bool {
		return m.top < table.top || m.top > table.bottom || m.left < table.left || m.left > table.right
	})

	for i := range merges {
		merges[i].right = min(merges[i].right, table.right)
	}

	slices.SortFunc(merges, func(a, b area) int { return cmp.Or(cmp.Compare(a.top, b.top), cmp.Compare(a.left, b.left)) })

	return merges
}

// writer writes the rows of the table as records.
type writer struct {
	area
	merges  []area
	bounds  engine.Bounds
	given   *bool // the option header; nil if it is not set
	typed   bool  // some values are not texts
	table   Table
	first   bool      // no record was written yet
	covered []covered // by column
	line    []byte
	size    int64
	lost    [impossible + 1]lostCells
}

// covered is the merged cell that extends into a column.
type covered struct {
	bottom int
	value  cell
}

// lostCells counts the cells of one kind that have no value.
type lostCells struct {
	count int64
	first string
}

func (w *writer) write(from io.Reader, to string) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer file.Close()

	var (
		width  = w.right - w.left + 1
		out    = bufio.NewWriterSize(file, 1<<20)
		rows   = bufio.NewReaderSize(from, 1<<20)
		header = heading{last: w.top + w.headerRows() - 1}
		cells  []cell
		row    int
	)

	w.covered = make([]covered, width)
	w.table.typed, w.table.typedFirst = make([]bool, width), make([]bool, width)

	for {
		if row, cells, err = readRow(rows, cells); errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return err
		}

		if row < w.top || row > w.bottom {
			continue
		}

		record, err := w.fill(row, cells)
		if err != nil {
			return err
		}

		if row <= header.last {
			header.rows = append(header.rows, record)

			if row < header.last {
				continue
			}
		}

		if err := w.begin(&header, out); err != nil {
			return err
		}

		if row > header.last {
			if err := w.record(row, record, out); err != nil {
				return err
			}
		}
	}

	if err := w.begin(&header, out); err != nil {
		return err
	}

	w.tell()

	return errors.Join(out.Flush(), file.Close())
}

// heading contains the rows that may form the header together.
type heading struct {
	last int
	rows [][]cell
}

const maxHeader = 5 // rows

// headerRows returns the number of header rows that the merged cells of the first row indicate. A cell that is merged
// only across columns indicates two rows, but only if the table has values that are not texts, because otherwise a
// header row cannot be distinguished from a data row.
func (w *writer) headerRows() int {
	rows := 1

	if w.given != nil && !*w.given {
		return rows
	}

	for _, m := range w.merges {
		if m.top != w.top {
			break
		}

		if m.right > m.left && w.typed {
			rows = max(rows, 2)
		}

		rows = max(rows, m.bottom-m.top+1)
	}

	if rows > maxHeader || w.top+rows > w.bottom {
		return 1
	}

	return rows
}

// begin writes the header rows as one record if all their cells are texts. Otherwise it writes each row as a separate
// record.
func (w *writer) begin(h *heading, out *bufio.Writer) error {
	rows := h.rows
	h.rows = nil

	isText := func(c cell) bool { return c.kind == textual || c.kind == nothing }

	if len(rows) > 1 && !slices.ContainsFunc(rows, func(record []cell) bool { return slices.ContainsFunc(record, func(c cell) bool { return !isText(c) }) }) {
		w.table.Header = new(true)

		if !w.typed {
			w.table.Doubts = append(w.table.Doubts, engine.Doubt{Option: "header", Message: fmt.Sprintf("The first %d rows are used as the header, because they have merged cells.", len(rows))})
		}

		rows = [][]cell{joined(rows)}
	}

	for _, record := range rows {
		if err := w.record(w.top, record, out); err != nil {
			return err
		}
	}

	return nil
}

// joined combines the names of several rows into one row: "Sales" below "2026" becomes "2026 Sales".
func joined(rows [][]cell) []cell {
	names := rows[0]

	for _, record := range rows[1:] {
		for i, c := range record {
			switch {
			case c.text == "" || c.text == names[i].text || strings.HasSuffix(names[i].text, " "+c.text):
			case names[i].text == "":
				names[i] = c
			default:
				names[i].text += " " + c.text
			}
		}
	}

	return names
}

// fill returns a row with all its columns. It repeats the value of a merged cell in every column and row that the cell
// covers.
func (w *writer) fill(row int, cells []cell) ([]cell, error) {
	record := make([]cell, w.right-w.left+1)

	for _, c := range cells {
		if c.column >= w.left && c.column <= w.right {
			record[c.column-w.left] = c
		}
	}

	for len(w.merges) > 0 && w.merges[0].top <= row {
		m := w.merges[0]
		w.merges = w.merges[1:]

		if m.top < row {
			continue // the row of the merged cell is empty, so it has no value
		}

		for i := m.left - w.left; i <= m.right-w.left; i++ {
			if w.covered[i].bottom >= row {
				return nil, invalid("The sheet is broken: the merged ranges at %s overlap.", cellName(row, i+w.left))
			}

			w.covered[i] = covered{m.bottom, record[m.left-w.left]}
		}
	}

	for i := range record {
		if c := w.covered[i]; c.bottom >= row && !record[i].isFilled() {
			record[i] = c.value
		}

		record[i].column = i + w.left
	}

	return record, nil
}

// record writes one record and counts the cells that have no value.
func (w *writer) record(row int, record []cell, out *bufio.Writer) error {
	w.line = w.line[:0]

	for i, c := range record {
		if i > 0 {
			w.line = append(w.line, Delimiter...)
		}

		switch {
		case c.kind == textual:
			w.line = append(w.line, Quote...)
			w.line = append(w.line, strings.ReplaceAll(c.text, Quote, Quote+Quote)...)
			w.line = append(w.line, Quote...)
		case c.kind.isValue():
			w.line = append(w.line, c.text...)
			w.table.typed[i], w.table.typedFirst[i] = w.table.typed[i] || !w.first, w.table.typedFirst[i] || w.first
		case c.kind != nothing:
			w.lose(row, c)
		}

		if int64(len(w.line)) > w.bounds.Record {
			return &engine.FileError{Code: engine.LineTooLong, Message: fmt.Sprintf("Row %d of the sheet has more than %d bytes.", row, w.bounds.Record)}
		}
	}

	w.first = false
	w.line = append(w.line, '\n')

	if w.size += int64(len(w.line)); w.size > w.bounds.Unpacked {
		return exceeded("The sheet has more than %d bytes.", w.bounds.Unpacked)
	}

	_, err := out.Write(w.line)

	return err
}

func (w *writer) lose(row int, c cell) {
	lost := &w.lost[c.kind]
	if lost.count == 0 {
		lost.first = cellName(row, c.column)
	}

	lost.count++
}

func (w *writer) tell() {
	for _, told := range []struct {
		kind
		what string
	}{
		{uncomputed, "have a formula without a stored value. Open the workbook in a spreadsheet program and save it, so that its formulas are computed."},
		{failed, "have an error such as #N/A or #DIV/0!."},
		{impossible, "have a date that does not exist: before 1900, after 9999, or 29 February 1900."},
	} {
		if lost := w.lost[told.kind]; lost.count > 0 {
			w.table.Doubts = append(w.table.Doubts, engine.Doubt{Message: fmt.Sprintf("%d cells (the first is %s) are loaded as empty: they %s", lost.count, lost.first, told.what)})
		}
	}
}
