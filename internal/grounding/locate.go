package grounding

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// locate searches the rows for a figure without a marker. It returns a reason if the figure is not found with
// certainty.
func (c *checker) locate(f *figure) (result, string) {
	s := c.scopeOf(f)

	for _, search := range []func(*figure, *scope) (result, bool){c.locateCount, c.locateTotal, c.locateShare, c.locateCell} {
		if found, is := search(f, s); is {
			return found, ""
		}
	}

	return result{data: c.data}, fmt.Sprintf("%s cannot be found in the rows with certainty", short(c.text[f.from:f.to]))
}

// scope describes where a figure can come from, according to its sentence.
type scope struct {
	names    []mention // rows that govern the figure
	sure     bool
	allNames []mention
	heads    []mention
	allHeads []mention
	sureHead bool
	says     lexicon.Topic
}

func (c *checker) scopeOf(f *figure) *scope {
	s := &scope{says: c.saysAround(f)}
	s.allNames = slices.DeleteFunc(c.named(f), func(m mention) bool { return m.from < f.to && m.to > f.from })
	s.names, s.sure = c.governing(f, s.allNames)

	k := map[form]kind{formDay: ofDays, formQuote: ofTexts, formClock: ofTexts}[f.form]
	if f.form == formNumber {
		k = ofNumbers
	}

	s.heads, s.allHeads, s.sureHead = c.headsOf(f, -1, k)
	if f.form == formDay && c.daysAround(f) > 1 {
		s.heads = nil // one date may name the row and another be its value
	}

	return s
}

func (c *checker) daysAround(f *figure) int {
	days, s := 0, c.sentences[c.sentenceAt(f.from)]
	for i := sort.Search(len(c.figures), func(i int) bool { return c.figures[i].from >= s.from }); i < len(c.figures) && c.figures[i].from < s.to; i++ {
		if c.figures[i].form == formDay {
			days++
		}
	}

	return days
}

// allows reports whether the sentence permits a cell as the origin of a figure. Names from the column of the cell are
// values next to it and do not identify its row.
func (c *checker) allows(s *scope, at ref) bool {
	names := slices.DeleteFunc(beside(s.names, at), func(m mention) bool { return isYear(c.text[m.from:m.to]) && len(m.in(at.t)) == 0 })
	if len(names) == 0 {
		return true
	}

	if here := of(names, at.t); len(here) > 0 && c.agrees(at.t, at.row, here) {
		return true
	}

	return !s.sure && c.anyNames([]ref{at}, beside(s.allNames, at))
}

// beside returns the values mentioned in the sentence that do not occur in the column of the cell.
func beside(names []mention, at ref) []mention {
	return slices.DeleteFunc(slices.Clone(names), func(m mention) bool {
		return slices.ContainsFunc(m.places, func(p namePosition) bool { return p.t == at.t && p.c == at.column })
	})
}

func allowsColumn(s *scope, t, column int) bool {
	return len(s.heads) == 0 || mentions(s.heads, t, column) || (!s.sureHead && mentions(s.allHeads, t, column))
}

// locateCount tries the number of rows, if the sentence counts rows: "12 rows", "12 regions".
func (c *checker) locateCount(f *figure, s *scope) (result, bool) {
	if f.form != formNumber || f.unit != "" {
		return result{}, false
	}

	noun := between(c.heads, f.to, f.to+4)

	for i, t := range c.data.tables {
		counted := s.says&lexicon.Counts != 0 || slices.ContainsFunc(noun, func(m mention) bool {
			return slices.ContainsFunc(m.places, func(p namePosition) bool { return p.t == i && t.columns[p.c].kind == ofTexts })
		})

		r := result{data: c.data, value: new(big.Rat).SetInt64(t.count), wholes: []ref{{i, -1, -1}}}
		if counted && c.matches(f, r.value, r) {
			return r, true
		}
	}

	return result{}, false
}

// locateTotal tries sums and averages of the named column, if the sentence mentions a sum or an average.
func (c *checker) locateTotal(f *figure, s *scope) (result, bool) {
	if f.form != formNumber || f.percent && len(s.heads) == 0 {
		return result{}, false
	}

	for _, call := range s.totals() {
		for _, m := range s.heads {
			for _, p := range m.places {
				r := c.data.evaluate(fmt.Sprintf("= %s(%d:*:%q)", call, c.data.tables[p.t].index, c.data.tables[p.t].columns[p.c].name))
				if r.reason == "" && c.equals(f, r) {
					return r, true
				}
			}
		}
	}

	return result{}, false
}

