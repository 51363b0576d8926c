package grounding

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// relation is a part of the text that compares rows in words: "the highest", "second", "more than twice", "fell". It is a
// claim if the sentence names the rows and the column that it is about.
type relation struct {
	figure

	kind   lexicon.Relation
	place  int      // in a ranking, from 1; 0 if the relation is not one
	times  *big.Rat // factor of a multiple; nil if the relation is not one
	part   *big.Rat // of a whole; nil if the relation is not one
	bound  bound
	object int // position from which the other side of a comparison follows
}

type bound int

const (
	exactly bound = iota
	above
	below
	almost
)

// relations finds the relations of the text. Their words are not numbers.
func (c *checker) findRelations(words []lexicon.Word) {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}

	for i := 0; i < len(words); i++ {
		if covered(c.names, words[i].Start, words[i].End) || c.inQuote(words[i].Start) {
			continue
		}

		r, used := c.relationAt(words, texts, i)
		if r == nil || c.isHedged(texts, words, i) {
			continue
		}

		r.from, r.to, r.form = words[i].Start, words[i+used-1].End, formRelation
		c.relations = append(c.relations, r)
		i += used - 1
	}

	c.figures = slices.DeleteFunc(c.figures, func(f *figure) bool {
		i := sort.Search(len(c.relations), func(i int) bool { return c.relations[i].to > f.from })

		return f.spelled && i < len(c.relations) && c.relations[i].from < f.to
	})
}

func (c *checker) inQuote(at int) bool {
	i := sort.Search(len(c.figures), func(i int) bool { return c.figures[i].to > at })

	return i < len(c.figures) && c.figures[i].from <= at && c.figures[i].form == formQuote
}

// relationAt returns the relation that begins at a word, and the number of its words; nil if none does.
func (c *checker) relationAt(words []lexicon.Word, texts []string, i int) (*relation, int) {
	rest := texts[i:min(len(texts), i+3)]

	if factor, used := lexicon.Times(rest); used > 0 {
		return &relation{times: new(big.Rat).SetInt64(int64(factor)), bound: boundOf(texts, i)}, used
	}

	if part, of, used := lexicon.Part(rest); used > 0 {
		return &relation{part: big.NewRat(int64(part), int64(of)), bound: boundOf(texts, i)}, used
	}

	after := ""
	if len(rest) > 1 {
		after = rest[1]
	}

	if place := lexicon.Place(rest[0]); place > 0 && (c.isRanking(words, i) || lexicon.RelationOf(after, "") == lexicon.Highest || lexicon.RelationOf(after, "") == lexicon.Lowest) {
		r, used := &relation{place: place, kind: lexicon.Highest}, 1
		if kind := lexicon.RelationOf(after, ""); kind == lexicon.Highest || kind == lexicon.Lowest {
			r.kind, used = kind, 2
		}

		return r, used
	}

	return c.degreeAt(words, texts, i)
}

// degreeAt returns the superlative, the comparison or the direction that begins at a word.
func (c *checker) degreeAt(words []lexicon.Word, texts []string, i int) (*relation, int) {
	after, before := "", ""
	if i+1 < len(texts) {
		after = texts[i+1]
	}

	if i > 0 {
		before = texts[i-1]
	}

	kind, used := lexicon.RelationOf(texts[i], after), 1

	if after == "up" || after == "down" {
		used = 2
	}

	if texts[i] == "plus" || texts[i] == "moins" {
		used = 2

		if slices.Contains([]string{"le", "la", "les"}, before) && kind != lexicon.NoRelation {
			kind = map[lexicon.Relation]lexicon.Relation{lexicon.Higher: lexicon.Highest, lexicon.Lower: lexicon.Lowest}[kind]
		}
	}

	// Words that can also count something else state a superlative only before the name of a column.
	vague := slices.Contains([]string{"most", "least", "meisten", "wenigsten"}, texts[i])

	switch {
	case kind == lexicon.NoRelation, covered(c.heads, words[i].Start, words[i].End):
		return nil, 0
	case vague && (i+1 == len(words) || !covered(c.heads, words[i+1].Start, words[i+1].End)):
		return nil, 0
	case kind != lexicon.Higher && kind != lexicon.Lower:
		return &relation{kind: kind}, used
	}

	reach := 10 // words to the other side
	if slices.Contains([]string{"more", "less", "fewer", "mehr", "weniger"}, texts[i]) {
		reach = 4
	}

	for n := i + used; n < min(len(words), i+used+reach); n++ {
		if lexicon.IsThan(texts[n]) && c.sentenceAt(words[n].Start) == c.sentenceAt(words[i].Start) && n+1 < len(words) &&
			(covered(c.names, words[n+1].Start, words[n+1].End) || !isAmount(texts[n+1:])) {
			return &relation{kind: kind, object: words[n].End}, used
		}
	}

	return nil, 0
}

