package planner

import "slices"

// sound checks and completes the whole form. It returns false if the form contradicts itself or has no meaning.
func (r *reader) sound() bool {
	r.countRows()
	r.cells()
	r.leaveTotals()

	times := map[string]int{}

	for _, f := range r.form.Where {
		if f.Comparison == IsIn {
			times[f.Column]++

			if times[f.Column] > 1 { // "in 2004 and 2013"
				return false
			}

			r.inRange(f)
		}

		r.exceeds(f)
	}

	for _, m := range r.form.Measures {
		if slices.ContainsFunc(r.form.Groups, func(g Group) bool { return g.Column == m.Column }) {
			return false
		}
	}

	return true
}

// countRows replaces a count of distinct values by a count of rows if a condition selects values of the same column, or
// if there are other conditions and most rows have their own value. It lowers the trust if it is not clear which count
// is meant.
func (r *reader) countRows() {
	for i, m := range r.form.Measures {
		if m.Function != CountDistinct {
			continue
		}

		if slices.ContainsFunc(r.form.Where, func(f Filter) bool { return f.Column == m.Column }) {
			r.form.Measures[i] = Measure{Function: Count}

			continue
		}

		if r.isDistinct() {
			continue
		}

		often := 2*r.named(m.Column).Distinct <= r.Rows

		switch {
		case len(r.form.Where) == 0 && often:
		case len(r.form.Where) == 0: // unclear whether names or rows are counted
			r.doubt(0.6)
		case often:
			r.doubt(0.62)
		default:
			r.form.Measures[i] = Measure{Function: Count}

			r.doubt(0.75)
		}
	}
}

// isDistinct reports whether the question asks for distinct values.
func (r *reader) isDistinct() bool {
	return slices.ContainsFunc(r.items, func(one *item) bool { return one.kind == operator && one.op == opDistinct })
}

// inRange lowers the trust in a period for which the dataset has no rows.
func (r *reader) inRange(f Filter) {
	c := slices.IndexFunc(r.columns, func(c column) bool { return c.Name == f.Column })
	least, most := timeText(r.columns[c].Min), timeText(r.columns[c].Max)

	from, to := f.Period.From.Format("2006-01-02"), f.Period.To.Format("2006-01-02")
	if f.isYear {
		from, to = from[:4], to[:4]
	}

	if least != "" && !f.Period.To.IsZero() && to <= least || most != "" && !f.Period.From.IsZero() && from > most {
		r.doubt(0.5)
	}
}

// exceeds lowers the trust in a comparison that is true for no row or for all rows: another column is probably meant.
func (r *reader) exceeds(f Filter) {
	switch f.Comparison {
	case Over, AtLeast, Under, AtMost, IsBetween:
	default:
		return
	}

	c := slices.IndexFunc(r.columns, func(c column) bool { return c.Name == f.Column })
	least, ok := toNumber(r.columns[c].Min)
	most, also := toNumber(r.columns[c].Max)

	if ok && also && f.Other == "" && !f.written && (f.Number > most || f.Number < least) {
		r.doubt(0.5)
	}
}

func timeText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return plain(v)
	default:
		return ""
	}
}

// leaveTotals adds a condition that excludes a row that is the sum of the others, except for a list without an order.
func (r *reader) leaveTotals() {
	if r.form.Kind == List && r.form.Order == nil {
		return
	}

	for _, l := range r.totals {
		c := slices.IndexFunc(r.columns, func(c column) bool { return c.Name == l.Column })
		if l.Dataset != r.Name || c < 0 || slices.ContainsFunc(r.form.Where, func(f Filter) bool { return f.Column == l.Column }) {
			continue
		}

		if c <= 1 || c == r.label || r.columns[c].unique {
			r.form.Where = append(r.form.Where, Filter{Column: l.Column, Comparison: IsNot, Values: []string{l.Value}})

			return
		}
	}
}

// manyColumns reports whether the conditions use several columns.
func (r *reader) manyColumns() bool {
	columns := map[string]bool{}

	for _, f := range r.form.Where {
		columns[f.Column] = true
	}

	return len(columns) > 1
}
