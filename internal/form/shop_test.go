package form_test

import "quern.dev/quern/internal/form"

// example is a form with the rows of its result, written by hand.
type example struct {
	name string
	form form.Form
	want string // rows, separated by semicolons; a missing value is a hyphen
}

func with(m form.Measure, where ...form.Condition) form.Measure {
	m.Where = where

	return m
}

func on(dataset string, m form.Measure) form.Measure {
	m.Dataset = dataset

	return m
}

func called(name string, m form.Measure) form.Measure {
	m.Name = name

	return m
}

func share(m form.Measure) form.Measure {
	m.Share = true

	return m
}

func per(m, by form.Measure) form.Measure {
	m.Per = &by

	return m
}

func less(m, than form.Measure) form.Measure {
	m.Less = &than

	return m
}

func measures(list ...form.Measure) []form.Measure { return list }

func where(list ...form.Condition) []form.Condition { return list }

func keyed(name, key string) []form.Group {
	k := col(key)

	return []form.Group{{Column: col(name), Key: &k}}
}

func days() form.Measure {
	t := calc(form.Days, term("placed_on"), term("shipped_on"))

	return form.Measure{Function: form.Average, Of: &t}
}

func in2025(name string) form.Condition { return in(name, "2025-01-01", "2026-01-01", "2025") }
func in2026(name string) form.Condition { return in(name, "2026-01-01", "2027-01-01", "2026") }

