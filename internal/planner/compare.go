package planner

import "slices"

const guessedPart = 0.88 // trust factor for a side of a comparison that is an approximate match

// pair returns two free value items that have different values of the same column, or -1.
func (r *reader) pair() (first, second int, a, b valueOf) {
	for i := range r.items {
		if !r.free(i) || r.items[i].kind != valueItem {
			continue
		}

		for j := i + 1; j < len(r.items); j++ {
			if !r.free(j) || r.items[j].kind != valueItem {
				continue
			}

			for _, a := range r.items[i].values {
				for _, b := range r.items[j].values {
					if a.column == b.column && a.value != b.value {
						return i, j, a, b
					}
				}
			}
		}
	}

	return -1, -1, valueOf{}, valueOf{}
}

// twoPeriods removes two adjacent filters from the conditions that have the same column and the same grain, and returns
// them.
func (r *reader) twoPeriods() (parts []Filter) {
	for i := 0; i+1 < len(r.form.Where); i++ {
		a, b := r.form.Where[i], r.form.Where[i+1]
		if a.Comparison == IsIn && b.Comparison == IsIn && a.Column == b.Column && a.Period.Grain == b.Period.Grain {
			r.form.Where = append(r.form.Where[:i:i], r.form.Where[i+2:]...)

			return []Filter{a, b}
		}
	}

	return nil
}

// parts returns the two sides of a comparison.
func (r *reader) parts() (parts []Filter) {
	first, second, a, b := r.pair()
	if first < 0 {
		return r.twoPeriods()
	}

	for i, one := range []int{first, second} {
		r.used[one] = true
		v := []valueOf{a, b}[i]

		if v.guess { // both values are in one column, which supports the approximate match
			r.doubt(guessedPart)
		} else {
			r.doubt(believe(r.items[one].score))
		}

		parts = append(parts, Filter{Column: r.columns[v.column].Name, Comparison: Is, Values: []string{v.value}})
	}

	for i := range r.items { // "the channels email and chat"
		if r.free(i) && r.items[i].kind == columnItem && r.items[i].columns[0].column == a.column {
			r.used[i] = true
		}
	}

	return parts
}

// difference handles "how many more X than Y" and "the difference between X and Y".
func (r *reader) difference() bool {
	at := r.find(opDiff, opHowMore, opHowLess)
	if at < 0 {
		return false
	}

	saved := *r
	saved.used = append([]bool(nil), r.used...)
	saved.form.Where = append([]Filter(nil), r.form.Where...)

	r.used[at] = true
	parts := r.parts()

	for _, o := range []op{opThan, opAnd, opBetween, opMore} {
		if i := r.find(o); i >= 0 && len(parts) == 2 {
			r.used[i] = true
		}
	}

	m, ok := r.figureOf(parts)
	if len(parts) != 2 || !ok {
		*r = saved

		return false
	}

	r.form.Kind, r.form.Parts, r.form.Measures = Difference, parts, []Measure{m}
	r.form.Distinct = r.items[at].op == opDiff

	if r.items[at].op == opHowLess {
		parts[0], parts[1] = parts[1], parts[0]
	}

	return true
}

// figureOf returns the measure by which two sides are compared: the measure that the question names, else a count of
// rows.
func (r *reader) figureOf(parts []Filter) (Measure, bool) {
	m := Measure{}

	for i := range r.items {
		if r.free(i) && r.items[i].kind == operator {
			r.function(&m, i)
		}
	}

	for i := range r.items {
		if !r.free(i) || r.items[i].kind != columnItem {
			continue
		}

		if column := r.take(i, number); column >= 0 {
			f := m.Function
			if f == "" || f == Count {
				f = Sum

				if !r.columns[column].sums && !r.isKey(parts) {
					r.doubt(0.6)
				}
			}

			return Measure{Function: f, Column: r.columns[column].Name, written: r.columns[column].written}, true
		}
	}

	if i := r.first(rowsItem); i >= 0 && m.Function != Average {
		r.used[i] = true

		return Measure{Function: Count}, true
	}

	return m, false
}

// isKey reports whether a side selects one row, because its column is unique.
func (r *reader) isKey(parts []Filter) bool {
	for _, p := range parts {
		for _, c := range r.columns {
			if c.Name == p.Column && c.unique {
				return true
			}
		}
	}

	return false
}

