package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// many handles "states with more than 5 stores".
func (r *reading) many() bool {
	if len(r.having) != 1 || len(r.groups) > 0 || r.find(opCount, opSum, opAverage) >= 0 {
		return false
	}

	h := r.having[0]
	what, n, ok := r.asked()

	if !ok {
		for i := range r.items[:h.item] {
			if what, n = r.targetAt(i); n > 0 {
				break
			}
		}
	}

	if n == 0 || what.item > h.item {
		return false
	}

	g, ok := r.groupBy(what)
	if !ok || what.grain != "" || r.reach(h.table, what.table) != 1 || what.column == nil && what.table == h.table {
		return false
	}

	r.useFrom(what.item, n)
	r.root = h.table

	m, count := r.count(h.table), form.Measure{Function: form.Count}
	if isFew := h.is == form.LessThan || h.is == form.AtMost || h.n == 0; isFew && what.table != h.table {
		if !r.withNone(what.table, &m, h.table) {
			return false
		}

		count = m
	}

	r.groups = []group{g}
	r.form.Measures = []form.Measure{m}
	r.form.Having = []form.Having{{Measure: count, Is: h.is, Number: h.n, Upper: h.upper}}

	return true
}

// share handles "what percentage of bookings are no-shows", "share of late deliveries per carrier" and "share of revenue
// by region".
func (r *reading) share(i int) bool {
	if w := r.find(opWhich); w >= 0 {
		r.use(w)
	}

	if w := r.find(opAcross); w >= 0 {
		r.use(w)
	}

	m, ok := r.whole(i)
	if !ok {
		return false
	}

	m.Share = true

	if !r.part(&m) {
		return false
	}

	r.form.Measures = append(r.form.Measures, m)

	return true
}

// whole returns the figure of which a share is asked for.
func (r *reading) whole(i int) (m form.Measure, ok bool) {
	at := r.first(measureItem)

	switch {
	case at >= 0:
		named, ok := r.named(r.items[at])
		if !ok {
			return m, false
		}

		m, r.root = *named, r.items[at].table
		r.use(i, at)
	case r.isColumn(i+1, meaning.Role.Adds) && !isOwn(r.column(i+1)):
		named, table, _ := r.measureAt(i + 1)
		m, r.root = *named, table
		r.use(i, i+1)
	case r.first(entityItem) >= 0 && r.word(i) != "how": // "how much of the traffic" is not how many rows
		at = r.first(entityItem)
		r.root = r.items[at].table
		m = r.count(r.root)
		r.use(i, at)
	default:
		return m, false
	}

	return m, true
}

// part sets the part that a share is of.
func (r *reading) part(m *form.Measure) bool {
	var parts []int

	for j := range r.items {
		if r.is(j, valueItem) || r.is(j, columnItem) && r.column(j).Role == meaning.Flag {
			parts = append(parts, j)
		}
	}

	switch {
	case len(r.where) > 0: // "share of orders that are not paid"
		c := r.where[0]
		if len(r.where)+len(parts) > 1 || slices.ContainsFunc(r.times, func(t when) bool { return t.in >= 0 }) || c.Rows == nil && r.reach(r.root, c.table) != 1 || c.Rows != nil && r.reach(c.table, r.root) != 1 {
			return false
		}

		m.Where, r.where = []form.Condition{c.Condition}, nil
	case len(parts) == 0:
		if len(r.groups) == 0 {
			return false
		}
	case len(parts) == 1:
		before := len(r.where)
		r.filters()

		added := r.where[before:]
		if len(added) != 1 {
			return false
		}

		m.Where = []form.Condition{added[0].Condition}
		if r.reach(r.root, added[0].table) != 1 {
			return false
		}

		r.where = r.where[:before]
	default:
		c := r.column(parts[0])

		for _, p := range parts {
			if r.items[p].kind != valueItem || r.column(p) != c {
				return false
			}

			r.use(p)
		}

		if int64(len(parts)) != c.Distinct || c.Nulls > 0 || len(r.groups) > 0 {
			return false
		}

		r.groups = append(r.groups, group{form.Group{Column: r.ref(c)}, c.table, ""})
	}

	return true
}
