package form_test

import (
	"strings"
	"testing"
	"time"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// world is a schema with its rows.
type world struct {
	schema form.Schema
	rows   map[string]string // VALUES by dataset
}

func (w world) open(t *testing.T) *database {
	t.Helper()

	d := open(t)

	for _, data := range w.schema.Datasets {
		columns := make([]string, len(data.Columns))
		for i, c := range data.Columns {
			columns[i] = `"` + c.Name + `" ` + c.Type
		}

		name := `"` + strings.ReplaceAll(data.Name, `"`, `""`) + `"`
		d.exec(t, `CREATE TABLE `+name+` (`+strings.Join(columns, ", ")+`)`)
		d.exec(t, `INSERT INTO `+name+` VALUES `+w.rows[data.Name])
	}

	return d
}

// columns reads "name type role" lines.
func columns(lines ...string) (list []form.ColumnInfo) {
	for _, line := range lines {
		f := strings.Fields(line)
		c := form.ColumnInfo{Name: f[0], Type: f[1], Role: meaning.Role(f[2])}

		for _, more := range f[3:] {
			switch more {
			case "nulls":
				c.HasNulls = true
			default:
				c.Unit = more
			}
		}

		list = append(list, c)
	}

	return list
}

func join(column, to, key string) form.Join {
	return form.Join{Columns: []string{column}, To: to, Keys: []string{key}}
}

func partial(column, to, key string) form.Join {
	return form.Join{Columns: []string{column}, To: to, Keys: []string{key}, Partial: true}
}

func shop() world {
	return world{
		schema: form.Schema{Datasets: []form.Dataset{
			{
				Name: "customers", Row: "customer", Label: "name", Keys: [][]string{{"id"}},
				Columns: columns("id INTEGER identifier", "name VARCHAR name", "city VARCHAR category nulls", "state VARCHAR category"),
			},
			{
				Name: "orders", Row: "order", Keys: [][]string{{"id"}}, Joins: []form.Join{partial("customer_id", "customers", "id")},
				Columns: columns("id INTEGER identifier", "customer_id INTEGER identifier nulls", "status VARCHAR category", "placed_on DATE date", "shipped_on DATE date nulls", "freight DOUBLE amount EUR"),
			},
			{
				Name: "order_lines", Row: "order line", Joins: []form.Join{partial("order_id", "orders", "id"), join("product_id", "products", "id")},
				Columns: columns("order_id INTEGER identifier", "product_id INTEGER identifier", "quantity INTEGER count", "unit_price DOUBLE price"),
			},
			{
				Name: "products", Row: "product", Label: "name", Keys: [][]string{{"id"}, {"name"}},
				Columns: columns("id INTEGER identifier", "name VARCHAR name", "category VARCHAR category", "price DOUBLE price EUR"),
			},
			{
				Name: "tickets", Row: "ticket", Keys: [][]string{{"id"}}, Joins: []form.Join{join("customer_id", "customers", "id")},
				Columns: columns("id INTEGER identifier", "customer_id INTEGER identifier", "opened_on DATE date", "minutes INTEGER duration minutes"),
			},
			{
				Name: "employees", Row: "employee", Label: "name", Keys: [][]string{{"id"}}, Joins: []form.Join{partial("manager_id", "employees", "id")},
				Columns: columns("id INTEGER identifier", "name VARCHAR name", "manager_id INTEGER identifier nulls", "salary DOUBLE amount"),
			},
		}},
		rows: map[string]string{
			"customers": `(1, 'Ada', 'Vienna', 'east'), (2, 'Bob', 'Linz', 'west'), (3, 'Cyd', 'Graz', 'east'), (4, 'Dan', NULL, 'west')`,
			"orders": `(1, 1, 'paid', '2025-01-10', '2025-01-12', 5), (2, 1, 'cancelled', '2025-02-11', NULL, 3), (3, 2, 'paid', '2025-02-20', '2025-02-25', 4),
				(4, 2, 'open', '2026-01-05', NULL, 6), (5, 9, 'paid', '2026-03-01', '2026-03-02', 2), (6, NULL, 'open', '2026-03-09', NULL, 1)`,
			"order_lines": `(1, 10, 2, 5.0), (1, 11, 1, 20.0), (2, 10, 1, 5.0), (3, 12, 4, 2.5), (4, 11, 2, 20.0), (5, 10, 3, 4.0), (5, 12, 2, 2.5), (7, 10, 1, 5.0)`,
			"products":    `(10, 'Mug', 'kitchen', 5.0), (11, 'Lamp', 'home', 20.0), (12, 'Pen', 'office', 2.5), (13, 'Vase', 'home', 15.0)`,
			"tickets":     `(1, 1, '2025-01-15', 10), (2, 1, '2025-03-01', 20), (3, 3, '2025-03-05', 30), (4, 2, '2026-01-06', 40)`,
			"employees":   `(1, 'Eve', NULL, 100), (2, 'Fay', 1, 80), (3, 'Gus', 1, 90), (4, 'Hal', 3, 90)`,
		},
	}
}

func farm() world {
	return world{
		schema: form.Schema{Datasets: []form.Dataset{
			{Name: "ann/farm/harvest", Row: "harvest", Columns: columns("crop VARCHAR category", "field VARCHAR category", "tons DOUBLE amount t", "harvested_on DATE date")},
			{Name: "ann/farm/sales", Row: "sale", Columns: columns("crop VARCHAR category", "amount DOUBLE amount EUR", "sold_on DATE date")},
			{
				Name: "stock", Row: "count", Keys: [][]string{{"crop", "counted_on"}},
				Columns: columns("crop VARCHAR category", "counted_on DATE date", "tons DOUBLE balance t", "price DOUBLE price EUR"),
			},
			{
				Name:    "budget",
				Totals:  []form.Condition{{Column: form.Column{Name: "region"}, Is: form.Is, Values: []any{"Total"}}},
				Columns: columns("region VARCHAR category", "year INTEGER year", "amount DOUBLE amount EUR", "rate DOUBLE share nulls", "code VARCHAR code", "open BOOLEAN flag nulls"),
			},
			{
				Name: "readings", Row: "reading",
				Columns: columns("sensor VARCHAR category nulls", "taken_at TIMESTAMP date", "level VARCHAR amount mm", "noted VARCHAR date"),
			},
		}},
		rows: map[string]string{
			"ann/farm/harvest": `('wheat', 'N', 10, '2025-07-01'), ('wheat', 'S', 5, '2025-07-02'), ('maize', 'N', 8, '2025-09-01'), ('rye', 'S', 2, '2025-08-01')`,
			"ann/farm/sales":   `('wheat', 100, '2025-08-01'), ('wheat', 50, '2026-01-01'), ('oats', 30, '2025-10-01')`,
			"stock":            `('wheat', '2025-01-31', 7, 20), ('maize', '2025-01-31', 3, 18), ('wheat', '2025-02-28', 6, 21), ('maize', '2025-02-28', 4, 19)`,
			"budget":           `('North', 2024, 10, 0.1, '01', true), ('North', 2025, 20, 0.2, '02', false), ('South', 2025, 5, 0.3, '1', NULL), ('Total', 2025, 25, NULL, '', NULL)`,
			"readings":         `('a', '2025-01-01 23:30:00', '1,200 mm', '2025-02-01'), ('a', '2025-01-02 00:10:00', '83 mm', 'soon'), ('b', '2025-02-10 12:00:00', 'n/a', '2025-03-01'), (NULL, '2025-02-11 12:00:00', '7.5', '2025-02-15')`,
		},
	}
}

// freight has two paths to partners and countries, a dataset whose key is not one, and odd names.
func freight() world {
	return world{
		schema: form.Schema{Datasets: []form.Dataset{
			{
				Name: "shipments", Row: "shipment", Keys: [][]string{{"no"}},
				Joins:   []form.Join{join("ship_to", "partners", "code"), join("bill_to", "partners", "code"), join("depot", "depots", "town"), {Columns: []string{"rate_zone", "rate_class"}, To: "rates", Keys: []string{"zone", "class"}}},
				Columns: columns("no VARCHAR identifier", "ship_to VARCHAR identifier", "bill_to VARCHAR identifier", "depot VARCHAR category", "kilos DOUBLE amount kg", "sent_on DATE date", "rate_zone INTEGER code", "rate_class VARCHAR code"),
			},
			{
				Name: "partners", Row: "company", Label: "name", Keys: [][]string{{"code"}}, Joins: []form.Join{join("country", "countries", "id")},
				Columns: columns("code VARCHAR identifier", "name VARCHAR name", "country INTEGER identifier"),
			},
			{Name: "countries", Row: "country", Label: "name", Keys: [][]string{{"id"}}, Columns: columns("id VARCHAR identifier", "name VARCHAR name")},
			{Name: "depots", Row: "depot", Keys: [][]string{{"town", "street"}}, Columns: columns("town VARCHAR category", "street VARCHAR text", "size DOUBLE amount")},
			{Name: "rates", Row: "rate", Keys: [][]string{{"class", "zone"}}, Columns: columns("zone INTEGER code", "class VARCHAR code", "per_kilo DOUBLE price")},
			{
				Name: `odd "name"`, Row: "*thing*",
				Columns: columns(`it's VARCHAR category`, `select INTEGER amount`, `count INTEGER amount`, "shipment VARCHAR identifier"),
				Joins:   []form.Join{join("shipment", "shipments", "no")},
			},
		}},
		rows: map[string]string{
			"shipments":  `('s1', 'A', 'B', 'Linz', 10, '2025-01-01', 1, 'x'), ('s2', 'B', 'A', 'Linz', 20, '2025-01-02', 1, 'y'), ('s3', 'C', 'B', 'Graz', 5, '2025-02-01', 2, 'x')`,
			"partners":   `('A', 'Acme', 1), ('B', 'Best', 2), ('C', 'Acme', 2)`,
			"countries":  `('1', 'Austria'), ('2', 'Italy'), ('x', 'none')`,
			"depots":     `('Linz', 'Main', 100), ('Linz', 'Port', 200), ('Graz', 'Main', 50)`,
			`odd "name"`: `('a''b', 1, 2, 's1'), ('c', 3, 4, 's1'), ('c', 5, 6, 's9')`,
			"rates":      `(1, 'x', 2), (1, 'y', 3), (2, 'x', 4), (2, 'y', 5)`,
		},
	}
}

// Short names for the parts of forms.

func col(name string) form.Column {
	dataset, column, found := strings.Cut(name, ".")
	if !found {
		return form.Column{Name: name}
	}

	return form.Column{Dataset: dataset, Name: column}
}

func via(name string, hops ...string) form.Column {
	c := col(name)
	c.Via = hops

	return c
}

func term(name string) form.Term { return form.Term{Column: col(name)} }

func terms(names ...string) (list []form.Term) {
	for _, n := range names {
		list = append(list, term(n))
	}

	return list
}

func calc(op form.Op, args ...form.Term) form.Term { return form.Term{Op: op, Args: args} }

func groups(names ...string) (list []form.Group) {
	for _, n := range names {
		c, grain, _ := strings.Cut(n, "/")
		list = append(list, form.Group{Column: col(c), Grain: form.Grain(grain)})
	}

	return list
}

func count() form.Measure { return form.Measure{Function: form.Count} }

func of(f form.Function, name string) form.Measure {
	t := term(name)

	return form.Measure{Function: f, Of: &t}
}

func revenue() form.Measure {
	t := calc(form.Times, term("quantity"), term("unit_price"))

	return form.Measure{Name: "revenue", Function: form.Sum, Of: &t}
}

func is(name string, values ...any) form.Condition {
	return form.Condition{Column: col(name), Is: form.Is, Values: values}
}

func isNot(name string, values ...any) form.Condition {
	return form.Condition{Column: col(name), Is: form.IsNot, Values: values}
}

func compare(name string, c form.Comparison, n float64) form.Condition {
	return form.Condition{Column: col(name), Is: c, Number: n}
}

func in(name, from, to, text string) form.Condition {
	day := func(s string) (t time.Time) {
		if s != "" {
			t, _ = time.Parse(time.DateOnly, s)
		}

		return t
	}

	return form.Condition{Column: col(name), Is: form.In, Period: &form.Period{From: day(from), To: day(to), Text: text}}
}

func rows(c form.Comparison, dataset string, where ...form.Condition) form.Condition {
	return form.Condition{Is: c, Rows: &form.Rows{Dataset: dataset, Where: where}}
}

func most() *form.Order  { return &form.Order{Descending: true} }
func least() *form.Order { return &form.Order{} }

func by(name string, descending bool) *form.Order {
	t := term(name)

	return &form.Order{Column: &t, Descending: descending}
}
