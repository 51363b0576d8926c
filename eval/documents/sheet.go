package documents

import (
	"math/rand/v2"
	"regexp"
	"strings"
)

// value is what a record has for a field: as the document writes it, and as a row has it.
type value struct{ said, want string }

// values are what a line may state, by name. Names that are no fields are only written.
type values map[string]value

// block is a paragraph, a heading, or a row of a table.
type block struct {
	kind  blockKind
	cells []string
}

type blockKind int

const (
	paragraph blockKind = iota
	heading
	row
	footer // of a printed page
)

// statement is what a block states about a field.
type statement struct {
	record int // everyRecord if it holds for all of them
	field  string
	value  value

	page       int
	column     int // the number of the cell
	from, to   int // the value: bytes of the cell, and later of the text of the page
	cell, line [2]int
}

const everyRecord = -1

// sheet is a document that is being written.
type sheet struct {
	kind     Kind
	language Language
	format   format
	random   *rand.Rand
	number   int

	running string    // the line below each printed page, with # for its number
	head    []string  // the names of the columns of the current table
	columns []float64 // where the columns of tables begin on a printed page; those that end there are negative

	pages      [][]block
	texts      []string // of the pages
	used       int      // lines of the current page
	shared     values
	records    []values
	statements []statement
	attached   *sheet // of a mail

	total, lastPrice int // of the positions so far
}

func (s *sheet) begin() {
	s.shared = values{}
	s.pages, s.texts = [][]block{nil}, []string{""}
}

// in returns the text of the language.
func (s *sheet) in(english, german string) string {
	if s.language == German {
		return german
	}

	return english
}

