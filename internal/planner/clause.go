package planner

import (
	"slices"
	"time"
)

// periods takes times and the column that they are of.
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

// timeOf is the column that a period is of: one that is named beside it, the only one, or the first with doubt.
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

// onlyTime is the column that times without a name are of.
func (r *reader) onlyTime(kinds ...kind) int {
	// A question that has named one means it again.
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
		// What began is more often meant than what ended: with values that are missing it is the end.
		list = slices.DeleteFunc(list, func(c int) bool { return r.columns[c].Nulls > 0 || slices.Contains(r.columns[c].words, "due") })
		if len(list) == 0 {
			return -1
		}

		r.doubt([]float64{0.9, 0.7}[min(len(list)-1, 1)])
	}

	return list[0]
}

// groups takes what stands behind per, by and each.
func (r *reader) groups() {
	for i := range r.items {
		if r.free(i) && r.items[i].kind == grainItem && !r.isOp(i-1, opGroup, opBy, opWhich) && r.adverb(i) {
			if g, ok := r.groupAt(i); ok {
				r.form.Groups = append(r.form.Groups, g)
			}
		}

		if !r.isOp(i, opGroup, opBy) {
			continue
		}

		if r.free(i+1) && r.items[i+1].kind == rowsItem && r.pick(i+1, text) < 0 {
			r.used[i], r.used[i+1] = true, true

			if r.find(opAverage) < 0 {
				r.doubt(0.6)
			}

			continue
		}

		if r.items[i].op == opBy && r.happened(i) && r.free(i+1) && r.items[i+1].kind == columnItem {
			r.used[i], r.used[i+1] = true, true // nights booked by guests
			r.doubt(0.95)

			continue
		}

		if r.items[i].op == opBy && r.free(i+1) && r.items[i+1].kind == columnItem && r.pick(i+1, text, truth, moment, year) < 0 && r.byMeasure(i+1) {
			r.used[i] = true

			continue
		}

		g, ok := r.groupAt(i + 1)
		if !ok {
			continue
		}

		r.used[i] = true
		r.form.Groups = append(r.form.Groups, g)

		for j := i + 2; r.isOp(j, opAnd, opBy, opGroup) && r.free(j+1); j += 2 {
			more, ok := r.groupAt(j + 1)
			if !ok {
				break
			}

			r.used[j] = true
			r.form.Groups = append(r.form.Groups, more)
		}
	}
}

// happened is true of a "by" behind a verb in the past: who follows it did it.
func (r *reader) happened(i int) bool {
	before := r.items[i].from - 1
	if before < 0 || !isVerb(r.tokens[before].lower) {
		return false
	}

	return i == 0 || r.items[i-1].to <= before || r.items[i-1].kind != columnItem || r.items[i-1].score < 0.9 || r.pick(i-1, number) < 0
}

// adverb is true of "monthly", which groups without a "per".
func (r *reader) adverb(i int) bool { return r.items[i].verb }

// byMeasure takes "by revenue", which orders.
func (r *reader) byMeasure(i int) bool {
	if r.find(opTop, opMost, opLeast, opOften) < 0 {
		return false
	}

	column := r.take(i, number)
	if column < 0 {
		return false
	}

	r.by = column

	return true
}

func (r *reader) groupAt(i int) (Group, bool) {
	if !r.free(i) {
		return Group{}, false
	}

	one := r.items[i]

	switch one.kind {
	case grainItem:
		if one.grain == Year {
			if list := r.ofKind(year); len(list) == 1 {
				r.used[i] = true

				return Group{Column: r.columns[list[0]].Name, isYear: true}, true
			}
		}

		column := r.namedTime(i, []kind{moment}, []kind{moment})
		if column < 0 {
			return Group{}, false
		}

		r.used[i] = true

		if one.grain == Day && r.columns[column].Type == "date" {
			one.grain = ""
		}

		return Group{Column: r.columns[column].Name, Grain: one.grain}, true
	case columnItem, rowsItem:
		if len(one.columns) == 0 {
			return Group{}, false
		}

		column := r.take(i, text, truth, year, moment, other)
		if column < 0 && r.columns[one.columns[0].column].isID {
			column = r.take(i, number)
		}

		if column < 0 {
			return Group{}, false
		}

		return Group{Column: r.columns[column].Name, isYear: r.columns[column].kind == year}, true
	default:
		return Group{}, false
	}
}

