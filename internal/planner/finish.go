package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// qualifiers uses what only repeats what is said otherwise: the thing whose column or value stands next to it, the rows
// that are counted, "all".
func (r *reading) qualifiers() {
	for i, one := range r.items {
		if r.used[i] {
			continue
		}

		switch one.kind {
		case opItem:
			r.qualifyOp(i)
		case entityItem:
			beside := func(j int) bool {
				return j >= 0 && j < len(r.items) && r.used[j] && (r.items[j].kind == columnItem || r.items[j].kind == valueItem) && r.items[j].table == one.table
			}

			related := r.root >= 0 && (one.table == r.root || r.reach(r.root, one.table) == 1)
			if one.table == r.root && !one.verb || related && (beside(i-1) || beside(i+1)) || related && i > 0 && r.items[i-1].kind == opItem && r.items[i-1].op == opAcross {
				r.use(i)
			}
		case verbItem:
			if one.table == r.root {
				r.use(i)
			}
		case partItem:
			r.qualifyPart(i)
		case columnItem:
			// The things that have a value: "Kitchen products".
			if i > 0 && one.table == r.root && r.used[i-1] && r.items[i-1].to == one.from && one.plural && r.isKind(i-1, i) {
				r.use(i)
			}

			// A word that is also the name of the dataset: "sold" in sales.
			if one.verb && one.table == r.root && r.column(i).Role != meaning.Date && slices.ContainsFunc(r.form.Measures, func(m form.Measure) bool { return m.Of != nil && m.Of.Name == r.column(i).Name }) {
				r.use(i)
			}
		default:
		}
	}
}

// isCondition reports whether an item became a condition on the rows.
func (r *reading) isCondition(i int) bool {
	return i >= 0 && i < len(r.items) && r.used[i] && (r.items[i].kind == valueItem || r.items[i].kind == periodItem || r.column(i) != nil && r.column(i).Role == meaning.Flag)
}

// restricts uses "only" beside a condition: "in 2025 only", "public clients only".
func (r *reading) restricts(i int) {
	isOfThing := i > 1 && r.used[i-1] && r.items[i-1].kind == entityItem && r.isCondition(i-2)

	if isOfThing || r.isCondition(i-1) || r.isCondition(i+1) {
		r.use(i)
	}
}

// now handles "currently": the rows that have not ended, if the rows of a table end.
func (r *reading) now(i int) {
	if r.root < 0 {
		return
	}

	var ends []*column

	for _, c := range r.datesOf(r.root) {
		if c.Nulls > 0 && isOver(c) {
			ends = append(ends, c)
		}
	}

	switch {
	case len(ends) == 0:
		r.use(i)
	case len(ends) == 1:
		r.use(i)

		if !slices.ContainsFunc(r.where, func(w condition) bool { return w.table == r.root && w.Name == ends[0].Name }) {
			r.where = append(r.where, condition{form.Condition{Column: r.ref(ends[0]), Is: form.Empty}, r.root, i})
		}
	}
}

// isKind reports whether a value says of which kind the things are that a column names: there are more things than
// kinds. Persons are not of a kind.
func (r *reading) isKind(value, thing int) bool {
	kind, c := r.column(value), r.column(thing)

	return r.items[value].kind == valueItem && kind.table == c.table && isThing(c.Role) && c.Distinct > kind.Distinct && !slices.ContainsFunc(c.stems, isPerson)
}

// qualifyPart uses a part of the name of a column whose value stands next to it: "paid by card".
func (r *reading) qualifyPart(i int) {
	for j := max(0, i-2); j <= min(len(r.items)-1, i+2); j++ {
		one := r.items[j]
		if r.used[j] && one.kind == valueItem && one.table == r.items[i].table && one.column == r.items[i].column {
			r.use(i)

			return
		}
	}
}

