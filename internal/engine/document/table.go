package document

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"quern.dev/quern/internal/engine"
)

// Delimiter and Quote are the delimiter and the quote of the text that Write produces.
const (
	Delimiter = ","
	Quote     = `"`
)

// Written describes the rows of a document that were converted to text.
type Written struct {
	Doubts []engine.Doubt
	Pages  []int // of each record: the first one is the header
}

// grid is a table of a document with names for its columns.
type grid struct {
	page   int // from 1
	header []string
	rows   [][]string
	below  int // rows below the table that are not rows of it
}

func (g grid) about() string {
	return fmt.Sprintf("on page %d (%s)", g.page, shorten(strings.Join(g.header, ", ")))
}

// Write converts the tables of a document to delimited text. If there are fields, these are the tables with at least half of them. Otherwise
// all tables must have the same columns.
func (r *Reader) Write(d Document, to string) (Written, error) {
	var (
		written Written
		grids   []grid
		others  []string
	)

	for n, page := range d.Pages {
		for _, block := range page.Blocks {
			if block.Kind != Table {
				continue
			}

			g, ok := r.gridOf(n+1, block.Rows)
			if ok {
				grids = append(grids, g)
			} else {
				others = append(others, fmt.Sprintf("page %d (%s)", n+1, shorten(strings.Join(block.Rows[0], ", "))))
			}
		}
	}

	if err := r.check(d, grids); err != nil {
		return written, err
	}

	if len(others) > 0 {
		written.doubtf("Tables with other columns were left out: %s.", listed(others))
	}

	written.Doubts = append(written.Doubts, Omitted(d)...)

	return written, written.write(grids, r.columns(grids), to)
}

// Omitted returns the doubt about attachments that are not documents.
func Omitted(d Document) []engine.Doubt {
	if len(d.Omitted) == 0 {
		return nil
	}

	return []engine.Doubt{{Message: fmt.Sprintf("Attachments that are not documents were left out: %s. Load them on their own.", listed(d.Omitted))}}
}

func (w *Written) doubtf(format string, args ...any) {
	w.Doubts = append(w.Doubts, engine.Doubt{Message: fmt.Sprintf(format, args...)})
}

// gridOf returns a table if it has a header. Rows above the header are left out if the fields show where it is.
func (r *Reader) gridOf(page int, rows [][]string) (g grid, ok bool) {
	for n := range rows[:min(len(rows), maxAbove)] {
		if !r.mayHead(rows[n]) || slices.Contains(rows[n], "") {
			if len(r.fields) > 0 {
				continue
			}

			return g, false
		}

		g = grid{page: page, header: rows[n]}

		for _, row := range rows[n+1:] {
			if !slices.Equal(row, g.header) {
				g.rows = append(g.rows, row)
			}
		}

		for len(g.rows) > 0 && len(g.header) > 1 && isSparse(g.rows[len(g.rows)-1]) {
			g.rows = g.rows[:len(g.rows)-1]
			g.below++
		}

		return g, len(g.rows) > 0
	}

	return g, false
}

const maxAbove = 5 // rows above a header

// check fails if there is no table, or if it is not clear which one is meant.
func (r *Reader) check(d Document, grids []grid) error {
	const needed = "What is not in such a table can only be read with a language model."

	switch {
	case !slices.ContainsFunc(d.Pages, func(p Page) bool { return len(p.Blocks) > 0 }):
		return invalid("The document is empty: it has no text.")
	case len(grids) == 0 && len(r.fields) > 0:
		return invalid("No table of the document has at least half of the fields of the definition as names of its columns. " + needed)
	case len(grids) == 0:
		return invalid("The document has no table with a clear grid, that is a row of names and below it rows of as many cells. " + needed)
	case len(r.fields) > 0:
		return nil
	}

	for _, g := range grids[1:] {
		if !slices.EqualFunc(g.header, grids[0].header, same) {
			return invalid("The document has several tables, one %s and one %s. Name the columns of the one that is meant in the definition of the dataset.", grids[0].about(), g.about())
		}
	}

	return nil
}

// listed lists the first few of many.
func listed(all []string) string {
	const most = 5

	text := strings.Join(all[:min(len(all), most)], ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return text
}

func same(a, b string) bool { return fold(a) == fold(b) }

// column is a column of the text, by its folded name.
type column struct{ name, key string }

// columns returns the columns of all tables, in the order in which they occur. A column that names a field has the name of the field.
func (r *Reader) columns(grids []grid) (all []column) {
	for _, g := range grids {
		for _, name := range g.header {
			key := fold(name)
			if slices.ContainsFunc(all, func(c column) bool { return c.key == key }) {
				continue
			}

			all = append(all, column{cmp.Or(r.fields[key], name), key})
		}
	}

	return all
}

// write writes the rows of all tables.
func (w *Written) write(grids []grid, columns []column, to string) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer file.Close()

	out := bufio.NewWriterSize(file, 1<<20)
	names := make([]string, len(columns))

	for i, c := range columns {
		names[i] = c.name
	}

	w.record(out, names, grids[0].page)

	for _, g := range grids {
		places := make([]int, len(columns))
		for i, c := range columns {
			places[i] = slices.IndexFunc(g.header, func(name string) bool { return fold(name) == c.key })
		}

		cells := make([]string, len(columns))

		for _, row := range g.rows {
			for i, place := range places {
				if cells[i] = ""; place >= 0 {
					cells[i] = row[place]
				}
			}

			w.record(out, cells, g.page)
		}

		if g.below > 0 {
			w.doubtf("Below the table on page %d, rows of which at most half of the cells have a text were left out: %d.", g.page, g.below)
		}
	}

	if err := out.Flush(); err != nil {
		return err
	}

	return file.Close()
}

// record writes a record. An empty cell has no quotes, so it is a missing value.
func (w *Written) record(out *bufio.Writer, cells []string, page int) {
	for i, cell := range cells {
		if i > 0 {
			_, _ = out.WriteString(Delimiter) // the writer keeps its first error for Flush
		}

		if cell != "" {
			_, _ = out.WriteString(Quote + strings.ReplaceAll(cell, Quote, Quote+Quote) + Quote)
		}
	}

	_, _ = out.WriteString("\n")

	w.Pages = append(w.Pages, page)
}

// fold returns a name in the form in which names are compared: letters and digits in lower case, without what stands in brackets at its end.
func fold(name string) string {
	name = strings.TrimSpace(name)

	for _, brackets := range []string{"()", "[]"} {
		if at := strings.LastIndexByte(name, brackets[0]); at > 0 && name[len(name)-1] == brackets[1] {
			name = strings.TrimSpace(name[:at])
		}
	}

	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}

		return -1
	}, name)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}

	return n
}
