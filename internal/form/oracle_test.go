package form_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/form"
)

// The calculation of a form row by row. It shares nothing with the compiler but the form.

// Why a form has no result.
var (
	errPaths  = errors.New("several paths")
	errJoin   = errors.New("no path")
	errFigure = errors.New("no figure")
)

// ways returns the ways from a row to at most one row of another dataset.
func (h *heap) ways(to *heap) (list [][]link) {
	var walk func(at *heap, way []link)

	walk = func(at *heap, way []link) {
		for _, l := range at.links {
			if !l.to.unique || len(way) == 3 { // datasets lead only to later ones, so no way passes one twice
				continue
			}

			next := append(slices.Clone(way), l)
			if l.to == to {
				list = append(list, next)
			} else {
				walk(l.to, next)
			}
		}
	}

	walk(h, nil)

	return list
}

func names(way []link) (list []string) {
	for _, l := range way {
		list = append(list, l.column)
	}

	return list
}

// partner returns the row that a row leads to, or nil.
func partner(row map[string]any, way []link) map[string]any {
	for _, l := range way {
		if row == nil || row[l.column] == nil {
			return nil
		}

		i := slices.IndexFunc(l.to.rows, func(o map[string]any) bool { return o["id"] == row[l.column] })
		if i < 0 {
			return nil
		}

		row = l.to.rows[i]
	}

	return row
}

// one returns the only way, or the one that a column names. From another dataset than that of the form, via is the end
// of the way.
func one(ways [][]link, via []string, foreign bool) ([]link, error) {
	fit := ways
	if len(via) > 0 && (!foreign || len(ways) > 1) {
		fit = slices.DeleteFunc(slices.Clone(ways), func(w []link) bool {
			n := names(w)
			if foreign && len(n) > len(via) {
				n = n[len(n)-len(via):]
			}

			return !slices.Equal(n, via)
		})
	}

	switch {
	case len(ways) == 0:
		return nil, errJoin
	case len(fit) != 1:
		return nil, errPaths
	default:
		return fit[0], nil
	}
}

// oracle calculates a form.
type oracle struct {
	*made

	form form.Form
	home *heap
}

func (o *oracle) table(name string) *heap {
	if name == "" {
		return o.home
	}

	return o.tables[slices.IndexFunc(o.tables, func(h *heap) bool { return h.name == name })]
}

type row = map[string]any

// getter returns a function for the values of a column for rows of a dataset. home is the dataset of columns without one.
func (o *oracle) getter(root *heap, c form.Column, home *heap) (func(row) any, error) {
	target := home
	if c.Dataset != "" {
		target = o.table(c.Dataset)
	}

	if target == root && (len(c.Via) == 0 || home != root) {
		return func(r row) any { return r[c.Name] }, nil
	}

	way, err := one(root.ways(target), c.Via, home != root)
	if err != nil {
		return nil, err
	}

	return func(r row) any { return partner(r, way)[c.Name] }, nil
}

// test is a condition on rows.
type test func(row) bool

// tests returns the conditions on the rows of a dataset. Those on the many side hold for one row there, unless strict.
func (o *oracle) tests(root *heap, list []form.Condition, home *heap, strict bool) (all []test, err error) {
	many := map[string]*form.Condition{}

	var order []string

	for _, c := range list {
		target := home
		if c.Dataset != "" {
			target = o.table(c.Dataset)
		}

		if c.Is == form.Exists || c.Is == form.NotExists {
			t, err := o.exists(root, c, target, home)
			if err != nil {
				return nil, err
			}

			all = append(all, t)

			continue
		}

		if !strict && target != root && len(root.ways(target)) == 0 && len(target.ways(root)) > 0 {
			key := target.name + strings.Join(c.Via, "/")
			if many[key] == nil {
				many[key] = &form.Condition{Is: form.Exists, Rows: &form.Rows{Dataset: target.name, Via: c.Via}}
				order = append(order, key)
			}

			c.Column = form.Column{Name: c.Name}
			many[key].Rows.Where = append(many[key].Rows.Where, c)

			continue
		}

		get, err := o.getter(root, c.Column, home)
		if err != nil {
			return nil, err
		}

		all = append(all, func(r row) bool { return holds(c, get(r)) })
	}

	for _, key := range order {
		t, err := o.exists(root, *many[key], root, root)
		if err != nil {
			return nil, err
		}

		all = append(all, t)
	}

	return all, nil
}

func holds(c form.Condition, v any) bool {
	switch c.Is {
	case form.Is:
		return slices.Contains(c.Values, v)
	case form.IsNot:
		return !slices.Contains(c.Values, v)
	case form.Empty:
		return v == nil
	case form.AtLeast:
		return v != nil && number(v) >= c.Number
	case form.In:
		return v != nil && strings.HasPrefix(written(v), "2025-")
	default:
		panic(c.Is)
	}
}

