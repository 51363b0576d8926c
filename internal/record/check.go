package record

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// reading is what a value can mean as a whole.
type reading struct {
	numbers map[rune]string  // empty if it is no number
	unit    string           // of the number
	digits  string           // the number as it is written
	leading bool             // the number begins with a zero
	dates   map[Order]string // empty if it is no date
	clock   string
	truth   string
}

// perUnit matches what may follow a number with a unit: a price for a kilogram, or no cents.
var perUnit = regexp.MustCompile(`(?i)^(?:(?:/|per |pro |je )\s*[0-9]*\s*\pL+|[.,][-–—]{1,2})$`)

func readValue(text string) (r reading) {
	text = foldText(text)

	if len(numeral.FindAllStringIndex(text, -1)) == 1 {
		if one := amounts(text)[0]; one.rest == "" || perUnit.MatchString(one.rest) {
			r.numbers, r.unit, r.leading, r.digits = one.readings, one.unit, one.leading, one.digits
		}
	}

	if found := days(text); len(found) == 1 {
		r.dates = found[0].readings
	}

	if found := clocks(text); len(found) == 1 {
		r.clock = found[0]
	}

	r.truth = truth(text)

	return r
}

func truth(text string) string {
	switch strings.ToLower(text) {
	case "true", "yes", "ja", "oui", "sí", "si", "wahr":
		return "true"
	case "false", "no", "nein", "non", "falsch":
		return "false"
	default:
		return ""
	}
}

// checker checks the answer about one chunk.
type checker struct {
	fields  []Field
	finder  *finder
	records []Record
	spots   [][][]spot // of each cell of each record
}

// check returns the records of an answer about a chunk.
func check(n int, c Chunk, fields []Field, text string) ([]Record, error) {
	claims, err := read(text, fields)
	if err != nil {
		return nil, err
	}

	k := &checker{fields: fields, finder: newFinder(c)}

	for _, one := range claims {
		cells, spots := make([]Cell, len(fields)), make([][]spot, len(fields))

		for i, said := range one {
			if said != nil {
				cells[i], spots[i] = k.cell(fields[i], *said)
			}
		}

		k.records, k.spots = append(k.records, Record{Cells: cells, chunk: n}), append(k.spots, spots)
	}

	k.place()
	k.compare()

	for i := range k.records {
		k.records[i].locate()
	}

	return k.records, nil
}

// cell checks what can be checked without the other cells.
func (k *checker) cell(f Field, said claim) (c Cell, spots []spot) {
	c = Cell{Said: foldText(said.Value), Quote: foldText(said.Quote), page: said.Page, said: readValue(said.Value)}

	if spots = k.finder.find(said.Quote, said.Page); said.Page == 0 || len(spots) == 0 {
		if spots = k.finder.find(said.Quote, 0); len(spots) == 0 {
			c.Flag = QuoteNotFound

			return c, nil
		}

		c.Flag = WrongPage
	}

	if near, found := c.inQuote(f.Kind); !found {
		c.Flag = ValueNotInQuote
	} else if c.near = near; !k.hasUnit(f, c) {
		c.Flag = WrongUnit
	}

	return c, spots
}

// inQuote reports whether the value occurs in the quote, and with which unit.
func (c Cell) inQuote(kind Kind) (unit string, found bool) {
	if len(c.said.numbers) > 0 && kind != Text {
		var units []string

		for _, a := range c.amounts() {
			if !shares(c.said.numbers, a.readings) {
				continue
			}

			// Of several equal numbers, the one with the unit that was said is meant.
			if found = true; c.said.unit != "" && sameUnit(c.said.unit, a.unit) {
				return a.unit, true
			}

			if a.unit != "" {
				units = append(units, a.unit)
			}
		}

		if len(units) > 0 {
			unit = units[0]
		}

		return unit, found
	}

	if len(c.said.dates) > 0 && kind != Text {
		return "", slices.ContainsFunc(days(c.Quote), func(d day) bool { return shares(c.said.dates, d.readings) }) &&
			(c.said.clock == "" || slices.Contains(clocks(c.Quote), c.said.clock))
	}

	if kind == Time && c.said.clock != "" {
		return "", slices.Contains(clocks(c.Quote), c.said.clock)
	}

	return "", containsText(strings.ToLower(c.Quote), strings.ToLower(c.Said))
}

