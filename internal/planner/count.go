package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// count counts the rows of a table, or the things that its rows are parts of: a dataset orders whose order_no repeats has
// order lines.
func (r *reading) count(table int) form.Measure {
	t := r.tables[table]
	m := form.Measure{Function: form.Count, Dataset: t.name}

	for i := range t.columns {
		c := &t.columns[i]
		noun := slices.DeleteFunc(slices.Clone(c.stems), isWeakName)

		if len(noun) == 0 || len(c.stems) == len(noun) || c.unique || c.joined || c.Distinct == 0 || t.key >= 0 && slices.Contains(t.columns[t.key].stems, noun[0]) {
			continue
		}

		if isIDStem(c.stems[len(c.stems)-1]) && slices.ContainsFunc(t.nouns, func(n []string) bool { return slices.Equal(n, noun) }) {
			return form.Measure{Function: form.CountDistinct, Dataset: t.name, Of: &form.Term{Column: r.ref(c)}}
		}
	}

	return m
}

// countOf handles "how many orders", "number of seats", "how many kg of beans", "number of check-ins".
func (r *reading) countOf(i int) bool {
	at := i + 1
	if !r.free(at) || r.isOp(at, opWithout, opNever) { // "policies sold without an agent: how many"
		at = r.first(entityItem)
	}

	if r.isOp(at, opDistinct) {
		return r.countDistinct(at) && r.usedAll(i)
	}

	// Values and flags may stand before the noun: "how many VIP guests".
	for r.is(at, valueItem) || r.is(at, columnItem) && r.column(at).Role == meaning.Flag && r.free(at+1) || r.is(at, numberItem) && r.is(at+1, columnItem) && r.column(at+1).Role == meaning.Code {
		if r.is(at, numberItem) {
			at++
		}

		at++
	}

	if !r.is(at, entityItem, columnItem, measureItem) {
		if at = r.first(entityItem); at < 0 || at > i && !r.isRelated(i, at) {
			return r.countValue(i)
		}
	}

	switch {
	case r.is(at, entityItem) && r.is(at+1, columnItem) && r.items[at].table == r.items[at+1].table && r.isColumn(at+1, meaning.Role.Adds) && r.items[at].to == r.items[at+1].from:
		r.use(i, at)

		return r.sum(at + 1)
	case r.is(at, entityItem):
		r.use(i, at)
		r.root = r.items[at].table
		r.form.Measures = append(r.form.Measures, r.count(r.root))

		return true
	case r.isColumn(at, meaning.Role.Adds):
		r.use(i)

		return r.sum(at)
	case r.is(at, measureItem):
		r.use(i)

		return r.sum(at)
	case r.isColumn(at, isDate) && !r.items[at].verb: // "number of check-ins"
		c := r.column(at)
		r.use(i, at)
		r.root = c.table
		r.form.Measures = append(r.form.Measures, r.count(r.root))

		if c.Nulls > 0 {
			r.where = append(r.where, condition{form.Condition{Column: r.ref(c), Is: form.Filled}, c.table, at})
		}

		return true
	case r.isColumn(at, isThing):
		r.use(i)
		r.counted = r.column(at)

		return r.distinct(at)
	default:
		return false
	}
}

const rowsPerValue = 4 // from here on a column has values, and not the names of its rows

// isDistinct reports whether "how many regions" means the different values of a column: there are few of them, and nothing
// restricts the rows. Otherwise the rows may be meant.
func (r *reading) isDistinct() bool {
	c := r.counted
	if c == nil {
		return true
	}

	if meaning.IsNumber(c.Type) || c.Role != meaning.Category && c.Role != meaning.Name || c.Distinct*rowsPerValue > r.tables[c.table].source.Rows || len(r.where) > 0 || len(r.times) > 0 {
		return r.refuse("It is not clear whether the rows or the different values of " + c.Name + " are meant. Ask how many different there are, or name the rows.")
	}

	return true
}

// isRelated reports whether only values stand between two items.
func (r *reading) isRelated(i, at int) bool {
	for j := i + 1; j < at; j++ {
		if !r.used[j] && !r.is(j, valueItem) {
			return false
		}
	}

	return true
}

func (r *reading) usedAll(list ...int) bool {
	r.use(list...)

	return true
}

// countValue handles "how many EVs do we have": rows with a value of a category, and "how many lattes did we sell".
func (r *reading) countValue(i int) bool {
	at := i + 1
	if !r.is(at, valueItem) {
		return false
	}

	c := r.column(at)

	if v := r.firstVerb(); v >= 0 {
		q := r.only(r.items[v].table, isQuantity)
		if q == nil || r.reach(r.items[v].table, c.table) != 1 {
			return false
		}

		r.use(i, v)
		r.root = r.items[v].table
		r.form.Measures = append(r.form.Measures, form.Measure{Function: form.Sum, Of: &form.Term{Column: r.ref(q)}})

		return true
	}

	if c.Role != meaning.Category || r.isEvents(c.table) || r.only(c.table, isQuantity) != nil { // "child tickets" may be in rows or in pieces
		return false
	}

	r.use(i)
	r.root = c.table
	r.form.Measures = append(r.form.Measures, r.count(r.root))

	return true
}

// firstVerb returns the first free verb that says what was done, or -1.
func (r *reading) firstVerb() int {
	for i := range r.items {
		if r.is(i, verbItem) {
			return i
		}
	}

	return -1
}

func isQuantity(c *column) bool {
	return c.Role == meaning.Count && (slices.Contains(c.stems, "quantity") || slices.Contains(c.stems, "unit") || slices.Contains(c.stems, "meng"))
}

func (r *reading) sum(at int) bool {
	m, table, n := r.measureAt(at)
	if m == nil || n != 1 {
		return false
	}

	r.use(at)
	r.root = table
	r.form.Measures = append(r.form.Measures, *m)

	return r.more(at + 1)
}

// countDistinct handles "how many different directors".
func (r *reading) countDistinct(i int) bool {
	if c := r.find(opCount); c >= 0 {
		r.use(c)
	} else if w := r.word(i); w == "different" || w == "distinct" || w == "unique" {
		return r.listDistinct(i)
	}

	switch at := i + 1; {
	case r.is(at, entityItem) && r.is(at+1, columnItem) && r.items[at].table == r.items[at+1].table:
		r.use(i, at)

		return r.distinct(at + 1)
	case r.isColumn(at, isThing):
		r.use(i)

		return r.distinct(at)
	case r.is(at, entityItem):
		r.use(i, at)
		r.root = r.items[at].table
		r.form.Measures = append(r.form.Measures, r.count(r.root))

		return true
	default:
		return false
	}
}

// listDistinct handles "the different channels".
func (r *reading) listDistinct(i int) bool {
	if !r.isColumn(i+1, isThing) || len(r.groups) > 0 {
		return false
	}

	if w := r.find(opList, opWhich); w >= 0 {
		r.use(w)
	}

	c := r.column(i + 1)
	r.use(i, i+1)
	r.root, r.isList = c.table, true
	r.form.Distinct, r.form.Show = true, []form.Term{{Column: r.ref(c)}}

	return true
}

func (r *reading) distinct(at int) bool {
	c := r.column(at)
	r.use(at)
	r.root = c.table
	r.form.Measures = append(r.form.Measures, form.Measure{Function: form.CountDistinct, Of: &form.Term{Column: r.ref(c)}})

	return true
}
