package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// ask decides what is asked for: the rows or things that have the most of something, a share, a figure, or rows.
func (r *reading) ask() bool {
	if i := r.find(opTop, opBottom); i >= 0 {
		return r.top(i)
	}

	if i := r.find(opSeller); i >= 0 {
		return r.bestSelling(i)
	}

	r.groupings()

	if i := r.find(opHighest, opLowest); i >= 0 && r.isOp(i+1, opAnd) && r.isOp(i+2, opHighest, opLowest, opAverage, opMedian) { // "minimum and maximum"
		return r.aggregate(i)
	}

	if i := r.find(opMost, opLeast, opHighest, opLowest, opDearest, opCheapest, opLongest, opShortest, opHeaviest, opLightest, opLatest, opEarliest, opOften); i >= 0 {
		return r.extreme(i)
	}

	if i := r.find(opShare); i >= 0 {
		return r.share(i)
	}

	if len(r.having) > 0 && r.find(opCount, opSum, opAverage, opMedian, opHowMuch) < 0 {
		return r.many()
	}

	return r.have() && r.figure()
}

// groupings handles "by region and month", "per customer" and "for each store".
func (r *reading) groupings() {
	for i := range r.items {
		if r.is(i, grainItem) && strings.HasSuffix(r.word(i), "ly") && (r.is(i+1, entityItem, measureItem) || i == len(r.items)-1) { // "monthly orders"
			r.use(i)
			r.groups = append(r.groups, group{table: -1, grain: r.items[i].grain})
		}

		if !r.isOp(i, opGroup, opBy) {
			continue
		}

		if r.items[i].op == opBy && r.is(i+1, valueItem) { // "paid by card"
			r.use(i)

			continue
		}

		// "booked by guests" says who did it, "sold by category" how to group.
		if before := r.items[i].from - 1; r.items[i].op == opBy && before >= 0 && isDeed(r.tokens[before]) && r.free(i+1) && r.items[i+1].plural {
			continue
		}

		at := i + 1
		if r.isColumn(at, isDate) && r.date == r.items[at] && r.byTime() { // "per month by visit date"
			r.use(i, at)

			continue
		}

		if r.isOp(at, opDistinct, opAcross) {
			r.use(at)
			at++
		}

		n := r.grouping(at)
		if n == 0 {
			continue
		}

		r.use(i)

		for at += n; r.isOp(at, opAnd); at += 1 + n {
			if n = r.grouping(at + 1); n == 0 {
				break
			}

			r.use(at)
		}
	}
}

// byTime reports whether the rows are grouped by days, months or years.
func (r *reading) byTime() bool {
	return slices.ContainsFunc(r.groups, func(g group) bool { return g.table < 0 })
}

// grouping groups by the items from i, and returns how many it used.
func (r *reading) grouping(i int) int {
	switch {
	case r.is(i, grainItem) && r.isColumn(i+1, isDate): // "month of arrival"
		r.use(i, i+1)
		r.groups = append(r.groups, group{form.Group{Column: r.ref(r.column(i + 1)), Grain: r.items[i].grain}, r.items[i+1].table, ""})

		return 2
	case r.isColumn(i, isDate) && r.is(i+1, grainItem): // "arrival month"
		r.use(i, i+1)
		r.groups = append(r.groups, group{form.Group{Column: r.ref(r.column(i)), Grain: r.items[i+1].grain}, r.items[i].table, ""})

		return 2
	case r.is(i, grainItem):
		r.use(i)
		r.groups = append(r.groups, group{table: -1, grain: r.items[i].grain})

		return 1
	case r.is(i, entityItem) && r.is(i+1, columnItem) && r.items[i].table == r.items[i+1].table && r.items[i].to == r.items[i+1].from && r.isColumn(i+1, isThing): // "adjuster team"
		r.use(i)

		return 1 + r.grouping(i+1)
	case r.isColumn(i, isThing) || r.is(i, columnItem) && r.column(i).Role == meaning.Flag && !slices.ContainsFunc(r.column(i).stems, isPerson): // is_manager does not say who it is
		c := r.column(i)
		r.use(i)
		r.groups = append(r.groups, group{form.Group{Column: r.ref(c)}, c.table, ""})

		if r.is(i+1, entityItem) && r.items[i+1].table == c.table { // "country of the hotel"
			r.use(i + 1)

			return 2
		}

		return 1
	case r.is(i, entityItem) && !r.items[i].verb:
		g, ok := r.thing(r.items[i].table)
		if !ok {
			return 0
		}

		r.use(i)
		r.groups = append(r.groups, g)

		return 1
	default:
		return 0
	}
}

