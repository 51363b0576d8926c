package form

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/meaning"
)

// given are conditions and the dataset of their columns that name none.
type given struct {
	list []Condition
	home *Dataset
	one  bool // a condition on the many side is an error, because the datasets of several figures would differ in it
}

// predicate is a condition as SQL, with the joined tables whose columns it needs.
type predicate struct {
	sql   string
	needs []*table
}

// predicates returns conditions. Those on the same dataset of the many side hold for the same row of it.
func (s *scope) predicates(g given, beside []Condition) (list []predicate, err error) {
	conditions, err := s.gathered(g)
	if err != nil {
		return nil, err
	}

	for _, c := range conditions {
		s.reached = nil

		sql, err := s.condition(c, g.home, append(slices.Clone(beside), named(g.list, g.home)...))
		if err != nil {
			return nil, err
		}

		list = append(list, predicate{sql, s.reached})
	}

	return list, nil
}

// conditions returns conditions as SQL.
func (s *scope) conditions(g given, beside []Condition) ([]string, error) {
	list, err := s.predicates(g, beside)

	return statements(list), err
}

func statements(predicates []predicate) (list []string) {
	for _, p := range predicates {
		list = append(list, p.sql)
	}

	return list
}

// named returns conditions with the datasets of their columns.
func named(list []Condition, home *Dataset) []Condition {
	list = slices.Clone(list)

	for i := range list {
		list[i].Dataset = cmp.Or(list[i].Dataset, home.Name)
	}

	return list
}

// gathered returns the conditions with those on the many side gathered into conditions on the rows there.
func (s *scope) gathered(g given) (list []Condition, err error) {
	rows := map[string]int{} // index by dataset and path

	for _, c := range g.list {
		d := g.home
		if c.Dataset != "" {
			d = s.c.schema.dataset(c.Dataset)
		}

		if d == nil {
			return nil, &NameError{Dataset: c.Dataset}
		}

		if c.Is == Exists || c.Is == NotExists || g.one || !s.isMany(d) {
			list = append(list, c)

			continue
		}

		key := d.Name + "/" + strings.Join(c.Via, "/")
		inside := c
		inside.Column = Column{Name: c.Name}

		if c.Other != nil {
			with := *c.Other
			with.Dataset = cmp.Or(with.Dataset, g.home.Name)
			inside.Other = &with
		}

		if i, found := rows[key]; found {
			list[i].Rows.Where = append(list[i].Rows.Where, inside)

			continue
		}

		rows[key] = len(list)
		list = append(list, Condition{Column: Column{Dataset: s.root.data.Name}, Is: Exists, Rows: &Rows{Dataset: d.Name, Via: c.Via, Where: []Condition{inside}}})
	}

	return list, nil
}

// isMany reports whether a row here may have many rows of a dataset.
func (s *scope) isMany(d *Dataset) bool {
	return d != s.root.data && len(s.c.schema.paths(s.root.data, d)) == 0 && len(s.c.schema.paths(d, s.root.data)) > 0
}

func (s *scope) condition(c Condition, home *Dataset, beside []Condition) (string, error) {
	if c.Is == Exists || c.Is == NotExists {
		return s.exists(c, home)
	}

	at, err := s.find(c.Column, home)
	if err != nil {
		return "", err
	}

	switch c.Is {
	case Is, IsNot:
		return s.equals(c, at, home)
	case Empty:
		s.noteEmpty(at.table)

		return at.sql + " IS NULL", nil
	case Filled:
		return at.sql + " IS NOT NULL", nil
	case In:
		return during(c, at)
	case InMonth:
		if at.info.role() == meaning.Year || (at.info.kind() != moment && at.info.kind() != text) {
			return "", &FigureError{Dataset: at.table.data.Name, Column: c.Name, Reason: NotAFigure}
		}

		return "month(" + day(at.sql, at.info) + ") = " + strconv.Itoa(int(c.Number)), nil
	case Latest:
		return s.latest(c, at, beside)
	default:
		return s.compares(c, at, home)
	}
}

func (s *scope) noteEmpty(t *table) {
	if t.partial {
		s.c.note("Rows of " + mark(s.root.data.Name) + " without " + article(t.data.row()) + " count as empty.")
	}
}

func (s *scope) equals(c Condition, at cell, home *Dataset) (string, error) {
	operator := " = "

	if c.Is == IsNot {
		operator = " IS DISTINCT FROM "

		s.noteEmpty(at.table)
	}

	if c.Other != nil {
		return s.compared(c, at, home, operator)
	}

	list := c.Values
	if len(list) == 0 {
		list = []any{c.Number}
	}

	by, written, err := values(at.sql, at.info, list)

	switch {
	case err != nil:
		return "", &FigureError{Dataset: at.table.data.Name, Column: c.Name, Reason: Incomplete}
	case len(written) == 1:
		return by + operator + written[0], nil
	case c.Is == IsNot:
		return "(" + by + " NOT IN (" + strings.Join(written, ", ") + ") OR " + by + " IS NULL)", nil
	default:
		return by + " IN (" + strings.Join(written, ", ") + ")", nil
	}
}

// operators returns the comparisons that a number or a column follows.
func operators() map[Comparison]string {
	return map[Comparison]string{MoreThan: " > ", AtLeast: " >= ", LessThan: " < ", AtMost: " <= ", Is: " = "}
}