// totals returns the functions over whole columns that the words of the sentence express.
func (s *scope) totals() []string {
	var calls []string

	if s.says&lexicon.Sums != 0 {
		calls = append(calls, "sum")
	}

	if s.says&lexicon.Averages != 0 {
		calls = append(calls, "avg")
	}

	return calls
}

// locateShare tries the share of the named row in the named column.
func (c *checker) locateShare(f *figure, s *scope) (result, bool) {
	if !f.percent || len(s.names) == 0 || s.says&lexicon.Shares == 0 {
		return result{}, false
	}

	for _, m := range s.heads {
		for _, p := range m.places {
			t := c.data.tables[p.t]

			for _, name := range s.names {
				for _, named := range name.in(p.t) {
					if len(named.rows) != 1 || t.columns[p.c].kind != ofNumbers {
						continue
					}

					r := c.data.evaluate(fmt.Sprintf("= %d:%d:%[3]q / sum(%[1]d:*:%[3]q)", t.index, named.rows[0], t.columns[p.c].name))
					if r.reason == "" && c.equals(f, r) {
						return r, true
					}
				}
			}
		}
	}

	return result{}, false
}

// locateCell searches the cells that the sentence permits.
func (c *checker) locateCell(f *figure, s *scope) (result, bool) {
	if len(s.totals()) > 0 && len(s.names) == 0 && len(s.heads) > 0 && f.form == formNumber && !c.isHead(s) {
		return result{}, false // the sentence means a sum or an average, which differs
	}

	if f.form == formQuote {
		return c.locateQuote(f, s)
	}

	var hits []ref

	for t := range c.data.tables {
		hits = append(hits, c.hits(f, s, t)...)
	}

	if len(hits) == 0 || !c.withoutDoubt(f, s, hits) {
		return result{}, false
	}

	return c.resultOf(hits[0]), true
}

// isHead reports whether the word for a sum or an average is part of the name of a column, such as "total".
func (c *checker) isHead(s *scope) bool {
	return slices.ContainsFunc(s.heads, func(m mention) bool {
		return slices.ContainsFunc(wordsOf(c.text[m.from:m.to]), func(word string) bool { return c.words[word]&(lexicon.Sums|lexicon.Averages) != 0 })
	})
}

func (c *checker) resultOf(at ref) result {
	one := &c.data.tables[at.t].rows[at.row][at.column]

	return result{data: c.data, single: one, value: one.number, cells: []ref{at}, node: &node{op: "ref", ref: at, value: one.number}}
}

// hits returns the cells of a table that the sentence permits and that the figure shows.
func (c *checker) hits(f *figure, s *scope, t int) []ref {
	var hits []ref

	table := c.data.tables[t]

	for column := range table.columns {
		if !allowsColumn(s, t, column) {
			continue
		}

		for _, row := range c.rowsFor(f, s, ref{t, -1, column}) {
			if table.rows[row][column].null || !c.allows(s, ref{t, row, column}) {
				continue
			}

			if at := (ref{t, row, column}); c.equals(f, c.resultOf(at)) {
				hits = append(hits, at)
			}

			if len(hits) > maxSources {
				return hits
			}
		}
	}

	return hits
}

const (
	maxNamed = 16        // rows that are examined one by one
	maxLooks = 2_000_000 // cells that are examined for all figures of an answer
)

// rowsFor returns the rows of a column that can contain a figure: the named rows if there are few, else the rows with
// about the value.
func (c *checker) rowsFor(f *figure, s *scope, at ref) []int {
	var rows []int

	for _, m := range beside(s.names, at) {
		for _, p := range m.in(at.t) {
			rows = append(rows, p.rows[:min(len(p.rows), maxNamed+1)]...)
		}
	}

	if len(rows) == 0 || len(rows) > maxNamed || !s.sure {
		rows = c.near(f, at)
	}

	c.looks += len(rows)
	if c.looks > maxLooks {
		return nil
	}

	slices.Sort(rows)

	return slices.Compact(rows)
}

