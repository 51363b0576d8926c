package planner

import "slices"

// filters turns the remaining values into conditions.
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

		if r.isOp(i-1, opTo) { // "from A to B" refers to two columns
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

// valueAt chooses the column of a value: one that is named next to it, one that another value of the question has too,
// else the first.
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

		if len(named) > 1 && named[0].column != named[1].column { // the name fits several columns with this value: "1st venue" and "2nd venue"
			r.doubt(0.6)
		}

		if len(named) > 0 {
			r.used[j] = true
			r.doubt(believe(r.items[j].score))

			return named[0]
		}
	}

	if one.values[0].guess {
		r.doubt(0.85)
	}

	for _, v := range one.values { // prefer a column that another value of the question has too
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

// addValue adds a value to the condition on its column. Several values of a condition are alternatives.
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

// emptiness handles "not closed" and "without an end date".
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

// columnIsNumber handles "division 1".
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
