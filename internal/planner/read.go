package planner

import "slices"

// reader builds a form from the items of a cover. It marks the items that it uses; unused items lower the trust.
type reader struct {
	*schema

	items  []*item
	used   []bool
	form   Form
	trust  float64
	tokens []token

	by      int // number column that is named after "by"; -1 if there is none
	alone   bool
	unknown []int // tokens
}

// read builds a form from items. It returns false if the items do not make a form.
func (s *schema) read(tokens []token, items []*item, alone bool) (*reader, bool) {
	r := &reader{schema: s, tokens: tokens, trust: 1, by: -1, alone: alone, form: Form{Dataset: s.Name}}

	for _, one := range items {
		switch one.kind {
		case noise:
		case weak:
			r.doubt(0.88)
		default:
			r.items = append(r.items, one)
		}
	}

	r.used = make([]bool, len(r.items))

	r.comparisons()
	r.periods()
	r.groups()
	r.orders()

	if !r.head() {
		return r, false
	}

	r.filters()
	r.rest()

	return r, r.sound()
}

// doubt multiplies the trust by a factor.
func (r *reader) doubt(factor float64) { r.trust *= factor }

// believe returns the trust factor for a score.
func believe(score float64) float64 { return min(1, 0.5+0.52*score) }

// free reports whether item i exists and is not used yet.
func (r *reader) free(i int) bool { return i >= 0 && i < len(r.items) && !r.used[i] }

func (r *reader) isOp(i int, ops ...op) bool {
	return r.free(i) && r.items[i].kind == operator && slices.Contains(ops, r.items[i].op)
}

// find returns the first free item with one of the operators, or -1.
func (r *reader) find(ops ...op) int {
	for i := range r.items {
		if r.isOp(i, ops...) {
			return i
		}
	}

	return -1
}

// pick returns the most likely column of an item that has one of the kinds, or -1.
func (r *reader) pick(i int, kinds ...kind) int {
	column, _ := r.choose(i, kinds...)

	return column
}

func (r *reader) choose(i int, kinds ...kind) (column int, score float64) {
	if i < 0 || i >= len(r.items) || (r.items[i].kind != columnItem && r.items[i].kind != rowsItem) {
		return -1, 0
	}

	column = -1

	for _, m := range r.items[i].columns {
		if !slices.Contains(kinds, r.columns[m.column].kind) {
			continue
		}

		if column >= 0 {
			// A column that can be summed is meant more often than the price of a single thing.
			if r.columns[m.column].sums && !r.columns[column].sums {
				column, score = m.column, m.score
			} else if m.score >= score-0.03 && r.columns[m.column].sums == r.columns[column].sums {
				score -= 0.25
			}

			continue
		}

		column, score = m.column, m.score
	}

	return column, score
}

// take picks a column and marks its item as used. It lowers the trust if another column is about as likely.
func (r *reader) take(i int, kinds ...kind) int {
	column, score := r.choose(i, kinds...)
	if column >= 0 {
		r.used[i] = true
		r.doubt(believe(score))
	}

	return column
}

// nearest returns the nearest free item before or after i that names a column of the kinds, or -1.
func (r *reader) nearest(i int, kinds ...kind) int {
	for distance := 1; distance < len(r.items); distance++ {
		for _, j := range []int{i - distance, i + distance} {
			if r.free(j) && r.items[j].kind == columnItem && r.pick(j, kinds...) >= 0 {
				return j
			}
		}
	}

	return -1
}

// isAsked reports whether the word before the item is a function that asks for its column, as in "average price".
func (r *reader) isAsked(i int) bool {
	return r.isOp(i-1, opAverage, opSum, opMost, opLeast, opCount, opHowMuch, opWhich, opList, opDiff, opShare) || (i > 0 && r.items[i-1].kind == rowsItem && !r.items[i].verb && r.items[i-1].to == r.items[i].from && r.isAsked(i-1))
}

// comparisons handles "more than 20 seats", "amount above 5000", "between 10 and 20" and "spent more than the budget".
func (r *reader) comparisons() {
	for i := range r.items {
		if !r.isOp(i, opOver, opAtLeast, opUnder, opAtMost, opEqual, opBetween) {
			continue
		}

		o := r.items[i].op

		switch {
		case r.isNumber(i + 1):
			r.compareNumber(i, o)
		case o != opBetween && r.isNumber(i-1): // "10 or more"
			r.items[i], r.items[i-1] = r.items[i-1], r.items[i]
			r.compareNumber(i-1, o)
		case o != opBetween && r.free(i+1) && r.items[i+1].kind == periodItem:
			r.used[i] = true // "over the last month"
		case o != opBetween && r.pick(i+1, number) >= 0 && r.free(i+1) && r.free(i-1) && r.pick(i-1, number) >= 0:
			r.used[i] = true
			r.form.Where = append(r.form.Where, Filter{Column: r.columns[r.take(i-1, number)].Name, Comparison: Comparison(o), Other: r.columns[r.take(i+1, number)].Name})
		}
	}
}

func (r *reader) isNumber(i int) bool {
	return r.free(i) && r.items[i].kind == numberItem && !r.items[i].ordinal
}

