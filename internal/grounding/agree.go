package grounding

import (
	"fmt"
	"math/big"
	"slices"
	"sort"

	"quern.dev/quern/internal/lexicon"
)

// in returns the positions of a mention in one table, by column.
func (m mention) in(t int) []namePosition {
	var list []namePosition

	for _, p := range m.places {
		if p.t == t {
			list = append(list, p)
		}
	}

	return list
}

// named returns the mentions of rows in the sentence of a figure, without those inside quoted values.
func (c *checker) named(f *figure) []mention {
	if len(c.sentences) == 0 {
		return nil
	}

	s := c.sentences[c.sentenceAt(f.from)]
	list := slices.DeleteFunc(slices.Clone(between(c.names, s.from, s.to)), func(m mention) bool {
		i := sort.Search(len(c.figures), func(i int) bool { return c.figures[i].to > m.from })

		return i < len(c.figures) && c.figures[i].form == formQuote && c.figures[i].from < m.to
	})

	// A mention that may also name a column counts as a row only if the sentence names no other row.
	if certain := slices.DeleteFunc(slices.Clone(list), func(m mention) bool { return coveredBy(c.heads, m, 0) }); len(certain) > 0 {
		return certain
	}

	return list
}

// of returns the mentions that name rows of a table.
func of(mentions []mention, t int) []mention {
	return slices.DeleteFunc(slices.Clone(mentions), func(m mention) bool { return len(m.in(t)) == 0 })
}

// agrees reports whether a row is one of those that are named. A name that only this row has decides. Otherwise the row
// must have a named value in each column in which the sentence names values.
func (c *checker) agrees(t, row int, names []mention) bool {
	byColumn := map[int]bool{}

	for _, m := range names {
		for _, p := range m.in(t) {
			_, has := slices.BinarySearch(p.rows, row)
			if has && len(p.rows) == 1 {
				return true
			}

			byColumn[p.c] = byColumn[p.c] || has
		}
	}

	for _, has := range byColumn {
		if !has {
			return false
		}
	}

	return true
}

// wrongRow returns a reason if the sentence names other rows than the cited ones, else "".
func (c *checker) wrongRow(f *figure, r result) string {
	if len(r.cells) == 0 || (f.form == formName && r.calculation == "") {
		return ""
	}

	t := r.cells[0].t

	all := beside(of(c.named(f), t), r.cells[0])
	if len(all) == 0 {
		return ""
	}

	names, sure := c.governing(f, all)
	someAgree := func(names []mention) bool {
		return slices.ContainsFunc(r.cells, func(at ref) bool { return at.t != t || c.agrees(at.t, at.row, names) })
	}

	others := slices.DeleteFunc(slices.Clone(all), func(m mention) bool { return m.from < f.to && m.to > f.from })
	if len(names) > 0 && !someAgree(names) && (sure || !c.anyNames(r.cells, others)) {
		return c.otherRow(f, r.cells[0], names)
	}

	return c.wrongPair(f, r, others)
}

// anyNames reports whether the row of one of the cells is named.
func (c *checker) anyNames(cells []ref, names []mention) bool {
	return slices.ContainsFunc(names, func(m mention) bool {
		return slices.ContainsFunc(cells, func(at ref) bool {
			return slices.ContainsFunc(m.in(at.t), func(p namePosition) bool { _, has := slices.BinarySearch(p.rows, at.row); return has })
		})
	})
}

// wrongPair returns a reason if one of several compared rows is not named, while the sentence names a row that nothing
// cites.
func (c *checker) wrongPair(f *figure, r result, names []mention) string {
	rows := map[int]bool{}

	for _, at := range r.cells {
		if at.t == r.cells[0].t {
			rows[at.row] = true
		}
	}

	if len(rows) < 2 || r.node == nil || r.node.op == "max" || r.node.op == "min" {
		return ""
	}

	isNamed := func(row int) bool { return c.anyNames([]ref{{r.cells[0].t, row, 0}}, names) }
	cited := c.citedAround(f)

	for row := range rows {
		if isNamed(row) {
			continue
		}

		for _, m := range names {
			if !c.anyNames(cited, []mention{m}) {
				return c.otherRow(f, ref{r.cells[0].t, row, r.cells[0].column}, []mention{m})
			}
		}
	}

	return ""
}

// citedAround returns the cells that the sentence of a figure cites.
func (c *checker) citedAround(f *figure) []ref {
	var cells []ref

	s := c.sentences[c.sentenceAt(f.from)]
	for i := sort.Search(len(c.figures), func(i int) bool { return c.figures[i].from >= s.from }); i < len(c.figures) && c.figures[i].from < s.to; i++ {
		for _, m := range c.figures[i].markers {
			cells = append(cells, m.result.cells...)
		}
	}

	return cells
}

func (c *checker) otherRow(f *figure, at ref, names []mention) string {
	return fmt.Sprintf("%s is cited from %s, but the sentence speaks of %s: cite that row, or name the right one",
		c.text[f.from:f.to], c.data.describe(at), short(c.text[names[0].from:names[0].to]))
}