func shopExamples() []example {
	other := via("employees.salary", "manager_id")
	freight := of(form.Sum, "freight")

	return []example{
		{"count", form.Form{Dataset: "orders", Measures: measures(count())}, "6"},
		{"count under a condition", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(is("status", "cancelled"))}, "1"},
		{"count without a value", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(isNot("status", "paid"))}, "3"},
		{"count of two values", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(is("status", "paid", "open"))}, "5"},
		{"between", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(form.Condition{Column: col("freight"), Is: form.Between, Number: 2, Upper: 4})}, "3"},
		{"empty", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(form.Condition{Column: col("shipped_on"), Is: form.Empty})}, "3"},
		{"filled", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(form.Condition{Column: col("shipped_on"), Is: form.Filled})}, "3"},
		{"in a month of any year", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(compare("placed_on", form.InMonth, 3))}, "2"},
		{"count by month", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(isNot("status", "cancelled")), Groups: groups("placed_on/month")}, "2025-01-01 1; 2025-02-01 1; 2026-01-01 1; 2026-03-01 2"},
		{"count by year, last first", form.Form{Dataset: "orders", Measures: measures(count()), Groups: groups("placed_on/year"), Order: by("placed_on", true)}, "2026 3; 2025 3"},
		{"last year", form.Form{Dataset: "orders", Measures: measures(count()), Groups: groups("placed_on/year"), Order: by("placed_on", true), Limit: 1}, "2026 3"},
		{"a figure with the name of its column", form.Form{Dataset: "orders", Measures: measures(called("freight", freight), called("status", count())), Groups: groups("status"), Where: where(compare("freight", form.MoreThan, 1)), Having: []form.Having{{Measure: freight, Is: form.MoreThan, Number: 3}}, Order: most(), Limit: 1}, "paid 11 3"},
		{"average, median, lowest and highest", form.Form{Dataset: "orders", Measures: measures(of(form.Average, "freight"), of(form.Median, "freight"), of(form.Min, "placed_on"), of(form.Max, "freight"))}, "3.5 3.5 2025-01-10 6"},
		{"average of days", form.Form{Dataset: "orders", Measures: measures(days())}, "2.667"},
		{"different values", form.Form{Dataset: "orders", Measures: measures(of(form.CountDistinct, "customer_id"))}, "3"},
		{"filled values", form.Form{Dataset: "orders", Measures: measures(of(form.Count, "shipped_on"))}, "3"},
		{"latest", form.Form{Dataset: "orders", Show: terms("id"), Where: where(in2025("placed_on"), form.Condition{Column: col("placed_on"), Is: form.Latest})}, "3"},

		{"joined group", form.Form{Dataset: "orders", Measures: measures(freight), Groups: groups("customers.state")}, "east 8; west 10; - 3"},
		{"joined condition", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(isNot("customers.state", "east"))}, "4"},
		{"calculation", form.Form{Dataset: "order_lines", Measures: measures(revenue())}, "107"},
		{"calculation by joined group", form.Form{Dataset: "order_lines", Measures: measures(revenue()), Groups: groups("products.category")}, "home 60; kitchen 32; office 15"},
		{"two hops", form.Form{Dataset: "order_lines", Measures: measures(revenue()), Groups: groups("customers.state")}, "east 35; west 50; - 22"},
		{"period of a joined dataset", form.Form{Dataset: "order_lines", Measures: measures(revenue()), Where: where(in2025("orders.placed_on")), Groups: groups("customers.state")}, "east 35; west 10"},
		{"different values of a joined dataset", form.Form{Dataset: "order_lines", Measures: measures(of(form.CountDistinct, "products.category")), Where: where(compare("quantity", form.AtLeast, 2))}, "3"},
		{"groups of the same name", form.Form{Dataset: "order_lines", Measures: measures(of(form.Sum, "quantity")), Groups: groups("products.name", "customers.name"), Where: where(is("customers.city", "Linz"))}, "Lamp Bob 2; Pen Bob 4"},
		{"top two with a key", form.Form{Dataset: "order_lines", Measures: measures(revenue()), Groups: keyed("products.name", "products.id"), Order: most(), Limit: 2}, "Lamp 60; Mug 32"},
		{"a key that is shown", form.Form{Dataset: "orders", Measures: measures(count()), Groups: keyed("customers.name", "customers.id"), Having: []form.Having{{Measure: count(), Is: form.MoreThan, Number: 1}}}, "Ada 1 2; Bob 2 2; - - 2"},
		{"superlative", form.Form{Dataset: "order_lines", Measures: measures(revenue()), Groups: groups("products.category"), Order: most(), Limit: 1}, "home 60"},
		{"superlative with a tie", form.Form{Dataset: "order_lines", Measures: measures(count()), Groups: groups("products.category"), Order: least(), Limit: 1}, "home 2; office 2"},
		{"groups alone", form.Form{Dataset: "orders", Groups: groups("status")}, "cancelled; open; paid"},
		{"groups under a condition on them", form.Form{Dataset: "orders", Groups: groups("status"), Having: []form.Having{{Measure: freight, Is: form.Between, Number: 7, Upper: 11}, {Measure: count(), Is: form.LessThan, Number: 3}}}, "open"},

		{"condition on the many side", form.Form{Dataset: "customers", Measures: measures(count()), Where: where(is("orders.status", "cancelled"))}, "1"},
		{"two conditions on one row of the many side", form.Form{Dataset: "customers", Show: terms("name"), Where: where(is("orders.status", "paid"), compare("orders.freight", form.MoreThan, 4))}, "Ada"},
		{"rows without", form.Form{Dataset: "customers", Show: terms("name"), Where: where(rows(form.NotExists, "orders")), Order: by("name", false)}, "Cyd; Dan"},
		{"products without sales", form.Form{Dataset: "products", Where: where(rows(form.NotExists, "order_lines"))}, "13 Vase home 15"},
		{"many side of two hops", form.Form{Dataset: "customers", Show: terms("name"), Where: where(rows(form.Exists, "order_lines", is("products.name", "Mug")))}, "Ada"},
		{"many side with a column on the way", form.Form{Dataset: "customers", Show: terms("name"), Where: where(rows(form.Exists, "order_lines", in2026("orders.placed_on")))}, "Bob"},
		{"rows that the partner has", form.Form{Dataset: "order_lines", Measures: measures(count()), Where: where(form.Condition{Column: col("customers."), Is: form.Exists, Rows: &form.Rows{Dataset: "tickets"}})}, "5"},
		{"rows that the partner lacks", form.Form{Dataset: "order_lines", Measures: measures(count()), Where: where(form.Condition{Column: col("customers."), Is: form.NotExists, Rows: &form.Rows{Dataset: "tickets"}})}, "0"},
		{"rows with a partner", form.Form{Dataset: "orders", Measures: measures(count()), Where: where(rows(form.Exists, "customers"))}, "4"},
		{"rows without a partner", form.Form{Dataset: "orders", Show: terms("id"), Where: where(rows(form.NotExists, "customers")), Order: by("id", false)}, "5; 6"},

		{"list of joined columns", form.Form{Dataset: "orders", Show: terms("id", "customers.city"), Where: where(is("status", "open")), Order: by("id", false)}, "4 Linz; 6 -"},
		{"list of joined columns whose names repeat", form.Form{Dataset: "orders", Show: terms("id", "customers.city"), Order: by("freight", true), Limit: 2}, "4 Linz; 1 Vienna"},
		{"list without duplicates", form.Form{Dataset: "orders", Show: terms("status"), Distinct: true, Order: by("status", false)}, "cancelled; open; paid"},
		{"two highest rows", form.Form{Dataset: "orders", Show: terms("id", "freight"), Order: by("freight", true), Limit: 2}, "4 6; 1 5"},
		{"lowest rows with a tie", form.Form{Dataset: "order_lines", Show: terms("product_id", "quantity"), Order: by("quantity", false), Limit: 1}, "10 1; 10 1; 11 1"},
		{"first rows", form.Form{Dataset: "products", Limit: 2}, "10 Mug kitchen 5; 11 Lamp home 20"},
		{"the dataset itself", form.Form{Dataset: "employees", Show: []form.Term{term("name"), {Column: via("employees.name", "manager_id")}}, Order: by("name", false)}, "Eve -; Fay Eve; Gus Eve; Hal Gus"},
		{"rows of the dataset itself", form.Form{Dataset: "employees", Show: terms("name"), Where: where(rows(form.Exists, "employees")), Order: by("name", false)}, "Eve; Gus"},
		{"comparison with another column", form.Form{Dataset: "employees", Show: terms("name"), Where: where(form.Condition{Column: col("salary"), Is: form.AtLeast, Other: &other})}, "Hal"},
		{"calculation in a list", form.Form{Dataset: "order_lines", Show: []form.Term{term("products.name"), calc(form.Times, term("quantity"), term("unit_price"))}, Where: where(is("order_id", 1.0)), Order: by("products.name", false)}, "Lamp 20; Mug 10"},

		{"share under a condition", form.Form{Dataset: "orders", Measures: measures(with(share(count()), is("status", "paid")))}, "50"},
		{"share within groups", form.Form{Dataset: "orders", Measures: measures(with(share(count()), is("status", "paid"))), Groups: groups("placed_on/year")}, "2025 66.667; 2026 33.333"},
		{"share of groups", form.Form{Dataset: "orders", Measures: measures(share(freight)), Groups: groups("status")}, "cancelled 14.286; open 33.333; paid 52.381"},
		{"share of some groups among all", form.Form{Dataset: "orders", Measures: measures(share(freight)), Groups: groups("status"), Having: []form.Having{{Measure: count(), Is: form.MoreThan, Number: 1}}}, "open 33.333; paid 52.381"},
		{"highest share", form.Form{Dataset: "orders", Measures: measures(share(freight)), Groups: groups("status"), Order: most(), Limit: 1}, "paid 52.381"},
		{"share with rows of the many side", form.Form{Dataset: "customers", Measures: measures(with(share(count()), rows(form.Exists, "orders")))}, "50"},
		{"difference", form.Form{Dataset: "orders", Measures: measures(less(with(freight, in2026("placed_on")), with(freight, in2025("placed_on"))))}, "-3"},
		{"growth in percent", form.Form{Dataset: "orders", Measures: measures(share(per(less(with(freight, in2026("placed_on")), with(freight, in2025("placed_on"))), with(freight, in2025("placed_on")))))}, "-25"},
		{"ratio of two datasets", form.Form{Dataset: "order_lines", Measures: measures(per(revenue(), on("orders", count())))}, "17.833"},
		{"figures of two datasets", form.Form{Dataset: "orders", Measures: measures(count(), on("tickets", count()))}, "6 4"},
		{"figures of two datasets by a shared group", form.Form{Dataset: "orders", Measures: measures(freight, on("tickets", of(form.Sum, "minutes"))), Groups: groups("customers.state")}, "east 8 60; west 10 40; - 3 -"},
		{"coarser and finer", form.Form{Dataset: "customers", Measures: measures(count(), on("orders", count()), on("order_lines", revenue())), Groups: groups("state")}, "east 2 2 35; west 2 2 50; - 0 2 22"},
		{"figures with their own periods", form.Form{Dataset: "order_lines", Measures: measures(revenue(), on("tickets", with(of(form.Sum, "minutes"), in2025("opened_on")))), Where: where(in2025("orders.placed_on")), Groups: groups("customers.state")}, "east 35 60; west 10 -"},
		{"groups of the form's dataset without figures", form.Form{Dataset: "customers", Measures: measures(on("orders", count())), Groups: keyed("name", "id")}, "Ada 1 2; Bob 2 2; Cyd 3 0; Dan 4 0; - - 2"},
		{"groups with few rows of another dataset", form.Form{Dataset: "customers", Groups: keyed("name", "id"), Having: []form.Having{{Measure: on("orders", count()), Is: form.LessThan, Number: 1}}}, "Cyd 3; Dan 4"},
		{"comparison of two figures", form.Form{Dataset: "orders", Measures: measures(freight), Groups: groups("customers.state"), Having: []form.Having{{Measure: freight, Is: form.LessThan, Other: new(on("tickets", of(form.Sum, "minutes")))}}}, "east 8; west 10"},
		{"top share of two datasets", form.Form{Dataset: "orders", Measures: measures(share(freight), on("tickets", count())), Groups: groups("customers.state"), Order: most(), Limit: 1}, "west 47.619 1"},
	}
}
