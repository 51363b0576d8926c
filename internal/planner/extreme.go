package planner

// namedTime is the column of times that is named nearby, or else the only one.
func (r *reader) namedTime(at int, named, only []kind) int {
	if j := r.nearest(at, named...); j >= 0 {
		return r.take(j, named...)
	}

	return r.onlyTime(only...)
}

// extremeTime takes the latest and the first, which are of times.
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