// orders takes "sorted by hours", "in descending order".
func (r *reader) orders() {
	down := r.find(opDown)
	up := r.find(opUp)
	order := r.find(opOrder)

	if down < 0 && up < 0 && order < 0 {
		return
	}

	o := &Order{Descending: down >= 0}

	for _, i := range []int{down, up, order} {
		if i >= 0 {
			r.used[i] = true
		}
	}

	if order >= 0 {
		next := order + 1
		for r.isOp(next, opBy, opCount, opAverage, opSum) {
			r.used[next] = true
			next++
		}

		if r.free(next) && (r.items[next].kind == columnItem || r.items[next].kind == rowsItem) {
			if column := r.take(next, number, text, moment, year); column >= 0 {
				o.Column, o.written = r.columns[column].Name, r.columns[column].written
			} else {
				r.used[next] = true
			}
		}
	}

	r.form.Order = o
}

// filters takes the values that are left.
func (r *reader) filters() {
	for i := range r.items {
		if !r.free(i) || r.items[i].kind != valueItem {
			continue
		}

		v := r.valueAt(i)
		comparison := Is

		if r.isOp(i-1, opNot) {
			comparison = IsNot
			r.used[i-1] = true
		}

		if r.isOp(i-1, opTo) { // from A to B are two columns
			r.doubt(0.5)
		}

		r.used[i] = true
		r.addValue(v, comparison)
	}

	for i := range r.items {
		r.emptiness(i)
		r.columnIsNumber(i)
	}
}

// valueAt chooses among the columns that have a value: one that is named beside it, else the first.
func (r *reader) valueAt(i int) valueOf {
	one := r.items[i]
	r.doubt(believe(one.score))

	for _, j := range []int{i - 1, i + 1} {
		if j < 0 || j >= len(r.items) || r.items[j].kind != columnItem {
			continue
		}

		var named []valueOf

		for _, v := range one.values {
			if slices.ContainsFunc(r.items[j].columns, func(m mention) bool { return m.column == v.column }) {
				named = append(named, v)
			}
		}

		if len(named) > 1 && named[0].column != named[1].column { // 1st venue, 2nd venue
			r.doubt(0.6)
		}

		if len(named) > 0 {
			r.used[j] = true

			return named[0]
		}
	}

	if one.values[0].guess {
		r.doubt(0.85)
	}

	for _, v := range one.values { // the same as the others'
		for j, other := range r.items {
			if j != i && other.kind == valueItem && slices.ContainsFunc(other.values, func(o valueOf) bool { return o.column == v.column }) {
				return v
			}
		}
	}

	others := 0

	for _, v := range one.values[1:] {
		if v != one.values[0] {
			others++
		}
	}

	if others > 0 {
		r.doubt(0.7)
	}

	return one.values[0]
}

// addValue joins values of the same column: either may hold.
func (r *reader) addValue(v valueOf, comparison Comparison) {
	name := r.columns[v.column].Name

	for i, f := range r.form.Where {
		if f.Column == name && f.Comparison == comparison && len(f.Values) > 0 {
			r.form.Where[i].Values = append(r.form.Where[i].Values, v.value)

			return
		}
	}

	r.form.Where = append(r.form.Where, Filter{Column: name, Comparison: comparison, Values: []string{v.value}})
}

// emptiness takes "not closed" and "without an end date".
func (r *reader) emptiness(i int) {
	if !r.isOp(i, opNot, opEmpty) || !r.free(i+1) || r.items[i+1].kind != columnItem {
		return
	}

	column := r.pick(i+1, moment, text, number)
	if column < 0 || (r.items[i].op == opNot && r.columns[column].kind != moment) || r.columns[column].Nulls == 0 {
		return
	}

	r.take(i+1, moment, text, number)
	r.used[i] = true
	r.form.Where = append(r.form.Where, Filter{Column: r.columns[column].Name, Comparison: IsEmpty})
}

// columnIsNumber takes "division 1".
func (r *reader) columnIsNumber(i int) {
	if !r.isNumber(i+1) || !r.free(i) || r.items[i].kind != columnItem {
		return
	}

	column := r.take(i, number, year)
	if column < 0 {
		return
	}

	r.used[i+1] = true
	r.doubt(0.9)
	r.form.Where = append(r.form.Where, Filter{Column: r.columns[column].Name, Comparison: Is, Number: r.items[i+1].number, written: r.columns[column].written})
}
