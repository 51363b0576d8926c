package planner

import (
	"fmt"
	"slices"
	"time"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// place gives each time its column.
func (r *reading) place() bool {
	if len(r.times) > 1 && slices.ContainsFunc(r.times[1:], func(t when) bool { return t.in == r.times[0].in && t.date == r.times[0].date }) {
		return r.beside()
	}

	for _, t := range r.times {
		table := r.root
		if t.in >= 0 {
			table = t.in
		} else if r.isElsewhere(t) {
			return r.refuse("It is not clear what " + t.span.Text + " refers to.")
		}

		c := r.timeColumn(table, t.date)
		if c == nil {
			return r.refuse("It is not clear which date is meant.")
		}

		list, ok := r.during(c, t.span)
		if !ok {
			return false
		}

		if t.in >= 0 {
			at := slices.IndexFunc(r.where, func(w condition) bool { return w.Rows != nil && w.table == t.in })
			r.where[at].Rows.Where = append(r.where[at].Rows.Where, list...)

			continue
		}

		for _, one := range list {
			r.where = append(r.where, condition{one, c.table, t.item})
		}
	}

	return r.grains()
}

// isElsewhere reports whether a time may be about the rows that a condition asks for instead of the rows themselves: "in
// 2025, which customers had no orders".
func (r *reading) isElsewhere(t when) bool {
	hasRows := slices.ContainsFunc(r.where, func(w condition) bool { return w.Rows != nil })

	return hasRows && t.date == nil && r.date == nil && !r.hasEvents(r.root)
}

// grains gives each group by time its column.
func (r *reading) grains() bool {
	for i := range r.groups {
		if r.groups[i].table >= 0 {
			continue
		}

		c := r.timeColumn(r.root, nil)
		if c == nil {
			return r.refuse("It is not clear which date is meant.")
		}

		r.groups[i] = group{form.Group{Column: r.ref(c), Grain: r.groups[i].grain}, c.table, ""}

		if c.Role == meaning.Year {
			if r.groups[i].Grain != form.Year {
				return false
			}

			r.groups[i].Grain = ""
		}
	}

	return true
}

// beside handles "2024 vs 2025" and "compare March and April 2026": the figure for each period.
func (r *reading) beside() bool {
	i := r.find(opVersus, opCompare)
	if i < 0 || len(r.times) != 2 || len(r.form.Measures) != 1 || r.form.Measures[0].Share || r.form.Order != nil {
		return r.refuse("The question has several periods.")
	}

	r.use(i)

	c := r.timeColumn(r.root, r.times[0].date)
	if c == nil || c.table != r.root {
		return r.refuse("It is not clear which date is meant.")
	}

	both := []form.Measure{r.form.Measures[0], r.form.Measures[0]}

	for k := range both {
		if r.times[k].span.Month > 0 {
			return r.refuse("The question does not say the year.")
		}

		list, ok := r.during(c, r.times[k].span)
		if !ok {
			return false
		}

		both[k].Where = append(slices.Clone(both[k].Where), list...)
	}

	r.form.Measures = both

	return r.grains()
}

// timeColumn returns the column that a time is about: the one named next to it, the only one that the question names,
// or the date of the table.
func (r *reading) timeColumn(table int, named *item) *column {
	for _, one := range []*item{named, r.date} {
		if one == nil {
			continue
		}

		if one.table != table && r.reach(table, one.table) != 1 {
			continue
		}

		for i := range r.items {
			if r.items[i] == one {
				r.use(i)
			}
		}

		return &r.tables[one.table].columns[one.column]
	}

	c := r.dateOf(table)
	if c == nil && len(r.datesOf(table)) == 0 {
		return r.dateOfWhole(table)
	}

	if c == nil && r.day == nil {
		r.dates = slices.DeleteFunc(r.datesOf(table), func(c *column) bool { return slices.Contains(c.stems, "birth") })
	}

	return c
}

// dateOfWhole returns the date of the only thing that the rows of a table without dates are parts of: order lines have the
// date of their order.
func (r *reading) dateOfWhole(table int) (found *column) {
	for _, t := range r.tables {
		if t.at == table || !r.isPart(table, t.at) || r.reach(table, t.at) != 1 {
			continue
		}

		c := r.dateOf(t.at)
		if c == nil || found != nil {
			return nil
		}

		found = c
	}

	return found
}

// dateOf returns the column that says when a row happened: the only date, or the one that is named like the row.
func (r *reading) dateOf(table int) *column {
	t := r.tables[table]

	if r.day != nil && r.day.table == table {
		return r.day
	}

	if c := r.only(table, func(c *column) bool { return c.Role == meaning.Date }); c != nil {
		return c
	}

	if c := r.only(table, func(c *column) bool { return c.Role == meaning.Date && !isLater(c) }); c != nil {
		return c
	}

	if c := r.only(table, func(c *column) bool { return c.Role == meaning.Date && !isLater(c) && !isEnd(c) }); c != nil && isBegin(c) {
		return c
	}

	if c := r.only(table, func(c *column) bool {
		return c.Role == meaning.Date && len(c.own) == 0 && slices.ContainsFunc(t.nouns, func(n []string) bool { return slices.Contains(n, c.strong[0]) })
	}); c != nil {
		return c
	}

	if r.only(table, func(c *column) bool { return c.Role == meaning.Date }) == nil {
		return r.only(table, func(c *column) bool { return c.Role == meaning.Year && len(r.datesOf(table)) == 0 })
	}

	return nil
}

func (r *reading) datesOf(table int) (list []*column) {
	for i := range r.tables[table].columns {
		if c := &r.tables[table].columns[i]; c.Role == meaning.Date {
			list = append(list, c)
		}
	}

	return list
}

// isLater reports whether a date says when something about the row changed after it happened.
func isLater(c *column) bool {
	return slices.ContainsFunc(c.stems, func(w string) bool {
		switch w {
		case "updat", "modify", "due", "delet", "chang", "expiry", "expir", "edit", "load", "import":
			return true
		default:
			return false
		}
	})
}

// isBegin reports whether a date says when something began.
func isBegin(c *column) bool {
	return slices.ContainsFunc(c.strong, func(w string) bool {
		switch w {
		case "open", "creat", "order", "plac", "receiv", "issu", "book", "invoic", "purchas", "sal", "sell", "report", "rais", "log", "submit", "fil", "out":
			return true
		default:
			return false
		}
	})
}

// isEnd reports whether a date says when something that had begun ended.
func isEnd(c *column) bool {
	return slices.ContainsFunc(c.strong, func(w string) bool {
		switch w {
		case "clos", "end", "finish", "complet", "resolv", "ship", "deliver", "delivery", "pay", "payment", "return", "cancel", "leav", "shipping", "shipment", "discharg", "terminat", "settl":
			return true
		default:
			return false
		}
	})
}

// isOver reports whether a date says since when a thing no longer exists or no longer belongs to us.
func isOver(c *column) bool {
	return slices.ContainsFunc(c.stems, func(w string) bool {
		switch w {
		case "clos", "end", "leav", "left", "terminat", "deceas", "death", "sell", "sold", "retir", "discontinu", "until", "to", "exit", "scrap", "decommission", "cancel", "return", "ret":
			return true
		default:
			return false
		}
	})
}

// during returns the conditions for a period. If the words name a month without a year and the data has several years, the
// rows are grouped by year.
func (r *reading) during(c *column, p span) ([]form.Condition, bool) {
	if c.Role == meaning.Year && p.Grain != form.Year {
		return nil, r.refuse("The data has years only.")
	}

	if p.NoYear && len(monthsOf(c, p.From.Month())) > 1 {
		return nil, r.refuse("The question does not say the year.")
	}

	if p.Month == 0 {
		return []form.Condition{{Column: r.ref(c), Is: form.In, Period: &form.Period{From: p.From, To: p.To, Text: p.Text}}}, true
	}

	years := monthsOf(c, p.Month)

	switch {
	case len(years) == 1:
		whole := spanOf(date(years[0], p.Month, 1), form.Month)
		if p.First > 0 {
			whole.From, whole.To = date(years[0], p.Month, p.First), date(years[0], p.Month, p.Last+1)
			whole.Text = fmt.Sprintf("%d to %d %s %d", p.First, p.Last, p.Month, years[0])
		}

		return []form.Condition{{Column: r.ref(c), Is: form.In, Period: &form.Period{From: whole.From, To: whole.To, Text: whole.Text}}}, true
	case len(years) == 0 || p.First > 0 || r.isList || r.form.Order != nil || len(r.groups) > 0 || len(r.times) > 1:
		return nil, r.refuse("The question does not say the year.")
	default:
		r.groups = append(r.groups, group{form.Group{Column: r.ref(c), Grain: form.Year}, c.table, ""})

		return []form.Condition{{Column: r.ref(c), Is: form.InMonth, Number: float64(p.Month)}}, true
	}
}

// monthsOf returns the years in which a month lies between the first and the last day of a column.
func monthsOf(c *column, month time.Month) (years []int) {
	first, ok := dayOf(c.Min)
	last, also := dayOf(c.Max)

	if !ok || !also || last.Year()-first.Year() > 50 {
		return nil
	}

	for y := first.Year(); y <= last.Year(); y++ {
		if date(y, month+1, 1).After(first) && !date(y, month, 1).After(last) {
			years = append(years, y)
		}
	}

	return years
}

func dayOf(v any) (time.Time, bool) {
	text, ok := v.(string)
	if !ok || len(text) < len(time.DateOnly) {
		return time.Time{}, false
	}

	day, err := time.Parse(time.DateOnly, text[:len(time.DateOnly)])

	return day, err == nil
}

// dateBeside returns the date that is named beside the items of a time.
func (r *reading) dateBeside(first, last int) *item {
	for _, j := range []int{first - 1, last + 1} {
		if r.isColumn(j, isDate) {
			return r.items[j]
		}
	}

	return r.dateOfState(first - 1)
}

// dateOfState returns the date since when a row has the state before a time: "cancelled in 2024" is about the date of the
// cancellation. It returns nil if there is no such date.
func (r *reading) dateOfState(i int) *item {
	if !r.is(i, valueItem) {
		return nil
	}

	stem := r.tokens[r.items[i].to-1].stem

	c := r.only(r.items[i].table, func(c *column) bool { return c.Role == meaning.Date && slices.Contains(c.strong, stem) })
	if c == nil {
		return nil
	}

	return &item{kind: columnItem, table: c.table, column: c.at}
}
