package form_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// made is a schema that was made with its rows. Row i of a dataset belongs to row j of another if the foreign key of i
// is the id of j. The calculation in oracle_test.go knows only this.
type made struct {
	schema form.Schema
	tables []*heap
}

// heap is a dataset: its rows, and to which datasets they lead.
type heap struct {
	name   string
	rows   []map[string]any // texts, numbers, nil
	links  []link
	unique bool // the ids differ
	suffix string
}

type link struct {
	column string
	to     *heap
}

// column returns the name of a column here: the names of the datasets differ, or are the same.
func (h *heap) column(base string) string { return base + h.suffix }

func make500(seed uint64) *made {
	r := rand.New(rand.NewPCG(seed, 7))
	m := &made{}
	n := 2 + r.IntN(4)
	shared := r.IntN(4) == 0

	for i := range n {
		h := &heap{name: "d" + strconv.Itoa(i), unique: true}
		if !shared {
			h.suffix = strconv.Itoa(i)
		}

		m.tables = append(m.tables, h)
	}

	for _, e := range edges(r, n) {
		from := m.tables[e[0]]
		from.links = append(from.links, link{column: "f" + strconv.Itoa(len(from.links)), to: m.tables[e[1]]})
	}

	for i := range slices.Backward(m.tables) {
		m.fill(r, m.tables[i], i)
	}

	for _, h := range m.tables {
		m.schema.Datasets = append(m.schema.Datasets, h.describe(r))
	}

	return m
}

// edges returns which dataset leads to which: a chain, a star, a diamond, two facts, or a snowflake, and sometimes one
// more way.
func edges(r *rand.Rand, n int) (list [][2]int) {
	switch shape := r.IntN(5); {
	case shape == 0:
		for i := 1; i < n; i++ {
			list = append(list, [2]int{i - 1, i})
		}
	case shape == 1:
		for i := 1; i < n; i++ {
			list = append(list, [2]int{0, i})
		}
	case shape == 2 && n >= 4:
		list = [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}}
	case shape == 3 && n >= 3:
		for i := range n - 1 {
			list = append(list, [2]int{i, n - 1})
		}
	default:
		for i := 1; i < n; i++ {
			list = append(list, [2]int{r.IntN(i), i})
		}
	}

	if r.IntN(4) == 0 {
		from := r.IntN(n - 1)
		list = append(list, [2]int{from, from + 1 + r.IntN(n-1-from)})
	}

	return list
}

func (m *made) fill(r *rand.Rand, h *heap, i int) {
	pick := func(values ...any) any { return values[r.IntN(len(values))] }

	for j := range r.IntN(12) {
		row := map[string]any{
			"id":          float64(j + 1),
			h.column("k"): pick("a", "b", "c", nil),
			h.column("n"): pick(1.0, 2.0, 3.0, 5.0, 10.0, 0.0, nil),
			h.column("p"): pick(0.5, 1.5, 2.0, 4.0, nil),
			h.column("t"): pick("2025-01-05", "2025-01-20", "2025-02-03", "2026-02-01", nil),
		}

		for _, l := range h.links {
			row[l.column] = nil
			if r.IntN(6) > 0 {
				row[l.column] = float64(1 + r.IntN(len(l.to.rows)+2)) // the last two have no row
			}
		}

		h.rows = append(h.rows, row)
	}

	if len(h.rows) > 0 && r.IntN(8) == 0 {
		h.rows[r.IntN(len(h.rows))]["id"] = nil
	}

	if i > 0 && len(h.rows) > 0 && r.IntN(5) == 0 { // the dimension's rows are there twice
		h.rows = append(h.rows, h.rows...)
		for k := range h.rows {
			h.rows[k] = maps.Clone(h.rows[k])
		}

		h.unique = false
	}
}

func (h *heap) describe(r *rand.Rand) form.Dataset {
	d := form.Dataset{Name: h.name, Row: "thing", Columns: []form.ColumnInfo{
		{Name: "id", Type: "BIGINT", Role: meaning.Identifier},
		{Name: h.column("k"), Type: "VARCHAR", Role: meaning.Category, HasNulls: true},
		{Name: h.column("n"), Type: "BIGINT", Role: meaning.Amount, HasNulls: true},
		{Name: h.column("p"), Type: "DOUBLE", Role: meaning.Price, HasNulls: true},
		{Name: h.column("t"), Type: "DATE", Role: meaning.Date, HasNulls: true},
	}}

	if h.unique {
		d.Keys = [][]string{{"id"}}
	} else if r.IntN(2) == 0 {
		d.Keys = [][]string{{"id", h.column("k")}} // of no use: the joins have only the id
	}

	for _, l := range h.links {
		d.Columns = append(d.Columns, form.ColumnInfo{Name: l.column, Type: "BIGINT", Role: meaning.Identifier, HasNulls: true})
		d.Joins = append(d.Joins, form.Join{Columns: []string{l.column}, To: l.to.name, Keys: []string{"id"}, Partial: true})
	}

	return d
}

