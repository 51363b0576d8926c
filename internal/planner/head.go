package planner

import "slices"

// head decides the kind of the form from the items that are still free.
func (r *reader) head() bool {
	switch {
	case r.find(opRatio) >= 0:
		return r.ratio(r.find(opRatio))
	case r.difference():
	case r.comparison():
	case r.earlier():
	case r.find(opShare) >= 0:
		return r.share(r.find(opShare))
	case r.find(opMost, opLeast, opLatest, opEarliest, opTop, opOften) >= 0:
		return r.superlative(r.find(opMost, opLeast, opLatest, opEarliest, opTop, opOften))
	case r.find(opCount, opHowMuch, opSum, opAverage, opDistinct, opTimes) >= 0:
		return r.aggregate(r.find(opCount, opHowMuch, opSum, opAverage, opDistinct, opTimes))
	default:
		return r.list()
	}

	return true
}

// asked returns the measure that the words from an item on ask for.
func (r *reader) asked(from int) (Measure, bool) {
	if r.isOp(from, opTimes) {
		r.used[from] = true

		return Measure{Function: Count}, true
	}

	much := r.isOp(from, opHowMuch) // "how much" does not count rows
	if much {
		if m, ok := r.deed(from); ok {
			return m, true
		}
	}

	m := Measure{}

	for i := from; i < len(r.items); i++ {
		if !r.free(i) {
			continue
		}

		switch one := r.items[i]; {
		case one.kind == operator && one.op == opList && m.Function == Count, one.kind == unknown && m.Function == Count:
			return m, false // the word that says what to count is unknown
		case one.kind == operator:
			r.function(&m, i)
		case one.kind == columnItem && r.measured(&m, i), one.kind == rowsItem && !much && r.counted(&m, i):
			return m, true
		case one.kind == valueItem && m.Function == Count && r.nextNoun(i+1) < 0: // "how many managers"
			r.doubt(0.9)

			return r.sold(), true
		}
	}

	return r.implied(m)
}

// deed handles "how much did guests pay".
func (r *reader) deed(from int) (Measure, bool) {
	for i := from; i < len(r.items); i++ {
		if r.free(i) && r.items[i].kind == columnItem && isDeed(r.items[i].stem) && r.pick(i, number) >= 0 {
			r.used[from] = true
			column := r.take(i, number)

			return Measure{Function: Sum, Column: r.columns[column].Name, written: r.columns[column].written}, true
		}
	}

	return Measure{}, false
}

// counted handles an item that names the rows, which are then counted. Before a figure, the name of the rows only
// qualifies the figure: "the invoice amount".
func (r *reader) counted(m *Measure, i int) bool {
	one := r.items[i]

	if r.free(i+1) && r.items[i+1].kind == columnItem && r.pick(i+1, number) >= 0 && r.items[i+1].from == one.to {
		r.used[i] = true

		return false
	}

	if m.Function == Average {
		return false
	}

	r.used[i] = true
	r.doubt(believe(one.score))

	if m.Function == CountDistinct && len(one.columns) > 0 {
		m.Column = r.columns[one.columns[0].column].Name
	} else {
		*m = Measure{Function: Count}
	}

	return true
}

// function handles an operator that names an aggregate function. The last operator wins, but an average stays an
// average.
func (r *reader) function(m *Measure, i int) {
	var f Function

	switch r.items[i].op {
	case opCount:
		f = Count
	case opHowMuch, opSum:
		f = Sum
	case opAverage:
		f = Average
	case opDistinct:
		f = CountDistinct
	default:
		return
	}

	r.used[i] = true

	switch {
	case m.Function == Average:
	case m.Function == Sum && f == Count: // "the total number of"
		m.Function = Count
	case m.Function == Count && f == Sum && r.items[i].op == opSum: // "how many in total"
	default:
		m.Function = f
	}
}

// measured uses a column as the measure.
func (r *reader) measured(m *Measure, i int) bool {
	if column := r.pick(i, number); column >= 0 && !r.columns[column].isID && (r.columns[column].sums || m.Function == Average || m.Function == Sum) {
		if r.items[i].verb && m.Function == Count { // "how many did we sell"
			return false
		}

		r.take(i, number)
		m.Column, m.written = r.columns[column].Name, r.columns[column].written

		if m.Function == Count || m.Function == "" {
			m.Function = Sum
		}

		return true
	}

	if m.Function != Count && m.Function != CountDistinct && m.Function != Sum {
		return false
	}

	if c := r.pick(i, moment); c >= 0 && m.Function == Count && !r.items[i].verb { // "how many check-ins"
		r.take(i, moment)

		return true
	}

	column := r.pick(i, text, year, truth, number)
	if column < 0 || r.items[i].verb || r.isGrouped(i) {
		return false
	}

	if m.Function == Sum && !r.isSumOfNames(i) {
		return false
	}

	r.take(i, text, year, truth, number)

	m.Function, m.Column = CountDistinct, r.columns[column].Name
	if r.columns[column].unique {
		m.Function, m.Column = Count, ""
	}

	return true
}

