package form

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/meaning"
)

// Statement is a form as SQL.
type Statement struct {
	SQL            string
	Interpretation string   // the form in words
	Notes          []string // sentences: the defaults that were used, and what a reader must know
	Check          Check    // of rows that the figures may leave out
}

// Compile returns the statement of a form. The errors *PathsError, *JoinError, *FigureError and *NameError say what the
// form lacks. They contain names and no values.
func (s *Schema) Compile(f Form) (Statement, error) {
	c := &compiler{schema: s, form: f}

	sql, err := c.compile()
	if err == nil && c.tables == 1 {
		c = &compiler{schema: s, form: f, bare: true}
		sql, err = c.compile()
	}

	if err != nil {
		return Statement{}, err
	}

	return Statement{SQL: sql, Interpretation: s.interpretation(f), Notes: c.notes, Check: c.check()}, nil
}

func (c *compiler) compile() (string, error) {
	c.home = c.schema.dataset(c.form.Dataset)

	switch {
	case c.home == nil:
		return "", &NameError{Dataset: c.form.Dataset}
	case c.form.Order != nil && (c.form.Order.Measure < 0 || c.form.Order.Measure >= max(1, len(c.form.Measures))):
		return "", &FigureError{Dataset: c.home.Name, Reason: Incomplete}
	case len(c.form.Measures) == 0 && len(c.form.Groups) == 0 && len(c.form.Having) > 0:
		return "", &FigureError{Dataset: c.home.Name, Reason: Incomplete}
	case len(c.form.Measures) == 0 && len(c.form.Groups) == 0:
		return c.list()
	default:
		return c.figures()
	}
}

// item is a column of the result, or one that the result is grouped or ordered by.
type item struct {
	sql, name string
	hidden    bool
	group     int // that it belongs to
}

func (i item) as() string { return i.sql + " AS " + quoted(i.name) }

// output names the columns of a result.
type output struct{ used map[string]bool }

// name returns the first name that is free.
func (o *output) name(choices ...string) string {
	if o.used == nil {
		o.used = map[string]bool{}
	}

	name := choices[0]
	for i := 1; o.used[strings.ToLower(name)]; i++ {
		if i < len(choices) {
			name = choices[i]
		} else {
			name = choices[0] + " " + strconv.Itoa(i-len(choices)+2)
		}
	}

	o.used[strings.ToLower(name)] = true

	return name
}

// list compiles a list of rows.
func (c *compiler) list() (string, error) {
	var (
		f     = c.form
		s     = c.scope(c.home, nil)
		names output
		items []item
		keys  []string
	)

	if len(f.Show) == 0 {
		for _, info := range c.home.Columns {
			names.name(info.Name)
		}
	}

	for _, t := range f.Show {
		sql, at, err := s.shown(t, c.home)
		if err != nil {
			return "", err
		}

		name := names.name(c.schema.calculation(t, c.home))

		if at != nil {
			delete(names.used, strings.ToLower(name))
			name = names.name(t.Name, at.table.data.row()+" "+t.Name)
			s.noteShown(at.table)
		}

		items = append(items, item{sql: sql, name: name})
	}

	where, err := s.conditions(given{list: f.Where, home: c.home}, nil)
	if err != nil {
		return "", err
	}

	order, err := s.listOrder(&items, &names)
	if err != nil {
		return "", err
	}

	if order != "" && f.Limit > 0 {
		where = append(where, s.totals(&err)...)
	}

	selected := make([]string, 0, len(items)+1)

	if len(f.Show) == 0 {
		selected = append(selected, s.all())
	}

	for _, i := range items {
		selected = append(selected, i.selected())

		if i.sql != order || f.Limit == 1 {
			keys = append(keys, i.key())
		}
	}

	if len(f.Show) == 0 {
		keys = s.identity()
	}

	distinct := ""
	if f.Distinct {
		distinct = "DISTINCT "
	}

	return "SELECT " + distinct + strings.Join(selected, ", ") + s.from() + clause(" WHERE ", where) + c.end(order, order, keys), err
}

// all returns all columns of the dataset.
func (s *scope) all() string {
	if s.c.bare {
		return "*"
	}

	return quoted(s.root.alias) + ".*"
}

// selected leaves out the name if it is that of the column.
func (i item) selected() string {
	if i.sql == quoted(i.name) || strings.HasSuffix(i.sql, "."+quoted(i.name)) {
		return i.sql
	}

	return i.as()
}

// key returns what rows are ordered by. A column that is shown under its own name is written with its dataset: the name alone
// is ambiguous if a joined dataset has a column of that name.
func (i item) key() string {
	if strings.HasSuffix(i.sql, "."+quoted(i.name)) {
		return i.sql
	}

	return quoted(i.name)
}

// identity returns what tells rows apart, so that their order is always the same.
func (s *scope) identity() (list []string) {
	if len(s.root.data.Keys) > 0 {
		for _, name := range s.root.data.Keys[0] {
			list = append(list, s.ref(s.root, name))
		}

		return list
	}

	for _, info := range s.root.data.Columns {
		list = append(list, s.ref(s.root, info.Name))
	}

	return list
}

