package form

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// interpretation returns a form in words, as a person would say it.
func (s *Schema) interpretation(f Form) string {
	p := speaker{schema: s, home: s.dataset(f.Dataset)}

	if len(f.Measures) == 0 && len(f.Groups) == 0 {
		return p.list(f)
	}

	return p.figures(f)
}

func (p speaker) list(f Form) string {
	var b strings.Builder

	isSingle := len(f.Show) == 1 && f.Show[0].Op == "" && f.Distinct // the values of a column
	rows, row := p.home.rows(), p.home.one()

	if isSingle {
		c := f.Show[0].Column
		rows, row = "different "+mark(c.Name)+" values"+p.owner(c)+" of "+rows, mark(c.Name)+p.owner(c)+" of "+rows
	}

	if f.Limit > 0 {
		rows = several(f.Limit, rows, row)
	}

	b.WriteString(rows + p.where(f.Where))

	if f.Order != nil && f.Order.Column != nil {
		b.WriteString(p.order(f))
	}

	if len(f.Show) > 0 && !isSingle {
		columns := make([]string, len(f.Show))
		for i, t := range f.Show {
			columns[i] = p.term(t)
		}

		b.WriteString("; columns: " + strings.Join(columns, ", "))

		if f.Distinct {
			b.WriteString(", without duplicates")
		}
	}

	return b.String()
}

// order returns the order by a column, or the rows that are first in it.
func (p speaker) order(f Form) string {
	t := *f.Order.Column
	by := p.extreme(t, f.Order.Descending)

	info := p.dataset(t.Dataset).column(t.Name)
	isText := t.Op == "" && info != nil && !info.isNumeric() && !p.isDate(t)

	switch {
	case f.Limit > 0 && !isText:
		return " with the " + by
	case isText && f.Order.Descending:
		return ", in the reverse order of " + p.term(t)
	case isText:
		return ", in the order of " + p.term(t)
	default:
		return ", " + by + " first"
	}
}

// one returns a row of a dataset in words.
func (d *Dataset) one() string {
	if d.Row == "" {
		return "row of " + mark(d.Name)
	}

	return mark(d.Row)
}

// several returns a number of things.
func several(n int, things, thing string) string {
	if n == 1 {
		return "the " + thing
	}

	return "the " + strconv.Itoa(n) + " " + things
}

func direction(f Form) string {
	if f.Order.Descending {
		return "highest"
	}

	return "lowest"
}

// ranked returns the figure by which groups are ranked: its words after "highest" or "lowest". If it is the highest or the lowest
// figure of a row already, the words say that it is not a total.
func (p speaker) ranked(f Form, words string) string {
	m := f.Measures[f.Order.Measure]
	isSingle := !m.Share && m.Of != nil && (m.Function == Max && f.Order.Descending || m.Function == Min && !f.Order.Descending)

	switch first, rest, _ := strings.Cut(words, " "); {
	case !isSingle:
		return direction(f) + " " + words
	case p.isDate(*m.Of):
		return words
	default:
		return first + " single " + rest
	}
}

func (p speaker) figures(f Form) string {
	after := p.where(f.Where)

	if p.isRepeated(f.Measures) { // the sentence would not say which figures the conditions belong to
		p.given, after = f.Where, ""
	}

	measures := make([]string, len(f.Measures))
	for i, m := range f.Measures {
		measures[i] = p.measure(m)
	}

	p.given = nil

	var b strings.Builder

	ranked := f.Order != nil && f.Order.Column == nil && len(f.Measures) > 0 && len(f.Groups) > 0

	switch {
	case ranked && f.Limit > 0:
		b.WriteString(p.things(f.Groups, f.Limit) + " with the " + p.ranked(f, measures[f.Order.Measure]) + after)

		if others := slices.Delete(slices.Clone(measures), f.Order.Measure, f.Order.Measure+1); len(others) > 0 {
			b.WriteString(", and the " + strings.Join(others, " and the "))
		}

		return b.String() + p.having(f.Having)
	case len(measures) == 0:
		b.WriteString(p.things(f.Groups, 0) + after)
	default:
		b.WriteString(strings.Join(measures, " and ") + after)

		for i, g := range f.Groups {
			b.WriteString([]string{", by ", " and "}[min(i, 1)] + p.group(g, f.Measures))
		}
	}

	b.WriteString(p.having(f.Having))

	switch {
	case ranked:
		b.WriteString(", " + direction(f) + " " + p.figure(f.Measures[f.Order.Measure]) + " first")
	case f.Order != nil && f.Order.Column != nil:
		first := f
		first.Limit = 0
		b.WriteString(p.order(first))
	}

	if f.Limit > 0 && len(f.Groups) > 0 {
		b.WriteString(", the first " + strconv.Itoa(f.Limit) + " only")
	}

	return b.String()
}

// isRepeated reports whether the conditions of the form stand with each figure: if there are several figures with
// conditions of their own, or of several datasets.
func (p speaker) isRepeated(measures []Measure) bool {
	var all []Measure

	for _, m := range measures {
		for next := []*Measure{&m}; len(next) > 0; next = next[1:] {
			all = append(all, *next[0])

			for _, inner := range []*Measure{next[0].Less, next[0].Per} {
				if inner != nil {
					next = append(next, inner)
				}
			}
		}
	}

	return slices.ContainsFunc(all, func(m Measure) bool {
		return (m.Share && m.Per == nil) || p.dataset(m.Dataset) != p.home || (len(all) > 1 && len(m.Where) > 0)
	})
}

