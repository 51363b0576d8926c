package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// first returns the first free item of a kind, or -1.
func (r *reading) first(kinds ...itemKind) int {
	for i := range r.items {
		if r.is(i, kinds...) && !r.items[i].verb {
			return i
		}
	}

	return -1
}

// bare handles questions without a function: "units sold per month", "claims by status", "open claims".
func (r *reading) bare() bool {
	r.sorted()

	lists := r.find(opList, opWhich, opWho)
	asks := lists >= 0

	if asks && r.items[lists].op == opWho && r.first(entityItem) >= 0 && !r.isPersons(target{table: r.items[r.first(entityItem)].table}) {
		return false
	}

	if asks {
		r.use(lists)
	}

	// A figure that adds up is added up; other figures need a function.
	for i := range r.items {
		if r.is(i, measureItem) || r.isColumn(i, meaning.Role.Adds) && !isOwn(r.column(i)) {
			if asks && len(r.groups) == 0 && r.items[i].kind == columnItem && (r.first(entityItem) >= 0 || r.items[lists].op == opList && r.otherThing(i)) {
				break // "show name and amount of orders"
			}

			return r.sum(i)
		}
	}

	at := r.first(entityItem)

	if at < 0 && asks && r.items[lists].op == opWho { // "who was hired in 2019"
		if t := r.persons(); t >= 0 {
			r.root, r.isList = t, true

			return true
		}

		return false
	}

	if at >= 0 {
		return r.rowsAt(at, lists)
	}

	if !asks {
		return false
	}

	// "which mechanics": the different values of a column.
	for i := range r.items {
		if r.isColumn(i, isThing) && !r.items[i].verb {
			c := r.column(i)
			r.use(i)
			r.root, r.isList = c.table, true
			r.form.Distinct = true
			r.form.Show = []form.Term{{Column: r.ref(c)}}

			return true
		}
	}

	return false
}

// rowsAt lists the rows that an item names, or counts them if they are grouped. lists is the item that asks for a list,
// or -1.
func (r *reading) rowsAt(at, lists int) bool {
	r.root = r.items[at].table
	r.use(at)

	if len(r.groups) > 0 {
		r.isBare = true

		if amount := r.amountOf(r.root); amount == nil && r.isAmounts(r.root) {
			return r.refuse("It is not clear whether the number of " + r.tables[r.root].name + " or an amount is meant.")
		} else if r.other && amount != nil {
			r.form.Measures = append(r.form.Measures, form.Measure{Function: form.Sum, Of: &form.Term{Column: r.ref(amount)}})
		} else {
			r.form.Measures = append(r.form.Measures, r.count(r.root))
		}

		return lists < 0 || r.items[lists].op == opList && r.word(lists) != "list" // "list customers by country" asks for customers
	}

	// "orders in March 2026" may be their number.
	r.isBare = lists < 0 && r.hasEvents(r.root) && slices.ContainsFunc(r.times, func(t when) bool { return t.in < 0 })
	if r.isBare && r.other {
		r.form.Measures = append(r.form.Measures, r.count(r.root))

		return true
	}

	r.isList = true
	r.shown(at)
	r.shownAfter(at)

	// "which cities do customers live in": each one once.
	r.form.Distinct = lists >= 0 && r.word(lists) == "which" && len(r.form.Show) == 1 && r.tables[r.root].columns[r.tables[r.root].find(r.form.Show[0].Name)].Role == meaning.Category

	return true
}

// otherThing reports whether the question names a thing besides a figure.
func (r *reading) otherThing(i int) bool {
	for j := range r.items {
		if j != i && r.isColumn(j, isThing) {
			return true
		}
	}

	return false
}

// shown handles the columns of a list that are named before its rows: "names and phones of customers".
func (r *reading) shown(at int) {
	for i := range at {
		if r.is(i, columnItem) && r.items[i].table == r.root && r.column(i).Role != meaning.Flag && !r.is(i-1, numberItem) && !r.isOfValue(i) {
			r.use(i)
			r.form.Show = append(r.form.Show, form.Term{Column: r.ref(r.column(i))})

			if r.isOp(i+1, opAnd) {
				r.use(i + 1)
			}
		}
	}
}

// isOfValue reports whether the name of a column only says what a value beside it is: "student plan members".
func (r *reading) isOfValue(i int) bool {
	return r.is(i-1, valueItem) && r.column(i-1) == r.column(i) || r.is(i+1, valueItem) && r.column(i+1) == r.column(i)
}

// shownAfter handles the columns of a list that are named after its rows: "customers with their city", "list customers,
// name and city". The key and the name of a row are shown, too.
func (r *reading) shownAfter(at int) {
	var list []*column

	for i := at + 1; i < len(r.items); i++ {
		isNamed := r.is(i, columnItem) && r.items[i].table == r.root && !r.items[i].verb && r.column(i).Role != meaning.Flag
		if !isNamed || len(list) == 0 && !r.isIntroduced(i) {
			break
		}

		r.use(i)
		list = append(list, r.column(i))

		if r.isOp(i+1, opAnd) && r.is(i+2, columnItem) {
			r.use(i + 1)
			i++
		}
	}

	if len(list) == 0 || len(r.form.Show) > 0 {
		return
	}

	for _, c := range append(r.tables[r.root].identity(), list...) {
		if term := (form.Term{Column: r.ref(c)}); !slices.ContainsFunc(r.form.Show, func(o form.Term) bool { return o.Name == term.Name }) {
			r.form.Show = append(r.form.Show, term)
		}
	}
}

// isIntroduced reports whether the words before an item say that it is shown.
func (r *reading) isIntroduced(i int) bool {
	before := r.items[i].from - 1

	return before >= 0 && (r.tokens[before].lower == "their" || r.tokens[before].lower == "including" || r.tokens[before].comma)
}

// sorted handles "sorted by hours" of a list.
func (r *reading) sorted() {
	i := r.find(opSort)
	if i < 0 || !r.is(i+1, columnItem) {
		return
	}

	r.use(i, i+1)
	r.form.Order = &form.Order{Column: &form.Term{Column: r.ref(r.column(i + 1))}}

	if r.isOp(i+2, opDown, opUp) {
		r.form.Order.Descending = r.items[i+2].op == opDown
		r.use(i + 2)
	}
}

// persons returns the only table whose rows are persons, or -1.
func (r *reading) persons() int {
	found := -1

	for _, t := range r.tables {
		if slices.ContainsFunc(t.nouns, func(n []string) bool { return isPerson(n[len(n)-1]) }) {
			if found >= 0 {
				return -1
			}

			found = t.at
		}
	}

	return found
}

func isPerson(stem string) bool {
	switch stem {
	case "person", "employe", "staff", "customer", "client", "guest", "member", "patient", "student", "player", "driver", "user", "teacher", "agent", "visitor", "author", "artist", "candidat", "contact", "donor", "volunteer", "worker", "salesperson", "manager", "mechanic", "winner", "director", "coach", "instructor", "doctor", "owner", "adjuster", "technician":
		return true
	default:
		return false
	}
}
