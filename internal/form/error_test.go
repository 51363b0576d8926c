package form_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/form"
)

func sums(dataset, column string) form.Form {
	return form.Form{Dataset: dataset, Measures: measures(of(form.Sum, column))}
}

// TestErrors checks what is refused, and that no error contains a value.
func TestErrors(t *testing.T) {
	t.Parallel()

	const secret = "s3cret"

	price := calc(form.Over, term("freight"), term("id"))
	mixed := calc(form.Plus, term("kilos"), term("eur"))
	joined := calc(form.Times, term("quantity"), term("orders.freight"))
	units := freight()
	units.schema.Datasets[0].Columns = append(units.schema.Datasets[0].Columns, columns("eur DOUBLE amount EUR")...)

	figure := func(f form.Function, dataset, column string, reason form.Reason) error {
		return &form.FigureError{Function: f, Dataset: dataset, Column: column, Reason: reason}
	}

	for _, e := range []struct {
		name  string
		world world
		form  form.Form
		want  error
	}{
		{"dataset", shop(), form.Form{Dataset: "nothing"}, &form.NameError{Dataset: "nothing"}},
		{"dataset of a figure", shop(), form.Form{Dataset: "orders", Measures: measures(on("nothing", count()))}, &form.NameError{Dataset: "nothing"}},
		{"dataset of rows", shop(), form.Form{Dataset: "orders", Where: where(rows(form.Exists, "nothing"))}, &form.NameError{Dataset: "nothing"}},
		{"dataset of a condition", shop(), form.Form{Dataset: "orders", Where: where(is("nothing.status", secret))}, &form.NameError{Dataset: "nothing"}},
		{"column", shop(), form.Form{Dataset: "orders", Where: where(is("state", secret))}, &form.NameError{Dataset: "orders", Column: "state"}},
		{"column of a list", shop(), form.Form{Dataset: "orders", Show: terms("customers.status")}, &form.NameError{Dataset: "customers", Column: "status"}},
		{"order by what is not grouped", shop(), form.Form{Dataset: "orders", Measures: measures(count()), Groups: groups("status"), Order: by("id", true)}, &form.NameError{Dataset: "orders", Column: "id"}},

		{"identifier", shop(), sums("orders", "id"), figure(form.Sum, "orders", "id", form.NotAFigure)},
		{"average of identifiers", shop(), form.Form{Dataset: "orders", Measures: measures(of(form.Average, "customer_id"))}, figure(form.Average, "orders", "customer_id", form.NotAFigure)},
		{"highest identifier", shop(), form.Form{Dataset: "orders", Measures: measures(of(form.Max, "id"))}, figure(form.Max, "orders", "id", form.NotAFigure)},
		{"calculation with an identifier", shop(), form.Form{Dataset: "orders", Measures: measures(form.Measure{Function: form.Sum, Of: &price})}, figure(form.Sum, "orders", "id", form.NotAFigure)},
		{"text", shop(), sums("orders", "status"), figure(form.Sum, "orders", "status", form.NotAFigure)},
		{"numbers stored as text", farm(), sums("readings", "level"), figure(form.Sum, "readings", "level", form.NotAFigure)},
		{"more than numbers stored as text", farm(), form.Form{Dataset: "readings", Where: where(compare("level", form.MoreThan, 50))}, figure("", "readings", "level", form.NotAFigure)},
		{"year", farm(), sums("budget", "year"), figure(form.Sum, "budget", "year", form.NotAFigure)},
		{"price", shop(), sums("products", "price"), figure(form.Sum, "products", "price", form.NotAdditive)},
		{"share", farm(), sums("budget", "rate"), figure(form.Sum, "budget", "rate", form.NotAdditive)},
		{"balance over time", farm(), sums("stock", "tons"), figure(form.Sum, "stock", "tons", form.OverTime)},
		{"balance by month", farm(), form.Form{Dataset: "stock", Measures: measures(of(form.Sum, "tons")), Groups: groups("counted_on/month")}, figure(form.Sum, "stock", "tons", form.OverTime)},
		{"figure of a coarser dataset", shop(), sums("order_lines", "orders.freight"), figure(form.Sum, "orders", "freight", form.Coarser)},
		{"average of a coarser dataset", shop(), form.Form{Dataset: "order_lines", Measures: measures(of(form.Average, "products.price"))}, figure(form.Average, "products", "price", form.Coarser)},
		{"product with a coarser figure", shop(), form.Form{Dataset: "order_lines", Measures: measures(form.Measure{Function: form.Sum, Of: &joined})}, figure(form.Sum, "orders", "freight", form.Coarser)},
		{"units", units, form.Form{Dataset: "shipments", Measures: measures(form.Measure{Function: form.Sum, Of: &mixed})}, figure(form.Sum, "shipments", "", form.Units)},
		{"month of years", farm(), form.Form{Dataset: "budget", Where: where(in("year", "2025-03-01", "2025-04-01", secret))}, figure("", "budget", "year", form.NotAFigure)},
		{"month of a text", shop(), form.Form{Dataset: "orders", Measures: measures(count()), Groups: groups("freight/month")}, figure("", "orders", "freight", form.NotAFigure)},
		{"more than a text", shop(), form.Form{Dataset: "orders", Where: where(compare("status", form.MoreThan, 3))}, figure("", "orders", "status", form.NotAFigure)},
		{"share of averages", shop(), form.Form{Dataset: "orders", Measures: measures(share(of(form.Average, "freight"))), Groups: groups("status")}, figure(form.Average, "orders", "", form.Incomplete)},
		{"share of nothing", shop(), form.Form{Dataset: "orders", Measures: measures(share(count()))}, figure(form.Count, "orders", "", form.Incomplete)},
		{"figure of nothing", shop(), form.Form{Dataset: "orders", Measures: []form.Measure{{Function: form.Sum}}}, figure(form.Sum, "orders", "", form.Incomplete)},
		{"unknown function", shop(), form.Form{Dataset: "orders", Measures: []form.Measure{{Function: "drop", Of: new(term("freight"))}}}, figure("drop", "orders", "", form.Incomplete)},
		{"order by a figure that is not there", shop(), form.Form{Dataset: "orders", Measures: measures(count()), Groups: groups("status"), Order: &form.Order{Measure: 1}}, figure("", "orders", "", form.Incomplete)},
		{"value of no kind", shop(), form.Form{Dataset: "orders", Where: where(is("status", []string{secret}))}, figure("", "orders", "status", form.Incomplete)},
		{"date that is divided", shop(), form.Form{Dataset: "orders", Measures: measures(per(of(form.Max, "placed_on"), count()))}, figure(form.Max, "orders", "placed_on", form.NotAFigure)},
		{"unknown comparison", shop(), form.Form{Dataset: "orders", Where: where(compare("freight", "drop", 1))}, figure("", "orders", "freight", form.Incomplete)},

		{"group of the many side", shop(), form.Form{Dataset: "customers", Measures: measures(count()), Groups: groups("orders.status")}, &form.JoinError{From: "customers", To: "orders", Column: "status", Reversed: true}},
		{"list of the many side", shop(), form.Form{Dataset: "customers", Show: terms("name", "orders.status")}, &form.JoinError{From: "customers", To: "orders", Column: "status", Reversed: true}},
		{"no path", shop(), form.Form{Dataset: "orders", Where: where(is("employees.name", secret))}, &form.JoinError{From: "orders", To: "employees", Column: "name"}},
		{"rows without a path", shop(), form.Form{Dataset: "orders", Where: where(rows(form.Exists, "employees", is("name", secret)))}, &form.JoinError{From: "employees", To: "orders"}},
		{"a key that is none", freight(), form.Form{Dataset: "shipments", Measures: measures(count()), Groups: groups("depots.street")}, &form.JoinError{From: "shipments", To: "depots", Column: "street"}},
		{"a key that is none, backwards", freight(), form.Form{Dataset: "depots", Where: where(is("shipments.no", secret))}, &form.JoinError{From: "depots", To: "shipments", Column: "no"}},
		{"condition that one dataset lacks", shop(), form.Form{Dataset: "orders", Measures: measures(count(), on("tickets", count())), Where: where(is("status", secret))}, &form.JoinError{From: "tickets", To: "orders", Column: "status"}},
		{"period that one dataset lacks", shop(), form.Form{Dataset: "orders", Measures: measures(count(), on("tickets", count())), Where: where(in2025("placed_on"))}, &form.JoinError{From: "tickets", To: "orders", Column: "placed_on"}},
		{"condition that the coarser dataset lacks", shop(), form.Form{Dataset: "orders", Measures: measures(count(), on("customers", count())), Where: where(is("status", secret))}, &form.JoinError{From: "customers", To: "orders", Column: "status", Reversed: true}},
		{"group that one dataset lacks", shop(), form.Form{Dataset: "orders", Measures: measures(count(), on("tickets", count())), Groups: groups("status")}, &form.JoinError{From: "tickets", To: "orders", Column: "status"}},
	} {
		statement, err := e.world.schema.Compile(e.form)
		require.Equal(t, e.want, err, "%s: %s", e.name, statement.SQL)
		require.NotContains(t, err.Error(), secret)
		require.NotEmpty(t, err.Error())
	}
}

