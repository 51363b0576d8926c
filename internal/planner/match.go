package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// matcher finds the possible meanings of words in one dataset.
type matcher struct {
	*schema
	*question

	matches []Match
}

// items returns all meanings of all sequences of words, by their first token.
func (l *matcher) items() [][]*item {
	found := make([][]*item, len(l.tokens))

	for i := range l.tokens {
		found[i] = l.itemsAt(i)
	}

	for _, v := range l.valueItems() {
		found[v.from] = append(found[v.from], v)
	}

	return found
}

func (l *matcher) itemsAt(i int) []*item {
	list := make([]*item, 0, len(l.plain[i])+2)

	for _, one := range l.plain[i] {
		switch {
		case one.kind == operator && l.namesColumn(one):
		case one.kind == unknown && l.isNew(i):
			list = append(list, noiseAt(i))
		default:
			list = append(list, one)
		}
	}

	t := l.tokens[i]

	for n := range len(l.runs[i]) {
		to := i + n + 1

		if found := l.columnsNamed(i, to); len(found) > 0 {
			list = append(list, &item{
				kind: columnItem, from: i, to: to, score: found[0].score, columns: found, verb: n == 0 && (lexicon.IsVerb(t.lower) && !l.isNoun(t, found[0]) || isDeed(t.stem)), stem: t.stem,
			})
		}

		if column, score := l.rowsNamed(i, to); score > 0 {
			one := &item{kind: rowsItem, from: i, to: to, score: score, verb: n == 0 && lexicon.IsVerb(t.lower)}
			if column >= 0 {
				one.columns = []mention{{column, score}}
			}

			list = append(list, one)
		}
	}

	return known(list)
}

// known removes the meaning "unknown" of a word that names a column or the rows.
func known(list []*item) []*item {
	isName := func(one *item) bool {
		return (one.kind == columnItem || one.kind == rowsItem) && one.to == one.from+1 && one.score >= surelyNamed
	}

	if slices.ContainsFunc(list, isName) {
		list = slices.DeleteFunc(list, func(one *item) bool { return one.kind == unknown })
	}

	return list
}

// isNoun reports whether a word that looks like a verb occurs in the name of the column: "rating".
func (l *matcher) isNoun(t token, named mention) bool {
	return strings.HasSuffix(t.lower, "ing") && strings.Contains(strings.ToLower(l.columns[named.column].Name), t.lower)
}

// isNew reports whether "new" has no meaning because a name of the rows follows: "new customers", but not "New Jersey".
func (l *matcher) isNew(i int) bool {
	if l.tokens[i].lower != "new" {
		return false
	}

	for n := 2; n <= 3 && i+n <= len(l.tokens); n++ {
		if _, score := l.rowsNamed(i+1, i+n); score > 0 {
			return true
		}
	}

	return false
}

// namesColumn reports whether an operator contains the name of a column of this dataset: "the amount of orders".
func (l *matcher) namesColumn(one *item) bool {
	for i := one.from; i < one.to; i++ {
		if w := l.tokens[i].lower; w != "amount" && w != "quantity" {
			continue
		}

		if named := l.columnsNamed(i, i+1); len(named) > 0 && named[0].score > 0.9 {
			return true
		}
	}

	return false
}

// valueItems returns one item for each sequence of words that has matches in the dataset.
func (l *matcher) valueItems() []*item {
	var list []*item

	for _, m := range l.matches {
		column := slices.IndexFunc(l.columns, func(c column) bool { return c.Name == m.Column })
		from, to := l.tokensOf(m.Start, m.End)

		if m.Dataset != l.Name || column < 0 || from >= to || (m.Guess && to-from == 1 && l.tokens[from].isNumber) {
			continue
		}

		one := valueOf{column, m.Value, m.Guess}
		score := m.Score

		if m.Guess {
			score *= 0.8
		}

		i := slices.IndexFunc(list, func(other *item) bool { return other.from == from && other.to == to })

		switch {
		case i < 0:
			list = append(list, &item{kind: valueItem, from: from, to: to, score: score, values: []valueOf{one}})
		case score >= list[i].score-nearlyAsGood:
			list[i].values = append(list[i].values, one)
		}
	}

	return list
}

func (l *matcher) tokensOf(start, end int) (from, to int) {
	from = slices.IndexFunc(l.tokens, func(t token) bool { return t.end > start })
	if from < 0 {
		return 0, 0
	}

	to = from
	for to < len(l.tokens) && l.tokens[to].start < end && l.tokens[to].start+len(l.tokens[to].lower) <= end {
		to++
	}

	return from, to
}
