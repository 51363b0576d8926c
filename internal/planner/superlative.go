package planner

import (
	"slices"

	"quern.dev/quern/internal/lexicon"
)

// superlative handles "which X has the most Y", "top 5 X by Y" and "the lowest Y".
func (r *reader) superlative(at int) bool {
	one := r.items[at]
	r.used[at] = true
	r.form.Limit = r.limit(at)

	descending := one.op == opMost || one.op == opTop || one.op == opLatest || one.op == opOften

	if one.op == opTop {
		if more := r.find(opMost, opLeast); more >= 0 {
			descending = r.items[more].op == opMost
			r.used[more] = true
		}
	}

	if one.op == opLatest || one.op == opEarliest {
		return r.extremeTime(at, descending)
	}

	target, isRows := r.target(at)

	if target < 0 && !isRows && r.isOp(at-1, opWhich) && r.items[at-1].word == "which" {
		isRows = true // "which has the highest price"

		r.doubtLabel()
	}

	free := r.nextNoun(0)
	if target < 0 && !isRows {
		isRows = r.unnamed(at)
	}

	m, ok := r.ranked(at, target, one.op)

	if target < 0 && !isRows && free >= 0 && free < at && r.used[free] && r.isOp(free-1, opWhich) && r.items[free-1].word == "which" {
		isRows = true // "which area is the largest"
	}

	switch {
	case !ok:
		return false
	case isRank(lexicon.NameStems(m.Column)): // the highest rank is 1
		descending = !descending
		r.doubt(0.9)
	}

	if r.form.Order != nil && r.form.Limit == 1 { // "the longest rivers, from longest to shortest"
		r.form.Limit = 0
	}

	switch {
	case target < 0 && !isRows:
		return r.extreme(m, descending)
	default:
		return r.rank(target, isRows, m, descending)
	}
}

// unnamed handles a noun that is not known in the dataset, as in "which athlete". If there is only one dataset, the
// noun probably names the rows. It reports whether it used the noun.
func (r *reader) unnamed(at int) bool {
	for i := range at {
		if r.isOp(i, opWhich) && r.free(i+1) && r.items[i+1].kind == unknown && r.items[i+1].from == r.items[i].to && r.alone && r.label >= 0 {
			r.used[i+1] = true
			r.doubt(0.75)
			r.doubtLabel()

			return true
		}
	}

	return false
}

// doubtLabel lowers the trust if several columns could name a row: choosing the label is then a guess.
func (r *reader) doubtLabel() {
	for i, c := range r.columns {
		if i != r.label && c.unique && (c.kind == text || c.kind == moment) {
			r.doubt(0.7)

			return
		}
	}
}

// isRank reports whether the name of a column says that its best value is 1.
func isRank(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return w == "rank" || w == "position" || w == "pos" || w == "plac" })
}

// limit returns the number of rows that the question asks for, 1 by default.
func (r *reader) limit(at int) int {
	for i := range r.items {
		n := r.items[i].number
		if !r.isNumber(i) || r.items[i].isYear || r.items[i].percent || n < 1 || n > 1000 || n != float64(int(n)) {
			continue
		}

		if i > at+1 {
			break
		}

		r.used[i] = true

		return int(n)
	}

	return 1
}

// target returns the subject of the superlative: a column of names or the rows, before the superlative, or after it if
// there is none before it.
func (r *reader) target(at int) (column int, isRows bool) {
	for i := at - 1; i >= 0; i-- {
		if !r.free(i) {
			continue
		}

		switch r.items[i].kind {
		case rowsItem:
			r.used[i] = true
			if c := r.pick(i, text, number); c >= 0 {
				return c, false
			}

			return -1, true
		case columnItem:
			if c := r.pick(i, text, moment, year, truth, other); c >= 0 && !r.items[i].verb {
				return r.take(i, text, moment, year, truth, other), false
			}

			if c := r.pick(i, number); c >= 0 && r.columns[c].isID && r.isOp(i-1, opWhich) {
				return r.take(i, number), false
			}
		case grainItem:
			return -1, false
		default:
		}
	}

	if i := r.find(opWho); i >= 0 {
		if c := r.person(); c >= 0 {
			r.used[i] = true

			return c, false
		}
	}

	return r.targetBehind(at)
}

func (r *reader) targetBehind(at int) (column int, isRows bool) {
	for i := at + 1; i < len(r.items); i++ {
		if !r.free(i) {
			continue
		}

		switch r.items[i].kind {
		case rowsItem:
			// In "the highest invoice amount" the rows only qualify the amount.
			if r.free(i+1) && r.items[i+1].kind == columnItem && r.pick(i+1, number) >= 0 && r.by < 0 {
				return -1, false
			}

			r.used[i] = true

			if c := r.pick(i, text, number); c >= 0 {
				return c, false
			}

			return -1, true
		case columnItem:
			if r.pick(i, number) >= 0 && !r.items[i].verb {
				return -1, false
			}

			if c := r.pick(i, text); c >= 0 && !r.items[i].verb {
				return r.take(i, text), false
			}
		default:
		}
	}

	return -1, false
}