// TestPaths checks that each of several paths can be chosen by what the error says.
func TestPaths(t *testing.T) {
	t.Parallel()

	w := freight()
	db := w.open(t)
	results := map[string]bool{}

	f := func(via ...string) form.Form {
		return form.Form{Dataset: "shipments", Measures: measures(of(form.Sum, "kilos")), Groups: []form.Group{{Column: form.Column{Dataset: "countries", Name: "name", Via: via}}}}
	}

	_, err := w.schema.Compile(f())

	var paths *form.PathsError

	require.ErrorAs(t, err, &paths)
	require.Equal(t, "shipments", paths.From)
	require.Equal(t, "countries", paths.To)
	require.Len(t, paths.Paths, 2)

	for _, p := range paths.Paths {
		require.Equal(t, []string{"partners", "countries"}, p.Datasets)

		statement, err := w.schema.Compile(f(p.Via...))
		require.NoError(t, err)

		rows, err := db.rows(statement.SQL)
		require.NoError(t, err)

		results[strings.Join(rows, "; ")] = true
	}

	require.Equal(t, map[string]bool{"Austria 10; Italy 25": true, "Austria 20; Italy 15": true}, results)

	_, err = w.schema.Compile(f("depot"))
	require.ErrorAs(t, err, &paths)

	// Two joins over the same column are told apart too.
	w.schema.Datasets[0].Joins = append(w.schema.Datasets[0].Joins, join("ship_to", "partners", "name"))
	w.schema.Datasets[1].Keys = append(w.schema.Datasets[1].Keys, []string{"name"})

	_, err = w.schema.Compile(f())
	require.ErrorAs(t, err, &paths)
	require.Len(t, paths.Paths, 3)

	for _, p := range paths.Paths {
		_, err := w.schema.Compile(f(p.Via...))
		require.NoError(t, err, p.Via)
	}
}

