package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/meaning"
)

// values returns the values that words mean.
func (m *matcher) values() (list []*item) {
	for _, one := range slices.Concat(m.matched(), m.codes()) {
		if !slices.ContainsFunc(list, func(o *item) bool {
			return o.from == one.from && o.to == one.to && o.table == one.table && o.column == one.column && (o.value == one.value || !o.guess && one.guess)
		}) {
			list = append(list, one)
		}
	}

	// Typing errors are offered only where nothing is exactly the same.
	return slices.DeleteFunc(list, func(one *item) bool {
		return one.guess && slices.ContainsFunc(list, func(o *item) bool { return !o.guess && o.from <= one.from && o.to >= one.to })
	})
}

// matched returns the values that the value index found.
func (m *matcher) matched() (list []*item) {
	for _, v := range m.matches {
		table := slices.IndexFunc(m.tables, func(t *table) bool { return t.name == v.Dataset })
		if table < 0 {
			continue
		}

		column := m.tables[table].find(v.Column)
		from, to := m.tokensOf(v.Start, v.End)

		if column < 0 || from >= to || v.Guess && (to-from == 1 && m.tokens[from].isNumber || !isTypo(m.text[v.Start:v.End], v.Value)) {
			continue
		}

		// The name of rows that are sums of others is the word for a sum: no figure contains these rows.
		if slices.ContainsFunc(m.tables[table].source.Totals, func(o Match) bool { return o.Column == v.Column && o.Value == v.Value }) {
			continue
		}

		one := &item{kind: valueItem, from: from, to: to, table: table, column: column, value: v.Value, guess: v.Guess}
		if to-from == 1 && isFunction(m.tokens[from].lower) && !m.isCode(from) {
			continue
		}

		list = append(list, one)
	}

	return list
}

// codes returns short codes in capitals, which are not in the value index if they are stop words.
func (m *matcher) codes() (list []*item) {
	for i, t := range m.tokens {
		word := m.text[t.start:t.end]
		if !m.isCode(i) {
			if word = strings.TrimSuffix(word, "s"); !isUpper(word) { // "EVs"
				continue
			}
		}

		for _, table := range m.tables {
			for c := range table.columns {
				if slices.Contains(table.columns[c].Values, any(word)) && table.columns[c].Role != meaning.Flag {
					list = append(list, &item{kind: valueItem, from: i, to: i + 1, table: table.at, column: c, value: word})
				}
			}
		}
	}

	return list
}

// isCode reports whether a word is written like a code: in capitals, or one capital letter inside the question.
func (m *matcher) isCode(i int) bool {
	word := m.text[m.tokens[i].start:m.tokens[i].end]

	return isUpper(word) || i > 0 && len(word) == 1 && word >= "A" && word <= "Z" && word != "I"
}

// isTypo reports whether words can be a value with a typing error: they have about as many letters.
func isTypo(words, value string) bool {
	return len(words) >= 4 && max(len(words), len(value))-min(len(words), len(value)) <= 2
}

func (m *matcher) tokensOf(start, end int) (from, to int) {
	from = slices.IndexFunc(m.tokens, func(t token) bool { return t.end > start })
	if from < 0 {
		return 0, 0
	}

	to = from
	for to < len(m.tokens) && m.tokens[to].start < end && m.tokens[to].start+len(m.tokens[to].lower) <= end {
		to++
	}

	return from, to
}
