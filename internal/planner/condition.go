package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// comparisons handles "more than 20 seats", "amount above 5000", "between 10 and 20 hours", "more expensive than 20"
// and "more than 5 customers".
func (r *reading) comparisons() {
	for i := range r.items {
		switch {
		case r.isOp(i, opDearer, opCheaper, opHeavier, opLighter) && r.is(i+1, numberItem):
			r.compareSpecial(i)
		case r.isOp(i, opOver, opAtLeast, opUnder, opAtMost, opEqual) && r.is(i+1, numberItem):
			r.compareNumber(i, i+1, i+1, r.items[i].op)
		case r.isOp(i, opAtLeast, opAtMost) && r.is(i-1, numberItem): // "10 or more"
			r.compareNumber(i-1, i-1, i, r.items[i].op)
		case r.isOp(i, opBetween) && r.is(i+1, numberItem) && r.isOp(i+2, opAnd, opTo) && r.is(i+3, numberItem):
			r.compareNumber(i, i+1, i+3, opBetween)
		}
	}
}

func comparisonOf(o op) form.Comparison {
	switch o {
	case opOver, opDearer, opHeavier:
		return form.MoreThan
	case opAtLeast:
		return form.AtLeast
	case opUnder, opCheaper, opLighter:
		return form.LessThan
	case opAtMost:
		return form.AtMost
	case opBetween:
		return form.Between
	default:
		return form.Is
	}
}

// compareNumber handles a comparison of the items from first to last with the number at position number.
func (r *reading) compareNumber(first, number, last int, o op) {
	n, upper := r.items[number].number, 0.0
	if o == opBetween {
		upper = r.items[last].number
	}

	var subject int

	counted := last + 1 // values may stand before what is counted: "more than 5 business customers"
	for r.is(counted, valueItem) {
		counted++
	}

	switch {
	case r.isColumn(last+1, isFigure) || r.isColumn(last+1, func(role meaning.Role) bool { return role == meaning.Year || role == meaning.Code }) && meaning.IsNumber(r.column(last+1).Type):
		subject = last + 1
	case r.is(counted, entityItem) && r.items[counted].from == r.items[counted-1].to && r.items[last+1].from == r.items[last].to: // "more than 5 customers"
		if r.items[counted].tier < exact || r.isAmounts(r.items[counted].table) {
			return // "more than 5000 budget" is not a number of rows
		}

		for i := first; i <= last; i++ {
			r.used[i] = true
		}

		r.use(counted)
		r.having = append(r.having, having{table: r.items[counted].table, is: comparisonOf(o), n: n, upper: upper, item: first})

		return
	case r.is(first-1, columnItem) && meaning.IsNumber(r.column(first-1).Type) && !r.isOp(first-2, opSum, opAverage, opMedian, opHighest, opLowest, opMost, opLeast):
		subject = first - 1
	default:
		return
	}

	c := r.column(subject)
	if r.items[number].percent && c.Role != meaning.Share {
		return // "quantity over 20%"
	}

	if most, ok := c.Max.(float64); r.items[number].percent && ok && most <= 1 {
		n, upper = n/100, upper/100
	}

	one := form.Condition{Column: r.ref(c), Is: comparisonOf(o), Number: n, Upper: upper}
	if one.Is == form.Is {
		one.Values = []any{n}
	}

	for i := first; i <= last; i++ {
		r.used[i] = true
	}

	r.used[subject] = true
	r.where = append(r.where, condition{one, c.table, first})
}

// compareSpecial handles "products more expensive than 20" and "parcels heavier than 5 kg": the only price or weight of the
// thing before it.
func (r *reading) compareSpecial(i int) {
	is := func(c *column) bool { return c.Role == meaning.Price }
	if r.isOp(i, opHeavier, opLighter) {
		is = isWeight
	}

	for j := i - 1; j >= 0; j-- {
		if r.items[j].kind != entityItem && r.items[j].kind != valueItem {
			continue
		}

		c := r.only(r.items[j].table, is)
		if c == nil {
			return
		}

		r.use(i, i+1)

		if r.is(i+2, columnItem) && r.items[i+2].byUnit && r.column(i+2) == c { // "5 kg"
			r.use(i + 2)
		}

		r.where = append(r.where, condition{form.Condition{Column: r.ref(c), Is: comparisonOf(r.items[i].op), Number: r.items[i+1].number}, c.table, i})

		return
	}
}

