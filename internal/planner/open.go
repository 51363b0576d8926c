package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
)

// opens returns the date columns that must be empty for a word to be true. "Unpaid" means that the date of payment is empty,
// "open" that the date of closing is.
func (m *matcher) opens(i int) (list []*item) {
	stems := openOf(m.tokens[i].lower)
	if len(stems) == 0 {
		return nil
	}

	for _, t := range m.tables {
		for c := range t.columns {
			one := &t.columns[c]
			if one.Role == meaning.Date && one.Nulls > 0 && slices.ContainsFunc(stems, func(w string) bool { return slices.Contains(one.stems, w) }) {
				list = append(list, &item{kind: openItem, from: i, to: i + 1, table: t.at, column: c})
			}
		}
	}

	return list
}

// openOf returns the stems of the event that a word denies: pay for "unpaid". It returns nil for other words.
func openOf(word string) []string {
	switch word {
	case "open":
		return []string{"clos", "resolv"}
	case "living", "alive":
		return []string{"deceas", "death", "die"}
	case "outstanding":
		return []string{"pay", "payment", "settl"}
	}

	done, ok := strings.CutPrefix(word, "un")
	if !ok || !strings.HasSuffix(done, "ed") && !strings.HasSuffix(done, "id") && !strings.HasSuffix(done, "ld") {
		return nil
	}

	stem := lexicon.Stem(done)

	return slices.Compact([]string{stem, deedNoun(stem)})
}

// stillOpen adds a condition for each word such as "unpaid".
func (r *reading) stillOpen() {
	for i := range r.items {
		if !r.is(i, openItem) {
			continue
		}

		c := &r.tables[r.items[i].table].columns[r.items[i].column]
		r.use(i)
		r.where = append(r.where, condition{form.Condition{Column: r.ref(c), Is: form.Empty}, c.table, i})
	}
}