// amounts returns the numbers of the quote that can be the one that was said: those that are written like it, if there are any. 4.300 t is not
// the 4,3 % beside it.
func (c Cell) amounts() []amount {
	all := amounts(c.Quote)

	if alike := slices.DeleteFunc(slices.Clone(all), func(a amount) bool { return a.digits != c.said.digits }); len(alike) > 0 {
		return alike
	}

	return all
}

// containsText reports whether a text contains another one that neither begins nor ends within a word or a number.
func containsText(text, what string) bool {
	for from := 0; what != "" && from <= len(text); {
		i := strings.Index(text[from:], what)
		if i < 0 {
			return false
		}

		i += from
		if end := i + len(what); isWhole(text, i, end) && !cutsNumber(text, i, end) {
			return true
		}

		_, size := utf8.DecodeRuneInString(text[i:])
		from = i + size
	}

	return false
}

// cutsNumber reports whether a part of a text begins or ends at a sign within a number.
func cutsNumber(text string, from, to int) bool {
	isSign := func(b byte) bool { return b == '.' || b == ',' }

	return (isDigit(text[from]) && from > 1 && isSign(text[from-1]) && isDigit(text[from-2])) ||
		(isDigit(text[to-1]) && to+1 < len(text) && isSign(text[to]) && isDigit(text[to+1]))
}

// shares reports whether two texts have a reading in common.
func shares[K comparable](a, b map[K]string) bool {
	for _, one := range a {
		for _, other := range b {
			if one == other {
				return true
			}
		}
	}

	return false
}

// hasUnit reports whether the unit of a number is the one that the text and the field have.
func (k *checker) hasUnit(f Field, c Cell) bool {
	if len(c.said.numbers) == 0 || f.Kind == Text {
		return true
	}

	if said := c.said.unit; said != "" {
		switch {
		case c.near != "" && !sameUnit(said, c.near):
			return false
		case c.near == "" && said != f.Unit && !k.finder.hasUnit(said):
			return false
		}
	}

	if f.Unit == "" {
		return true
	}

	from := c.near
	if from == "" {
		from = c.said.unit
	}

	if from == "" {
		return true
	}

	_, ok := convert("1", from, f.Unit)

	return ok
}

// hasUnit reports whether the chunk names a unit.
func (f *finder) hasUnit(unit string) bool {
	for _, part := range f.parts {
		for word := range strings.FieldsFuncSeq(part.text, func(r rune) bool { return !isUnitRune(r) }) {
			if named := Unit(word); named != "" && sameUnit(named, unit) {
				return true
			}
		}
	}

	return false
}

// place chooses among the places of each quote. Quotes that stand on one line only show where a record is: on the lines of which it has more of
// them than any other record. So a record whose line another one quotes wrongly is still found.
func (k *checker) place() {
	claimed := map[Place]map[int]int{} // quotes of each record on each line

	for n, spots := range k.spots {
		for _, s := range spots {
			if len(s) == 0 || slices.ContainsFunc(s, func(other spot) bool { return other.line != s[0].line }) {
				continue
			}

			if claimed[s[0].line] == nil {
				claimed[s[0].line] = map[int]int{}
			}

			claimed[s[0].line][n]++
		}
	}

	anchors := make([][]Place, len(k.records))

	for line, by := range claimed {
		if n, ok := most(by); ok {
			anchors[n] = append(anchors[n], line)
		}
	}

	var last Place

	for n := range k.records {
		for i, spots := range k.spots[n] {
			if len(spots) > 0 {
				chosen := choose(spots, anchors[n], last)
				k.records[n].Cells[i].Place, k.records[n].Cells[i].line = chosen.place, chosen.line
			}
		}

		k.records[n].locate()

		// What the record before has in common with others can stand far above it.
		for last = k.records[n].at; len(anchors[n]) > 0; anchors[n] = anchors[n][1:] {
			if last.before(anchors[n][0]) {
				last = anchors[n][0]
			}
		}
	}
}