// only returns the only column of a table that meets a condition, or nil.
func (r *reading) only(table int, is func(*column) bool) (found *column) {
	for i := range r.tables[table].columns {
		if c := &r.tables[table].columns[i]; is(c) {
			if found != nil {
				return nil
			}

			found = c
		}
	}

	return found
}

// word returns the first word of an item.
func (r *reading) word(i int) string { return r.tokens[r.items[i].from].lower }

// words returns the words of an item.
func (r *reading) words(i int) string {
	list := make([]string, 0, r.items[i].to-r.items[i].from)
	for _, t := range r.tokens[r.items[i].from:r.items[i].to] {
		list = append(list, t.lower)
	}

	return strings.Join(list, " ")
}

// negations handles "without a phone number", "not closed yet", "customers with no orders" and "not in Vienna".
func (r *reading) negations() {
	for i := range r.items {
		if !r.isOp(i, opWithout, opNever, opNot) {
			continue
		}

		switch at := i + 1; {
		case r.is(at, columnItem) && r.column(at).Role == meaning.Flag:
			_, no := meaning.YesNo(r.column(at).Values)
			if no == nil {
				no = false
			}

			r.use(i, at)
			r.where = append(r.where, condition{form.Condition{Column: r.ref(r.column(at)), Is: form.Is, Values: []any{no}}, r.items[at].table, i})
		case r.is(at, columnItem) && (r.items[i].op == opWithout || r.items[at].verb && r.column(at).Role == meaning.Date) && r.column(at).Nulls > 0:
			r.use(i, at)
			r.where = append(r.where, condition{form.Condition{Column: r.ref(r.column(at)), Is: form.Empty}, r.items[at].table, i})
		case r.is(at, entityItem) && r.items[i].op != opNot || r.is(at, verbItem) && r.items[at].table >= 0:
			r.without(i, at)
		case r.is(at, valueItem):
			r.exclude(i, at)
		default:
			continue
		}

		if y := r.find(opYet); y >= 0 {
			r.use(y)
		}
	}
}

// without handles rows that have no row of another table. Times and values after it restrict the other table.
func (r *reading) without(i, at int) {
	table := r.items[at].table
	rows := &form.Rows{Dataset: r.tables[table].name}

	r.use(i, at)

	for j := at + 1; j < len(r.items); j++ {
		if r.is(j, valueItem) && r.reach(table, r.items[j].table) == 1 {
			r.use(j)

			c := r.column(j)
			rows.Where = append(rows.Where, form.Condition{Column: r.ref(c), Is: form.Is, Values: []any{r.items[j].value}})
		}
	}

	for t := range r.times {
		if r.times[t].item > i {
			r.times[t].in = table
		}
	}

	r.where = append(r.where, condition{form.Condition{Is: form.NotExists, Rows: rows}, table, i})
}

// deeds handles rows that did something: "customers who ordered in 2024". What follows the verb restricts what they did.
func (r *reading) deeds() bool {
	for i, one := range r.items {
		isDeed := one.kind == verbItem || one.kind == entityItem && one.verb
		if r.used[i] || !isDeed || r.root < 0 || one.table < 0 || one.table == r.root || r.reach(one.table, r.root) != 1 || r.reach(r.root, one.table) > 0 {
			continue
		}

		// "no vehicle registered with us" says it already.
		if slices.ContainsFunc(r.where, func(w condition) bool { return w.Rows != nil && w.table == one.table }) {
			r.use(i)

			continue
		}

		// The average of "products sold" may be of the products or of all that was sold.
		if r.follows(one.from) && slices.ContainsFunc(r.form.Measures, func(m form.Measure) bool { return m.Of != nil && m.Function != form.CountDistinct }) {
			return r.refuse("It is not clear what \"" + r.words(i) + "\" refers to.")
		}

		rows := &form.Rows{Dataset: r.tables[one.table].name}
		r.use(i)

		for j := i + 1; j < len(r.items); j++ {
			if !r.is(j, valueItem) || r.reach(one.table, r.items[j].table) != 1 {
				continue
			}

			if r.reach(r.root, r.items[j].table) > 0 { // of the thing, or of what it did
				return r.refuse("It is not clear what \"" + r.words(j) + "\" refers to.")
			}

			r.use(j)
			rows.Where = append(rows.Where, form.Condition{Column: r.ref(r.column(j)), Is: form.Is, Values: []any{r.items[j].value}})
		}

		for t := range r.times {
			if r.times[t].item > i && r.times[t].in < 0 {
				r.times[t].in = one.table
			}
		}

		r.where = append(r.where, condition{form.Condition{Is: form.Exists, Rows: rows}, one.table, i})
	}

	return true
}

