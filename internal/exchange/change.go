package exchange

import (
	"maps"
	"slices"
	"strings"

	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/query"
)

// Change is an entry that an import adds or changes.
type Change struct {
	Kind     Kind
	Name     string
	From, To string // in words; From is empty if the entry is new
}

// Kind is the kind of an entry.
type Kind string

// The kinds.
const (
	Row     Kind = "row"
	Column  Kind = "column"
	Join    Kind = "join"
	Measure Kind = "measure"
)

// changes returns what is different.
func (m *merging) changes() (list []Change) {
	add := func(kind Kind, name, from, to string) {
		if from != to {
			list = append(list, Change{kind, name, from, to})
		}
	}

	if m.want.Row != m.now.Row && m.want.Row.Value != "" {
		from := ""
		if m.now.Row.Origin == query.Confirmed {
			from = m.now.Row.Value
		}

		add(Row, "", from, m.want.Row.Value)
	}

	for _, name := range slices.Sorted(maps.Keys(m.columns)) {
		add(Column, name, columnWords(m.now.Columns[name]), columnWords(m.want.Columns[name]))
	}

	for _, i := range slices.Sorted(maps.Keys(m.joins)) {
		j := m.want.Joins[i]
		from := query.Entry[meaning.Join]{}

		for _, one := range m.now.Joins {
			if one.Value.Same(j.Value) {
				from = one
			}
		}

		add(Join, strings.Join(j.Value.Columns, ", "), joinWords(from), joinWords(j))
	}

	for _, i := range slices.Sorted(maps.Keys(m.measures)) {
		one := m.want.Measures[i]
		from := query.Entry[meaning.Measure]{}

		for _, before := range m.now.Measures {
			if before.Value.Same(one.Value) {
				from = before
			}
		}

		add(Measure, one.Value.Name, measureWords(from), measureWords(one))
	}

	return list
}

func columnWords(c query.Entry[meaning.Column]) string {
	if c.Origin != query.Confirmed {
		return ""
	}

	text := string(c.Value.Role)
	if c.Value.Unit != "" {
		text += " in " + c.Value.Unit
	}

	if len(c.Value.Synonyms) > 0 {
		text += ", also " + strings.Join(c.Value.Synonyms, ", ")
	}

	if c.Value.NotForFigures {
		text += ", not for figures"
	}

	return text
}

func joinWords(j query.Entry[meaning.Join]) string {
	if j.Origin != query.Confirmed && j.Origin != query.Rejected {
		return ""
	}

	text := "with " + j.Value.To + " (" + strings.Join(j.Value.Keys, ", ") + ")"
	if j.Origin == query.Rejected {
		text += ", rejected"
	}

	return text
}

func measureWords(m query.Entry[meaning.Measure]) string {
	if m.Origin != query.Confirmed && m.Origin != query.Rejected {
		return ""
	}

	text := m.Value.Function + "(" + m.Value.Expression + ")"
	if m.Value.Unit != "" {
		text += " in " + m.Value.Unit
	}

	if len(m.Value.Synonyms) > 0 {
		text += ", also " + strings.Join(m.Value.Synonyms, ", ")
	}

	if m.Origin == query.Rejected {
		text += ", rejected"
	}

	return text
}
