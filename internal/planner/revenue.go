package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// earnings returns what a table says about revenue: quantities and prices, or the amount of each sale.
func (w *world) earnings(t *table) []figure {
	if m, ok := w.drafted(t); ok {
		if p, ok := w.profit(m); ok {
			return []figure{m, p}
		}

		return []figure{m}
	}

	return w.amounts(t)
}

// amounts returns the revenue of a table of sales that has the amount of each: its only amount of money, or the only one
// that is called total or net.
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

// isMoney reports whether a column is an amount of money that customers pay: not a part of it that is deducted or added,
// and not a weight or a distance.
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

// isByCustomers reports whether a question names persons, so that what is spent is theirs and not ours.
func (r *reading) isByCustomers(table int) bool {
	return slices.ContainsFunc(r.items, func(one *item) bool {
		isNamed := one.kind == entityItem || one.kind == valueItem || one.kind == columnItem

		return isNamed && one.table != table && r.reach(table, one.table) == 1 && r.isPersons(target{table: one.table})
	})
}

// isAmounts reports whether the rows of a table are called by their amounts: "sales by region" may be the number of sales
// or their sum.
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

// amountOf returns the amount of each row of a table whose rows are called by their amounts, nil if it is not clear which
// one that is.
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
