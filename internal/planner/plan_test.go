package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/planner"
)

// orders returns a dataset with a complete profile.
func orders() planner.Dataset {
	return planner.Dataset{
		Name: "orders", Rows: 200, Keys: [][]string{{"order_no"}},
		Columns: []planner.Column{
			{Name: "order_no", Type: "varchar", Distinct: 200, Values: []any{"A-1", "A-2"}},
			{Name: "region", Type: "varchar", Distinct: 4, Values: []any{"North", "South", "East", "West"}},
			{Name: "status", Type: "varchar", Distinct: 3, Values: []any{"late", "paid", "open"}},
			{Name: "placed_on", Type: "date", Distinct: 150, Min: "2025-01-02", Max: "2026-06-30"},
			{Name: "shipped_on", Type: "date", Distinct: 120, Nulls: 30, Min: "2025-01-05", Max: "2026-06-30"},
			{Name: "unit_price", Type: "double", Distinct: 90, Min: 1.5, Max: 80.0},
			{Name: "amount", Type: "double", Distinct: 190, Min: 3.0, Max: 9000.0},
		},
	}
}

// staff returns a dataset that the questions about orders do not refer to.
func staff() planner.Dataset {
	return planner.Dataset{
		Name: "employees", Rows: 50,
		Columns: []planner.Column{
			{Name: "name", Type: "varchar", Distinct: 50, Values: []any{"Ada", "Bob"}},
			{Name: "department", Type: "varchar", Distinct: 5, Values: []any{"Sales", "Support"}},
			{Name: "salary", Type: "bigint", Distinct: 49, Min: 20000.0, Max: 90000.0},
		},
	}
}

// matches returns matches for the two datasets as the value index would.
func matches(question string) (list []planner.Match) {
	for value, at := range map[string][2]string{
		"North": {"orders", "region"}, "South": {"orders", "region"}, "late": {"orders", "status"}, "paid": {"orders", "status"}, "Sales": {"employees", "department"},
		"A-1": {"orders", "order_no"}, "A-2": {"orders", "order_no"},
	} {
		if i := strings.Index(strings.ToLower(question), strings.ToLower(value)); i >= 0 {
			list = append(list, planner.Match{Dataset: at[0], Column: at[1], Value: value, Start: i, End: i + len(value), Score: 0.92})
		}
	}

	return list
}

func ask(question string) planner.Plan {
	return planner.Make(planner.Request{
		Question: question, Today: time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC), Datasets: []planner.Dataset{orders(), staff()}, Matches: matches(question),
	})
}

func TestAnswers(t *testing.T) {
	t.Parallel()

	for question, sql := range map[string]string{
		"How many orders are there?":                      `SELECT count(*) AS "count" FROM "orders"`,
		"How many late orders are there?":                 `SELECT count(*) AS "count" FROM "orders" WHERE "status" = 'late'`,
		"How many orders are not paid?":                   `SELECT count(*) AS "count" FROM "orders" WHERE "status" IS DISTINCT FROM 'paid'`,
		"How many orders are not shipped yet?":            `SELECT count(*) AS "count" FROM "orders" WHERE "shipped_on" IS NULL`,
		"How many regions do we have?":                    `SELECT count(DISTINCT "region") AS "different region" FROM "orders"`,
		"What is the total amount?":                       `SELECT sum("amount") AS "total amount" FROM "orders"`,
		"Average amount by region":                        `SELECT "region" AS "region", avg("amount") AS "average amount" FROM "orders" GROUP BY "region" ORDER BY "region"`,
		"Amount per month":                                `SELECT CAST(date_trunc('month', "placed_on") AS DATE) AS "month", sum("amount") AS "total amount" FROM "orders" GROUP BY CAST(date_trunc('month', "placed_on") AS DATE) ORDER BY CAST(date_trunc('month', "placed_on") AS DATE)`,
		"How many orders were placed in March 2026?":      `SELECT count(*) AS "count" FROM "orders" WHERE "placed_on" >= DATE '2026-03-01' AND "placed_on" < DATE '2026-04-01'`,
		"How many orders were shipped last month?":        `SELECT count(*) AS "count" FROM "orders" WHERE "shipped_on" >= DATE '2026-05-01' AND "shipped_on" < DATE '2026-06-01'`,
		"How many orders have an amount over 1,000?":      `SELECT count(*) AS "count" FROM "orders" WHERE "amount" > 1000`,
		"Which region has the highest total amount?":      `SELECT "region" AS "region", sum("amount") AS "total amount" FROM "orders" GROUP BY "region" QUALIFY rank() OVER (ORDER BY sum("amount") DESC NULLS LAST) = 1`,
		"Top 3 regions by amount":                         `SELECT "region" AS "region", sum("amount") AS "total amount" FROM "orders" GROUP BY "region" ORDER BY sum("amount") DESC NULLS LAST LIMIT 3`,
		"Who earns the most?":                             `SELECT "name", "salary" FROM "employees" QUALIFY rank() OVER (ORDER BY "salary" DESC NULLS LAST) = 1`,
		"What is the lowest salary in Sales?":             `SELECT min("salary") AS "min salary" FROM "employees" WHERE "department" = 'Sales'`,
		"What share of orders is late?":                   `SELECT 100.0 * coalesce(count(*) FILTER (WHERE "status" = 'late'), 0) / nullif(count(*), 0) AS "percentage" FROM "orders"`,
		"How much more amount has the North than South?":  `SELECT coalesce(sum("amount") FILTER (WHERE "region" = 'North'), 0) - coalesce(sum("amount") FILTER (WHERE "region" = 'South'), 0) AS "difference" FROM "orders"`,
		"Average unit_price by region":                    `SELECT "region" AS "region", avg("unit_price") AS "average unit_price" FROM "orders" GROUP BY "region" ORDER BY "region"`,
		"Which order was placed earlier, A-1 or A-2?":     `SELECT "order_no", "placed_on" FROM "orders" WHERE "order_no" IN ('A-1', 'A-2') QUALIFY rank() OVER (ORDER BY "placed_on" ASC NULLS LAST) = 1`,
		"What is the ratio of late orders to all orders?": `SELECT 1.0 * count(*) FILTER (WHERE "status" = 'late') / nullif(count(*), 0) AS "ratio" FROM "orders"`,
		"Ratio of amount to unit price by region":         `SELECT "region" AS "region", 1.0 * sum("amount") / nullif(sum("unit_price"), 0) AS "ratio" FROM "orders" GROUP BY "region" ORDER BY "region"`,
		"When was the first order placed?":                `SELECT min("placed_on") AS "min placed_on" FROM "orders"`,
	} {
		plan := ask(question)
		require.Equal(t, planner.Answer, plan.Outcome(), "%s: %+v", question, plan)
		require.Equal(t, sql, plan.Candidates[0].SQL, question)
		require.NotEmpty(t, plan.Candidates[0].Interpretation)
	}
}