// ranked returns the measure of the superlative.
func (r *reader) ranked(at, target int, o op) (Measure, bool) {
	m, from := Measure{}, at

	if r.by >= 0 {
		m.Column, m.written, from = r.columns[r.by].Name, r.columns[r.by].written, 0
	}

	for i := from; i < len(r.items); i++ {
		if r.free(i) && r.items[i].kind == operator {
			r.function(&m, i)
		}
	}

	if r.by >= 0 {
		return m, true
	}

	for _, i := range r.around(at) {
		if !r.free(i) {
			continue
		}

		if r.items[i].kind == columnItem && r.rankedColumn(&m, at, i, target) {
			return m, true
		}

		if r.items[i].kind == rowsItem && (i > at || m.Function == Count) {
			r.used[i] = true

			return Measure{Function: Count}, true
		}
	}

	return r.rankedByHint(r.items[at].word, o, m)
}

// rankedColumn uses a column as the measure: the numbers as they are, or the count of names.
func (r *reader) rankedColumn(m *Measure, at, i, target int) bool {
	if c := r.pick(i, number); c >= 0 && c != target {
		r.take(i, number)

		m.Column, m.written = r.columns[c].Name, r.columns[c].written
		if m.Function == Count {
			m.Function = ""
		}

		return true
	}

	c := r.pick(i, text)
	if c < 0 || c == target || i < at || m.Function == Sum || m.Function == Average || r.items[i].verb {
		return false
	}

	r.take(i, text)

	if r.columns[c].unique || m.Function == "" {
		*m = Measure{Function: Count}
	} else {
		*m = Measure{Function: CountDistinct, Column: r.columns[c].Name}
	}

	return true
}

// around returns the items after a position, then those before it in reverse order.
func (r *reader) around(at int) []int {
	var list []int
	for i := at + 1; i < len(r.items); i++ {
		list = append(list, i)
	}

	for i := at - 1; i >= 0; i-- {
		list = append(list, i)
	}

	return list
}

// rankedByHint returns a measure that only the superlative itself suggests: "the oldest", "the largest".
func (r *reader) rankedByHint(word string, o op, m Measure) (Measure, bool) {
	if c := r.hinted(word); c >= 0 {
		r.doubt(0.9)

		m.Column, m.written = r.columns[c].Name, r.columns[c].written

		return m, true
	}

	if m.Function == Count { // "the highest number" does not say of what
		r.doubt(0.5)
	}

	if o == opOften || m.Function == Count {
		return Measure{Function: Count}, true
	}

	if c := r.onlyMeasure(); c >= 0 && len(hints(lexicon.Stem(word))) == 0 {
		r.doubt(0.8)

		m.Column, m.written = r.columns[c].Name, r.columns[c].written

		return m, true
	}

	return m, false
}

// extreme handles a question for the extreme figure itself.
func (r *reader) extreme(m Measure, descending bool) bool {
	if m.Column == "" {
		return false
	}

	switch {
	case r.form.Limit > 1: // "the 3 highest prices"
		r.form.Kind, r.form.Show = List, []string{m.Column}
		r.form.Order = &Order{Column: m.Column, Descending: descending, written: m.written}

		return true
	case m.Function == "" && descending:
		m.Function = Max
	case m.Function == "":
		m.Function = Min
	case len(r.form.Groups) == 1: // "the highest total by customer" asks for the customer
		r.form.Order = &Order{Descending: descending}
	default:
		return false
	}

	if len(r.form.Groups) > 0 && r.form.Order == nil { // unclear whether the highest of each group or of all is meant
		r.doubt(0.6)
	}

	if len(r.form.Groups) == 0 || r.form.Order == nil {
		r.form.Limit = 0
	}

	r.form.Kind, r.form.Measures = Aggregate, []Measure{m}

	return true
}

// rank orders names or rows by a measure.
func (r *reader) rank(target int, isRows bool, m Measure, descending bool) bool {
	if isRows {
		target = r.label
	}

	if target >= 0 && r.columns[target].Name == m.Column {
		return false
	}

	unique := target >= 0 && (r.columns[target].unique || isRows)

	if len(r.form.Groups) > 0 { // a form cannot express the best of each group
		return false
	}

	if m.Function == "" && target >= 0 && !unique {
		switch {
		case !r.named(m.Column).sums:
			r.doubt(0.9)
		case 2*r.columns[target].Distinct > r.Rows: // unclear whether one row or all rows of a name are meant, because few rows share a name
			r.doubt(0.65)

			m.Function = Sum
		default:
			r.doubt(0.93)

			m.Function = Sum
		}
	}

	if (m.Function == "" || unique && m.Function == Sum) && m.Column != "" {
		r.form.Kind = List
		r.form.Order = &Order{Column: m.Column, Descending: descending, written: m.written}

		if target >= 0 {
			r.form.Show = []string{r.columns[target].Name, m.Column}
		}

		return true
	}

	if target < 0 || (unique && m.Function == Count) {
		return false
	}

	r.form.Kind, r.form.Measures = Aggregate, []Measure{m}
	r.form.Groups = []Group{{Column: r.columns[target].Name, isYear: r.columns[target].kind == year}}
	r.form.Order = &Order{Descending: descending}

	return true
}