// group returns a group in words.
func (p speaker) group(g Group, measures []Measure) string {
	words := p.column(g.Column)

	// The column of the form's dataset is not one of the rows that are aggregated.
	if p.owner(g.Column) == "" && !slices.ContainsFunc(measures, func(m Measure) bool { return p.dataset(m.Dataset) == p.home }) {
		words += " of the " + mark(p.home.row())
	}

	if g.Grain == "" {
		return words
	}

	return string(g.Grain) + " of " + words
}

// things returns the words for the first n groups: "the *category*", "the 3 *category* values", "the 3 *stores*". Without n it
// means all groups.
func (p speaker) things(groups []Group, n int) string {
	words, isRow := make([]string, len(groups)), false

	for i, g := range groups {
		d := p.dataset(g.Dataset)
		switch {
		case g.Grain != "":
			words[i] = string(g.Grain) + "s of " + p.column(g.Column)
			if n == 1 {
				words[i] = string(g.Grain) + " of " + p.column(g.Column)
			}
		case d.Label == g.Name && d.Row != "" && len(g.Via) == 0:
			words[i], isRow = d.one(), isRow || d == p.home
			if n != 1 {
				words[i] = d.rows()
			}
		case n == 1:
			words[i] = p.column(g.Column)
		default: // the name of a column has no plural: it need not be English
			words[i] = mark(g.Name) + " values" + p.owner(g.Column)
		}
	}

	list := strings.Join(words, " and ")

	switch {
	case n == 0 && isRow && len(groups) == 1:
		return list
	case n == 0:
		return "the different " + list + " of " + p.home.rows()
	case n == 1:
		return "the " + list
	default:
		return "the " + strconv.Itoa(n) + " " + list
	}
}

func (p speaker) having(list []Having) string {
	var b strings.Builder

	for i, h := range list {
		n := plain(h.Number)
		if h.Other != nil {
			n = "the " + p.measure(*h.Other)
		}

		b.WriteString([]string{", only with a ", " and a "}[min(i, 1)] + p.measure(h.Measure) + " of " + compared(h.Is, n, plain(h.Upper)))
	}

	return b.String()
}

// where returns conditions in words: first periods, then what the columns contain, then what belongs to the rows.
func (p speaker) where(list []Condition) string {
	var rows, periods, others []string

	s := (&compiler{schema: p.schema, home: p.home}).scope(p.home, nil)

	gathered, err := s.gathered(given{list: list, home: p.home})
	if err != nil {
		gathered = list
	}

	for _, c := range gathered {
		switch {
		case c.Is == Exists || c.Is == NotExists:
			rows = append(rows, p.rows(c))
		case isPeriod(c):
			periods = append(periods, p.period(c))
		default:
			others = append(others, p.condition(c))
		}
	}

	words := ""
	if len(periods) > 0 {
		words += " " + strings.Join(periods, " and ")
	}

	if len(others) > 0 {
		words += " where " + strings.Join(others, " and ")
	}

	if len(others) > 0 && len(rows) > 0 {
		words += " and"
	}

	if len(rows) > 0 {
		words += " " + strings.Join(rows, " and ")
	}

	return words
}

// rows returns in words that rows of another dataset belong to a row.
func (p speaker) rows(c Condition) string {
	if c.Rows == nil {
		return ""
	}

	word, d := "with ", p.dataset(c.Rows.Dataset)
	if c.Is == NotExists {
		word = "without "
	}

	subject := p.dataset(c.Dataset)

	things := d.rows()
	if len(p.schema.paths(d, subject)) == 0 { // at most one
		things = article(d.row())
	}

	if subject != p.home {
		word = "of " + article(subject.row()) + " " + word
	}

	by := ""
	if len(c.Rows.Via) > 0 {
		by = " (by " + mark(strings.Join(c.Rows.Via, ", ")) + ")"
	}

	inside := p.of(d).where(c.Rows.Where)
	if inside != "" {
		inside = " (" + strings.TrimSpace(inside) + ")"
	}

	return word + things + by + inside
}

// period returns a period in words. The column is named if a row has several dates.
func (p speaker) period(c Condition) string {
	column := p.column(c.Column)

	on := ""
	if d := p.dataset(c.Dataset); d != p.home || len(d.times()) != 1 {
		on = "with " + column + " "
	}

	switch {
	case c.Is == Latest:
		return "on the latest " + column
	case c.Is == InMonth:
		return on + "in " + month(c.Number) + " of any year"
	case c.Period == nil:
		return on
	case c.Period.Text == "":
		return on + c.Period.words()
	}

	text := escape(c.Period.Text)

	first, _, _ := strings.Cut(strings.ToLower(text), " ")
	if !slices.Contains([]string{"in", "on", "since", "before", "after", "until", "from", "between", "last", "this", "today", "yesterday", "up", "at", "the", "during"}, first) {
		text = "in " + text
	}

	return on + text
}

func (p Period) words() string {
	from, to := p.From.Format(time.DateOnly), p.To.AddDate(0, 0, -1).Format(time.DateOnly)

	switch {
	case p.From.IsZero() && p.To.IsZero():
		return "at any time"
	case p.From.IsZero():
		return "until " + to
	case p.To.IsZero():
		return "since " + from
	default:
		return "from " + from + " to " + to
	}
}

func (p speaker) condition(c Condition) string {
	column := p.column(c.Column)

	if c.Is == Empty {
		return column + " is empty"
	}

	if c.Is == Filled {
		return column + " is not empty"
	}

	with := plain(c.Number)

	switch {
	case c.Other != nil:
		with = p.column(*c.Other)
	case len(c.Values) > 0 && (c.Is == Is || c.Is == IsNot):
		values := make([]string, len(c.Values))
		for i, v := range c.Values {
			values[i] = quote(v)
		}

		with = strings.Join(values, " or ")
	}

	return column + " is " + compared(c.Is, with, plain(c.Upper))
}