// TestDescribedColumn checks that the description of a column explains a word that no name does.
func TestDescribedColumn(t *testing.T) {
	t.Parallel()

	for description, want := range map[string]planner.Outcome{"": planner.Refuse, "postage of the order": planner.Answer} {
		data := orders()
		data.Columns[len(data.Columns)-1] = planner.Column{Name: "amt", Type: "double", Description: description, Distinct: 190, Min: 3.0, Max: 9000.0}

		plan := planner.Make(planner.Request{Question: "What is the total postage of orders?", Today: time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC), Datasets: []planner.Dataset{data}})
		require.Equal(t, want, plan.Outcome(), "%q: %+v", description, plan)

		if want == planner.Answer {
			require.Contains(t, plan.Candidates[0].SQL, `sum("amt")`)
		}
	}
}

// TestRefusals checks that a question about something that is not in the data is refused.
func TestRefusals(t *testing.T) {
	t.Parallel()

	for question, unknown := range map[string]string{
		"What is the profit by region?":                   "profit",
		"How many orders were returned?":                  "returned",
		"Which region has the best weather?":              "weather",
		"How many vacation days does each employee have?": "vacation",
		"Who is the chancellor of Austria?":               "chancellor",
	} {
		plan := ask(question)
		require.Equal(t, planner.Refuse, plan.Outcome(), "%s: %+v", question, plan.Candidates)
		require.NotEmpty(t, plan.Examples)

		if len(plan.Candidates) > 0 {
			require.Contains(t, plan.Unknown, unknown, question)
		}
	}

	for _, want := range []planner.Request{{}, {Question: "How many?"}, {Question: "?", Datasets: []planner.Dataset{orders()}}} {
		plan := planner.Make(want)
		require.Equal(t, planner.Refuse, plan.Outcome())
	}
}

// TestCells checks that the planner refuses to count the rows with a value such as "red" if other cells list it among
// several, such as "red, blue".
func TestCells(t *testing.T) {
	t.Parallel()

	want := planner.Request{Question: "How many late orders are there?", Datasets: []planner.Dataset{orders()}, Matches: matches("How many late orders are there?")}
	require.Equal(t, planner.Answer, outcome(want))

	want.Datasets[0].Columns[2].Values = []any{"late", "paid", "paid, late"}
	require.Equal(t, planner.Refuse, outcome(want))
}

func outcome(want planner.Request) planner.Outcome {
	plan := planner.Make(want)

	return plan.Outcome()
}

func TestLanguages(t *testing.T) {
	t.Parallel()

	for question, language := range map[string]string{
		"Wie viele Bestellungen gibt es?":                 "German",
		"Combien de factures avons-nous en retard ?":      "French",
		"¿Cuántos pedidos hay en total por región?":       "Spanish",
		"Πόσες παραγγελίες υπάρχουν;":                     "Greek",
		"Сколько заказов?":                                "Russian",
		"How many orders are there?":                      "",
		"Total amount of orders in the Champs de Mars la": "",
	} {
		plan := ask(question)
		require.Equal(t, language, plan.Language, question)

		if language != "" {
			require.Equal(t, planner.Refuse, plan.Outcome())
		}
	}
}

// TestExamples checks that the planner answers its own examples.
func TestExamples(t *testing.T) {
	t.Parallel()

	for _, example := range ask("?").Examples {
		plan := ask(example)
		require.Equal(t, planner.Answer, plan.Outcome(), example)
	}
}

func TestReading(t *testing.T) {
	t.Parallel()

	require.Equal(t, "number of *orders* where *status* = 'late', by *region*", ask("Number of late orders by region").Candidates[0].Interpretation)
}
