package planner

import (
	"slices"
	"time"
)

// periods handles periods and chooses their columns.
func (r *reader) periods() {
	for i := range r.items {
		p, ok := r.periodOf(i)
		if !ok {
			continue
		}

		first, last := i, i

		switch {
		case r.isOp(i-1, opBetween, opSince) && r.isOp(i+1, opAnd, opTo, opUntil):
			until, ok := r.periodOf(i + 2)
			if !ok {
				continue
			}

			first, last = i-1, i+2
			p = Period{From: p.From, To: until.To, Text: p.Text + " to " + until.Text, Grain: p.Grain}
		case r.isOp(i-1, opAfter):
			first = i - 1
			p = Period{From: p.To, Text: "after " + p.Text, Grain: p.Grain}
		case r.isOp(i-1, opSince) && p.Grain != "":
			first = i - 1
			p = Period{From: p.From, Text: "since " + p.Text, Grain: p.Grain}
		case r.isOp(i-1, opBefore):
			first = i - 1
			p = Period{To: p.From, Text: "before " + p.Text, Grain: p.Grain}
		case r.isOp(i-1, opUntil):
			first = i - 1
			p = Period{To: p.To, Text: "until " + p.Text, Grain: p.Grain}
		}

		column := r.timeOf(first, last, p)
		if column < 0 {
			continue
		}

		for j := first; j <= last; j++ {
			r.used[j] = true
		}

		r.form.Where = append(r.form.Where, Filter{Column: r.columns[column].Name, Comparison: IsIn, Period: p, isYear: r.columns[column].kind == year})
	}
}

func (r *reader) periodOf(i int) (Period, bool) {
	switch {
	case !r.free(i):
		return Period{}, false
	case r.items[i].kind == periodItem:
		return r.items[i].period, true
	case r.items[i].kind == numberItem && r.items[i].isYear:
		return spanOf(time.Date(int(r.items[i].number), 1, 1, 0, 0, 0, 0, time.UTC), Year), true
	default:
		return Period{}, false
	}
}

// timeOf returns the column of a period: one that is named next to it, else the nearest, else the only one.
func (r *reader) timeOf(first, last int, p Period) int {
	kinds := []kind{moment}
	if p.Grain == Year {
		kinds = append(kinds, year)
	}

	for _, j := range []int{first - 1, last + 1} {
		if r.free(j) && r.items[j].kind == columnItem && r.pick(j, kinds...) >= 0 {
			return r.take(j, kinds...)
		}
	}

	if j := r.nearest(first, kinds...); j >= 0 {
		return r.take(j, kinds...)
	}

	return r.onlyTime(kinds...)
}

// onlyTime returns the column for a period without a named column, or -1. It lowers the trust if there are several.
func (r *reader) onlyTime(kinds ...kind) int {
	// Another period of the question has already chosen the column.
	for _, f := range r.form.Where {
		if f.Comparison == IsIn {
			return slices.IndexFunc(r.columns, func(c column) bool { return c.Name == f.Column })
		}
	}

	list := r.ofKind(kinds...)

	switch {
	case len(list) == 0:
		return -1
	case len(list) > 1:
		// The start is meant more often than the end. A column with missing values is usually the end.
		list = slices.DeleteFunc(list, func(c int) bool { return r.columns[c].Nulls > 0 || slices.Contains(r.columns[c].words, "due") })
		if len(list) == 0 {
			return -1
		}

		r.doubt([]float64{0.9, 0.7}[min(len(list)-1, 1)])
	}

	return list[0]
}

// namedTime returns the column of times that is named nearest to the item, else the only one, or -1.
func (r *reader) namedTime(at int, named, only []kind) int {
	if j := r.nearest(at, named...); j >= 0 {
		return r.take(j, named...)
	}

	return r.onlyTime(only...)
}

// extremeTime handles "latest" and "first", which refer to times.
func (r *reader) extremeTime(at int, descending bool) bool {
	column := r.namedTime(at, []kind{moment, year}, []kind{moment})

	if column < 0 {
		return false
	}

	when := r.find(opWhen)
	target, isRows := r.target(at)

	if when >= 0 || (target < 0 && !isRows) {
		if when >= 0 {
			r.used[when] = true
		}

		if target >= 0 && !r.columns[target].unique {
			r.doubt(0.8)
		}

		m := Measure{Function: Min, Column: r.columns[column].Name}
		if descending {
			m.Function = Max
		}

		r.form.Kind, r.form.Measures, r.form.Limit = Aggregate, []Measure{m}, 0

		return len(r.form.Groups) == 0
	}

	if isRows {
		target = r.label
	}

	if target < 0 || len(r.form.Groups) > 0 {
		return false
	}

	if !isRows && !r.columns[target].unique {
		r.doubt(0.85)
	}

	r.form.Kind, r.form.Show = List, []string{r.columns[target].Name, r.columns[column].Name}
	r.form.Order = &Order{Column: r.columns[column].Name, Descending: descending}

	return true
}