func (m *made) load(t *testing.T, db *database) {
	t.Helper()

	for i, d := range m.schema.Datasets {
		var columns, names []string

		for _, c := range d.Columns {
			columns = append(columns, c.Name+" "+c.Type)
			names = append(names, c.Name)
		}

		db.exec(t, "CREATE OR REPLACE TABLE "+d.Name+" ("+strings.Join(columns, ", ")+")")

		var rows []string

		for _, row := range m.tables[i].rows {
			values := make([]string, len(names))
			for k, name := range names {
				switch v := row[name].(type) {
				case nil:
					values[k] = "NULL"
				case string:
					values[k] = "'" + v + "'"
				default:
					values[k] = fmt.Sprint(v)
				}
			}

			rows = append(rows, "("+strings.Join(values, ", ")+")")
		}

		if len(rows) > 0 {
			db.exec(t, "INSERT INTO "+d.Name+" VALUES "+strings.Join(rows, ", "))
		}
	}
}

// chooser makes forms at random.
type chooser struct {
	*made

	r *rand.Rand
}

func (c chooser) heap() *heap { return c.tables[c.r.IntN(len(c.tables))] }

// column returns a column of the dataset of a form, or of another.
func (c chooser) column(home *heap, base string) form.Column {
	if c.r.IntN(3) == 0 {
		return form.Column{Name: home.column(base)}
	}

	h := c.heap()

	// Prefer columns of joined datasets, because joins are what this test is about.
	if near := slices.DeleteFunc(slices.Clone(c.tables), func(o *heap) bool { return len(home.ways(o)) == 0 }); len(near) > 0 && c.r.IntN(8) > 0 {
		h = near[c.r.IntN(len(near))]
	}

	col := form.Column{Dataset: h.name, Name: h.column(base)}

	// Where there are several ways, most forms say which.
	if ways := home.ways(h); h != home && len(ways) > 1 && c.r.IntN(4) > 0 {
		col.Via = names(ways[c.r.IntN(len(ways))])
	}

	return col
}

func (c chooser) conditions(home *heap, most, depth int) (list []form.Condition) {
	for range c.r.IntN(most + 1) {
		switch c.r.IntN(7) {
		case 0:
			list = append(list, form.Condition{Column: c.column(home, "k"), Is: form.Is, Values: []any{"a", "c"}})
		case 1:
			list = append(list, form.Condition{Column: c.column(home, "k"), Is: form.IsNot, Values: []any{"a"}})
		case 2:
			list = append(list, form.Condition{Column: c.column(home, "n"), Is: form.AtLeast, Number: 2})
		case 3:
			list = append(list, form.Condition{Column: c.column(home, "n"), Is: form.Empty})
		case 4:
			condition := in2025(home.column("t"))
			condition.Column = c.column(home, "t")
			list = append(list, condition)
		default:
			if depth > 0 {
				is := []form.Comparison{form.Exists, form.NotExists}[c.r.IntN(2)]
				rows := c.heap()

				if many := slices.DeleteFunc(slices.Clone(c.tables), func(o *heap) bool { return len(o.ways(home)) == 0 }); len(many) > 0 && c.r.IntN(8) > 0 {
					rows = many[c.r.IntN(len(many))]
				}

				condition := form.Condition{Is: is, Rows: &form.Rows{Dataset: rows.name, Where: c.conditions(rows, 2, depth-1)}}

				if c.r.IntN(8) == 0 {
					condition.Dataset = c.heap().name
				}

				list = append(list, condition)
			}
		}
	}

	return list
}

func (c chooser) measure(home *heap) form.Measure {
	var m form.Measure

	h := home

	if c.r.IntN(4) == 0 {
		h = c.heap()
		m.Dataset = h.name
	}

	own := form.Term{Column: form.Column{Name: h.column("n")}}
	far := form.Term{Column: c.column(h, "n")}
	product := form.Term{Op: form.Times, Args: []form.Term{own, {Column: c.column(h, "p")}}}

	switch c.r.IntN(9) {
	case 0, 1:
		m.Function = form.Count
	case 2:
		m.Function, m.Of = form.CountDistinct, &form.Term{Column: c.column(h, "k")}
	case 3, 4:
		m.Function, m.Of = form.Sum, &own
	case 5:
		m.Function, m.Of = form.Sum, &far
	case 6:
		m.Function, m.Of = form.Sum, &product
	case 7:
		m.Function, m.Of = form.Average, &far
	default:
		m.Function, m.Of = form.Max, &far
	}

	if c.r.IntN(3) == 0 {
		m.Where = c.conditions(h, 2, 1)
	}

	if c.r.IntN(3) == 0 { // a name that a column has too
		m.Name = home.column([]string{"k", "n", "p"}[c.r.IntN(3)])
	}

	if c.r.IntN(6) == 0 && (m.Function == form.Count || m.Function == form.Sum) {
		m.Share = true
	}

	return m
}