// choose returns the place that is nearest to what is known of the record. If nothing is known, it is the first one after the record before.
func choose(spots []spot, anchors []Place, last Place) spot {
	if len(anchors) == 0 {
		for _, s := range spots {
			if last.before(s.place) {
				return s
			}
		}

		return spots[0]
	}

	return slices.MinFunc(spots, func(a, b spot) int { return nearest(a.line, anchors) - nearest(b.line, anchors) })
}

// farAway is more characters than a page has.
const farAway = 1 << 27

// distance returns how many characters are between two places.
func distance(a, b Place) int {
	switch {
	case a.Page != b.Page:
		return farAway * max(a.Page-b.Page, b.Page-a.Page)
	case a.To <= b.From:
		return b.From - a.To
	case b.To <= a.From:
		return a.From - b.To
	default:
		return 0
	}
}

func nearest(to Place, places []Place) int {
	found := math.MaxInt

	for _, p := range places {
		found = min(found, distance(to, p))
	}

	return found
}

// compare flags cells whose quote stands among the words of another record. A line belongs to the record with the most cells on it, and the
// words of a record are between its first and its last line.
func (k *checker) compare() {
	if len(k.records) < 2 {
		return
	}

	counts := map[Place]map[int]int{} // cells of each record on each line

	for n, r := range k.records {
		for _, c := range r.Cells {
			if c.Place.found() {
				if counts[c.line] == nil {
					counts[c.line] = map[int]int{}
				}

				counts[c.line][n]++
			}
		}
	}

	owned := make([][]Place, len(k.records))
	for line, by := range counts {
		if n, ok := most(by); ok {
			owned[n] = append(owned[n], line)
		}
	}

	for n := range k.records {
		for i := range k.records[n].Cells {
			c := &k.records[n].Cells[i]
			if c.Place.found() && (c.Flag == "" || c.Flag == WrongPage) && isOfOther(n, c.line, counts[c.line], owned) {
				c.Flag = OtherRecord
			}
		}
	}
}

// most returns the record with the most cells, if it is one.
func most(by map[int]int) (n int, ok bool) {
	best := 0

	for _, record := range slices.Sorted(maps.Keys(by)) {
		switch count := by[record]; {
		case count > best:
			n, best, ok = record, count, true
		case count == best:
			ok = false
		}
	}

	return n, ok
}

// isOfOther reports whether a line on which the record n has a cell belongs to another record.
func isOfOther(n int, line Place, by map[int]int, owned [][]Place) bool {
	mine := slices.DeleteFunc(slices.Clone(owned[n]), func(p Place) bool { return p == line })
	if len(mine) == 0 || within(line, mine) {
		return false
	}

	// Several cells on one line can be about several records, but not on the only line of another one.
	owner, ok := most(by)

	switch isForeign := ok && owner != n; {
	case by[n] > 1:
		return isForeign && len(owned[owner]) == 1
	case isForeign:
		return true
	}

	away := nearest(line, mine)

	for other, lines := range owned {
		if other != n && within(line, lines) && nearest(line, lines) < away {
			return true
		}
	}

	if len(by) != 2 || len(by) == len(owned) {
		return false // only n, or several: a line about all of them
	}

	for other := range by {
		if other != n && len(owned[other]) > 0 {
			above := line.before(first(mine)) && line.before(first(owned[other]))

			return !above && nearest(line, owned[other]) < away
		}
	}

	return false
}

func first(places []Place) Place {
	found := places[0]

	for _, p := range places[1:] {
		if p.before(found) {
			found = p
		}
	}

	return found
}

// within reports whether a line is between the first and the last of the lines.
func within(line Place, lines []Place) bool {
	before, after := false, false

	for _, l := range lines {
		before = before || l.before(line)
		after = after || line.before(l)
	}

	return before && after
}

// locate sets where a record begins: at the first of its quotes that are not in doubt.
func (r *Record) locate() {
	r.Page, r.at = 1, Place{}

	for _, doubted := range []bool{false, true} {
		for _, c := range r.Cells {
			isDoubted := c.Flag != "" && c.Flag != WrongPage
			if c.Place.found() && isDoubted == doubted && (!r.at.found() || c.Place.before(r.at)) {
				r.at, r.Page = c.Place, c.Place.Page
			}
		}

		if r.at.found() {
			return
		}
	}
}
