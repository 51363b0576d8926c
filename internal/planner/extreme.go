package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

const defaultTop = 10

// target is what a superlative asks for: the rows of a table, or the values of a column.
type target struct {
	table  int
	column *column // nil for rows
	item   int
	grain  form.Grain // days, months; the table is not known
}

// group groups by a target.
func (r *reading) groupBy(t target) (group, bool) {
	switch {
	case t.grain != "":
		return group{table: -1, grain: t.grain}, true
	case t.column == nil:
		return r.thing(t.table)
	}

	return group{form.Group{Column: r.ref(t.column)}, t.table, ""}, true
}

// targetAt returns the target at an item, and how many items name it.
func (r *reading) targetAt(i int) (target, int) {
	switch {
	case r.is(i, entityItem) && r.isColumn(i+1, isThing) && r.items[i].table == r.items[i+1].table && r.items[i].to == r.items[i+1].from: // "product categories"
		return target{table: r.items[i].table, column: r.column(i + 1), item: i}, 2
	case r.is(i, entityItem) && !r.items[i].verb:
		return target{table: r.items[i].table, item: i}, 1
	case r.isColumn(i, isThing) && !r.items[i].verb:
		return target{table: r.items[i].table, column: r.column(i), item: i}, 1
	case r.is(i, grainItem):
		return target{table: -1, item: i, grain: r.items[i].grain}, 1
	default:
		return target{}, 0
	}
}

// asked returns what follows "which", "what" or "list" directly.
func (r *reading) asked() (target, int, bool) {
	i := r.find(opWhich, opList, opWho)
	if i < 0 {
		return target{}, 0, false
	}

	t, n := r.targetAt(i + 1)
	if n == 0 || r.items[i].op == opWho && !r.isPersons(t) {
		return target{}, 0, false
	}

	r.use(i)

	return t, n, true
}

// isPersons reports whether a target is a person.
func (r *reading) isPersons(t target) bool {
	if t.column != nil {
		return slices.ContainsFunc(t.column.stems, isPerson)
	}

	return t.table >= 0 && slices.ContainsFunc(r.tables[t.table].nouns, func(n []string) bool { return isPerson(n[len(n)-1]) })
}

func isDescending(o op) bool {
	switch o {
	case opMost, opHighest, opDearest, opLongest, opHeaviest, opLatest, opOften, opTop:
		return true
	default:
		return false
	}
}

// extreme handles "which store has the most seats", "the cheapest product", "highest price of …", "which customer has
// the most orders".
func (r *reading) extreme(i int) bool {
	o := r.items[i].op
	what, n, isAsked := r.asked()

	if o == opOften {
		return r.often(i, what, n, isAsked)
	}

	if !isAsked && compares(o, opHighest, opLowest) && r.is(i+1, entityItem) && r.isOp(i+2, opBy) && r.isColumn(i+3, isFigure) && r.items[i+1].table == r.items[i+3].table { // "largest project by budget"
		what = target{table: r.items[i+1].table, item: i + 1}
		limit := r.howMany(i, what)
		r.use(i, i+1, i+2, i+3)

		return limit >= 1 && limit <= 1000 && r.best(what, r.column(i+3), isDescending(o), limit)
	}

	by, items := r.extremeColumn(i, what, isAsked)

	if !isAsked && by != nil { // "the product with the highest weight"
		for j := range r.items[:i] {
			if r.is(j, entityItem) && !r.items[j].verb && r.items[j].table == by.table {
				what, n, isAsked = target{table: by.table, item: j}, 1, true
			}
		}
	}

	switch {
	case isAsked:
	case by != nil && items > 0 && !compares(o, opLatest, opEarliest, opMost, opLeast) && r.find(opWho) < 0 && !r.isNumbered(i):
		return r.extremeFigure(i, by, items)
	case by != nil && compares(o, opLatest, opEarliest) && r.isOp(0, opWhen): // "when was the last order"
		r.use(0)

		return r.extremeFigure(i, by, 0)
	default:
		if what, n = r.implied(i, by, items); n < 0 {
			return false
		}
	}

	return r.extremeOf(i, what, n, by, items)
}

func compares(o op, list ...op) bool { return slices.Contains(list, o) }

// extremeFigure handles "what is the highest price" and "when was the last order": the figure itself.
func (r *reading) extremeFigure(i int, by *column, items int) bool {
	if w := r.find(opWhich); w >= 0 {
		r.use(w)
	}

	if t := r.first(entityItem); t >= 0 && r.items[t].table != by.table && r.reach(by.table, r.items[t].table) != 1 {
		return false
	}

	r.use(i)
	r.useFrom(i+1, items)
	r.root = by.table

	m := form.Measure{Function: form.Min, Of: &form.Term{Column: r.ref(by)}}
	if isDescending(r.items[i].op) {
		m.Function = form.Max
	}

	r.form.Measures = []form.Measure{m}

	return true
}