// listOrder returns what a list is ordered by. The rows without duplicates can be ordered only by what they show.
func (s *scope) listOrder(items *[]item, names *output) (string, error) {
	f := s.c.form
	if f.Order == nil || f.Order.Column == nil {
		return "", nil
	}

	sql, _, err := s.shown(*f.Order.Column, s.c.home)
	if err != nil {
		return "", err
	}

	if f.Distinct && len(f.Show) > 0 && !slices.ContainsFunc(*items, func(i item) bool { return i.sql == sql }) {
		name := names.name(s.c.schema.calculation(*f.Order.Column, s.c.home))
		*items = append(*items, item{sql: sql, name: name})
	}

	return sql, nil
}

// end returns the order and the limit. With an order and a limit of 1 the result contains all rows that tie for first.
func (c *compiler) end(by, rank string, ties []string) string {
	direction := " ASC NULLS LAST"
	if c.form.Order != nil && c.form.Order.Descending {
		direction = " DESC NULLS LAST"
	}

	switch {
	case by == "" && c.form.Limit <= 0 && len(c.form.Measures) == 0 && len(c.form.Groups) == 0: // all rows, as they are stored
		return ""
	case by == "":
		return order(ties) + c.limit()
	case c.form.Limit == 1:
		return " QUALIFY rank() OVER (ORDER BY " + rank + direction + ") = 1" + order(ties)
	default:
		return order(append([]string{by + direction}, slices.DeleteFunc(slices.Clone(ties), func(t string) bool { return t == by })...)) + c.limit()
	}
}

func order(by []string) string {
	if len(by) == 0 {
		return ""
	}

	return " ORDER BY " + strings.Join(by, ", ")
}

func (c *compiler) limit() string {
	if c.form.Limit <= 0 {
		return ""
	}

	return " LIMIT " + strconv.Itoa(c.form.Limit)
}

// totals returns the conditions that leave out rows that are sums of other rows.
func (s *scope) totals(failed *error) (list []string) {
	for _, c := range s.root.data.Totals {
		sql, err := s.condition(c, s.root.data, nil)
		if err != nil {
			*failed = err

			return nil
		}

		list = append(list, "NOT coalesce("+sql+", false)")
		s.c.note("Rows of " + mark(s.root.data.Name) + " that are totals of other rows are left out.")
	}

	return list
}

func (s *scope) noteShown(t *table) {
	if t.partial {
		s.c.note("Rows of " + mark(s.root.data.Name) + " without " + article(t.data.row()) + " are shown as empty.")
	}
}

// groups returns what the rows of a scope are grouped by.
func (s *scope) groups() (list []item, err error) {
	var names output

	for n, g := range s.c.form.Groups {
		at, err := s.group(g.Column)
		if err != nil {
			return nil, err
		}

		s.noteShown(at.table)

		i, err := s.grained(g, at)
		if err != nil {
			return nil, err
		}

		i.name, i.group = names.name(i.name, at.table.data.row()+" "+i.name), n
		list = append(list, i)

		if g.Key == nil {
			continue
		}

		key, err := s.group(*g.Key)
		if err != nil {
			return nil, err
		}

		if key.sql != at.sql {
			name := names.name(g.Key.Name, key.table.data.row()+" "+g.Key.Name)
			list = append(list, item{sql: key.sql, name: name, hidden: at.table.data.isKey([]string{at.info.Name}), group: n})
		}
	}

	return list, nil
}

func (s *scope) grained(g Group, at cell) (item, error) {
	isYear := at.info.role() == meaning.Year && at.info.kind() != moment

	switch {
	case g.Grain == "" || isYear:
		return item{sql: at.sql, name: g.Name}, nil
	case at.info.kind() != moment && at.info.kind() != text, !slices.Contains([]Grain{Day, Week, Month, Quarter, Year}, g.Grain):
		return item{}, &FigureError{Dataset: at.table.data.Name, Column: g.Name, Reason: NotAFigure}
	case g.Grain == Year:
		return item{sql: "year(" + day(at.sql, at.info) + ")", name: "year"}, nil
	default:
		return item{sql: "CAST(date_trunc('" + string(g.Grain) + "', " + day(at.sql, at.info) + ") AS DATE)", name: string(g.Grain)}, nil
	}
}

// group returns a column that rows are grouped by. Two datasets that share no dimension meet on columns of the same name
// and role.
func (s *scope) group(c Column) (cell, error) {
	at, err := s.find(c, s.c.home)

	var join *JoinError
	if !errors.As(err, &join) || len(c.Via) > 0 || join.Reversed {
		return at, err
	}

	theirs, ours := s.c.schema.dataset(join.To).column(c.Name), s.root.data.column(c.Name)
	if ours == nil || ours.role() != theirs.role() || ours.kind() != theirs.kind() || !s.c.isFact(join.To) {
		return cell{}, err
	}

	s.c.note(mark(c.Name) + " of " + mark(join.To) + " and of " + mark(s.root.data.Name) + " are taken as the same.")

	return cell{sql: s.ref(s.root, c.Name), info: ours, table: s.root}, nil
}