// headsOf returns the mentions of columns of a kind that govern a figure, all such mentions of the sentence, and
// whether the assignment is certain. A negative t means any table.
func (c *checker) headsOf(f *figure, t int, k kind) (found, all []mention, sure bool) {
	if len(c.sentences) == 0 {
		return nil, nil, false
	}

	fits := func(m mention) bool {
		return slices.ContainsFunc(m.places, func(p namePosition) bool { return (t < 0 || p.t == t) && c.data.tables[p.t].columns[p.c].kind == k })
	}
	pick := func(from, to int) []mention {
		list := slices.DeleteFunc(slices.Clone(between(c.heads, from, to)), func(m mention) bool {
			return !fits(m) || (m.from < f.to && m.to > f.from) || coveredBy(c.names, m, 1)
		})

		// A mention that may also name a row counts as a column if the sentence names another row, or if it names no
		// other column.
		if slices.ContainsFunc(c.named(f), func(m mention) bool { return !coveredBy(c.heads, m, 0) }) {
			return list
		}

		if certain := slices.DeleteFunc(slices.Clone(list), func(m mention) bool { return coveredBy(c.names, m, 0) }); len(certain) > 0 {
			return certain
		}

		return list
	}

	s := c.sentences[c.sentenceAt(f.from)]

	if s.cells != nil {
		i := sort.SearchInts(s.cells, f.from) // the bar after the cell
		if i > 0 && i < len(s.heads) {
			found = pick(s.heads[i-1], s.heads[i])
		}

		return found, found, true
	}

	all = pick(s.from, s.to)
	if len(all) == 0 && s.intro >= 0 {
		all = pick(c.sentences[s.intro].from, c.sentences[s.intro].to)

		return all, all, false
	}

	found, sure = c.governing(f, all)

	return found, all, sure
}

// coveredBy reports whether a mention lies within another mention that is longer by at least longer bytes.
func coveredBy(list []mention, m mention, longer int) bool {
	i := sort.Search(len(list), func(i int) bool { return list[i].to >= m.to })

	return i < len(list) && list[i].from <= m.from && list[i].to-list[i].from >= m.to-m.from+longer
}

func mentions(list []mention, t, column int) bool {
	return slices.ContainsFunc(list, func(m mention) bool {
		return slices.ContainsFunc(m.places, func(p namePosition) bool { return p.t == t && p.c == column })
	})
}

// wrongColumn returns a reason if the sentence names another column than the cited ones, else "".
func (c *checker) wrongColumn(f *figure, r result) string {
	cited := slices.DeleteFunc(slices.Concat(r.cells, r.wholes), func(at ref) bool { return at.column < 0 })
	if len(cited) == 0 || f.form == formName {
		return ""
	}

	at := cited[0]
	col := c.data.tables[at.t].columns[at.column]
	found, all, sure := c.headsOf(f, at.t, col.kind)
	isCited := func(list []mention) bool {
		return slices.ContainsFunc(cited, func(at ref) bool { return mentions(list, at.t, at.column) })
	}

	if len(found) == 0 || isCited(found) || (!sure && isCited(all)) || (col.years && isYear(c.text[f.from:f.to])) {
		return ""
	}

	return fmt.Sprintf("%s is cited from column %s, but the sentence speaks of %s: cite that column, or name the right one",
		c.text[f.from:f.to], col.name, short(c.text[found[0].from:found[0].to]))
}

// wrongBase returns a reason if a percentage has another base than the sentence says, else "".
func (c *checker) wrongBase(f *figure, r result, value *big.Rat) string {
	if !f.percent || r.node == nil || value == nil {
		return ""
	}

	n := r.node
	for n.op == "*" && (n.right.op == "number" || n.left.op == "number") {
		if n = n.left; n.op == "number" {
			n = r.node.right
		}
	}

	says := c.saysAround(f)

	switch {
	case n.op == "/" && n.left.op == "-":
		return c.wrongBefore(f, n, says)
	case n.op == "/" && n.left.op == "ref" && says&lexicon.Shares != 0:
		return c.wrongWhole(f, n, says)
	}

	return ""
}

// wrongBefore returns a reason if a relative change is not divided by the earlier of the two values, else "".
func (c *checker) wrongBefore(f *figure, n *node, says lexicon.Topic) string {
	before, after := n.left.right, n.left.left

	switch {
	case n.right.same(before):
	case n.right.same(after):
		before, after = after, before
	default:
		return ""
	}

	up, down := says&lexicon.Rises != 0, says&lexicon.Falls != 0
	if grew := after.value.Cmp(before.value); (grew < 0 && up && !down) || (grew > 0 && down && !up) {
		return fmt.Sprintf("%s is divided by the wrong value: a change is a part of the value before it", c.text[f.from:f.to])
	}

	return ""
}

func (n *node) same(other *node) bool { return n.op == other.op && n.ref == other.ref && n.op == "ref" }

// wrongWhole returns a reason if a share is not divided by the sum of its own column, unless the sentence names another
// whole.
func (c *checker) wrongWhole(f *figure, n *node, says lexicon.Topic) string {
	part, whole := n.left.ref, n.right
	reason := fmt.Sprintf("%s is not a part of the sum of %s: divide by that, or say what it is a part of", c.text[f.from:f.to], c.data.tables[part.t].columns[part.column].name)

	heads := between(c.heads, c.sentences[c.sentenceAt(f.from)].from, c.sentences[c.sentenceAt(f.from)].to)

	switch whole.op {
	case "sum", "ref":
		at, _ := whole.first()
		if at.column != part.column || at.t != part.t {
			if mentions(heads, at.t, at.column) && (at.t != part.t || at.column != part.column) {
				return ""
			}

			return reason
		}

		if whole.op == "ref" && whole.ref.row >= 0 && !c.anyNames([]ref{whole.ref}, c.named(f)) {
			return reason
		}
	case "avg":
		if says&lexicon.Averages == 0 {
			return reason
		}
	case "max", "min":
		if says&lexicon.Mosts == 0 {
			return reason
		}
	}

	return ""
}