// isGrouped reports whether the nearest operator before an item is "by", "per" or "and": such an item is not counted.
func (r *reader) isGrouped(i int) bool {
	for i--; i >= 0; i-- {
		if one := r.items[i]; one.kind == operator {
			return one.op == opBy || one.op == opGroup || one.op == opAnd
		}
	}

	return false
}

// isSumOfNames reports whether the item directly follows the word for a sum, as in "total clients", which asks for a
// count.
func (r *reader) isSumOfNames(i int) bool { return r.items[i].from == r.items[max(i-1, 0)].to }

// first returns the first free item of a kind, or -1.
func (r *reader) first(k itemKind) int {
	for i := range r.items {
		if r.free(i) && r.items[i].kind == k {
			return i
		}
	}

	return -1
}

func (r *reader) nextNoun(from int) int {
	for i := from; i < len(r.items); i++ {
		if r.free(i) && (r.items[i].kind == rowsItem || r.items[i].kind == columnItem) && !r.items[i].verb {
			return i
		}
	}

	return -1
}

// sold counts things: by their quantity if the question says that they were sold, else by rows.
func (r *reader) sold() Measure {
	for i := range r.items {
		if !r.free(i) || r.items[i].kind != columnItem || r.items[i].stem != "sell" {
			continue
		}

		for _, c := range r.columns {
			if c.sums && slices.ContainsFunc(c.words, func(w string) bool { return w == "quantity" || w == "qty" || w == "unit" }) {
				return Measure{Function: Sum, Column: c.Name, written: c.written}
			}
		}
	}

	return Measure{Function: Count}
}

// implied returns the measure if no word names one.
func (r *reader) implied(m Measure) (Measure, bool) {
	switch m.Function {
	case Count:
		if r.first(valueItem) < 0 && len(r.form.Where) == 0 {
			return m, len(r.form.Groups) > 0 && r.items[0].word == "headcount"
		}

		r.doubt(0.6)

		return m, true
	case Sum, Average:
		for i := range r.items { // "what do managers earn on average", "average order value"
			if r.free(i) && r.items[i].kind == columnItem {
				if column := r.pick(i, number); column >= 0 && !r.columns[column].isID {
					r.take(i, number)
					m.Column, m.written = r.columns[column].Name, r.columns[column].written

					return m, true
				}
			}
		}

		column := r.onlyMeasure()
		if column < 0 {
			return m, false
		}

		r.doubt(0.75)

		m.Column, m.written = r.columns[column].Name, r.columns[column].written

		return m, true
	default:
		return m, false
	}
}

// aggregate handles a figure, or several figures with the same function.
func (r *reader) aggregate(at int) bool {
	r.form.Kind = Aggregate

	if r.isOp(at, opSum, opHowMuch, opAverage) { // "… on average" and "… in total" follow the noun
		for j := range at {
			if r.isOp(j, opCount, opHowMuch) {
				at = j

				break
			}
		}
	}

	m, ok := r.asked(at)
	if !ok {
		return false
	}

	if m.Function == Average && r.isRate() {
		r.doubt(0.6)
	}

	if j := r.find(opAverage); j >= 0 && m.Column != "" && m.Function == Sum {
		r.used[j] = true
		m.Function = Average
	}

	r.form.Measures = []Measure{m}

	for i := 0; i < len(r.items) && m.Column != "" && m.Function != CountDistinct; i++ {
		if r.isOp(i, opAnd) && i > 0 && r.free(i+1) && r.items[i+1].kind == columnItem && r.used[i-1] && r.items[i-1].kind == columnItem && r.pick(i+1, number) >= 0 {
			r.used[i] = true
			r.measure(Measure{Function: m.Function}, r.take(i+1, number))
		}
	}

	if r.form.Order != nil && r.form.Order.Column == "" && len(r.form.Groups) == 0 {
		r.form.Order = nil
	}

	return r.sorted()
}

// isRate reports whether the question has the form "the average number of visits per day". That is not an average for
// each day.
func (r *reader) isRate() bool {
	isCount := func(one *item) bool { return one.kind == operator && one.op == opCount }
	isTime := func(g Group) bool { return g.Grain != "" || r.named(g.Column).kind == moment }

	return slices.ContainsFunc(r.items, isCount) && slices.ContainsFunc(r.form.Groups, isTime)
}

// measure adds a measure, unless the form already has it.
func (r *reader) measure(m Measure, column int) {
	m.Column, m.written = r.columns[column].Name, r.columns[column].written

	if !slices.Contains(r.form.Measures, m) {
		r.form.Measures = append(r.form.Measures, m)
	}
}

// sorted adapts an order to the groups: the order is by a group, or else by the measure.
func (r *reader) sorted() bool {
	o := r.form.Order
	if o == nil {
		return true
	}

	for _, g := range r.form.Groups {
		if g.Column == o.Column {
			o.Column = g.name()

			return true
		}
	}

	o.Column = ""

	return true
}