// follows reports whether the word before a token names the rows.
func (r *reading) follows(token int) bool {
	return token > 0 && slices.ContainsFunc(r.tables[r.root].nouns, func(n []string) bool { return n[len(n)-1] == r.tokens[token-1].stem })
}

// have turns "at least one payment" into a condition on the rows, if a figure of the rows is asked for.
func (r *reading) have() bool {
	for _, h := range r.having {
		if (h.is != form.AtLeast || h.n != 1) && (h.is != form.MoreThan || h.n != 0) {
			return false
		}

		r.where = append(r.where, condition{form.Condition{Is: form.Exists, Rows: &form.Rows{Dataset: r.tables[h.table].name}}, h.table, h.item})
	}

	r.having = nil

	return true
}

// exclude handles "not cancelled" and "except cash and card".
func (r *reading) exclude(i, at int) {
	c := r.column(at)
	one := form.Condition{Column: r.ref(c), Is: form.IsNot, Values: []any{r.items[at].value}}

	r.use(i, at)

	for j := at + 1; r.isOp(j, opAnd, opOr) && r.is(j+1, valueItem) && r.column(j+1) == c; j += 2 {
		r.use(j, j+1)
		one.Values = append(one.Values, r.items[j+1].value)
	}

	r.where = append(r.where, condition{one, c.table, i})
}

// filters turns the values and flags that are left into conditions. Values of one column are alternatives.
func (r *reading) filters() {
	r.stillOpen()

	for i := range r.items {
		switch {
		case r.is(i, valueItem):
			r.filter(i)
		case r.is(i, columnItem) && r.column(i).Role == meaning.Flag:
			yes, _ := meaning.YesNo(r.column(i).Values)
			if yes == nil {
				yes = true
			}

			r.use(i)
			r.where = append(r.where, condition{form.Condition{Column: r.ref(r.column(i)), Is: form.Is, Values: []any{yes}}, r.items[i].table, i})
		case r.is(i, numberItem) && r.is(i+1, columnItem) && r.items[i+1].from == r.items[i].to && r.column(i+1).Role == meaning.Code && meaning.IsNumber(r.column(i+1).Type): // "5 star hotels"
			r.use(i, i+1)
			r.where = append(r.where, condition{form.Condition{Column: r.ref(r.column(i + 1)), Is: form.Is, Values: []any{r.items[i].number}}, r.items[i+1].table, i})
		}
	}

	r.conjunctions()
}

// filter turns a value into a condition.
func (r *reading) filter(i int) {
	c := r.near(r.root, r.column(i))
	at := slices.IndexFunc(r.where, func(w condition) bool {
		return w.table == c.table && w.Name == c.Name && w.Is == form.Is && w.Rows == nil
	})

	if at >= 0 && slices.Contains(r.where[at].Values, r.items[i].value) {
		return // it says nothing new
	}

	r.use(i)

	// A name of the column next to the value explains it: "status cancelled".
	for _, j := range []int{i - 1, i + 1} {
		if r.is(j, columnItem) && (r.column(j) == c || r.column(j) == r.column(i)) {
			r.use(j)
		}
	}

	if at >= 0 {
		r.where[at].Values = append(r.where[at].Values, r.items[i].value)

		return
	}

	r.where = append(r.where, condition{form.Condition{Column: r.ref(c), Is: form.Is, Values: []any{r.items[i].value}}, c.table, i})
}

// conjunctions uses "and" between two conditions, and "or" between two values of one column.
func (r *reading) conjunctions() {
	for i := range r.items {
		if !r.isOp(i, opAnd, opOr) || i == 0 || i+1 >= len(r.items) {
			continue
		}

		before, after := r.column(i-1), r.column(i+1)
		isCondition := func(j int) bool {
			one := r.items[j]

			return one.kind == valueItem || one.kind == periodItem || one.kind == numberItem || one.kind == opItem && (one.op == opNot || one.op == opWithout || one.op == opNever) ||
				one.kind == columnItem && r.column(j).Role == meaning.Flag
		}

		if r.items[i].op == opAnd && isCondition(i-1) && isCondition(i+1) || before != nil && before == after {
			r.use(i)
		}
	}
}