// thing groups by the rows of a table: by its key, shown by its name.
func (r *reading) thing(at int) (group, bool) {
	t := r.tables[at]

	switch {
	case t.label >= 0 && t.key >= 0 && t.label != t.key:
		key := r.ref(&t.columns[t.key])

		return group{form.Group{Column: r.ref(&t.columns[t.label]), Key: &key}, at, ""}, true
	case t.label >= 0 && t.columns[t.label].unique:
		return group{form.Group{Column: r.ref(&t.columns[t.label])}, at, ""}, true
	case t.key >= 0:
		return group{form.Group{Column: r.ref(&t.columns[t.key])}, at, ""}, true
	default:
		return group{}, false
	}
}

// measureAt returns the figure that the items from i name without a function, and how many items it used. Times and
// groups may stand between the name and its verb.
func (r *reading) measureAt(i int) (*form.Measure, int, int) {
	switch {
	case r.is(i, measureItem):
		m, ok := r.named(r.items[i])
		if !ok {
			return nil, 0, 0
		}

		return m, r.items[i].table, 1
	case r.isColumn(i, meaning.Role.Adds) && !isOwn(r.column(i)):
		c := r.column(i)

		return &form.Measure{Function: form.Sum, Of: &form.Term{Column: r.ref(c)}}, c.table, 1
	case r.isOp(i, opCount) && r.is(i+1, entityItem):
		m := r.count(r.items[i+1].table)

		return &m, r.items[i+1].table, 2
	case r.isOp(i, opSum) && r.isColumn(i+1, meaning.Role.Adds), r.isOp(i, opSum) && r.isColumn(i+1, func(role meaning.Role) bool { return role == meaning.Unknown }):
		c := r.column(i + 1)

		return &form.Measure{Function: form.Sum, Of: &form.Term{Column: r.ref(c)}}, c.table, 2
	case r.isOp(i, opSum) && r.is(i+1, measureItem):
		m, table, n := r.measureAt(i + 1)

		return m, table, n + 1
	case r.isOp(i, opAverage, opMedian, opHighest, opLowest) && r.isColumn(i+1, isFigure):
		c := r.column(i + 1)

		return &form.Measure{Function: function(r.items[i].op), Of: &form.Term{Column: r.ref(c)}}, c.table, 2
	case r.is(i, entityItem):
		m := r.count(r.items[i].table)

		return &m, r.items[i].table, 1
	default:
		return nil, 0, 0
	}
}

// isOwn reports whether a figure is what one thing or person has. It adds up, but without a function nobody knows whether
// the sum or the average is meant: "salary by department".
func isOwn(c *column) bool {
	return slices.ContainsFunc(c.stems, func(w string) bool {
		switch w {
		case "salary", "wag", "premium", "rent", "mileag", "odometer", "weight", "population", "distanc", "ag", "fe", "limit", "capacity", "length", "valu", "siz":
			return true
		default:
			return false
		}
	})
}

func function(o op) form.Function {
	switch o {
	case opAverage:
		return form.Average
	case opMedian:
		return form.Median
	case opHighest, opMost:
		return form.Max
	case opLowest, opLeast:
		return form.Min
	default:
		return form.Sum
	}
}

// figure handles questions for one or several figures, and for rows.
func (r *reading) figure() bool {
	switch i := r.find(opCount, opSum, opAverage, opMedian, opHowMuch, opDistinct); {
	case i >= 0 && r.items[i].op == opDistinct:
		return r.countDistinct(i)
	case i >= 0 && r.items[i].op == opCount:
		return r.countOf(i)
	case i >= 0 && r.items[i].op == opHowMuch:
		r.use(i)

		return r.bare() && !r.isList
	case i >= 0 && r.items[i].op == opSum && r.is(i+1, entityItem) && r.items[i+1].whole:
		return false // "total cost" in a dataset cost: the column is meant
	case i >= 0 && r.items[i].op == opSum && !r.hasFigure(i):
		r.use(i) // "in total"

		if j := r.find(opCount, opDistinct); j >= 0 {
			return r.figure()
		}

		return r.bare() && !r.isList
	case i >= 0:
		return r.aggregate(i)
	default:
		return r.bare()
	}
}

// hasFigure reports whether a function is followed by what it is of.
func (r *reading) hasFigure(i int) bool {
	return r.is(i+1, columnItem, measureItem) || r.is(i+1, entityItem) && r.is(i+2, columnItem) && r.items[i+1].table == r.items[i+2].table
}

