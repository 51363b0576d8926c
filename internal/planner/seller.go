package planner

import (
	"slices"

	"quern.dev/quern/internal/form"
)

// bestSelling handles "best selling product" and "5 best selling products by revenue". Without a figure the number that was
// sold and the revenue are both offered.
func (r *reading) bestSelling(i int) bool {
	if w := r.find(opWhich, opList); w >= 0 {
		r.use(w)
	}

	what, n := r.targetAt(i + 1)
	if n == 0 || what.grain != "" {
		return false
	}

	limit := 1

	switch {
	case r.is(i-1, numberItem):
		limit = int(r.items[i-1].number)
		r.use(i - 1)
	case r.items[i+n].plural:
		limit = defaultTop
	}

	r.use(i)
	r.useFrom(i+1, n)

	if by := i + 1 + n; r.isOp(by, opBy) {
		m, table, used := r.comparedAt(by+1, opTop)
		if m == nil || limit < 1 || limit > 1000 {
			return false
		}

		r.use(by)
		r.useFrom(by+1, used)

		return r.rank(what, *m, table, true, limit)
	}

	figures, table := r.soldBy(what)
	if len(figures) == 0 || limit < 1 || limit > 1000 {
		return false
	}

	r.isBare = true

	return r.rank(what, figures[min(len(figures)-1, index(r.other))], table, true, limit)
}

func index(second bool) int {
	if second {
		return 1
	}

	return 0
}

// soldBy returns by what the sales of a thing are compared, and the only table of sales that has these figures.
func (r *reading) soldBy(what target) (figures []form.Measure, table int) {
	table = -1

	for _, t := range r.tables {
		if !t.isSales() || r.reach(t.at, what.table) != 1 {
			continue
		}

		var list []form.Measure
		if q := r.onlyColumn(t, isQuantity); q != nil {
			list = append(list, form.Measure{Function: form.Sum, Of: &form.Term{Column: r.ref(q)}})
		}

		if at := slices.IndexFunc(t.measures, func(m figure) bool { return m.measure.Name == "revenue" && !m.isSpent }); at >= 0 {
			list = append(list, t.measures[at].measure)
		}

		if len(list) == 0 {
			continue
		}

		if table >= 0 {
			return nil, -1
		}

		figures, table = list, t.at
	}

	return figures, table
}
