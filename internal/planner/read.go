package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// reading builds a form from the items of a cover. Every item must be used by exactly one element of the form.
type reading struct {
	*world

	tokens []token
	items  []*item // without function words
	used   []bool

	root    int // table whose rows are counted or listed; -1 if it is not decided
	form    form.Form
	where   []condition
	groups  []group
	times   []when
	date    *item     // the only column of dates that the question names
	dates   []*column // columns of dates that the times may mean, if nothing says which
	day     *column   // the one of them that is tried
	having  []having
	isList  bool
	isBare  bool     // no word says whether the rows are counted or listed
	other   bool     // the less likely of both is tried: the sum of the amounts, or the number
	counted *column  // whose different values are counted without saying so
	verbs   []string // stems of verbs that only connect
	why     string
}

// condition is a condition and the table that its column belongs to.
type condition struct {
	form.Condition

	table int
	item  int
}

// group is something that the rows are grouped by.
type group struct {
	form.Group

	table int
	grain form.Grain // of the date, if there is no column
}

// when is a period whose column is not decided, with its first item.
type when struct {
	span span
	item int
	date *item // named next to it
	in   int   // table that it restricts, if not the root; -1 otherwise
}

// having is a condition on the number of rows of a table.
type having struct {
	table int
	is    form.Comparison
	n     float64
	upper float64
	item  int
}

func (w *world) read(tokens []token, c *cover) *reading {
	r := &reading{world: w, tokens: tokens, root: -1}

	for _, one := range c.list() {
		switch {
		case one.kind == functionItem:
		case one.kind == verbItem && one.table < 0:
			r.verbs = append(r.verbs, tokens[one.from].stem)
		default:
			r.items = append(r.items, one)
		}
	}

	r.used = make([]bool, len(r.items))

	return r
}

// understand fills the form. It returns false if an item is left over or something is missing.
func (r *reading) understand() bool {
	r.findDate()
	r.versus()
	r.comparisons()
	r.periods()
	r.negations()

	if !r.ask() || !r.deeds() {
		return false
	}

	r.filters()
	r.qualifiers()

	return r.finish()
}

func (r *reading) free(i int) bool { return i >= 0 && i < len(r.items) && !r.used[i] }

func (r *reading) is(i int, kinds ...itemKind) bool {
	return r.free(i) && slices.Contains(kinds, r.items[i].kind)
}

func (r *reading) isOp(i int, ops ...op) bool {
	return r.is(i, opItem) && slices.Contains(ops, r.items[i].op)
}

// find returns the first free item with one of the operators, or -1.
func (r *reading) find(ops ...op) int {
	for i := range r.items {
		if r.isOp(i, ops...) {
			return i
		}
	}

	return -1
}

func (r *reading) use(list ...int) {
	for _, i := range list {
		r.used[i] = true
	}
}

// column returns the column of an item, nil if it is not a column.
func (r *reading) column(i int) *column {
	if i < 0 || i >= len(r.items) || r.items[i].kind != columnItem && r.items[i].kind != valueItem {
		return nil
	}

	return &r.tables[r.items[i].table].columns[r.items[i].column]
}

// isColumn reports whether a free item is a column with one of the roles.
func (r *reading) isColumn(i int, is func(meaning.Role) bool) bool {
	return r.is(i, columnItem) && is(r.column(i).Role)
}

func isFigure(role meaning.Role) bool { return role.IsFigure() }

func isDate(role meaning.Role) bool { return role == meaning.Date }

func isThing(role meaning.Role) bool {
	return role == meaning.Category || role == meaning.Name || role == meaning.Text || role == meaning.Code || role == meaning.Year || role == meaning.Identifier
}

// ref returns how a form names a column.
func (r *reading) ref(c *column) form.Column {
	return form.Column{Dataset: r.tables[c.table].name, Name: c.Name}
}

func (r *reading) refuse(why string) bool {
	if r.why == "" {
		r.why = why
	}

	return false
}

// findDate finds the column of dates that the question names, if it is only one.
func (r *reading) findDate() {
	for i, one := range r.items {
		if one.kind != columnItem || r.column(i).Role != meaning.Date && r.column(i).Role != meaning.Year {
			continue
		}

		if r.date != nil && (r.date.table != one.table || r.date.column != one.column) {
			r.date = nil

			return
		}

		r.date = one
	}
}

// versus handles "web vs app" and "2024 vs 2025": two values of a column are shown side by side.
func (r *reading) versus() {
	i := r.find(opVersus)
	c := r.column(i - 1)

	switch {
	case i < 1 || c == nil:
		return
	case r.is(i-1, columnItem) && c.Role == meaning.Flag && r.isOp(i+1, opNot) && r.column(i+2) == c: // "paid vs not paid"
		r.use(i-1, i, i+1, i+2)
	case r.is(i-1, valueItem) && r.is(i+1, valueItem) && r.column(i+1) == c:
		r.use(i)

		for i += 2; r.isOp(i, opVersus) && r.is(i+1, valueItem) && r.column(i+1) == c; i += 2 {
			r.use(i)
		}
	default:
		return
	}

	r.groups = append(r.groups, group{form.Group{Column: r.ref(c)}, c.table, ""})
}

// periods collects the periods of the question. Their columns are decided when the table is known.
func (r *reading) periods() {
	for i := range r.items {
		if !r.is(i, periodItem) {
			continue
		}

		first, last, p := i, i, r.items[i].period

		switch {
		case r.isOp(i-1, opBetween, opSince) && r.isOp(i+1, opAnd, opTo, opUntil) && r.is(i+2, periodItem):
			until := r.items[i+2].period
			if p.Month > 0 || until.Month > 0 {
				if p = p.through(until); p.From.IsZero() && p.Month == 0 {
					continue
				}
			} else {
				p = span{From: p.From, To: until.To, Text: p.Text + " to " + until.Text, Grain: p.Grain}
			}

			first, last = i-1, i+2
		case r.isOp(i-1, opBetween, opSince) && r.isOp(i+1, opAnd, opTo):
			continue
		case r.isOp(i-1, opBetween, opSince) && r.items[i].to-r.items[i].from == 5: // "between 1 and 24 December 2024"
			first = i - 1
		case p.Month > 0:
		case r.isOp(i-1, opAfter):
			first, p = i-1, span{From: p.To, Text: "after " + p.Text, Grain: p.Grain}
		case r.isOp(i-1, opSince) && r.word(i-1) != "from" || r.isOp(i-1, opSince) && p.Grain == form.Day:
			first, p = i-1, span{From: p.From, Text: "since " + p.Text, Grain: p.Grain}
		case r.isOp(i-1, opSince): // "orders from 2024"
			first = i - 1
		case r.isOp(i-1, opBefore):
			first, p = i-1, span{To: p.From, Text: "before " + p.Text, Grain: p.Grain}
		case r.isOp(i-1, opUntil):
			first, p = i-1, span{To: p.To, Text: "until " + p.Text, Grain: p.Grain}
		case r.isOp(i-1, opOver) && r.word(i-1) == "over": // "over the last month"
			first = i - 1
		}

		for j := first; j <= last; j++ {
			r.used[j] = true
		}

		one := when{span: p, item: first, in: -1, date: r.dateBeside(first, last)}

		r.times = append(r.times, one)
	}
}
