package form

import (
	"cmp"
	"strconv"
	"strings"
)

// Element is a part of a form in words.
type Element struct {
	Words   string // as the interpretation says it
	As      string // rows, column, measure, group, condition, order, limit
	Dataset string
	Column  string // empty if it is not about one column
}

// Elements returns the parts of a form that compiles, so that each of them can be checked against the question.
func (s *Schema) Elements(f Form) (list []Element) {
	p := speaker{schema: s, home: s.dataset(f.Dataset)}
	if p.home == nil {
		return nil
	}

	add := func(as, words string, c Column) {
		list = append(list, Element{Words: strings.TrimSpace(words), As: as, Dataset: cmp.Or(c.Dataset, f.Dataset), Column: c.Name})
	}

	add("rows", p.home.rows(), Column{})

	for _, t := range f.Show {
		add("column", p.term(t), t.Column)
	}

	for _, m := range f.Measures {
		add("measure", p.measure(m), m.about())
	}

	for _, g := range f.Groups {
		add("group", p.group(g, f.Measures), g.Column)
	}

	for _, c := range f.Where {
		add("condition", strings.TrimPrefix(strings.TrimSpace(p.where([]Condition{c})), "where "), p.source(c))
	}

	for _, h := range f.Having {
		add("condition", strings.TrimPrefix(p.having([]Having{h}), ", "), h.Measure.about())
	}

	switch {
	case f.Order == nil:
	case f.Order.Column != nil:
		first := f
		first.Limit = 0
		add("order", strings.TrimPrefix(p.order(first), ", "), f.Order.Column.Column)
	case len(f.Measures) > 0:
		measure := f.Measures[f.Order.Measure]
		add("order", direction(f)+" "+p.figure(measure)+" first", measure.about())
	}

	if f.Limit > 0 {
		list = append(list, Element{Words: strconv.Itoa(f.Limit), As: "limit"})
	}

	return list
}

// about returns the column that a measure aggregates, or only the dataset if it is not a single one.
func (m Measure) about() Column {
	if m.Of == nil || m.Of.Op != "" {
		return Column{Dataset: m.Dataset}
	}

	return Column{Dataset: cmp.Or(m.Of.Dataset, m.Dataset), Name: m.Of.Name}
}

// source returns the column of a condition, or the dataset whose rows it asks for.
func (p speaker) source(c Condition) Column {
	if c.Rows != nil {
		return Column{Dataset: c.Rows.Dataset}
	}

	return c.Column
}