// implied returns what a superlative without "which" asks for, and how many items name it, -1 if there is nothing.
func (r *reading) implied(i int, by *column, items int) (what target, n int) {
	if !compares(r.items[i].op, opHighest, opLowest, opMost, opLeast) { // "the cheapest product"
		if w := r.find(opWhich, opList); w >= 0 {
			r.use(w)
		}

		at := i + 1 + items
		if r.is(at, numberItem) { // "the last 5 orders"
			at++
		}

		if what, n = r.targetAt(at); n == 0 {
			return what, -1
		}

		return what, n
	}

	for j := range r.items[:i] { // "the three projects with the largest budget"
		if what, n = r.targetAt(j); n > 0 && j > 0 && r.is(j-1, numberItem) {
			return what, n
		}
	}

	if what, n = r.targetAt(0); n > 0 && n == i && compares(r.items[i].op, opMost, opLeast) { // "project with the most hours"
		return what, n
	}

	if w := r.find(opWho); w >= 0 && by != nil && r.isPersons(target{table: by.table}) { // "who has the highest salary"
		r.use(w)

		return target{table: by.table, item: w}, 0
	}

	return what, -1
}

// extremeOf orders what is asked for, and keeps the first.
func (r *reading) extremeOf(i int, what target, n int, by *column, items int) bool {
	o := r.items[i].op

	r.use(i)
	r.useFrom(what.item, n)

	limit := r.howMany(i, what)

	if limit < 1 || limit > 1000 {
		return false
	}

	if by != nil && what.grain == "" && (by.table == what.table && (what.column == nil || what.column.unique || by.Role == meaning.Price && o != opMost && o != opLeast)) {
		r.useFrom(i+1, items)

		return r.best(what, by, isDescending(o), limit)
	}

	if len(r.groups) > 0 || !compares(o, opMost, opLeast, opHighest, opLowest) {
		return false // the best of each group, or the first of something else: "the month of the first order"
	}

	m, table, used := r.comparedAt(i+1, o)
	if m == nil && r.isColumn(i-1, meaning.Role.Adds) && !isOwn(r.column(i-1)) { // "which client has spent the least"
		m, table, _ = r.measureAt(i - 1)
		r.use(i - 1)

		return r.rank(what, *m, table, isDescending(o), limit)
	}

	if m == nil {
		return false
	}

	if compares(o, opHighest, opLowest) && m.Function == form.Sum && r.is(i+1, columnItem) && !r.eitherOf(i+1, o, m) {
		return false
	}

	r.useFrom(i+1, used)

	return r.rank(what, *m, table, isDescending(o), limit)
}

// howMany returns how many a superlative asks for: "the three projects with the largest budget", "the last 5 orders", "5
// newest customers". Several without a number are ten.
func (r *reading) howMany(i int, what target) int {
	for _, j := range []int{what.item - 1, i - 1} {
		if r.is(j, numberItem) && j+1 < len(r.items) && r.items[j].to == r.items[j+1].from {
			r.use(j)

			return int(r.items[j].number)
		}
	}

	isThing := what.column == nil && what.grain == "" && what.item >= 0 && r.items[what.item].kind == entityItem
	if isThing && r.items[what.item].plural && compares(r.items[i].op, opLatest, opEarliest, opDearest, opCheapest) {
		return defaultTop
	}

	return 1
}

// isNumbered reports whether a number of things is asked for before an item: "the three projects with".
func (r *reading) isNumbered(i int) bool {
	for j := range i {
		if r.is(j, numberItem) && r.is(j+1, entityItem) {
			return true
		}
	}

	return false
}

func (r *reading) useFrom(i, n int) {
	for j := i; j < i+n; j++ {
		r.use(j)
	}
}

// extremeColumn returns the column that a superlative compares, and how many items after it name it.
func (r *reading) extremeColumn(i int, what target, isAsked bool) (*column, int) {
	of := what.table

	if !isAsked {
		of = -1
		if at := r.first(entityItem); at >= 0 {
			of = r.items[at].table
		}
	}

	switch o := r.items[i].op; o {
	case opDearest, opCheapest:
		if of >= 0 {
			return r.only(of, func(c *column) bool { return c.Role == meaning.Price && !isCost(c) }), 0
		}
	case opLongest, opShortest:
		if of >= 0 {
			return r.only(of, func(c *column) bool { return c.Role == meaning.Duration }), 0
		}
	case opHeaviest, opLightest:
		if of >= 0 {
			return r.only(of, isWeight), 0
		}
	case opLatest, opEarliest:
		if of < 0 {
			return nil, 0
		}

		// The oldest person is not the one who came first.
		if strings.Contains(r.words(i), "old") || strings.Contains(r.words(i), "young") {
			return r.only(of, func(c *column) bool { return c.Role == meaning.Date && isBirth(c) }), 0
		}

		return r.dateOf(of), 0
	default:
		if r.isColumn(i+1, isFigure) {
			return r.column(i + 1), 1
		}

		if r.is(i+1, entityItem) && r.isColumn(i+2, isFigure) && r.items[i+1].table == r.items[i+2].table {
			return r.column(i + 2), 2
		}
	}

	return nil, 0
}