func (s *scope) compares(c Condition, at cell, home *Dataset) (string, error) {
	operator := operators()[c.Is]

	switch {
	case operator != "" && c.Other != nil:
		return s.compared(c, at, home, operator)
	case !at.info.isNumeric():
		return "", &FigureError{Dataset: at.table.data.Name, Column: c.Name, Reason: NotAFigure}
	case c.Is == Between:
		return at.sql + " BETWEEN " + plain(c.Number) + " AND " + plain(c.Upper), nil
	case operator != "":
		return at.sql + operator + plain(c.Number), nil
	default:
		return "", &FigureError{Dataset: at.table.data.Name, Column: c.Name, Reason: Incomplete}
	}
}

// compared compares two columns.
func (s *scope) compared(c Condition, at cell, home *Dataset, operator string) (string, error) {
	with, err := s.find(*c.Other, home)
	if err != nil {
		return "", err
	}

	if at.info.kind() != with.info.kind() {
		return "", &FigureError{Dataset: with.table.data.Name, Column: c.Other.Name, Reason: NotAFigure}
	}

	return at.sql + operator + with.sql, nil
}

// during returns the condition that a date is in a period.
func during(c Condition, at cell) (string, error) {
	wrong := &FigureError{Dataset: at.table.data.Name, Column: c.Name, Reason: NotAFigure}
	expression, bound := day(at.sql, at.info), date

	switch isYear := at.info.role() == meaning.Year && at.info.kind() != moment; {
	case c.Period == nil:
		return "", &FigureError{Dataset: at.table.data.Name, Column: c.Name, Reason: Incomplete}
	case isYear && (!isNewYear(c.Period.From) || !isNewYear(c.Period.To)):
		return "", wrong
	case isYear && at.info.kind() == text:
		expression, bound = "TRY_CAST("+at.sql+" AS INTEGER)", year
	case isYear:
		expression, bound = at.sql, year
	case at.info.kind() != moment && at.info.kind() != text:
		return "", wrong
	}

	var parts []string

	if !c.Period.From.IsZero() {
		parts = append(parts, expression+" >= "+bound(c.Period.From))
	}

	if !c.Period.To.IsZero() {
		parts = append(parts, expression+" < "+bound(c.Period.To))
	}

	if len(parts) == 0 {
		return expression + " IS NOT NULL", nil
	}

	return strings.Join(parts, " AND "), nil
}

func year(t time.Time) string { return strconv.Itoa(t.Year()) }

func isNewYear(t time.Time) bool { return t.IsZero() || t.YearDay() == 1 }

// latest returns the condition that a date is the latest one under the other conditions on its column.
func (s *scope) latest(c Condition, at cell, beside []Condition) (string, error) {
	inner := s.c.scope(at.table.data, s)
	dates := inner.ref(inner.root, c.Name)

	var where []string

	for _, o := range beside {
		if o.Is == Latest || o.Is == Exists || o.Is == NotExists || o.Other != nil || o.Name != c.Name || o.Dataset != at.table.data.Name || !slices.Equal(o.Via, c.Via) {
			continue
		}

		o.Column = Column{Name: c.Name}

		sql, err := inner.condition(o, at.table.data, nil)
		if err != nil {
			return "", err
		}

		where = append(where, sql)
	}

	return day(at.sql, at.info) + " = (SELECT max(" + day(dates, at.info) + ")" + inner.from() + clause(" WHERE ", where) + ")", nil
}

// clause returns conditions that all hold, after a word.
func clause(word string, conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}

	return word + strings.Join(conditions, " AND ")
}

// exists returns the condition that rows of another dataset belong to a row, or none.
func (s *scope) exists(c Condition, home *Dataset) (string, error) {
	if c.Rows == nil {
		return "", &FigureError{Reason: Incomplete}
	}

	subject := home
	if c.Dataset != "" {
		subject = s.c.schema.dataset(c.Dataset)
	}

	d := s.c.schema.dataset(c.Rows.Dataset)

	switch {
	case subject == nil:
		return "", &NameError{Dataset: c.Dataset}
	case d == nil:
		return "", &NameError{Dataset: c.Rows.Dataset}
	}

	owner, err := s.reach(subject, c.Via, home)
	if err != nil {
		return "", err
	}

	var (
		inner = s.c.scope(d, s)
		match string
	)

	forth := s.c.schema.paths(owner.data, d)

	if back := s.c.schema.paths(d, owner.data); len(back) == 0 && len(forth) > 0 { // the row has at most one
		path, err := choose(forth, owner.data, d, c.Rows.Via, false)
		if err != nil {
			return "", err
		}

		last := len(path.hops) - 1
		from := s.follow(owner, path.hops[:last])
		match = s.equal(path.hops[last], from, inner.root)

		if from != s.root {
			s.reached = append(s.reached, from)
		}
	} else {
		path, err := choose(back, d, owner.data, c.Rows.Via, false)
		if err != nil {
			return "", err
		}

		last := len(path.hops) - 1
		match = s.equal(path.hops[last], inner.follow(inner.root, path.hops[:last]), owner)
	}

	where, err := inner.conditions(given{list: c.Rows.Where, home: d}, nil)
	if err != nil {
		return "", err
	}

	sql := "EXISTS (SELECT 1" + inner.from() + clause(" WHERE ", append([]string{match}, where...)) + ")"

	switch {
	case c.Is == Exists:
		return sql, nil
	case owner != s.root: // a row that is not there is not one without rows
		return "(" + s.ref(owner, owner.key) + " IS NOT NULL AND NOT " + sql + ")", nil
	default:
		return "NOT " + sql, nil
	}
}
