package form_test

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
)

// fact is the rows of a dataset by their groups.
type fact struct {
	root   *heap
	groups map[string][]row
	leaves []form.Measure
}

// calculation is a form under calculation.
type calculation struct {
	oracle

	facts []*fact
	keys  map[string][]any // of the groups of all facts
}

// calculate returns the rows of a form. Those of a list are in no order.
func calculate(m *made, f form.Form) ([]string, error) {
	c := &calculation{oracle: oracle{made: m, form: f}, keys: map[string][]any{}}
	c.home = m.tables[slices.IndexFunc(m.tables, func(h *heap) bool { return h.name == f.Dataset })]

	if len(f.Measures) == 0 {
		return c.list()
	}

	if err := c.gather(); err != nil {
		return nil, err
	}

	return c.result()
}

func (c *calculation) list() (out []string, err error) {
	var getters []func(row) any

	for _, t := range c.form.Show {
		get, err := c.getter(c.home, t.Column, c.home)
		if err != nil {
			return nil, err
		}

		getters = append(getters, get)
	}

	tests, err := c.tests(c.home, c.form.Where, c.home, false)

	for _, r := range c.home.rows {
		if err != nil || !passes(tests, r) {
			continue
		}

		values := make([]string, len(getters))
		for i, get := range getters {
			values[i] = written(get(r))
		}

		out = append(out, strings.Join(values, " "))
	}

	return out, err
}

func (c *calculation) leaf(m form.Measure) {
	root := c.table(m.Dataset)

	i := slices.IndexFunc(c.facts, func(f *fact) bool { return f.root == root })
	if i < 0 {
		i = len(c.facts)
		c.facts = append(c.facts, &fact{root: root, groups: map[string][]row{}})
	}

	c.facts[i].leaves = append(c.facts[i].leaves, m)

	for _, inner := range []*form.Measure{m.Less, m.Per} {
		if inner != nil {
			c.leaf(*inner)
		}
	}
}

// gather groups the rows of each dataset.
func (c *calculation) gather() error {
	for _, m := range c.form.Measures {
		c.leaf(m)
	}

	for _, h := range c.form.Having {
		c.leaf(h.Measure)
	}

	roots := make([]*heap, 0, len(c.facts)+1)
	for _, f := range c.facts {
		roots = append(roots, f.root)
	}

	if len(c.form.Groups) > 0 && !slices.Contains(roots, c.home) { // groups of the form's dataset without figures are kept
		_, noGroups := c.grouping(c.home, roots)
		_, noTests := c.tests(c.home, c.form.Where, c.home, true)

		if noGroups == nil && noTests == nil {
			c.facts = append(c.facts, &fact{root: c.home, groups: map[string][]row{}})
			roots = append(roots, c.home)
		}
	}

	for _, f := range c.facts {
		group, err := c.grouping(f.root, roots)
		if err != nil {
			return err
		}

		tests, err := c.tests(f.root, c.where(f), c.home, len(c.facts) > 1)
		if err != nil {
			return err
		}

		for _, r := range f.root.rows {
			if !passes(tests, r) {
				continue
			}

			key := group(r)
			name := label(key)
			c.keys[name] = key
			f.groups[name] = append(f.groups[name], r)
		}
	}

	if len(c.form.Groups) == 0 {
		c.keys[""] = nil
	}

	return nil
}

// where returns the conditions of the form without a period that the figures of the dataset replace by their own.
func (c *calculation) where(f *fact) []form.Condition {
	own := !slices.ContainsFunc(f.leaves, func(m form.Measure) bool {
		shareOfAll := m.Share && m.Per == nil && len(m.Where) > 0

		return shareOfAll || !slices.ContainsFunc(m.Where, func(c form.Condition) bool { return c.Is == form.In })
	})

	return slices.DeleteFunc(slices.Clone(c.form.Where), func(w form.Condition) bool {
		target := c.table(w.Dataset)

		return len(c.facts) > 1 && own && w.Is == form.In && target != f.root && len(f.root.ways(target)) == 0
	})
}

func label(key []any) string {
	parts := make([]string, len(key))
	for i, v := range key {
		parts[i] = written(v)
	}

	return strings.Join(parts, " ")
}