func (r *reading) qualifyOp(i int) {
	switch r.items[i].op {
	case opStill:
		if i+1 < len(r.items) && r.used[i+1] && (r.items[i+1].kind == valueItem || r.items[i+1].kind == openItem || r.items[i+1].kind == opItem && r.items[i+1].op == opNot) {
			r.use(i)
		}
	case opWho: // "which customers who joined in 2024"
		if i > 0 && r.items[i-1].kind == entityItem && r.isPersons(target{table: r.items[i-1].table}) {
			r.use(i)
		}
	case opIdle:
		r.use(i)
	case opNow:
		r.now(i)
	case opOnly:
		r.restricts(i)
	case opWhich, opList:
		if i == 0 || !r.isList {
			r.use(i)
		}
	case opSum: // "in total"
		if len(r.form.Measures) > 0 && (!r.isBare || r.amountOf(r.root) == nil) && !slices.ContainsFunc(r.form.Measures, func(m form.Measure) bool { return m.Function != form.Sum && m.Function != form.Count }) {
			r.use(i)
		}
	case opAcross:
		if i+1 < len(r.items) && (r.items[i+1].kind == entityItem || r.items[i+1].kind == columnItem) {
			r.use(i)
		}
	case opSince, opTo:
		if r.word(i) == "from" || r.word(i) == "to" {
			r.use(i)
		}
	case opDown, opUp:
		if len(r.form.Measures) > 0 && len(r.groups) > 0 && r.form.Order == nil {
			r.form.Order = &form.Order{Descending: r.items[i].op == opDown}
			r.use(i)
		}
	default:
	}
}

// finish decides the columns of times, checks that every column can be reached, and completes the form.
func (r *reading) finish() bool {
	if r.root < 0 {
		return false
	}

	r.form.Dataset = r.tables[r.root].name

	for i := range r.form.Measures {
		if m := &r.form.Measures[i]; m.Dataset == r.form.Dataset {
			m.Dataset = ""
		}
	}

	if !r.place() || !r.balance() || !r.currency() || !r.connects() || !r.isDistinct() {
		return false
	}

	r.happened()

	if !r.finishGroups() || !r.finishConditions() {
		return false
	}

	if r.form.Order != nil && r.form.Order.Column != nil && !r.isList || r.isList && len(r.groups) > 0 {
		return false
	}

	return !slices.Contains(r.used, false)
}

// happened uses verbs that are the name of a column of dates: "paid invoices" have a date of payment.
func (r *reading) happened() {
	for i := range r.items {
		if !r.is(i, columnItem) || !r.items[i].verb || r.items[i].table != r.root || r.column(i).Role != meaning.Date {
			continue
		}

		r.use(i)

		if c := r.column(i); c.Nulls > 0 && r.date == r.items[i] && len(r.times) == 0 && !r.saysHow(i) {
			r.where = append(r.where, condition{form.Condition{Column: r.ref(c), Is: form.Filled}, c.table, i})
		}
	}
}

// withNames adds the parts of the name of a person to a group by the key of persons.
func (r *reading) withNames() (list []group) {
	for _, g := range r.groups {
		list = append(list, g)

		if g.table < 0 || g.Key != nil || g.Grain != "" {
			continue
		}

		if t := r.tables[g.table]; t.label < 0 && t.key >= 0 && t.columns[t.key].Name == g.Name {
			for _, c := range t.nameParts() {
				list = append(list, group{form.Group{Column: r.ref(c)}, g.table, ""})
			}
		}
	}

	return list
}

// saysHow reports whether the words after a verb say how it was done, so that it does not ask for rows where it was done:
// "paid by card".
func (r *reading) saysHow(i int) bool {
	if i+2 >= len(r.items) || r.items[i+1].kind != opItem || r.items[i+1].op != opBy || r.items[i+2].kind != valueItem {
		return false
	}

	stem := r.tokens[r.items[i].from].stem

	return slices.ContainsFunc(r.column(i+2).stems, func(w string) bool { return w == stem || w == deedNoun(stem) })
}

func (r *reading) finishGroups() bool {
	for _, g := range r.withNames() {
		if !r.canReach(g.table) {
			return false
		}

		// "claims by team of the adjuster" are those that have an adjuster.
		if c := r.partner(r.root, g.table); c != nil {
			r.where = append(r.where, condition{form.Condition{Column: r.ref(c), Is: form.Filled}, c.table, 0})
		} else if g.Key == nil && g.Grain == "" {
			g.Column = r.ref(r.near(r.root, &r.tables[g.table].columns[r.tables[g.table].find(g.Name)]))
		}

		r.form.Groups = append(r.form.Groups, g.Group)
	}

	return true
}