// near returns the rows in which a column has about the value of a figure, in any unit.
func (c *checker) near(f *figure, at ref) []int {
	var rows []int

	t, column := c.data.tables[at.t], at.column

	if f.form == formDay && f.days[0].year != 0 {
		for _, d := range f.days {
			for _, p := range c.data.names[d.key()] {
				if p.t == at.t && p.c == column {
					rows = append(rows, p.rows...)
				}
			}
		}

		return rows
	}

	if f.form != formNumber {
		if t.columns[column].kind == ofNumbers {
			return nil
		}

		for row := range t.rows {
			rows = append(rows, row)
		}

		return rows
	}

	for _, r := range f.values {
		rows = append(rows, t.around(r, column, f.factors())...)
	}

	return rows
}

// factors returns the factors between a cell and a figure with its unit.
func (f *figure) factors() []float64 {
	switch {
	case f.unit == "":
		return []float64{1}
	case f.percent:
		return []float64{1, 100}
	}

	return []float64{1, 1e3, 1e-3, 1e6, 1e-6, 10, 0.1}
}

// around returns the rows in which a column has about a value, with either sign.
func (t *table) around(r numberValue, column int, factors []float64) []int {
	var rows []int

	sorted := t.sorted(column)
	value, _ := r.value.Float64()
	ulp, _ := r.ulp.Float64()

	if r.loose != nil {
		ulp, _ = r.loose.Float64()
	}

	for _, factor := range factors {
		for _, sign := range []float64{1, -1} {
			from, to := (sign*value-1.01*ulp)/factor, (sign*value+1.01*ulp)/factor

			i := sort.Search(len(sorted), func(i int) bool { return sorted[i].near >= from })
			for ; i < len(sorted) && sorted[i].near <= to; i++ {
				rows = append(rows, sorted[i].row)
			}
		}
	}

	return rows
}

// valued is a row with its value in a column.
type valued struct {
	near float64
	row  int
}

func (t *table) sorted(column int) []valued {
	if list, done := t.order[column]; done {
		return list
	}

	var list []valued

	for row := range t.rows {
		if one := t.rows[row][column]; one.number != nil {
			list = append(list, valued{one.near, row})
		}
	}

	slices.SortFunc(list, func(a, b valued) int { return cmp.Compare(a.near, b.near) })
	t.order[column] = list

	return list
}

// locateQuote searches for a quoted text, which must be a whole cell.
func (c *checker) locateQuote(f *figure, s *scope) (result, bool) {
	key := keyOf(f.inner)

	for _, p := range c.data.names[key] {
		for _, row := range p.rows {
			if allowsColumn(s, p.t, p.c) && c.allows(s, ref{p.t, row, p.c}) {
				return c.resultOf(ref{p.t, row, p.c}), true
			}
		}
	}

	inner := scan(f.inner)
	if len(inner) != 1 || strings.TrimSpace(f.inner[:inner[0].from]+f.inner[inner[0].to:]) != "" || inner[0].form == formQuote {
		return result{}, false
	}

	inner[0].from, inner[0].to = f.from, f.to // a number in quotes

	return c.locateCell(inner[0], s)
}

// withoutDoubt reports whether the hits identify the figure. If the figure is a date or the sentence names a row, any
// hit is accepted. If the sentence names only a column, all hits must be in one row, and the figure must have more than
// two digits or the step few rows; or a hit must be the maximum or minimum of the column. If the sentence names
// neither, there must be exactly one hit, with enough digits to rule out coincidence.
func (c *checker) withoutDoubt(f *figure, s *scope, hits []ref) bool {
	if f.form == formDay || len(s.names) > 0 {
		return true
	}

	digits := 0

	for _, b := range []byte(c.text[f.from:f.to]) {
		if isDigit(b) {
			digits++
		}
	}

	rows := map[ref]bool{}
	for _, at := range hits {
		rows[ref{at.t, at.row, 0}] = true
	}

	if len(s.heads) > 0 {
		few := len(c.data.tables[hits[0].t].rows) <= 5

		return (len(rows) == 1 && (few || digits > 2)) || (s.says&lexicon.Mosts != 0 && c.isMost(hits))
	}

	return len(hits) == 1 && digits > 3 && f.near == lexicon.Exactly
}

// isMost reports whether one of the cells is the maximum or minimum of its column.
func (c *checker) isMost(hits []ref) bool {
	return slices.ContainsFunc(hits, func(at ref) bool {
		t := c.data.tables[at.t]
		one := t.rows[at.row][at.column].number

		return one != nil && t.complete && (one.Cmp(t.total("max", at.column)) == 0 || one.Cmp(t.total("min", at.column)) == 0)
	})
}