// TestAnyForm checks forms of any columns at random: DuckDB runs what the compiler accepts.
func TestAnyForm(t *testing.T) {
	t.Parallel()

	for _, w := range []world{shop(), farm(), freight()} {
		db := w.open(t)
		r := rand.New(rand.NewPCG(5, 5))
		ran := 0

		for range 2500 {
			f := wild(r, w.schema)

			statement, err := w.schema.Compile(f)
			if err != nil {
				require.True(t, isTyped(err), err)

				continue
			}

			told, err := json.Marshal(f)
			require.NoError(t, err)

			_, err = db.rows(statement.SQL)
			require.NoError(t, err, "%s\n%s", told, statement.SQL)
			require.NotEmpty(t, statement.Interpretation)

			ran++
		}

		require.Greater(t, ran, 300)
	}
}

// wild returns a form of any columns.
func wild(r *rand.Rand, s form.Schema) form.Form {
	pick := func(n int) bool { return r.IntN(n) == 0 }
	home := s.Datasets[r.IntN(len(s.Datasets))]

	column := func() form.Column {
		d := home
		if pick(4) {
			d = s.Datasets[r.IntN(len(s.Datasets))]
		}

		c := form.Column{Dataset: d.Name, Name: d.Columns[r.IntN(len(d.Columns))].Name}
		if d.Name == "partners" && home.Name == "shipments" {
			c.Via = []string{"ship_to"}
		}

		return c
	}

	term := func() form.Term {
		if pick(5) {
			return form.Term{Op: []form.Op{form.Plus, form.Minus, form.Times, form.Over, form.Days}[r.IntN(5)], Args: []form.Term{{Column: column()}, {Column: column()}}}
		}

		return form.Term{Column: column()}
	}

	condition := func() form.Condition {
		c := in2025("")
		c.Column, c.Number, c.Upper = column(), float64(r.IntN(12)), 20
		c.Is = []form.Comparison{form.Is, form.IsNot, form.MoreThan, form.AtMost, form.Between, form.Empty, form.Filled, form.In, form.InMonth, form.Latest, form.Is, form.Is}[r.IntN(12)]

		if values := []any{"a", "2025-01-01", 7, 2.5, true, "12", json.Number("3"), ""}; pick(2) {
			c.Values = []any{values[r.IntN(len(values))], values[r.IntN(len(values))]}[:1+r.IntN(2)]
		} else if pick(3) {
			c.Other = new(column())
		}

		return c
	}

	measure := func() form.Measure {
		m := form.Measure{Name: []string{"", column().Name}[r.IntN(2)], Function: []form.Function{form.Count, form.Count, form.CountDistinct, form.Sum, form.Average, form.Median, form.Min, form.Max}[r.IntN(8)], Share: pick(6)}
		if m.Function != form.Count || pick(4) {
			m.Of = new(term())
		}

		if pick(4) {
			m.Where = where(condition())
		}

		return m
	}

	f := form.Form{Dataset: home.Name, Limit: r.IntN(3)}

	for range r.IntN(3) {
		f.Where = append(f.Where, condition())
	}

	if pick(3) {
		f.Distinct = pick(2)

		for range r.IntN(3) {
			f.Show = append(f.Show, term())
		}

		if pick(2) {
			f.Order = &form.Order{Column: new(term()), Descending: pick(2)}
		}

		return f
	}

	for range r.IntN(3) {
		f.Groups = append(f.Groups, form.Group{Column: column(), Grain: []form.Grain{"", "", form.Day, form.Week, form.Quarter, form.Year}[r.IntN(6)]})
	}

	for range 1 + r.IntN(2) {
		m := measure()
		if pick(5) {
			m.Per = new(measure())
		}

		if pick(5) {
			m.Less = new(measure())
		}

		f.Measures = append(f.Measures, m)
	}

	if pick(3) && len(f.Groups) > 0 {
		f.Having = []form.Having{{Measure: measure(), Is: form.AtLeast, Number: 1}}
	}

	if pick(2) {
		f.Order = &form.Order{Descending: pick(2)}
	}

	return f
}

// FuzzCompile checks that no form ends the process, whatever a model writes.
func FuzzCompile(f *testing.F) {
	for _, e := range append(shopExamples(), append(farmExamples(), freightExamples()...)...) {
		seed, err := json.Marshal(e.form)
		require.NoError(f, err)
		f.Add(seed)
	}

	worlds := []world{shop(), farm(), freight()}

	f.Fuzz(func(t *testing.T, data []byte) {
		var asked form.Form
		if json.Unmarshal(data, &asked) != nil {
			return
		}

		for _, w := range worlds {
			statement, err := w.schema.Compile(asked)
			require.True(t, err != nil || statement.SQL != "")

			again, other := w.schema.Compile(asked)
			require.Equal(t, statement, again)
			require.Equal(t, errors.Unwrap(err), errors.Unwrap(other))
		}
	})
}