// exists returns the condition that a row of rows belongs to the subject of a row.
func (o *oracle) exists(root *heap, c form.Condition, subject, home *heap) (test, error) {
	self := func(r row) row { return r }

	if subject != root {
		way, err := one(root.ways(subject), nil, home != root)
		if err != nil {
			return nil, err
		}

		self = func(r row) row { return partner(r, way) }
	}

	rows := o.table(c.Rows.Dataset)
	back, forth := rows.ways(subject), subject.ways(rows)

	var belongs func(mine, theirs row) bool

	if len(back) == 0 && len(forth) > 0 {
		way, err := one(forth, c.Rows.Via, false)
		if err != nil {
			return nil, err
		}

		belongs = func(mine, theirs row) bool { return same(partner(mine, way), theirs) }
	} else {
		way, err := one(back, c.Rows.Via, false)
		if err != nil {
			return nil, err
		}

		belongs = func(mine, theirs row) bool { return same(partner(theirs, way), mine) }
	}

	tests, err := o.tests(rows, c.Rows.Where, rows, false)
	if err != nil {
		return nil, err
	}

	return func(r row) bool {
		mine := self(r)
		if mine == nil {
			return false
		}

		found := slices.ContainsFunc(rows.rows, func(theirs row) bool { return belongs(mine, theirs) && passes(tests, theirs) })

		return found == (c.Is == form.Exists)
	}, nil
}

// same reports whether two rows are the same one, not only equal.
func same(a, b row) bool {
	return a != nil && b != nil && fmt.Sprintf("%p", a) == fmt.Sprintf("%p", b)
}

func passes(tests []test, r row) bool {
	return !slices.ContainsFunc(tests, func(t test) bool { return !t(r) })
}

// grouping returns the function for the groups of the rows of a dataset.
func (o *oracle) grouping(root *heap, facts []*heap) (func(row) []any, error) {
	var getters []func(row) any

	columns := make([]form.Group, 0, len(o.form.Groups))

	for _, g := range o.form.Groups {
		columns = append(columns, g)
		if g.Key != nil {
			columns = append(columns, form.Group{Column: *g.Key})
		}
	}

	for _, g := range columns {
		get, err := o.getter(root, g.Column, o.home)
		target := o.table(g.Dataset)

		// Two facts without a common dimension meet on columns of the same name.
		if errors.Is(err, errJoin) && len(g.Via) == 0 && len(target.ways(root)) == 0 && root.suffix == target.suffix && (target == o.home || slices.Contains(facts, target)) {
			get, err = func(r row) any { return r[g.Name] }, nil
		}

		if err != nil {
			return nil, err
		}

		if g.Grain == form.Month {
			day := get
			get = func(r row) any {
				if v, isText := day(r).(string); isText {
					return v[:7] + "-01"
				}

				return nil
			}
		}

		getters = append(getters, get)
	}

	return func(r row) (key []any) {
		for _, get := range getters {
			key = append(key, get(r))
		}

		return key
	}, nil
}

// figure returns the function for a leaf over the rows of a group.
func (o *oracle) figure(m form.Measure, root *heap) (func([]row) any, error) {
	if m.Of == nil {
		return func(rows []row) any { return float64(len(rows)) }, nil
	}

	product := m.Of.Op == form.Times
	columns := []form.Column{m.Of.Column}

	if product {
		columns = []form.Column{m.Of.Args[0].Column, m.Of.Args[1].Column}
	}

	getters := make([]func(row) any, len(columns))

	for i, c := range columns {
		get, err := o.getter(root, c, root)
		if err != nil {
			return nil, err
		}

		getters[i] = get
	}

	// A figure of a row that several rows lead to would be counted several times.
	if c := columns[0]; (m.Function == form.Sum || m.Function == form.Average) && c.Dataset != "" && o.table(c.Dataset) != root {
		return nil, errFigure
	}

	return func(rows []row) any {
		var values []any

		for _, r := range rows {
			v := getters[0](r)
			if product && v != nil {
				if by := getters[1](r); by != nil {
					v = number(v) * number(by)
				} else {
					v = nil
				}
			}

			if v != nil {
				values = append(values, v)
			}
		}

		return aggregate(m.Function, values)
	}, nil
}

func aggregate(f form.Function, values []any) any {
	if f == form.CountDistinct {
		different := map[any]bool{}
		for _, v := range values {
			different[v] = true
		}

		return float64(len(different))
	}

	if len(values) == 0 {
		return nil
	}

	total, most := 0.0, math.Inf(-1)

	for _, v := range values {
		total += number(v)
		most = max(most, number(v))
	}

	switch f {
	case form.Sum:
		return total
	case form.Average:
		return total / float64(len(values))
	default:
		return most
	}
}

// number returns a value that is a number.
func number(v any) float64 {
	n, _ := v.(float64)

	return n
}

// written returns a value as the tests compare it.
func written(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// ordering compares two values; missing ones are last.
func ordering(a, b any) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}

	if x, isNumber := a.(float64); isNumber {
		return cmp.Compare(x, number(b))
	}

	return cmp.Compare(written(a), written(b))
}