func (r *reading) finishConditions() bool {
	// "Guests who never had a suite" are not those who had another room once.
	isDistinct := r.form.Distinct || slices.ContainsFunc(r.form.Measures, func(m form.Measure) bool { return m.Function == form.CountDistinct })
	if isDistinct && slices.ContainsFunc(r.where, func(c condition) bool { return c.Is == form.IsNot }) {
		return r.refuse("It is not clear whether all rows or only one of each must meet the condition.")
	}

	for _, c := range r.where {
		switch {
		case c.Rows != nil:
			if r.reach(c.table, r.root) != 1 {
				return r.refuse("Nothing says how " + r.tables[c.table].name + " and " + r.form.Dataset + " belong together.")
			}
		case r.reach(r.root, c.table) == 0 && r.contains(&c):
		case !r.canReach(c.table):
			return false
		case c.Is == form.IsNot:
			c.Column = r.ref(r.near(r.root, &r.tables[c.table].columns[r.tables[c.table].find(c.Name)]))
		}

		r.form.Where = append(r.form.Where, c.Condition)
	}

	return true
}

// contains turns a condition on a thing that rows contain into one on the rows that connect them: orders with a tent are
// those with an order line of a tent. Only rows that are counted or listed contain something, and only one table may have
// their parts.
func (r *reading) contains(c *condition) bool {
	isFigure := slices.ContainsFunc(r.form.Measures, func(m form.Measure) bool { return m.Of != nil || m.Share || m.Dataset != "" })
	isOther := slices.ContainsFunc(r.where, func(o condition) bool { return o.Rows != nil }) // it may be about the same rows

	if c.Is != form.Is || r.items[c.item].kind != valueItem || isFigure || isOther || len(r.groups) > 0 {
		return false
	}

	found := -1

	for _, t := range r.tables {
		if t.at == r.root || !r.isPart(t.at, r.root) || r.reach(t.at, r.root) != 1 || r.reach(t.at, c.table) != 1 {
			continue
		}

		if found >= 0 {
			return false
		}

		found = t.at
	}

	if found < 0 {
		return false
	}

	c.Condition = form.Condition{Is: form.Exists, Rows: &form.Rows{Dataset: r.tables[found].name, Where: []form.Condition{c.Condition}}}

	return true
}

// connects reports whether the verbs that only connect say nothing that the form does not.
func (r *reading) connects() bool {
	isPlace := func(c form.Column) bool {
		return slices.ContainsFunc(stemsOf(c.Name), func(w string) bool {
			switch w {
			case "city", "town", "country", "stat", "hom", "address", "residenc", "region", "villag", "zip", "postcod":
				return true
			default:
				return false
			}
		})
	}

	for _, v := range r.verbs {
		switch {
		case isWork(v) && !r.isPersons(target{table: r.root}),
			isLive(v) && !slices.ContainsFunc(r.where, func(w condition) bool { return isPlace(w.Column) }) && !slices.ContainsFunc(r.groups, func(g group) bool { return isPlace(g.Column) }) &&
				!slices.ContainsFunc(r.form.Measures, func(m form.Measure) bool { return m.Of != nil && isPlace(m.Of.Column) }),
			isRelation(v) && len(r.groups) == 0:
			return r.refuse("It is not clear what \"" + v + "\" refers to.")
		}
	}

	return true
}

// canReach reports whether each row of the form has at most one row of a table, over one path.
func (r *reading) canReach(table int) bool {
	switch r.reach(r.root, table) {
	case 1:
		return true
	case 0:
		return r.refuse("Nothing says how " + r.tables[r.root].name + " and " + r.tables[table].name + " belong together.")
	default:
		return r.refuse("There are several ways from " + r.tables[r.root].name + " to " + r.tables[table].name + ".")
	}
}