// isAmount reports whether words begin with a number, a multiple or a part: "more than twice" compares nothing yet.
func isAmount(words []string) bool {
	words = words[:min(len(words), 3)]
	_, times := lexicon.Times(words)
	_, _, part := lexicon.Part(words)
	_, spelled := lexicon.Spelled(words)

	return times+part+spelled > 0 || isDigit(words[0][0])
}

// isRanking reports whether the sentence of a word counts places.
func (c *checker) isRanking(words []lexicon.Word, i int) bool {
	at := c.sentenceAt(words[i].Start)
	for n := max(0, i-8); n < min(len(words), i+4); n++ {
		if lexicon.IsRanking(words[n].Text) && c.sentenceAt(words[n].Start) == at {
			return true
		}
	}

	return false
}

func boundOf(texts []string, i int) bound {
	before, last := "", ""
	if i > 0 {
		last = texts[i-1]
	}

	if slices.Contains([]string{"la", "die", "der", "the", "a", "un", "le"}, last) && i > 1 {
		i--
		last = texts[i-1]
	}

	if i > 1 {
		before = texts[i-2]
	}

	switch near := lexicon.Near(before, last); {
	case slices.Contains([]string{"less", "weniger", "moins", "under"}, before) || last == "under" || last == "unter":
		return below
	case near == lexicon.Over, before == "plus" && last == "du":
		return above
	case near == lexicon.Under:
		return almost
	}

	return exactly
}

// isHedged reports whether the words before a relation make it no statement about one row.
func (c *checker) isHedged(texts []string, words []lexicon.Word, i int) bool {
	at := c.sentenceAt(words[i].Start)

	for n := max(0, i-3); n < i; n++ {
		if c.sentenceAt(words[n].Start) != at {
			continue
		}

		one := strings.HasPrefix(texts[n], "ein") || texts[n] == "one" || texts[n] == "un" || texts[n] == "une"
		if lexicon.IsHedge(texts[n]) || one && n+1 < i && slices.Contains([]string{"of", "der", "des", "von"}, texts[n+1]) {
			return true
		}
	}

	return false
}

// judgeRelation verifies a relation. It reports false if the sentence does not say what the relation is about.
func (c *checker) judgeRelation(r *relation) (Claim, bool) {
	claim := Claim{Text: c.text[r.from:r.to], At: r.from}
	evaluated := false

	for _, at := range c.measures(&r.figure) {
		cells, holds, known := c.evaluateRelation(r, at)
		if !known {
			continue
		}

		evaluated = true

		if claim.Sources = (result{data: c.data, cells: cells}).sources(); holds {
			claim.Verified, claim.Reason = true, ""

			return claim, true
		}
	}

	claim.Reason = fmt.Sprintf("the rows do not say %s here", short(claim.Text))

	return claim, evaluated
}

// measures returns the columns of numbers that a relation can be about: those that the sentence names, or the only one.
func (c *checker) measures(f *figure) []ref {
	found, all, _ := c.headsOf(f, -1, ofNumbers)
	if len(found) == 0 {
		found = all
	}

	var list []ref

	for _, m := range found {
		for _, p := range m.places {
			if c.data.tables[p.t].columns[p.c].kind == ofNumbers {
				list = append(list, ref{p.t, -1, p.c})
			}
		}
	}

	if len(list) > 0 {
		return list
	}

	for t, table := range c.data.tables {
		only := -1

		for i, col := range table.columns {
			if col.kind == ofNumbers && !col.years {
				if only >= 0 {
					only = -1

					break
				}

				only = i
			}
		}

		if only >= 0 {
			list = append(list, ref{t, -1, only})
		}
	}

	return list
}

// cellOf returns the cell of the only row that a mention names, in a column of numbers.
func (c *checker) cellOf(m mention, column ref) (ref, bool) {
	for _, p := range m.in(column.t) {
		if len(p.rows) == 1 && c.data.tables[p.t].rows[p.rows[0]][column.column].number != nil {
			return ref{column.t, p.rows[0], column.column}, true
		}
	}

	return ref{}, false
}

func (c *checker) numberAt(at ref) *big.Rat {
	return c.data.tables[at.t].rows[at.row][at.column].number
}

func (c *checker) evaluateRelation(r *relation, column ref) (cells []ref, holds, known bool) {
	names := beside(of(c.named(&r.figure), column.t), column)

	switch {
	case r.times != nil:
		return c.evaluatePair(r, column, names, r.to, func(one, other *big.Rat) bool {
			return other.Sign() != 0 && r.fits(new(big.Rat).Quo(one, other), r.times)
		})
	case r.object > 0:
		return c.evaluatePair(r, column, names, r.object, func(one, other *big.Rat) bool {
			return one.Cmp(other) > 0 == (r.kind == lexicon.Higher) && one.Cmp(other) != 0
		})
	case r.kind == lexicon.Rose || r.kind == lexicon.Fell:
		return c.evaluateDirection(r, column, names)
	}

	governing, _ := c.governing(&r.figure, names)

	for _, m := range governing {
		at, is := c.cellOf(m, column)
		if !is {
			continue
		}

		held, can := c.evaluateCell(r, at)
		known = known || can

		if cells = append(cells, at); held {
			return []ref{at}, true, true
		}
	}

	return cells, false, known
}

