package form_test

import "quern.dev/quern/internal/form"

func latest() form.Condition {
	return form.Condition{Column: col("counted_on"), Is: form.Latest}
}

func farmExamples() []example {
	worth := calc(form.Times, term("tons"), term("price"))
	double := calc(form.Minus, calc(form.Times, term("tons"), form.Term{Op: form.Number, Number: 2}), form.Term{Op: form.Number, Number: 1})

	return []example{
		{"datasets that meet on a name", form.Form{Dataset: "ann/farm/harvest", Measures: measures(of(form.Sum, "tons"), on("ann/farm/sales", of(form.Sum, "amount"))), Groups: groups("crop")}, "maize 8 -; oats - 30; rye 2 -; wheat 15 150"},
		{"quarter", form.Form{Dataset: "ann/farm/harvest", Measures: measures(of(form.Sum, "tons")), Groups: groups("harvested_on/quarter")}, "2025-07-01 25"},
		{"week", form.Form{Dataset: "ann/farm/harvest", Measures: measures(of(form.Sum, "tons")), Groups: groups("harvested_on/week"), Where: where(is("crop", "wheat"))}, "2025-06-30 15"},
		{"calculation with numbers", form.Form{Dataset: "ann/farm/harvest", Measures: measures(form.Measure{Function: form.Average, Of: &double})}, "11.5"},
		{"total rows", form.Form{Dataset: "budget", Measures: measures(of(form.Sum, "amount")), Groups: groups("region")}, "North 30; South 5"},
		{"total rows in a list", form.Form{Dataset: "budget", Show: terms("region", "amount"), Where: where(is("year", 2025)), Order: by("amount", true)}, "Total 25; North 20; South 5"},
		{"highest row is no total", form.Form{Dataset: "budget", Show: terms("region", "amount"), Order: by("amount", true), Limit: 1}, "North 20"},
		{"period of years", form.Form{Dataset: "budget", Measures: measures(of(form.Sum, "amount")), Where: where(in2025("year"))}, "25"},
		{"year as it is", form.Form{Dataset: "budget", Measures: measures(of(form.Sum, "amount")), Groups: groups("year/year")}, "2024 10; 2025 25"},
		{"average of a share", form.Form{Dataset: "budget", Measures: measures(of(form.Average, "rate"))}, "0.2"},
		{"number for a text", form.Form{Dataset: "budget", Show: terms("region"), Where: where(is("code", 1.0))}, "South"},
		{"text for a number", form.Form{Dataset: "budget", Show: terms("region"), Where: where(is("year", "2024"))}, "North"},
		{"text that is no number", form.Form{Dataset: "budget", Measures: measures(count()), Where: where(is("year", "none"))}, "0"},
		{"flag", form.Form{Dataset: "budget", Show: terms("year"), Where: where(is("open", true))}, "2024"},
		{"latest balance", form.Form{Dataset: "stock", Measures: measures(of(form.Sum, "tons")), Where: where(latest())}, "10"},
		{"latest balance of a period", form.Form{Dataset: "stock", Measures: measures(of(form.Sum, "tons")), Where: where(latest(), in("counted_on", "2025-01-01", "2025-02-01", "January 2025")), Groups: groups("crop")}, "maize 3; wheat 7"},
		{"latest balance of a figure", form.Form{Dataset: "stock", Measures: measures(with(of(form.Sum, "tons"), latest()), of(form.Max, "price"))}, "10 21"},
		{"balance by date", form.Form{Dataset: "stock", Measures: measures(of(form.Sum, "tons")), Groups: groups("counted_on")}, "2025-01-31 10; 2025-02-28 10"},
		{"worth of a balance", form.Form{Dataset: "stock", Measures: measures(form.Measure{Function: form.Sum, Of: &worth}), Where: where(latest())}, "202"},
		{"average of a balance", form.Form{Dataset: "stock", Measures: measures(of(form.Average, "tons")), Groups: groups("crop")}, "maize 3.5; wheat 6.5"},
		{"dates written as text", form.Form{Dataset: "readings", Measures: measures(count()), Groups: groups("noted/month")}, "2025-02-01 2; 2025-03-01 1; - 1"},
		{"not two values", form.Form{Dataset: "readings", Measures: measures(count()), Where: where(isNot("sensor", "a", "b"))}, "1"},
		{"open period of moments", form.Form{Dataset: "readings", Measures: measures(count()), Where: where(in("taken_at", "2025-01-02", "", ""))}, "3"},
	}
}

func freightExamples() []example {
	ship, code := via("partners.name", "ship_to"), via("partners.code", "ship_to")
	cost := calc(form.Times, term("kilos"), term("rates.per_kilo"))
	kilos := of(form.Sum, "kilos")
	counted := called("count", of(form.Sum, "count"))

	return []example{
		{"path", form.Form{Dataset: "shipments", Measures: measures(kilos), Groups: []form.Group{{Column: ship, Key: &code}}}, "Acme A 10; Acme C 5; Best B 20"},
		{"two paths", form.Form{Dataset: "shipments", Show: []form.Term{term("no"), {Column: ship}, {Column: via("partners.name", "bill_to")}}, Order: by("no", false)}, "s1 Acme Best; s2 Best Acme; s3 Acme Best"},
		{"path of two hops", form.Form{Dataset: "shipments", Measures: measures(kilos), Groups: []form.Group{{Column: via("countries.name", "ship_to", "country")}}}, "Austria 10; Italy 25"},
		{"key of two columns", form.Form{Dataset: "shipments", Measures: measures(form.Measure{Name: "cost", Function: form.Sum, Of: &cost})}, "100"},
		{"rows over a path", form.Form{Dataset: "partners", Show: terms("code"), Where: where(form.Condition{Is: form.Exists, Rows: &form.Rows{Dataset: "shipments", Via: []string{"bill_to"}}}), Order: by("code", false)}, "A; B"},
		{"path from a finer dataset", form.Form{Dataset: "shipments", Measures: measures(kilos, on(`odd "name"`, of(form.Sum, "select"))), Groups: []form.Group{{Column: ship, Key: &code}}}, "Acme A 10 4; Acme C 5 -; Best B 20 -; - - - 5"},
		{"odd names and values", form.Form{Dataset: `odd "name"`, Measures: measures(of(form.Sum, "select"), counted), Groups: groups("it's"), Where: where(isNot("it's", `x' OR "1"`)), Order: most(), Limit: 2}, "c 8 10; a'b 1 2"},
	}
}
