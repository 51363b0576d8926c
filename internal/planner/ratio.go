package planner

// ratio handles "the ratio of X to Y": of two figures, of a figure in two parts, or of a part and all rows.
func (r *reader) ratio(at int) bool {
	r.used[at] = true
	r.form.Kind = Ratio

	to := at + 1
	for to < len(r.items) && !r.isOp(to, opTo, opOutOf) {
		to++
	}

	if to == len(r.items) {
		return false
	}

	r.used[to] = true

	if r.ratioOfFigures(at, to) {
		return true
	}

	if len(r.form.Groups) > 0 {
		return false
	}

	return r.ratioOfValues() || r.ratioOfRows(to)
}

// ratioOfFigures handles a column of numbers on each side.
func (r *reader) ratioOfFigures(at, to int) bool {
	left, right := r.figureIn(at+1, to), r.figureIn(to+1, len(r.items))
	if left < 0 || right < 0 || r.pick(left, number) == r.pick(right, number) {
		return false
	}

	for _, i := range []int{left, right} {
		m := Measure{Function: Sum}

		if r.isOp(i-1, opMost, opLeast, opAverage, opSum) {
			m.Function = map[op]Function{opMost: Max, opLeast: Min, opAverage: Average, opSum: Sum}[r.items[i-1].op]
			r.used[i-1] = true
		}

		r.measure(m, r.take(i, number))
	}

	for i := range r.items { // "of aircraft capacity", "the number of"
		if r.free(i) && r.items[i].kind == rowsItem || r.isOp(i, opCount) {
			r.used[i] = true
		}
	}

	return len(r.form.Measures) == 2
}

// figureIn returns the only free item between two items that names a column of numbers, or -1.
func (r *reader) figureIn(from, to int) int {
	found := -1

	for i := from; i < to; i++ {
		if c := r.pick(i, number); c >= 0 && r.free(i) && r.items[i].kind == columnItem && !r.columns[c].isID {
			if found >= 0 {
				return -1
			}

			found = i
		}
	}

	return found
}

// ratioOfValues handles the same figure for two values of a column, or for two periods.
func (r *reader) ratioOfValues() bool {
	parts := r.parts()
	if len(parts) != 2 {
		return false
	}

	m, ok := r.figureOf(parts)
	if !ok {
		return false
	}

	for i := range r.items { // the figure may be named for both sides
		if r.free(i) && (r.items[i].kind == rowsItem || r.items[i].kind == columnItem && r.columns[r.items[i].columns[0].column].Name == m.Column) {
			r.used[i] = true
		}
	}

	r.form.Measures, r.form.Parts = []Measure{m}, parts

	return true
}

// ratioOfRows handles the ratio of the rows that meet one condition on a column to those that meet another, or to all
// rows.
func (r *reader) ratioOfRows(to int) bool {
	rows := 0

	for i := range r.items {
		if r.free(i) && r.items[i].kind == rowsItem {
			r.used[i] = true
			rows++
		}

		if r.isOp(i, opCount, opSum) {
			r.used[i] = true
		}
	}

	if rows != 2 {
		return false
	}

	r.form.Measures = []Measure{{Function: Count}}

	if w := r.form.Where; len(w) == 2 && w[0].Column == w[1].Column {
		r.form.Parts, r.form.Where = w, nil

		return true
	}

	// The part is named before "to". A condition after it would apply to both sides.
	if len(r.form.Where) == 1 {
		r.form.Parts, r.form.Where = r.form.Where, nil

		return r.firstFree(valueItem, to) < 0
	}

	i := r.firstFree(valueItem, to)
	if i < 0 || len(r.form.Where) > 0 {
		return false
	}

	r.used[i] = true
	v := r.valueAt(i)
	r.form.Parts = []Filter{{Column: r.columns[v.column].Name, Comparison: Is, Values: []string{v.value}}}

	return true
}

// firstFree returns the first free item of a kind if its index is less than before, or -1.
func (r *reader) firstFree(k itemKind, before int) int {
	if i := r.first(k); i < before {
		return i
	}

	return -1
}