// evaluateCell reports whether a cell is the extreme, the place or the part of its column that a relation says, and whether
// the rows can tell.
func (c *checker) evaluateCell(r *relation, at ref) (holds, known bool) {
	t, value := c.data.tables[at.t], c.numberAt(at)

	if r.part != nil {
		total := t.total("sum", at.column)
		if !t.complete || total.Sign() <= 0 || c.saysAround(&r.figure)&lexicon.Shares == 0 {
			return false, false
		}

		return r.fitsPart(new(big.Rat).Quo(value, total)), true
	}

	if !t.complete && !t.isSorted(at.column, r.kind == lexicon.Highest) {
		return false, true // other rows may have more
	}

	before, same := 0, 0

	for _, row := range t.rows {
		switch number := row[at.column].number; {
		case number == nil:
		case number.Cmp(value) == 0:
			same++
		case number.Cmp(value) > 0 == (r.kind == lexicon.Highest):
			before++
		}
	}

	place := max(r.place, 1)

	return before < place && place <= before+same, true
}

// isSorted reports whether the rows are in the order of a column, so that rows that were not seen follow them.
func (t *table) isSorted(column int, descending bool) bool {
	for i := 1; i < len(t.rows); i++ {
		one, next := t.rows[i-1][column].number, t.rows[i][column].number
		if one == nil || next == nil || one.Cmp(next) < 0 && descending || one.Cmp(next) > 0 && !descending {
			return false
		}
	}

	return true
}

// evaluatePair compares the row that is named before a relation with the first one that is named from a position on.
func (c *checker) evaluatePair(r *relation, column ref, names []mention, from int, holds func(one, other *big.Rat) bool) (cells []ref, held, known bool) {
	var one, other *mention

	for i, m := range names {
		switch {
		case m.from >= from && other == nil:
			other = &names[i]
		case m.from < from && (one == nil || m.from >= r.to || one.from < r.from):
			one = &names[i]
		}
	}

	if one == nil || other == nil {
		return nil, false, false
	}

	x, isX := c.cellOf(*one, column)
	y, isY := c.cellOf(*other, column)

	if !isX || !isY || x == y {
		return nil, false, false
	}

	return []ref{x, y}, holds(c.numberAt(x), c.numberAt(y)), true
}

// evaluateDirection compares the two rows that a sentence names, the earlier one with the later one.
func (c *checker) evaluateDirection(r *relation, column ref, names []mention) (cells []ref, holds, known bool) {
	if len(names) != 2 {
		return nil, false, false
	}

	from, isFrom := c.cellOf(names[0], column)
	to, isTo := c.cellOf(names[1], column)

	if !isFrom || !isTo || from == to {
		return nil, false, false
	}

	// "rose in 2025 from 2024", "compared with 2024": the row that is named last is the earlier one.
	if slices.Contains([]string{"from", "with", "to", "von", "gegenüber", "depuis"}, strings.ToLower(lastWord(strings.TrimRight(c.text[:names[1].from], " ")))) &&
		!slices.Contains([]string{"from", "with", "to", "von", "zu", "auf", "between", "de", "à", "gegenüber", "entre", "zwischen", "depuis"}, strings.ToLower(lastWord(strings.TrimRight(c.text[:names[0].from], " ")))) {
		from, to = to, from
	}

	change := c.numberAt(to).Cmp(c.numberAt(from))

	return []ref{from, to}, change != 0 && change > 0 == (r.kind == lexicon.Rose), true
}

// fits reports whether a ratio is the factor of a relation: about it, more than it, less than it, or almost it.
func (r *relation) fits(ratio, factor *big.Rat) bool {
	share := new(big.Rat).Quo(ratio, factor)

	switch r.bound {
	case above:
		return share.Cmp(big.NewRat(1, 1)) > 0
	case below:
		return share.Cmp(big.NewRat(1, 1)) < 0
	case almost:
		return share.Cmp(big.NewRat(1, 1)) < 0 && share.Cmp(big.NewRat(8, 10)) >= 0
	default:
		return share.Cmp(big.NewRat(9, 10)) >= 0 && share.Cmp(big.NewRat(11, 10)) <= 0
	}
}

// fitsPart reports whether a share is the part that a relation says, within four points.
func (r *relation) fitsPart(share *big.Rat) bool {
	off := new(big.Rat).Sub(share, r.part)
	near := new(big.Rat).Abs(off).Cmp(big.NewRat(4, 100)) <= 0

	switch r.bound {
	case above:
		return off.Sign() > 0 && off.Cmp(big.NewRat(1, 4)) < 0
	case below:
		return off.Sign() < 0
	case almost:
		return off.Sign() < 0 && off.Cmp(big.NewRat(-1, 10)) > 0
	default:
		return near
	}
}