// best lists the rows with the highest or lowest figure.
func (r *reading) best(what target, by *column, descending bool, limit int) bool {
	if len(r.groups) > 0 {
		return false
	}

	r.root, r.isList = by.table, true

	switch t := r.tables[what.table]; {
	case what.column != nil:
		r.form.Show = []form.Term{{Column: r.ref(what.column)}}
	default:
		for _, c := range t.identity() {
			r.form.Show = append(r.form.Show, form.Term{Column: r.ref(c)})
		}
	}

	if len(r.form.Show) > 0 {
		r.form.Show = append(r.form.Show, form.Term{Column: r.ref(by)})
	}

	r.form.Order = &form.Order{Column: &form.Term{Column: r.ref(by)}, Descending: descending}
	r.form.Limit = limit

	return true
}

// rank groups by the target and orders the groups by a figure.
func (r *reading) rank(what target, m form.Measure, table int, descending bool, limit int) bool {
	g, ok := r.groupBy(what)
	if !ok || what.grain == "" && r.reach(table, what.table) != 1 {
		return false
	}

	r.root = table

	if !descending && m.Function == form.Count && what.grain == "" && what.table != table && !r.withNone(what.table, &m, table) {
		return false
	}

	r.groups = append([]group{g}, r.groups...)
	r.form.Measures = []form.Measure{m}
	r.form.Order = &form.Order{Descending: descending}
	r.form.Limit = limit

	return len(r.groups) == 1
}

// often handles "the most common payment type" and "which town do most of our jobs come from".
func (r *reading) often(i int, what target, n int, isAsked bool) bool {
	if !isAsked {
		if w := r.find(opWhich); w >= 0 {
			r.use(w)
		}

		if what, n = r.targetAt(i + 1); n == 0 || what.column == nil {
			return false
		}
	}

	r.use(i)
	r.useFrom(what.item, n)

	if r.firstVerb() >= 0 {
		return false // "sold most often" may be in rows or in pieces
	}

	table := what.table
	if at := r.first(entityItem); at >= 0 {
		table = r.items[at].table
		r.use(at)
	}

	if table < 0 {
		return false
	}

	return r.rank(what, r.count(table), table, true, 1)
}

// top handles "top 3 categories by revenue", "top 5 most expensive products" and "bottom 5 stores by seats".
func (r *reading) top(i int) bool {
	if w := r.find(opWhich, opList); w >= 0 && w < i {
		r.use(w)
	}

	limit, at, descending := defaultTop, i+1, r.items[i].op == opTop

	isNumbered := r.is(at, numberItem)
	if isNumbered {
		limit = int(r.items[at].number)
		r.use(at)
		at++
	}

	if limit < 1 || limit > 1000 {
		return false
	}

	r.use(i)

	special := -1
	if r.isOp(at, opDearest, opCheapest, opLongest, opShortest, opHeaviest, opLightest, opLatest, opEarliest) {
		special = at
		at++
	}

	what, n := r.targetAt(at)
	if n == 0 {
		return false
	}

	r.useFrom(at, n)
	at += n

	if !isNumbered && !strings.HasSuffix(r.tokens[r.items[at-1].to-1].lower, "s") { // "top region"
		limit = 1
	}

	if special >= 0 {
		by, _ := r.extremeColumn(special, what, true)
		if by == nil || what.column != nil {
			return false
		}

		r.use(special)

		return r.best(what, by, isDescending(r.items[special].op) == descending, limit)
	}

	// Conditions may stand between the target and "by".
	for at < len(r.items) && !r.isOp(at, opBy, opGroup, opMost, opHighest) {
		at++
	}

	if !r.free(at) {
		return false
	}

	r.use(at)

	for r.isOp(at+1, opHighest, opMost) {
		at++
		r.use(at)
	}

	for r.is(at+1, valueItem) { // "by spa revenue"
		at++
	}

	if c := r.column(at + 1); r.isColumn(at+1, isFigure) && c.table == what.table && what.column == nil {
		r.use(at + 1)

		return r.best(what, c, descending, limit)
	}

	m, table, used := r.comparedAt(at+1, opTop)
	if m == nil {
		return false
	}

	r.useFrom(at+1, used)

	if d := r.find(opDown); d >= 0 && descending {
		r.use(d)
	}

	return r.rank(what, *m, table, descending, limit)
}
