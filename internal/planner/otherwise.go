package planner

import (
	"slices"

	"quern.dev/quern/internal/lexicon"
)

// otherwise returns the columns and tables that words name indirectly: by a synonym, or because the name abbreviates the
// words.
func (m *matcher) otherwise(like item, said []string) (list []*item) {
	if n := len(said); n > 1 && isWeakNoun(said[n-1]) { // "phone number"
		said = said[:n-1]
	}

	same, long := alike(said), m.abbreviated(said)

	for _, t := range m.tables {
		isName := func(name []string) bool {
			return same != nil && sameName(same, name) || long != nil && sameName(long, name)
		}

		if slices.ContainsFunc(t.alike, isName) || slices.ContainsFunc(t.nouns, isName) {
			one := like
			one.kind, one.table, one.tier = entityItem, t.at, 1
			list = append(list, &one)

			continue
		}

		for c := range t.columns {
			if t.columns[c].joined {
				continue
			}

			if slices.ContainsFunc(t.columns[c].alike, isName) || isName(t.columns[c].stems) || isName(t.columns[c].strong) || len(t.columns[c].own) > 0 && isName(t.columns[c].own) {
				one := like
				one.kind, one.table, one.column, one.tier = columnItem, t.at, c, 1
				list = append(list, &one)
			}
		}
	}

	return list
}

// abbreviated returns the stems with the words of names that abbreviate them, nil if a word has no abbreviation or
// several.
func (m *matcher) abbreviated(said []string) []string {
	var isOther bool

	list := slices.Clone(said)

	for i, w := range said {
		short := m.shorts[w]

		switch len(short) {
		case 0:
		case 1:
			list[i], isOther = short[0], true
		default:
			return nil
		}
	}

	if !isOther {
		return nil
	}

	return list
}

// abbreviations returns the words of names that abbreviate the words of the question.
func (m *matcher) abbreviations() map[string][]string {
	found := map[string][]string{}

	add := func(long, short string) {
		if lexicon.Abbreviates(short, long) && !slices.Contains(found[long], short) {
			found[long] = append(found[long], short)
		}
	}

	for _, one := range m.tokens {
		if len(one.stem) < 4 || one.isNumber {
			continue
		}

		for _, t := range m.tables {
			for _, name := range t.nouns {
				for _, w := range name {
					add(one.stem, w)
				}
			}

			for _, c := range t.columns {
				for _, w := range c.stems {
					add(one.stem, w)
				}
			}
		}
	}

	return found
}

// deed returns the rows of a table as what a verb says was done: "ordered" are orders, and otherwise order lines.
func (m *matcher) deed(from int, stem string, t *table) []*item {
	one := &item{kind: verbItem, from: from, to: from + 1, table: t.at, verb: true}

	for _, n := range t.nouns {
		switch deedNoun(stem) {
		case n[len(n)-1]:
			one.tier = exact
		case deedOf(n):
			one.tier = max(one.tier, 1)
		}
	}

	if one.tier == 0 && stem == "sell" && t.isSales() { // what was ordered was sold
		one.tier = 1
	}

	if one.tier == 0 {
		return nil
	}

	return []*item{one}
}

// deedOf returns the stem of what was done in a row: an invoice line is a part of an invoice.
func deedOf(noun []string) string {
	last := noun[len(noun)-1]
	if len(noun) > 1 && (last == "lin" || last == "item" || last == "position") {
		return noun[len(noun)-2]
	}

	return last
}