// own returns a figure by group, without what it is compared with.
func (c *calculation) own(m form.Measure, all bool) (map[string]any, error) {
	root := c.table(m.Dataset)
	f := c.facts[slices.IndexFunc(c.facts, func(f *fact) bool { return f.root == root })]

	figure, err := c.figure(m, root)
	if err != nil {
		return nil, err
	}

	var tests []test

	if !all {
		if tests, err = c.tests(root, m.Where, root, false); err != nil {
			return nil, err
		}
	}

	values := map[string]any{}

	for key := range c.keys {
		var rows []row

		for _, r := range f.groups[key] {
			if passes(tests, r) {
				rows = append(rows, r)
			}
		}

		values[key] = figure(rows)
	}

	return values, nil
}

func ratio(a, b any, factor float64) any {
	if a == nil || b == nil || b == 0.0 {
		return nil
	}

	return factor * number(a) / number(b)
}

func orZero(v any, isSum bool) any {
	if v == nil && isSum {
		return 0.0
	}

	return v
}

// measure returns a measure by group.
func (c *calculation) measure(m form.Measure) (map[string]any, error) {
	values, err := c.own(m, false)
	if err != nil {
		return nil, err
	}

	if m.Share {
		return c.share(m, values)
	}

	for _, inner := range []*form.Measure{m.Less, m.Per} {
		if inner == nil {
			continue
		}

		others, err := c.measure(*inner)
		if err != nil {
			return nil, err
		}

		for key, v := range values {
			if inner == m.Per {
				values[key] = ratio(v, others[key], 1)

				continue
			}

			a, b := orZero(v, m.Function == form.Sum), orZero(others[key], inner.Function == form.Sum)

			values[key] = nil
			if a != nil && b != nil {
				values[key] = number(a) - number(b)
			}
		}
	}

	return values, nil
}

func (c *calculation) share(m form.Measure, values map[string]any) (map[string]any, error) {
	out := map[string]any{}

	if len(m.Where) > 0 {
		all, err := c.own(m, true)
		for key, v := range values {
			out[key] = ratio(orZero(v, m.Function == form.Sum), all[key], 100)
		}

		return out, err
	}

	if len(c.form.Groups) == 0 {
		return nil, errFigure
	}

	total := 0.0

	for _, v := range values {
		if v != nil {
			total += number(v)
		}
	}

	for key, v := range values {
		out[key] = ratio(v, total, 100)
	}

	return out, nil
}

// result returns the rows in their order.
func (c *calculation) result() (out []string, err error) {
	columns := make([]map[string]any, len(c.form.Measures))

	for i, m := range c.form.Measures {
		if columns[i], err = c.measure(m); err != nil {
			return nil, err
		}
	}

	keys := make([]string, 0, len(c.keys))
	for key := range c.keys {
		keys = append(keys, key)
	}

	for _, h := range c.form.Having {
		values, err := c.measure(h.Measure)
		if err != nil {
			return nil, err
		}

		keys = slices.DeleteFunc(keys, func(key string) bool { return values[key] == nil || number(values[key]) < h.Number })
	}

	o := c.form.Order

	value := func(key string) any {
		if o == nil {
			return nil
		}

		return columns[o.Measure][key]
	}

	slices.SortFunc(keys, func(a, b string) int {
		if by := ordering(value(a), value(b)); by != 0 {
			if o.Descending && value(a) != nil && value(b) != nil {
				return -by
			}

			return by
		}

		return slices.CompareFunc(c.keys[a], c.keys[b], ordering)
	})

	switch limit := c.form.Limit; {
	case limit == 1 && o != nil && len(keys) > 0:
		best := value(keys[0])
		keys = slices.DeleteFunc(keys, func(key string) bool { return ordering(value(key), best) != 0 })
	case limit > 0:
		keys = keys[:min(limit, len(keys))]
	}

	for _, key := range keys {
		line := label(c.keys[key])
		for i := range columns {
			line = strings.TrimSpace(line + " " + written(columns[i][key]))
		}

		out = append(out, line)
	}

	return out, nil
}