func (c chooser) form() form.Form {
	if c.r.IntN(3) == 0 {
		if f, found := c.apart(); found {
			return f
		}
	}

	home := c.tables[c.r.IntN(1+c.r.IntN(len(c.tables)))]
	f := form.Form{Dataset: home.name, Where: c.conditions(home, 1+c.r.IntN(2), 1)}

	// Two conditions on rows of the many side hold for the same row there.
	if many := slices.DeleteFunc(slices.Clone(c.tables), func(o *heap) bool { return len(o.ways(home)) == 0 }); len(many) > 0 && c.r.IntN(4) == 0 {
		h := many[c.r.IntN(len(many))]
		f.Where = append(f.Where, form.Condition{Column: form.Column{Dataset: h.name, Name: h.column("k")}, Is: form.Is, Values: []any{"a"}},
			form.Condition{Column: form.Column{Dataset: h.name, Name: h.column("n")}, Is: form.AtLeast, Number: 3})
	}

	if c.r.IntN(5) == 0 {
		for range 1 + c.r.IntN(3) {
			f.Show = append(f.Show, form.Term{Column: c.column(home, []string{"k", "n", "t"}[c.r.IntN(3)])})
		}

		return f
	}

	for range c.r.IntN(3) {
		g := form.Group{Column: c.column(home, "k")}
		if c.r.IntN(3) == 0 {
			g = form.Group{Column: c.column(home, "t"), Grain: form.Month}
		}

		f.Groups = append(f.Groups, g)
	}

	for range 1 + c.r.IntN(3) {
		m := c.measure(home)

		switch c.r.IntN(8) {
		case 0:
			by := c.measure(home)
			by.Share, m.Share = false, false
			m.Per = &by
		case 1:
			by := c.measure(home)
			by.Share, m.Share = false, false
			m.Less = &by
		}

		f.Measures = append(f.Measures, m)
	}

	if len(f.Groups) == 0 {
		return f
	}

	if c.r.IntN(4) == 0 {
		h := c.measure(home)
		h.Share = false
		f.Having = append(f.Having, form.Having{Measure: h, Is: form.AtLeast, Number: 2})
	}

	if c.r.IntN(3) == 0 {
		f.Order, f.Limit = &form.Order{Measure: c.r.IntN(len(f.Measures)), Descending: c.r.IntN(2) == 0}, c.r.IntN(4)
	}

	return f
}

// apart returns a form with figures of several datasets that lead to the same one.
func (c chooser) apart() (form.Form, bool) {
	to := c.heap()
	facts := slices.DeleteFunc(slices.Clone(c.tables), func(h *heap) bool { return h != to && len(h.ways(to)) == 0 })

	if len(facts) < 2 {
		return form.Form{}, false
	}

	home := facts[c.r.IntN(len(facts))]
	f := form.Form{Dataset: home.name, Groups: []form.Group{{Column: form.Column{Dataset: to.name, Name: to.column("k")}}}}

	if c.r.IntN(3) == 0 {
		f.Groups[0].Key = &form.Column{Dataset: to.name, Name: "id"}
	}

	if c.r.IntN(2) == 0 {
		f.Where = []form.Condition{{Column: form.Column{Dataset: to.name, Name: to.column("n")}, Is: form.AtLeast, Number: 2}}
	}

	for range 2 + c.r.IntN(2) {
		h := facts[c.r.IntN(len(facts))]
		m := form.Measure{Dataset: h.name, Function: form.Count}

		if c.r.IntN(2) == 0 {
			m.Function, m.Of = form.Sum, &form.Term{Column: form.Column{Name: h.column("n")}}
		}

		if c.r.IntN(4) == 0 {
			m.Where = []form.Condition{{Column: form.Column{Name: h.column("k")}, Is: form.IsNot, Values: []any{"b"}}}
		}

		m.Share = c.r.IntN(5) == 0
		f.Measures = append(f.Measures, m)
	}

	if c.r.IntN(3) == 0 {
		f.Order, f.Limit = &form.Order{Descending: true}, c.r.IntN(3)
	}

	return f, true
}