// aggregate handles "average price", "total revenue", "minimum and maximum amount".
func (r *reading) aggregate(i int) bool {
	functions := []op{r.items[i].op}
	at := i + 1

	for r.isOp(at, opAnd) && r.isOp(at+1, opSum, opAverage, opMedian, opHighest, opLowest) {
		functions = append(functions, r.items[at+1].op)
		r.use(at, at+1)
		at += 2
	}

	if r.is(at, entityItem) && r.is(at+1, columnItem) && r.items[at].table == r.items[at+1].table { // "average order amount"
		r.use(at)
		at++
	}

	if r.is(at, grainItem) && r.items[at].grain == form.Day && len(functions) == 1 {
		return r.between(i, at)
	}

	switch {
	case r.is(at, measureItem):
		return len(functions) == 1 && r.aggregateNamed(i, at)
	case r.isColumn(at, isFigure):
		c := r.column(at)
		r.use(i, at)

		for _, o := range functions {
			if o == opSum && !c.Role.Adds() && c.Role != meaning.Unknown {
				return r.refuse("The values of " + c.Name + " do not add up.")
			}

			r.form.Measures = append(r.form.Measures, form.Measure{Function: function(o), Of: &form.Term{Column: r.ref(c)}})
		}

		r.root = c.table

		if len(functions) == 1 && functions[0] == opSum {
			r.more(at + 1)
		}

		if functions[0] == opAverage { // "average quantity per order", where a row is an order
			r.groups = slices.DeleteFunc(r.groups, func(g group) bool {
				return g.table == r.root && g.Grain == "" && (g.Key != nil || r.tables[r.root].key >= 0 && r.tables[r.root].columns[r.tables[r.root].key].Name == g.Name)
			})
		}

		if functions[0] == opAverage && c.Role.Adds() && r.perThing(isOwn(c)) {
			return r.refuse("The average of " + c.Name + " may be of the rows or of the totals of each group.")
		}

		return true
	default:
		return false
	}
}

// aggregateNamed handles "total revenue" and "average order value".
func (r *reading) aggregateNamed(i, at int) bool {
	o, table := r.items[i].op, r.items[at].table

	m, ok := r.named(r.items[at])
	if !ok || o != opSum && !r.isOfRows(table, *m) {
		return false
	}

	if o != opSum {
		m.Name, m.Function = "", function(o)
	}

	r.use(i, at)
	r.form.Measures, r.root = append(r.form.Measures, *m), table

	if o == opAverage && r.perThing(false) {
		return r.refuse("The average may be of the rows or of the totals of each group.")
	}

	return r.more(at + 1)
}

// isOfRows reports whether a figure is an amount that each row of a table has, and a row is not a part of something else.
func (r *reading) isOfRows(table int, m form.Measure) bool {
	return m.Of != nil && m.Of.Op == "" && m.Function == form.Sum && !slices.ContainsFunc(r.tables[table].nouns, func(n []string) bool { return deedOf(n) != n[len(n)-1] })
}

// between handles "average days from order to delivery" and "average days between opened and closed".
func (r *reading) between(i, at int) bool {
	first, last := at+2, at+4

	if !r.isOp(at+1, opSince, opBetween) || !r.isColumn(first, isDate) || !r.isOp(at+3, opTo, opAnd, opUntil) || !r.isColumn(last, isDate) || r.items[first].table != r.items[last].table {
		return false
	}

	from, to := r.column(first), r.column(last)
	r.use(i, at, at+1, first, at+3, last)
	r.root = from.table
	r.form.Measures = append(r.form.Measures, form.Measure{
		Function: function(r.items[i].op), Of: &form.Term{Op: form.Days, Args: []form.Term{{Column: r.ref(from)}, {Column: r.ref(to)}}},
	})

	return true
}

// perThing reports whether the rows are grouped by things that have several rows each, so that an average may be of rows
// or of sums. What each row has of its own, such as a salary, is not added up.
func (r *reading) perThing(isOwn bool) bool {
	return slices.ContainsFunc(r.groups, func(g group) bool {
		return g.table >= 0 && g.table != r.root && (g.Key != nil || g.Grain == "" && r.tables[g.table].isKey(g.Name) && (!isOwn || r.isPart(r.root, g.table)))
	})
}

// isPart reports whether rows of one table are named as parts of rows of another: order lines and orders.
func (r *reading) isPart(table, of int) bool {
	return slices.ContainsFunc(r.tables[table].nouns, func(part []string) bool {
		return slices.ContainsFunc(r.tables[of].nouns, func(n []string) bool {
			return len(part) > len(n) && slices.Equal(part[:len(n)], n)
		})
	})
}

// more handles further figures: "budget and actual", "claimed vs paid".
func (r *reading) more(at int) bool {
	for r.isOp(at, opAnd, opVersus) {
		m, table, n := r.measureAt(at + 1)
		if m == nil || table != r.root {
			return true
		}

		r.use(at)

		for j := at + 1; j <= at+n; j++ {
			r.use(j)
		}

		r.form.Measures = append(r.form.Measures, *m)
		at += 1 + n
	}

	return true
}
