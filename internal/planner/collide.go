package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
)

// collisions marks the meanings of words that name several things of one table: its rows and a column of numbers, or a column
// and a measure.
func (m *matcher) collisions(list []*item, said []string) {
	for _, one := range list {
		switch one.kind {
		case entityItem:
			one.figure, one.whole = m.tables[one.table].figureOf(said)
		case columnItem:
			one.total = slices.ContainsFunc(list, func(o *item) bool { return o.kind == measureItem && o.table == one.table })
		default:
		}
	}
}

// figureOf returns a column of numbers whose name has the words, nil if there is none. whole is true if they are its name.
func (t *table) figureOf(said []string) (found *column, whole bool) {
	for i := range t.columns {
		c := &t.columns[i]

		switch {
		case !c.Role.IsFigure():
		case sameName(said, c.stems), sameName(said, c.strong), slices.ContainsFunc(c.others, func(o []string) bool { return sameName(said, o) }):
			return c, true
		case found == nil && !slices.ContainsFunc(said, func(w string) bool { return !slices.Contains(c.strong, w) }):
			found = c
		}
	}

	return found, false
}

// comparedAt returns the figure that a superlative compares, as measureAt does. The name of a dataset may mean its numbers,
// too: "highest Umsatz" in a dataset umsatz is never the number of its rows, and "top 3 regions by sales" may be an amount.
func (r *reading) comparedAt(i int, o op) (*form.Measure, int, int) {
	if !r.is(i, entityItem) {
		return r.measureAt(i)
	}

	one, isHighest := r.items[i], compares(o, opHighest, opLowest)
	name := r.tables[one.table].name

	switch {
	case one.whole && (isHighest || !one.figure.Role.Adds() || isOwn(one.figure)):
		r.refuse("It is not clear whether the number of " + name + " or its column " + one.figure.Name + " is meant. Ask for the number, the total or the average.")

		return nil, 0, 0
	case one.whole:
	case r.isAmounts(one.table) && !compares(o, opMost, opLeast):
		amount := r.amountOf(one.table)
		if amount == nil {
			r.refuse("It is not clear whether the number of " + name + " or an amount is meant.")

			return nil, 0, 0
		}

		if r.isBare = true; r.other {
			return &form.Measure{Function: form.Sum, Of: &form.Term{Column: r.ref(amount)}}, one.table, 1
		}
	case one.figure != nil && (isHighest || !one.plural): // things that are counted are many: "most orders", where a row has an order_amount
		r.refuse("It is not clear whether the number of " + name + " or its column " + one.figure.Name + " is meant. Name the column.")

		return nil, 0, 0
	}

	return r.measureAt(i)
}

// eitherOf decides between the highest total of a column and the highest figure of one row: the words do not say which, so
// both are offered. It returns false if the words name a measure, too, which is a total.
func (r *reading) eitherOf(i int, o op, m *form.Measure) bool {
	if r.find(opSum) >= 0 { // "the highest amount in total"
		return true
	}

	if r.isBare = true; r.other {
		m.Function = function(o)
	}

	return !r.items[i].total
}