func (r *reader) compareNumber(i int, o op) {
	f := Filter{Comparison: Comparison(o), Number: r.items[i+1].number}
	last := i + 1

	if o == opBetween {
		if !r.isOp(i+2, opAnd, opTo) || !r.isNumber(i+3) || (r.items[i+1].isYear && len(r.ofKind(moment, year)) > 0 && r.nearestNumber(i, i+3) < 0) {
			return
		}

		last = i + 3
		f.Comparison, f.Upper = IsBetween, r.items[i+3].number
	}

	var column int

	switch {
	case r.free(last+1) && r.items[last+1].kind == columnItem && r.pick(last+1, number, year) >= 0:
		column = r.take(last+1, number, year)
	case r.free(i-1) && r.items[i-1].kind == columnItem && r.pick(i-1, number, year) >= 0 && !r.isAsked(i-1):
		column = r.take(i-1, number, year)
	case r.free(i-1) && r.pick(i-1, number, year) >= 0:
		column = r.pick(i-1, number, year)
	case last+1 < len(r.items) && r.items[last+1].from <= r.items[last].to+1 && (r.items[last+1].kind == unknown || r.items[last+1].kind == columnItem || r.items[last+1].kind == rowsItem):
		return // "at least 3" of something else
	default:
		column = r.onlyMeasure()
	}

	if column < 0 {
		return
	}

	for j := i; j <= last; j++ {
		r.used[j] = true
	}

	if r.isOp(i-1, opNot) { // "not more than"
		if o == opBetween {
			return
		}

		r.used[i-1] = true
		f.Comparison = opposite(f.Comparison)
	}

	f.Column, f.written = r.columns[column].Name, r.columns[column].written
	if r.items[last].percent {
		if most, ok := toNumber(r.columns[column].Max); ok && most <= 1 {
			f.Number /= 100
			f.Upper /= 100
		}
	}

	r.form.Where = append(r.form.Where, f)
}

func opposite(c Comparison) Comparison {
	switch c {
	case Over:
		return AtMost
	case AtLeast:
		return Under
	case Under:
		return AtLeast
	case AtMost:
		return Over
	default:
		return IsNot
	}
}

func (r *reader) nearestNumber(from, to int) int {
	for _, j := range []int{to + 1, from - 1} {
		if r.free(j) && r.items[j].kind == columnItem && r.pick(j, number) >= 0 {
			return j
		}
	}

	return -1
}

// onlyMeasure returns the column that a figure without a name refers to, or -1. If the dataset has several measures, it
// chooses the one that the question asks for, or one with a usual name such as amount or total.
func (r *reader) onlyMeasure() int {
	for i := range r.items {
		if r.items[i].kind == columnItem && r.isAsked(i) {
			if c := r.pick(i, number); c >= 0 {
				return c
			}
		}
	}

	measures := r.measures()
	if len(measures) == 1 {
		r.doubt(0.9)

		return measures[0]
	}

	found := -1

	for _, c := range measures {
		if slices.ContainsFunc(r.columns[c].words, func(w string) bool {
			return w == "amount" || w == "total" || w == "revenu" || w == "salary" || w == "budget" || w == "sal"
		}) {
			if found >= 0 {
				return -1
			}

			found = c
		}
	}

	r.doubt(0.85)

	return found
}

// rest lowers the trust for every item that is not used.
func (r *reader) rest() {
	for i, one := range r.items {
		if r.used[i] {
			continue
		}

		switch one.kind {
		case unknown:
			r.doubt(0.35)
			r.unknown = append(r.unknown, one.from)
		case rowsItem:
			r.doubt(believe(one.score))
		case operator:
			r.restOp(one.op)
		case columnItem:
			r.restColumn(i)
		default:
			r.doubt(0.3)
		}
	}
}

func (r *reader) restOp(o op) {
	switch o {
	case opWhich, opWho, opList, opAnd, opBy, opTo, opSince, opWhere, opOrder:
	case opOr:
		if r.manyColumns() {
			r.doubt(0.3) // the form joins conditions by AND
		}
	case opSum: // "in total"
		r.doubt([]float64{0.97, 0.5}[bit(r.form.Kind == List)])
	case opGroup:
		r.doubt(0.6)
	default:
		r.doubt(0.4)
	}
}

func bit(is bool) int {
	if is {
		return 1
	}

	return 0
}

func (r *reader) restColumn(i int) {
	one := r.items[i]
	column := one.columns[0].column

	switch {
	case r.columns[column].kind == moment && one.verb:
		r.doubt(believe(one.score))

		if r.columns[column].Nulls > 0 {
			r.form.Where = append(r.form.Where, Filter{Column: r.columns[column].Name, Comparison: IsFilled})
		}
	case slices.ContainsFunc(r.form.Where, func(f Filter) bool { return f.Column == r.columns[column].Name }), slices.ContainsFunc(r.form.Measures, func(m Measure) bool { return m.Column == r.columns[column].Name }):
		r.doubt(believe(one.score))
	case r.form.Kind == List && len(r.form.Show) > 0 && !r.form.Distinct:
		r.doubt(0.85 * believe(one.score))

		if !slices.Contains(r.form.Show, r.columns[column].Name) {
			r.form.Show = append(r.form.Show, r.columns[column].Name)
		}
	case one.verb && isDeed(one.stem): // "products that we sold"
		r.doubt(0.88)
	case r.besideAny(i): // "Kitchen products"
		r.doubt(0.85 * believe(one.score))
	default:
		r.doubt(0.5)
	}
}

// besideAny reports whether the item directly follows a value of any column, which qualifies it.
func (r *reader) besideAny(i int) bool {
	return i > 0 && r.items[i-1].kind == valueItem && r.items[i-1].to == r.items[i].from
}
