package form

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// aggregated returns the datasets whose rows are aggregated, each once.
func (c *compiler) aggregated() (list []*Dataset, err error) {
	measures := slices.Clone(c.form.Measures)

	for _, h := range c.form.Having {
		measures = append(measures, h.Measure)
		if h.Other != nil {
			measures = append(measures, *h.Other)
		}
	}

	for _, m := range measures {
		leaves, err := c.leaves(m)
		if err != nil {
			return nil, err
		}

		for _, d := range leaves {
			if !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}

	return list, nil
}

// isSpine reports whether the rows of the form's dataset are grouped although none of its figures is asked for, so that
// groups without figures are kept: all customers, with the number of their orders.
func (c *compiler) isSpine() bool {
	if len(c.form.Groups) == 0 || slices.Contains(c.facts, c.home) {
		return false
	}

	s := (&compiler{schema: c.schema, form: c.form, home: c.home, facts: c.facts}).scope(c.home, nil)

	if _, err := s.groups(); err != nil {
		return false
	}

	_, err := s.conditions(given{list: c.form.Where, home: c.home, one: true}, nil)

	return err == nil
}

func (c *compiler) isFact(name string) bool {
	return name == c.home.Name || slices.ContainsFunc(c.facts, func(d *Dataset) bool { return d.Name == name })
}

// figures compiles figures, by groups or of all rows.
func (c *compiler) figures() (string, error) {
	var (
		r   result
		err error
	)

	if c.facts, err = c.aggregated(); err != nil {
		return "", err
	}

	switch {
	case len(c.facts) == 0:
		c.facts = []*Dataset{c.home}
	case c.isSpine():
		c.facts = slices.Insert(c.facts, 0, c.home)
		c.note("Groups of " + mark(c.home.Name) + " without rows of other datasets are shown too.")
	}

	if len(c.facts) == 1 && !c.hasParts() {
		err = c.single(&r, c.facts[0])
	} else {
		err = c.apart(&r)
	}

	if err != nil {
		return "", err
	}

	return c.finish(r)
}

// hasParts reports whether a figure is a share of all groups. Their sum is selected from the groups: a window without an
// order, as in sum(…) OVER (), now and then ends DuckDB 1.5 with an internal error.
func (c *compiler) hasParts() bool {
	return slices.ContainsFunc(c.form.Measures, Measure.isPart) ||
		slices.ContainsFunc(c.form.Having, func(h Having) bool { return h.Measure.isPart() || (h.Other != nil && h.Other.isPart()) })
}

// result is a SELECT of figures in parts.
type result struct {
	with     []string // CTEs
	groups   []item
	measures []item
	having   []string
	from     string // with WHERE
	by       string // GROUP BY
	filter   string // word before having
}

// single compiles figures of one dataset.
func (c *compiler) single(r *result, d *Dataset) (err error) {
	s := c.scope(d, nil)

	if r.groups, err = s.groups(); err != nil {
		return err
	}

	var leaves []leaf

	if err := c.values(r, func(l leaf) (string, error) {
		leaves = append(leaves, l)

		return s.aggregate(l)
	}); err != nil {
		return err
	}

	where, err := s.counted(given{list: c.form.Where, home: c.home}, leaves)
	if err != nil {
		return err
	}

	r.from, r.by, r.filter = s.from()+clause(" WHERE ", where), grouped(r.groups), " HAVING "

	return nil
}

func grouped(groups []item) string {
	if len(groups) == 0 {
		return ""
	}

	by := make([]string, len(groups))
	for i, g := range groups {
		by[i] = g.sql
	}

	return " GROUP BY " + strings.Join(by, ", ")
}

// values adds the measures and the conditions on them.
func (c *compiler) values(r *result, aggregate func(leaf) (string, error)) error {
	var names output

	for _, g := range r.groups {
		names.name(g.name)
	}

	for _, m := range c.form.Measures {
		sql, err := c.measure(m, aggregate)
		if err != nil {
			return err
		}

		r.measures = append(r.measures, item{sql: sql, name: names.name(speaker{schema: c.schema, home: c.home}.titled(m))})
	}

	for _, h := range c.form.Having {
		sql, err := c.having(h, aggregate)
		if err != nil {
			return err
		}

		r.having = append(r.having, sql)
	}

	return nil
}

func (c *compiler) having(h Having, aggregate func(leaf) (string, error)) (string, error) {
	sql, err := c.measure(h.Measure, aggregate)
	if err != nil {
		return "", err
	}

	if err := c.calculable(h.Measure); err != nil {
		return "", err
	}

	operator, with := operators()[h.Is], plain(h.Number)

	switch {
	case h.Is == Between:
		return sql + " BETWEEN " + plain(h.Number) + " AND " + plain(h.Upper), nil
	case operator == "":
		return "", &FigureError{Function: h.Measure.Function, Dataset: c.home.Name, Reason: Incomplete}
	case h.Other != nil:
		if err := c.calculable(*h.Other); err != nil {
			return "", err
		}

		if with, err = c.measure(*h.Other, aggregate); err != nil {
			return "", err
		}
	}

	return sql + operator + with, nil
}

// part is the figures of one of several datasets.
type part struct {
	scope  *scope
	name   string
	groups []item
	values []string
	leaves []leaf
}

// apart compiles figures of several datasets: each is aggregated apart, and then they are joined by their groups, so
// that no row is counted twice. Shares of all groups are calculated in the same way.
func (c *compiler) apart(r *result) error {
	parts := make([]*part, len(c.facts))

	for i, d := range c.facts {
		p := &part{scope: c.scope(d, nil), name: c.free("part_" + strconv.Itoa(i+1))}

		groups, err := p.scope.groups()
		if err != nil {
			return err
		}

		p.groups, parts[i] = groups, p
	}

	for k, g := range parts[0].groups {
		r.groups = append(r.groups, item{sql: met(parts, k), name: g.name, hidden: g.hidden, group: g.group})
	}

	if err := c.values(r, func(l leaf) (string, error) {
		return parts[slices.Index(c.facts, l.data)].add(l)
	}); err != nil {
		return err
	}

	for _, p := range parts {
		sql, err := p.sql()
		if err != nil {
			return err
		}

		r.with = append(r.with, quoted(p.name)+" AS ("+sql+")")
	}

	r.from, r.filter = " FROM "+quoted(parts[0].name), " WHERE "

	for i, p := range parts[1:] {
		if len(p.groups) == 0 {
			r.from += " CROSS JOIN " + quoted(p.name)

			continue
		}

		on := make([]string, len(p.groups))
		for k := range p.groups {
			on[k] = met(parts[:i+1], k) + " IS NOT DISTINCT FROM " + p.column("g", k)
		}

		r.from += " FULL JOIN " + quoted(p.name) + " ON " + strings.Join(on, " AND ")
	}

	return nil
}

// met returns a group that some of the parts have.
func met(parts []*part, k int) string {
	if len(parts) == 1 {
		return parts[0].column("g", k)
	}

	columns := make([]string, len(parts))
	for i, p := range parts {
		columns[i] = p.column("g", k)
	}

	return "coalesce(" + strings.Join(columns, ", ") + ")"
}

func (p *part) column(kind string, i int) string {
	return quoted(p.name) + "." + quoted(kind+strconv.Itoa(i+1))
}

// add adds a leaf, and returns its column.
func (p *part) add(l leaf) (string, error) {
	sql, err := p.scope.aggregate(l)
	if err != nil {
		return "", err
	}

	i := slices.Index(p.values, sql)
	if i < 0 {
		i = len(p.values)
		p.values = append(p.values, sql)
	}

	p.leaves = append(p.leaves, l)

	if l.whole {
		return "(SELECT sum(" + quoted("v"+strconv.Itoa(i+1)) + ") FROM " + quoted(p.name) + ")", nil
	}

	if f := l.measure.Function; len(p.groups) > 0 && len(p.scope.c.facts) > 1 && (f == Count || f == CountDistinct) { // a group that the part lacks has none
		return "coalesce(" + p.column("v", i) + ", 0)", nil
	}

	return p.column("v", i), nil
}

func (p *part) sql() (string, error) {
	s := p.scope

	where, err := s.counted(given{list: p.where(), home: s.c.home, one: len(s.c.facts) > 1}, p.leaves)
	if err != nil {
		return "", err
	}

	var items []string

	for i, g := range p.groups {
		items = append(items, g.sql+" AS "+quoted("g"+strconv.Itoa(i+1)))
	}

	for i, v := range p.values {
		items = append(items, v+" AS "+quoted("v"+strconv.Itoa(i+1)))
	}

	return "SELECT " + strings.Join(items, ", ") + s.from() + clause(" WHERE ", where) + grouped(p.groups), nil
}

// where returns the conditions of the form that hold for the part. A period of the form is not one of another dataset:
// its figures must have their own.
func (p *part) where() (list []Condition) {
	s := p.scope

	for _, c := range s.c.form.Where {
		d := s.c.schema.dataset(cmp.Or(c.Dataset, s.c.home.Name))
		if len(s.c.facts) == 1 || d == nil || d == s.root.data || !isPeriod(c) || !p.hasPeriod() || len(s.c.schema.paths(s.root.data, d)) > 0 {
			list = append(list, c)
		}
	}

	return list
}

func isPeriod(c Condition) bool { return c.Is == In || c.Is == InMonth || c.Is == Latest }

func (p *part) hasPeriod() bool {
	return !slices.ContainsFunc(p.leaves, func(l leaf) bool { return l.all || !slices.ContainsFunc(l.measure.Where, isPeriod) })
}

// free returns a name that no dataset has.
func (c *compiler) free(name string) string {
	for slices.ContainsFunc(c.schema.Datasets, func(d Dataset) bool { return strings.EqualFold(d.Name, name) }) {
		name += "_"
	}

	return name
}

// finish returns the statement.
func (c *compiler) finish(r result) (string, error) {
	var by, rank string

	if o := c.form.Order; o != nil && len(r.groups) > 0 {
		i, err := c.ordered(r)
		if err != nil {
			return "", err
		}

		by, rank = quoted(i.name), i.sql
	}

	var items, ties []string

	for _, i := range append(slices.Clone(r.groups), r.measures...) {
		if !i.hidden {
			items = append(items, i.as())
		}
	}

	for _, g := range r.groups {
		if g.hidden {
			ties = append(ties, g.sql)
		} else {
			ties = append(ties, quoted(g.name))
		}
	}

	return with(r.with) + "SELECT " + strings.Join(items, ", ") + r.from + r.by + clause(r.filter, r.having) + c.end(by, rank, ties), nil
}

func with(list []string) string {
	if len(list) == 0 {
		return ""
	}

	return "WITH " + strings.Join(list, ", ") + " "
}

// ordered returns what groups are ordered by.
func (c *compiler) ordered(r result) (item, error) {
	o := c.form.Order

	if o.Column == nil {
		if len(r.measures) == 0 {
			return r.groups[0], nil
		}

		return r.measures[o.Measure], nil
	}

	for i, g := range c.form.Groups {
		if o.Column.Op == "" && g.Name == o.Column.Name && slices.Equal(g.Via, o.Column.Via) && cmp.Or(g.Dataset, c.home.Name) == cmp.Or(o.Column.Dataset, c.home.Name) {
			return r.groups[slices.IndexFunc(r.groups, func(item item) bool { return item.group == i })], nil
		}
	}

	return item{}, &NameError{Dataset: c.home.Name, Column: o.Column.Name}
}
