package xlsx

import (
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// block is a table, or what may turn out to be one: rows that follow each other.
type block struct {
	top, bottom int
	spans       []span // by column - 1
	isNote      bool   // each row has one text and nothing else
	gap         int    // the first empty row in it

	// Of its first row: whether it is nothing but texts, how many, and whether something else stands below.
	texts   int
	isTexts bool
	typed   []bool // by column - 1: it has other values than texts
}

// span is the rows in which a column has something.
type span struct{ first, last int }

// layout finds out where on a sheet the tables are.
type layout struct {
	blocks  []*block
	current *block
	more    int // blocks that are too many to be named
}

const (
	maxBlocks = 20
	maxNote   = 20 // rows
)

// add takes the next row that has something in it.
func (l *layout) add(row int, cells []cell) {
	note := isNote(cells)
	b := l.current

	// A note directly above ends where the table begins.
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

// end puts the block that is complete to those before it.
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

// continues: below an empty row there may be more rows of the table above, or another table. One that has a header
// of its own, or columns of its own, is another.
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
			return false // a name above values that are no texts
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

// table is the one that the sheet has, and the notes above and below it. If there is another table, or an empty column
// in it, nobody knows which rows are meant.
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
		return nil, nil, invalid("The sheet is empty: no cell of it has a value.")
	case table == nil:
		return nil, nil, l.refuse(l.areas())
	}

	table.merged(merges)

	if bands := table.bands(); len(bands) > 1 {
		return nil, nil, l.refuse(bands)
	}

	return table, l.doubts(table), nil
}

// heads: one text above a table with one column is its name. If an option says that the table begins with the first row
// there are no notes directly above it.
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
			doubts = append(doubts, engine.Doubt{Option: "skipRows", Message: fmt.Sprintf("%s stands above the table and was left out.", b.area())})
		default:
			doubts = append(doubts, engine.Doubt{Message: fmt.Sprintf("%s stands below the table and was left out.", b.area())})
		}
	}

	if table.gap > 0 {
		doubts = append(doubts, engine.Doubt{Message: fmt.Sprintf("Row %d of the sheet is empty; what stands below it was read as rows of the same table.", table.gap)})
	}

	return doubts
}

// merged: a column that only merged cells reach into is no gap.
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

// bands are the parts of a block between empty columns.
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
		how = " What stands above the table can be left out with the option skipRows."
	}

	return invalid("The sheet has several tables: %s and %s. Put each on a sheet of its own.%s", strings.Join(names[:last], ", "), names[last], how)
}