// balance restricts figures that do not add up over time to the latest moment.
func (r *reading) balance() bool {
	for _, m := range r.form.Measures {
		if m.Of == nil || m.Of.Op != "" || m.Function != form.Sum {
			continue
		}

		c := &r.tables[r.root].columns[max(0, r.tables[r.root].find(m.Of.Name))]
		if c.Role != meaning.Balance || c.Name != m.Of.Name {
			continue
		}

		day := r.dateOf(r.root)

		switch {
		case day == nil && len(r.datesOf(r.root)) == 0:
		case day == nil || len(r.times) > 0 || slices.ContainsFunc(r.groups, func(g group) bool { return g.Name == day.Name }):
			return r.refuse(c.Name + " does not add up over time.")
		default:
			r.where = append(r.where, condition{form.Condition{Column: r.ref(day), Is: form.Latest}, r.root, 0})
		}
	}

	return true
}

// currency refuses to add up amounts of several currencies.
func (r *reading) currency() bool {
	for _, m := range r.form.Measures {
		if m.Of == nil {
			continue
		}

		for i := range r.tables[r.root].columns {
			c := &r.tables[r.root].columns[i]
			isCurrency := slices.Contains(c.stems, "currency") || slices.Contains(c.stems, "ccy")
			isSaid := slices.ContainsFunc(r.where, func(w condition) bool { return w.Name == c.Name && w.table == r.root }) ||
				slices.ContainsFunc(r.groups, func(g group) bool { return g.Name == c.Name && g.table == r.root })

			if isCurrency && c.Distinct > 1 && !isSaid {
				return r.refuse("The amounts are in several currencies. Ask for one, or by " + c.Name + ".")
			}
		}
	}

	return true
}

// explain says what each word was taken for.
func (r *reading) explain(text string, all []*item) (list []Explained) {
	for _, one := range all {
		words := text[r.tokens[one.from].start:r.tokens[one.to-1].end]
		e := Explained{Words: words}

		switch one.kind {
		case functionItem:
			continue
		case unusedItem:
			e.As = Unused
		case opItem:
			if one.op == opIdle {
				continue
			}

			e.As = string(one.op)

			if one.op == opSeller && len(r.form.Measures) > 0 { // by quantity or by revenue
				e.Dataset, e.Column = r.tables[r.root].name, r.form.Measures[0].Name
				if e.Column == "" && r.form.Measures[0].Of != nil {
					e.Column = r.form.Measures[0].Of.Name
				}
			}
		case columnItem:
			e.As, e.Dataset, e.Column = asColumn, r.tables[one.table].name, r.tables[one.table].columns[one.column].Name
		case valueItem:
			e.As, e.Dataset, e.Column = asValue, r.tables[one.table].name, r.tables[one.table].columns[one.column].Name
		case entityItem:
			e.As, e.Dataset = asRows, r.tables[one.table].name
		case partItem, openItem:
			e.As, e.Dataset, e.Column = asColumn, r.tables[one.table].name, r.tables[one.table].columns[one.column].Name
		case verbItem:
			if one.table < 0 {
				continue
			}

			e.As, e.Dataset = asRows, r.tables[one.table].name
		case measureItem:
			e.As, e.Dataset = asMeasure, r.tables[one.table].name
		case periodItem:
			e.As = asPeriod
			e.Dataset, e.Column = r.dateOfPeriod(one)
		case grainItem:
			e.As = asGrain
			e.Dataset, e.Column = r.dateOfGrain(one)
		case numberItem:
			e.As = "number"
		}

		if one.guess {
			e.How = guessed
		}

		list = append(list, e)
	}

	return list
}

// dateOfPeriod returns the column that a period restricts.
func (r *reading) dateOfPeriod(one *item) (dataset, column string) {
	for _, w := range r.where {
		if w.item >= 0 && w.item < len(r.items) && r.items[w.item] == one && w.Name != "" {
			return r.tables[w.table].name, w.Name
		}
	}

	return "", ""
}

// dateOfGrain returns the column whose days, months or years are a group.
func (r *reading) dateOfGrain(one *item) (dataset, column string) {
	for _, g := range r.groups {
		if g.table >= 0 && g.Grain == one.grain {
			return r.tables[g.table].name, g.Name
		}
	}

	return "", ""
}

// words returns the words of the items that are not used.
func (r *reading) leftOver(text string) (list []string) {
	for i, one := range r.items {
		if !r.used[i] {
			list = append(list, strings.TrimSpace(text[r.tokens[one.from].start:r.tokens[one.to-1].end]))
		}
	}

	return list
}
