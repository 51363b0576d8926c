package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
)

// isEvents reports whether the rows of a table are events, and no word says that these are meant: bookings of suites are
// not suites.
func (r *reading) isEvents(table int) bool {
	return r.hasEvents(table) && !slices.ContainsFunc(r.items, func(o *item) bool { return (o.kind == entityItem || o.kind == verbItem) && o.table == table })
}

// hasEvents reports whether the rows of a table are events.
func (r *reading) hasEvents(table int) bool {
	return slices.ContainsFunc(r.tables[table].nouns, func(n []string) bool {
		switch n[len(n)-1] {
		case "book", "order", "lin", "sal", "transaction", "payment", "invoic", "shipment", "visit", "reservation", "delivery", "purchas", "claim", "ticket", "rental", "trip", "session", "event", "stay", "appointment", "loan":
			return true
		default:
			return false
		}
	})
}

// withNone counts the rows of one table for each row of another, and keeps those that have none: the customer with the
// fewest orders may have no order. Periods restrict the rows that are counted.
func (r *reading) withNone(table int, m *form.Measure, counted int) bool {
	for _, t := range r.times {
		c := r.timeColumn(counted, t.date)
		if c == nil || t.in >= 0 || t.span.Month > 0 || len(r.times) > 1 {
			return r.refuse("It is not clear which date is meant.")
		}

		list, ok := r.during(c, t.span)
		if !ok {
			return false
		}

		m.Where = append(m.Where, list...)
	}

	r.root, r.times = table, nil

	return true
}

// isBirth reports whether a date is the beginning of a person or thing: a date of birth, of opening or of construction.
func isBirth(c *column) bool {
	return slices.ContainsFunc(c.stems, func(w string) bool {
		switch w {
		case "birth", "born", "open", "built", "build", "construct", "construction", "found", "establish", "manufactur":
			return true
		default:
			return false
		}
	})
}

func isWeight(c *column) bool {
	return c.Role.IsFigure() && slices.Contains(c.stems, "weight")
}

func isCost(c *column) bool {
	return slices.Contains(c.stems, "cost")
}
