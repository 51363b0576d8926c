package planner

import (
	"cmp"
	"slices"
	"strconv"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
)

// figure is a measure with the stems of its names.
type figure struct {
	names   [][]string // stems
	words   []string   // that may be mistyped
	measure form.Measure
	isSpent bool // it is what customers spend
}

// named returns the measure that an item names.
func (r *reading) named(one *item) (*form.Measure, bool) {
	known := r.tables[one.table].measures[one.measure]
	m := known.measure

	return &m, !known.isSpent || r.isByCustomers(one.table)
}

// stated returns the measures that a person gave a name. A measure that does not fit the datasets is left out.
func (w *world) stated(t *table) (list []figure) {
	for _, m := range t.source.Meaning.Measures {
		one := figure{names: [][]string{stemsOf(m.Name)}, words: lexicon.NameWords(m.Name)}
		for _, s := range m.Synonyms {
			one.names = append(one.names, stemsOf(s))
		}

		one.measure = form.Measure{Name: m.Name, Function: form.Function(m.Function)}

		if m.Expression != "" {
			parsed, err := meaning.Parse(m.Expression)
			if err != nil {
				continue
			}

			of, ok := termOf(t, parsed)
			if !ok {
				continue
			}

			one.measure.Of = &of
		}

		list = append(list, one)
	}

	return list
}

// termOf returns an expression as a term of a form.
func termOf(t *table, e meaning.Expr) (form.Term, bool) {
	switch e.Op {
	case meaning.ColumnOp:
		return form.Term{Column: form.Column{Dataset: cmp.Or(e.Column.Dataset, t.name), Name: e.Column.Column}}, true
	case meaning.NumberOp:
		n, err := strconv.ParseFloat(e.Number, 64)

		return form.Term{Op: form.Number, Number: n}, err == nil
	default:
	}

	args := make([]form.Term, 0, len(e.Args)+1)
	if len(e.Args) == 1 { // a sign
		args = append(args, form.Term{Op: form.Number})
	}

	for _, a := range e.Args {
		one, ok := termOf(t, a)
		if !ok {
			return form.Term{}, false
		}

		args = append(args, one)
	}

	return form.Term{Op: form.Op(e.Op), Args: args}, true
}

// drafted returns the revenue of a table, if it has exactly one quantity, and exactly one price of a unit in the table
// or one step from it, and no amount that could be the revenue itself.
func (w *world) drafted(t *table) (figure, bool) {
	quantity := w.onlyColumn(t, isQuantity)
	if quantity == nil || slices.ContainsFunc(t.columns, func(c column) bool {
		return c.Role == meaning.Amount || c.Role == meaning.Share
	}) {
		return figure{}, false
	}

	isPrice := func(c *column) bool { return c.Role == meaning.Price && !isCost(c) }
	price := w.onlyColumn(t, isPrice)

	if price == nil && !slices.ContainsFunc(t.columns, func(c column) bool { return isPrice(&c) }) {
		for _, e := range t.joins {
			one := w.onlyColumn(w.tables[e.to], isPrice)

			switch {
			case one == nil || !isUnitPrice(one):
			case price != nil:
				return figure{}, false
			default:
				price = one
			}
		}
	}

	if price == nil || price.table == t.at && !isUnitPrice(price) && !slices.Contains(price.stems, "pric") && !slices.Contains(price.stems, "preis") {
		return figure{}, false
	}

	times := form.Term{Op: form.Times, Args: []form.Term{
		{Column: form.Column{Dataset: t.name, Name: quantity.Name}},
		{Column: form.Column{Dataset: w.tables[price.table].name, Name: price.Name}},
	}}

	return figure{
		names:   [][]string{{"revenu"}, {"turnover"}, {"tak"}, {"umsatz"}, {"sal", "valu"}, {"sal", "revenu"}},
		words:   []string{"revenue", "turnover"},
		measure: form.Measure{Name: "revenue", Function: form.Sum, Of: &times},
	}, true
}

// profit returns the revenue less what the things cost, if a unit has exactly one price and one cost, side by side.
func (w *world) profit(revenue figure) (figure, bool) {
	quantity, price := revenue.measure.Of.Args[0], revenue.measure.Of.Args[1]
	at := slices.IndexFunc(w.tables, func(o *table) bool { return o.name == price.Dataset })

	cost := w.onlyColumn(w.tables[at], func(c *column) bool { return c.Role == meaning.Price && isCost(c) && isUnitPrice(c) })
	if cost == nil {
		return figure{}, false
	}

	less := form.Term{Op: form.Minus, Args: []form.Term{price, {Column: form.Column{Dataset: price.Dataset, Name: cost.Name}}}}

	return figure{
		names:   [][]string{{"profit"}, {"gross", "profit"}},
		words:   []string{"profit"},
		measure: form.Measure{Name: "gross profit", Function: form.Sum, Of: &form.Term{Op: form.Times, Args: []form.Term{quantity, less}}},
	}, true
}

// soldThings returns the number of things that a table named like ticket_sales says were sold.
func (w *world) soldThings(t *table) (figure, bool) {
	quantity := w.onlyColumn(t, isQuantity)
	if len(t.nouns) == 0 || len(t.nouns[0]) < 2 || t.nouns[0][len(t.nouns[0])-1] != "sal" || quantity == nil {
		return figure{}, false
	}

	thing := t.nouns[0][:len(t.nouns[0])-1]

	return figure{
		names:   [][]string{thing},
		measure: form.Measure{Function: form.Sum, Of: &form.Term{Column: form.Column{Dataset: t.name, Name: quantity.Name}}},
	}, true
}

func isUnitPrice(c *column) bool {
	return slices.Contains(c.stems, "unit") || slices.Contains(c.stems, "each") || slices.Contains(c.stems, "pric") || slices.Contains(c.stems, "preis")
}

func (w *world) onlyColumn(t *table, is func(*column) bool) (found *column) {
	for i := range t.columns {
		if c := &t.columns[i]; is(c) {
			if found != nil {
				return nil
			}

			found = c
		}
	}

	return found
}
