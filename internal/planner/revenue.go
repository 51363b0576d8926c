package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// earnings returns the measures of a table that mean revenue or profit. They come from quantities and prices, or from amounts.
func (w *world) earnings(t *table) []figure {
	if m, ok := w.drafted(t); ok {
		if p, ok := w.profit(m); ok {
			return []figure{m, p}
		}

		return []figure{m}
	}

	return w.amounts(t)
}

// amounts returns the revenue of a table of sales whose rows have an amount of money. It uses the only such column, or the
// only one whose name contains total, net or gross.
func (w *world) amounts(t *table) []figure {
	if !t.isSales() {
		return nil
	}

	amount := w.onlyColumn(t, isMoney)
	if amount == nil {
		amount = w.onlyColumn(t, func(c *column) bool {
			return isMoney(c) && (slices.Contains(c.stems, "total") || slices.Contains(c.stems, "net") || slices.Contains(c.stems, "gross"))
		})
	}

	if amount == nil {
		return nil
	}

	sum := form.Measure{Name: "revenue", Function: form.Sum, Of: &form.Term{Column: form.Column{Dataset: t.name, Name: amount.Name}}}
	names := [][]string{{"revenu"}, {"turnover"}, {"tak"}, {"umsatz"}, {"incom"}}

	for _, n := range t.nouns {
		names = append(names, append(slices.Clone(n), "revenu"), append(slices.Clone(n), "incom"), append(slices.Clone(n), "valu"))
	}

	for _, kind := range []string{"net", "gross"} {
		if !slices.Contains(amount.stems, kind) {
			continue
		}

		names = append(names, []string{kind, "revenu"})

		for _, n := range t.nouns {
			names = append(names, append([]string{kind}, n...))
		}
	}

	return []figure{{names: names, words: []string{"revenue", "turnover"}, measure: sum}, {names: [][]string{{"spend"}}, measure: sum, isSpent: true}}
}

// isSales reports whether each row of a table is something that was sold.
func (t *table) isSales() bool {
	return slices.ContainsFunc(t.nouns, func(n []string) bool {
		switch deedOf(n) {
		case "sal", "order", "invoic", "book", "rental", "transaction", "receipt", "reservation", "ticket", "admission":
			return true
		default:
			return false
		}
	})
}

// isMoney reports whether a column is the amount that a customer pays. Discounts, taxes, fees and costs are not, and neither
// are weights and distances.
func isMoney(c *column) bool {
	if c.Role != meaning.Amount || c.Unit != "" && c.Unit != "EUR" && c.Unit != "USD" && c.Unit != "GBP" && c.Unit != "CHF" {
		return false
	}

	return !slices.ContainsFunc(c.stems, func(w string) bool {
		switch w {
		case "discount", "tax", "vat", "tip", "ship", "freight", "deposit", "refund", "cost", "fe", "commission", "budget", "weight", "distanc", "volum", "area",
			"length", "mass", "km", "kg", "population", "mileag", "salary", "wag", "rent", "surcharg", "credit", "insuranc", "extra", "bas", "open", "outstand", "due":
			return true
		default:
			return false
		}
	})
}

// isByCustomers reports whether the question names persons. Only then does "spend" mean the money of customers, and not ours.
func (r *reading) isByCustomers(table int) bool {
	return slices.ContainsFunc(r.items, func(one *item) bool {
		isNamed := one.kind == entityItem || one.kind == valueItem || one.kind == columnItem

		return isNamed && one.table != table && r.reach(table, one.table) == 1 && r.isPersons(target{table: one.table})
	})
}

// isAmounts reports whether the name of a table means both rows and money. "Sales by region" may be the number of sales or
// their sum.
func (r *reading) isAmounts(table int) bool {
	t := r.tables[table]

	return slices.ContainsFunc(t.columns, func(c column) bool { return isMoney(&c) }) && slices.ContainsFunc(t.nouns, func(n []string) bool {
		switch n[len(n)-1] {
		case "sal", "fin", "donation", "expens", "payment", "refund", "cost", "spend", "revenu", "incom", "payout", "fe", "deposit", "withdrawal", "bonus", "discount", "budget":
			return true
		default:
			return false
		}
	})
}

// amountOf returns the amount of a row in a table whose name means both rows and money. It returns nil for other tables, and
// if several columns may be the amount.
func (r *reading) amountOf(table int) *column {
	if !r.isAmounts(table) {
		return nil
	}

	t := r.tables[table]
	if c := r.onlyColumn(t, isMoney); c != nil {
		return c
	}

	for _, m := range t.measures {
		if !m.isSpent && m.measure.Of != nil && m.measure.Of.Op == "" {
			return &t.columns[t.find(m.measure.Of.Name)]
		}
	}

	return nil
}