// state begins a record.
func (s *sheet) state(v values) int {
	s.records = append(s.records, v)

	return len(s.records) - 1
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// heading writes a heading.
func (s *sheet) heading(english, german string) {
	s.head = nil
	s.write(heading, everyRecord, s.in(english, german))
}

// text writes a paragraph about all records.
func (s *sheet) text(english, german string) { s.about(everyRecord, english, german) }

// about writes a paragraph about a record: {name} is what the record has, or what holds for all. Tabs separate cells.
func (s *sheet) about(record int, english, german string) {
	s.head = nil
	s.write(paragraph, record, s.in(english, german))
}

// table begins a table. Its names are repeated on each printed page.
func (s *sheet) table(english, german string) {
	s.head = nil
	names := strings.Split(s.in(english, german), "\t")
	s.add(block{row, names}, nil)
	s.head = names
}

// row writes a row of a table.
func (s *sheet) row(record int, english, german string) { s.write(row, record, s.in(english, german)) }

func (s *sheet) write(kind blockKind, record int, template string) {
	var (
		cells []string
		found []statement
	)

	for n, cell := range strings.Split(template, "\t") {
		var text strings.Builder

		last := 0

		for _, at := range placeholder.FindAllStringSubmatchIndex(cell, -1) {
			text.WriteString(cell[last:at[0]])

			name, of := cell[at[2]:at[3]], record
			v, ok := s.valueOf(record, name)

			if !ok {
				v, ok = s.shared[name]
				of = everyRecord
			}

			if !ok {
				panic("no value for " + name)
			}

			from := text.Len()
			text.WriteString(v.said)

			if s.isField(name) && v.said != "" {
				found = append(found, statement{record: of, field: name, value: v, column: n, from: from, to: text.Len()})
			}

			last = at[1]
		}

		text.WriteString(cell[last:])
		cells = append(cells, text.String())
	}

	s.add(block{kind, cells}, found)
}

func (s *sheet) valueOf(record int, name string) (v value, ok bool) {
	if record >= 0 {
		v, ok = s.records[record][name]
	}

	return v, ok
}

func (s *sheet) isField(name string) bool {
	for _, f := range s.kind.Fields {
		if f.Name == name {
			return true
		}
	}

	return false
}

// add adds a block to the current page, or to the next one if it does not fit.
func (s *sheet) add(b block, found []statement) {
	height := s.format.height(b)
	if s.format.isPaged() && s.used > 0 && s.used+height > pageLines {
		s.turn()
	}

	s.used += height
	s.put(b, found)
}

// turn ends the page.
func (s *sheet) turn() {
	if s.format.isPaged() {
		s.foot()
	}

	s.pages, s.texts, s.used = append(s.pages, nil), append(s.texts, ""), 0

	if s.head != nil {
		s.used += s.format.height(block{row, s.head})
		s.put(block{row, s.head}, nil)
	}
}

func (s *sheet) foot() {
	if s.running != "" {
		s.put(block{footer, []string{strings.ReplaceAll(s.running, "#", decimal(len(s.pages)))}}, nil)
	}
}

// put adds a block to the text of the page, and notes where its statements are.
func (s *sheet) put(b block, found []statement) {
	page := len(s.pages) - 1
	s.pages[page] = append(s.pages[page], b)

	text := s.texts[page]
	line := [2]int{len(text), 0}
	cells := make([][2]int, len(b.cells))

	for n, cell := range b.cells {
		if cell == "" {
			continue
		}

		// One sign between cells and lines, so that blanks take as many bytes.
		switch {
		case text == "":
		case n == 0:
			text += "\n"
		default:
			text += "\t"
		}

		if n == 0 {
			line[0] = len(text)
		}

		cells[n] = [2]int{len(text), len(text) + len(cell)}
		text += cell
	}

	line[1] = len(text)
	s.texts[page] = text

	for _, one := range found {
		cell := cells[one.column]
		one.page, one.line, one.cell = page+1, line, cell
		one.from, one.to = one.from+cell[0], one.to+cell[0]
		s.statements = append(s.statements, one)
	}
}

// attach begins a printed document that is attached to the mail.
func (s *sheet) attach() *sheet {
	s.attached = &sheet{kind: s.kind, language: s.language, format: asPDF, random: s.random, number: s.number}
	s.attached.begin()
	s.attached.shared, s.attached.records = s.shared, s.records

	return s.attached
}

// finish returns the document.
func (s *sheet) finish(name string, heldOut bool) *Document {
	s.foot()

	d := &Document{Name: name, Kind: s.kind.Name, Language: s.language, HeldOut: heldOut, Written: s.texts}
	for range s.records {
		d.Records = append(d.Records, Record{})
	}

	s.golden(d, 0)

	if s.attached != nil {
		s.attached.foot()
		s.attached.golden(d, len(s.pages))
		d.Written = append(d.Written, s.attached.texts...)
	}

	for _, text := range d.Written {
		d.Pages = append(d.Pages, folded(text))
	}

	d.Content = s.format.file(s)

	return d
}

// golden adds what the sheet states to the records of a document. The first statement of a field counts.
func (s *sheet) golden(d *Document, before int) {
	for _, one := range s.statements {
		text := s.texts[one.page-1]
		from, to := around(text, one.from, one.to, one.cell)
		g := Gold{
			Value: one.value.want, Said: one.value.said, Quote: folded(text[from:to]), Page: before + one.page, shared: one.record == everyRecord, line: one.line,
		}

		for n, r := range d.Records {
			if one.record != n && one.record != everyRecord {
				continue
			}

			if _, known := r[one.field]; !known {
				r[one.field] = g
			}
		}
	}
}

const (
	shortCell = 48 // bytes of a cell that is quoted as a whole
	beside    = 2  // words that are quoted on each side in a longer one
)

// around returns the words that state a value: its cell if it is short, otherwise some words on each side.
func around(text string, from, to int, cell [2]int) (begin, end int) {
	if cell[1]-cell[0] <= shortCell {
		return cell[0], cell[1]
	}

	for range beside {
		if i := strings.LastIndexByte(text[cell[0]:max(from-1, cell[0])], ' '); i >= 0 {
			from = cell[0] + i + 1
		} else {
			from = cell[0]
		}
	}

	for range beside {
		if i := strings.IndexByte(text[min(to+1, cell[1]):cell[1]], ' '); i >= 0 {
			to = min(to+1, cell[1]) + i
		} else {
			to = cell[1]
		}
	}

	return from, to
}
