package xlsx

import (
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// block is a group of adjacent rows that is a table, or may be one.
type block struct {
	top, bottom int
	spans       []span // by column - 1
	isNote      bool   // each row contains exactly one text and nothing else
	gap         int    // the first empty row in the block; 0 if there is none

	// texts is the number of filled cells in the first row, and isTexts says whether all of them are texts.
	texts   int
	isTexts bool
	typed   []bool // by column - 1: the column has values that are not texts
}

// span is the first and the last row in which a column has a value.
type span struct{ first, last int }

// layout finds the tables on a sheet.
type layout struct {
	blocks  []*block
	current *block
	more    int // blocks beyond maxBlocks, which are only counted
}

const (
	maxBlocks = 20
	maxNote   = 20 // rows
)

// add adds the next row that is not empty.
func (l *layout) add(row int, cells []cell) {
	note := isNote(cells)
	b := l.current

	// A note directly above a table ends where the table starts.
	if b == nil || row > b.bottom+1 || (b.isNote && !note) {
		l.end()

		l.current = &block{top: row, isNote: note, isTexts: true}
		b = l.current
	}

	b.bottom = row
	b.isNote = b.isNote && note

	for _, c := range cells {
		if !c.isFilled() {
			continue
		}

		b.see(row, c)
	}
}

func isNote(cells []cell) bool {
	filled := 0

	for _, c := range cells {
		if c.isFilled() {
			filled++

			if c.kind != textual {
				return false
			}
		}
	}

	return filled == 1
}

func (b *block) see(row int, c cell) {
	b.widen(c.column)

	if s := &b.spans[c.column-1]; s.first == 0 {
		*s = span{row, row}
	} else {
		s.last = row
	}

	b.typed[c.column-1] = b.typed[c.column-1] || c.kind != textual

	if row == b.top {
		b.texts++
		b.isTexts = b.isTexts && c.kind == textual
	}
}

func (b *block) widen(columns int) {
	if missing := columns - len(b.spans); missing > 0 {
		b.spans = append(b.spans, make([]span, missing)...)
		b.typed = append(b.typed, make([]bool, missing)...)
	}
}

func (b *block) area() area {
	left := slices.IndexFunc(b.spans, func(s span) bool { return s.first > 0 }) + 1

	return area{b.top, left, b.bottom, len(b.spans)}
}

// end appends the current block to the blocks, or joins it with the last one.
func (l *layout) end() {
	b := l.current
	if l.current = nil; b == nil {
		return
	}

	switch last := l.last(); {
	case last != nil && b.continues(last):
		last.join(b)
	case len(l.blocks) < maxBlocks:
		l.blocks = append(l.blocks, b)
	default:
		l.more++
	}
}

func (l *layout) last() *block {
	if len(l.blocks) == 0 || l.more > 0 {
		return nil
	}

	return l.blocks[len(l.blocks)-1]
}

// continues reports whether b contains further rows of the block above. Below an empty row there can be more rows of
// the same table, or another table. A block with its own header or its own columns is another table.
func (b *block) continues(above *block) bool {
	mine, its := b.area(), above.area()

	switch {
	case b.isNote || above.isNote:
		return b.isNote && above.isNote && mine.left == its.left && mine.right == its.right
	case mine.left < its.left || mine.right > its.right:
		return false
	case !b.isTexts || b.texts == 1:
		return true
	}

	for i, s := range b.spans {
		if s.first == b.top && (b.typed[i] || above.typed[i]) {
			return false // a name above values that are not texts
		}
	}

	return slices.Contains(above.typed, true) || (mine.left == its.left && mine.right == its.right)
}

func (b *block) join(below *block) {
	if b.gap == 0 && below.top > b.bottom+1 {
		b.gap = b.bottom + 1
	}

	b.bottom = below.bottom
	b.isNote = b.isNote && below.isNote
	b.widen(len(below.spans))

	for i, s := range below.spans {
		switch {
		case s.first == 0:
		case b.spans[i].first == 0:
			b.spans[i] = s
		default:
			b.spans[i].last = s.last
		}

		b.typed[i] = b.typed[i] || below.typed[i]
	}
}

// table returns the only table of the sheet, with doubts about the notes above and below it. It fails if there is
// another table, or an empty column in the table, because then it is unclear which rows are meant.
func (l *layout) table(merges []area, begins bool) (table *block, doubts []engine.Doubt, err error) {
	l.end()
	l.heads(begins)

	for _, b := range l.blocks {
		if b.isNote && len(l.blocks) > 1 && b.bottom-b.top < maxNote {
			continue
		}

		if table != nil || l.more > 0 {
			return nil, nil, l.refuse(l.areas())
		}

		table = b
	}

	switch {
	case len(l.blocks) == 0:
		return nil, nil, invalid("The sheet is empty: no cell has a value.")
	case table == nil:
		return nil, nil, l.refuse(l.areas())
	}

	table.merged(merges)

	if bands := table.bands(); len(bands) > 1 {
		return nil, nil, l.refuse(bands)
	}

	return table, l.doubts(table), nil
}

// heads joins a single text directly above a one-column table with the table, as the name of the column. If an
// option says that the table starts with the first row, the first block is joined with the block directly below it,
// even if it looks like a note.
func (l *layout) heads(begins bool) {
	for i := len(l.blocks) - 1; i > 0; i-- {
		above, b := l.blocks[i-1], l.blocks[i]
		mine, its := b.area(), above.area()

		if above.isNote && above.bottom+1 == b.top && ((begins && i == 1) || (mine.left == mine.right && its.left == mine.left)) {
			above.join(b)
			l.blocks = slices.Delete(l.blocks, i, i+1)
		}
	}
}

func (l *layout) doubts(table *block) (doubts []engine.Doubt) {
	for _, b := range l.blocks {
		switch {
		case b == table:
		case b.top < table.top:
			doubts = append(doubts, engine.Doubt{Option: "skipRows", Message: fmt.Sprintf("%s is above the table and was omitted.", b.area())})
		default:
			doubts = append(doubts, engine.Doubt{Message: fmt.Sprintf("%s is below the table and was omitted.", b.area())})
		}
	}

	if table.gap > 0 {
		doubts = append(doubts, engine.Doubt{Message: fmt.Sprintf("Row %d of the sheet is empty. The rows below it are loaded as rows of the same table.", table.gap)})
	}

	return doubts
}

// merged fills the spans of columns that only merged cells extend into, so that they are not taken for empty columns.
func (b *block) merged(merges []area) {
	for _, m := range merges {
		if m.top < b.top || m.top > b.bottom || m.left > len(b.spans) || b.spans[m.left-1].first == 0 {
			continue
		}

		for column := m.left; column <= min(m.right, len(b.spans)); column++ {
			if s := &b.spans[column-1]; s.first == 0 {
				*s = span{m.top, min(m.bottom, b.bottom)}
			}
		}
	}
}

// bands returns the parts of a block that are separated by empty columns.
func (b *block) bands() (bands []area) {
	var band *area

	for i, s := range b.spans {
		switch {
		case s.first == 0:
			band = nil
		case band == nil:
			bands = append(bands, area{s.first, i + 1, s.last, i + 1})
			band = &bands[len(bands)-1]
		default:
			band.top, band.bottom, band.right = min(band.top, s.first), max(band.bottom, s.last), i+1
		}
	}

	return bands
}

func (l *layout) areas() (areas []area) {
	for _, b := range l.blocks {
		areas = append(areas, b.bands()...)
	}

	return areas
}

func (l *layout) refuse(areas []area) error {
	var names []string
	for _, a := range areas[:min(len(areas), maxBlocks)] {
		names = append(names, a.String())
	}

	if more := len(areas) - len(names) + l.more; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}

	last := len(names) - 1

	how := ""
	if areas[1].top > areas[0].bottom {
		how = " To omit what is above the table, use the option skipRows."
	}

	return invalid("The sheet has several tables: %s and %s. Put each on a sheet of its own.%s", strings.Join(names[:last], ", "), names[last], how)
}
