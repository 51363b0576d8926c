package planner

import "slices"

// list handles questions for rows, and questions for figures without a function: "revenue by region".
func (r *reader) list() bool {
	figures, names, rows := r.mentioned()

	if len(r.form.Groups) > 0 {
		return r.groupedList(figures, rows)
	}

	if when := r.find(opWhen); when >= 0 {
		return r.when(when)
	}

	if len(names) == 0 && rows < 0 && len(figures) > 0 && r.find(opWho) < 0 {
		return r.lookup(figures)
	}

	r.form.Kind = List

	for _, i := range names {
		r.show(r.take(i, text, truth, year, moment, other))
	}

	if i := r.find(opWho); i >= 0 && len(names) == 0 {
		c := r.person()
		if c < 0 {
			return false
		}

		r.used[i] = true
		r.show(c)
	}

	if rows >= 0 {
		r.used[rows] = true
		r.doubt(believe(r.items[rows].score))

		if c := r.pick(rows, text); c >= 0 {
			r.show(c)
		} else if r.label >= 0 && len(figures) > 0 && len(names) == 0 {
			r.show(r.label)
		}
	}

	for _, i := range figures {
		r.show(r.take(i, number))
	}

	if len(r.form.Show) == 0 && rows < 0 {
		return false
	}

	// The whole table is rarely the answer to a question.
	if r.first(valueItem) < 0 && len(r.form.Where) == 0 && r.find(opNot, opEmpty) < 0 {
		r.doubt(0.6)
	}

	if len(r.form.Show) == 1 && r.form.Order == nil {
		single := slices.IndexFunc(r.columns, func(c column) bool { return c.Name == r.form.Show[0] })
		r.form.Distinct = !r.columns[single].unique
	}

	if r.form.Order != nil && r.form.Order.Column == "" {
		if len(r.form.Show) == 0 {
			return false
		}

		r.form.Order.Column = r.form.Show[len(r.form.Show)-1]
	}

	return true
}

func (r *reader) show(column int) {
	if column >= 0 && !slices.Contains(r.form.Show, r.columns[column].Name) {
		r.form.Show = append(r.form.Show, r.columns[column].Name)
	}
}

// mentioned returns the free items that name columns of figures and columns of names, and the item that names the rows
// or -1. The name of a column next to one of its values only explains the value and is not returned.
func (r *reader) mentioned() (figures, names []int, rows int) {
	rows = -1

	for i := range r.items {
		if !r.free(i) {
			continue
		}

		switch r.items[i].kind {
		case rowsItem:
			if rows < 0 {
				rows = i
			}
		case columnItem:
			switch {
			case r.besideValue(i) || r.items[i].verb:
			case r.pick(i, number) >= 0 && r.columns[r.items[i].columns[0].column].kind == number && !r.isNumber(i+1):
				figures = append(figures, i)
			case r.pick(i, text, truth, year, moment, other) >= 0 && !r.isNumber(i+1):
				names = append(names, i)
			}
		default:
		}
	}

	return figures, names, rows
}

func (r *reader) besideValue(i int) bool {
	for _, j := range []int{i - 1, i + 1} {
		if j < 0 || j >= len(r.items) || r.items[j].kind != valueItem {
			continue
		}

		for _, v := range r.items[j].values {
			if slices.ContainsFunc(r.items[i].columns, func(m mention) bool { return m.column == v.column }) && !r.isOp(i-1, opWhich, opList) {
				return true
			}
		}
	}

	return false
}

// groupedList returns figures for each group: sums if the column can be summed, else averages. Without figures it
// counts rows.
func (r *reader) groupedList(figures []int, rows int) bool {
	r.form.Kind = Aggregate

	for _, i := range figures {
		column := r.take(i, number)
		m := Measure{Function: Sum}

		if !r.columns[column].sums {
			r.doubt(0.6)

			m.Function = Average
		}

		r.measure(m, column)
	}

	if rows >= 0 {
		r.used[rows] = true
		r.doubt(believe(r.items[rows].score))
	}

	switch {
	case len(r.form.Measures) > 0:
	case rows >= 0:
		r.form.Measures = []Measure{{Function: Count}}
	default:
		if r.first(valueItem) < 0 && r.nearest(0, moment) < 0 {
			return false
		}

		r.doubt(0.7)

		r.form.Measures = []Measure{{Function: Count}}
	}

	return r.sorted()
}

// lookup returns a figure of what the values name: as it is for one row, summed for several rows.
func (r *reader) lookup(figures []int) bool {
	sums, keyed := true, false

	for _, i := range figures {
		column := r.pick(i, number)
		sums = sums && r.columns[column].sums
	}

	for i := range r.items {
		if r.free(i) && r.items[i].kind == valueItem {
			for _, v := range r.items[i].values {
				keyed = keyed || r.columns[v.column].unique
			}
		}
	}

	if keyed || !sums {
		r.form.Kind = List

		if !keyed {
			r.doubt(0.7)
		}

		for _, i := range figures {
			r.show(r.take(i, number))
		}

		return true
	}

	r.form.Kind = Aggregate

	if len(r.form.Where) == 0 && r.first(valueItem) < 0 {
		r.doubt(0.8)
	}

	for _, i := range figures {
		r.measure(Measure{Function: Sum}, r.take(i, number))
	}

	r.form.Order = nil

	return true
}

// when returns the time of what the values name.
func (r *reader) when(at int) bool {
	column := r.namedTime(at, []kind{moment, year}, []kind{moment, year})

	if column < 0 || r.first(valueItem) < 0 {
		return false
	}

	r.used[at] = true
	r.form.Kind = List
	r.show(column)

	return true
}