// comparison handles "compare X of A and B" and "is X more of A or B".
func (r *reader) comparison() bool {
	compare, or := r.find(opCompare), r.find(opOr)
	better := r.find(opMore, opMost, opLess, opLeast)

	if compare < 0 && (or < 0 || better < 0) {
		return false
	}

	saved := *r
	saved.used = append([]bool(nil), r.used...)
	saved.form.Where = append([]Filter(nil), r.form.Where...)

	parts := r.parts()
	if len(parts) != 2 {
		*r = saved

		return false
	}

	for _, i := range []int{compare, or, better, r.find(opAnd), r.find(opThan)} {
		if i >= 0 {
			r.used[i] = true
		}
	}

	r.unnamed(len(r.items) - 1) // "which city"

	m, ok := r.figureOf(parts)
	if !ok {
		*r = saved

		return false
	}

	r.form.Kind, r.form.Measures = Aggregate, []Measure{m}

	if parts[0].Comparison == IsIn {
		r.form.Groups = []Group{{Column: parts[0].Column, Grain: parts[0].Period.Grain, isYear: parts[0].isYear}}
		both := Period{From: parts[0].Period.From, To: parts[1].Period.To, Text: parts[0].Period.Text + " and " + parts[1].Period.Text, Grain: parts[0].Period.Grain}

		if !parts[0].Period.To.Equal(parts[1].Period.From) {
			*r = saved

			return false
		}

		r.form.Where = append(r.form.Where, Filter{Column: parts[0].Column, Comparison: IsIn, Period: both, isYear: parts[0].isYear})
	} else {
		r.form.Groups = []Group{{Column: parts[0].Column}}
		r.form.Where = append(r.form.Where, Filter{Column: parts[0].Column, Comparison: Is, Values: []string{parts[0].Values[0], parts[1].Values[0]}})
	}

	if compare < 0 {
		r.form.Order = &Order{Descending: r.items[better].op == opMore || r.items[better].op == opMost}
		r.form.Limit = 1
	}

	return true
}

// earlier handles "which is older, A or B".
func (r *reader) earlier() bool {
	at, or := r.find(opOlder, opNewer, opEarliest, opLatest), r.find(opOr)
	if at < 0 || or < 0 || len(r.form.Groups) > 0 {
		return false
	}

	isPlace := func(c column) bool { return isRank(c.words) }
	if o := r.items[at].op; (o == opEarliest || o == opLatest) && slices.ContainsFunc(r.columns, isPlace) { // "who came first" refers to a rank, not to a time
		return false
	}

	saved := *r
	saved.used = append([]bool(nil), r.used...)

	parts := r.parts()
	if len(parts) != 2 || parts[0].Comparison != Is {
		*r = saved

		return false
	}

	r.used[at], r.used[or] = true, true
	r.unnamed(len(r.items) - 1) // "which city"

	column := r.namedTime(at, []kind{moment, year}, []kind{moment, year})
	if column < 0 || r.columns[column].Name == parts[0].Column {
		*r = saved

		return false
	}

	r.form.Kind, r.form.Limit = List, 1
	r.form.Show = []string{parts[0].Column, r.columns[column].Name}
	r.form.Where = append(r.form.Where, Filter{Column: parts[0].Column, Comparison: Is, Values: []string{parts[0].Values[0], parts[1].Values[0]}})
	r.form.Order = &Order{Column: r.columns[column].Name, Descending: r.items[at].op == opNewer || r.items[at].op == opLatest}

	return true
}

// share handles "what share of X is Y" and "share of X by Y".
func (r *reader) share(at int) bool {
	r.used[at] = true

	m, ok := r.asked(at)
	if !ok || m.Function == Average || m.Function == CountDistinct {
		return false
	}

	if m.Function == Count && r.tokens[r.items[at].from].lower == "how" { // "how much" does not refer to rows, which would be "how many"
		r.doubt(0.6)
	}

	r.form.Kind, r.form.Measures = Share, []Measure{m}

	if len(r.form.Groups) > 0 {
		return len(r.form.Groups) == 1
	}

	// Conditions that were found before select the total. The last condition selects the part.
	before := len(r.form.Where)
	r.filters()

	switch {
	case len(r.form.Where) > before:
		last := len(r.form.Where) - 1
		r.form.Parts, r.form.Where = r.form.Where[last:], r.form.Where[:last:last]
	case before > 0:
		r.form.Parts, r.form.Where = r.form.Where[before-1:], r.form.Where[:before-1:before-1]
	default:
		return false
	}

	if len(r.form.Where) > 0 {
		r.doubt(0.8)
	}

	return true
}
