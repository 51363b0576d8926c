package doubt

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// recorded returns the trees of the statements. A test of the engine keeps them current.
func recorded(tb testing.TB) map[string]json.RawMessage {
	tb.Helper()

	content, err := os.ReadFile("testdata/trees/statements.json")
	require.NoError(tb, err)

	var trees map[string]json.RawMessage
	require.NoError(tb, json.Unmarshal(content, &trees))

	return trees
}

// shop returns two datasets: customers, and their orders.
func shop() []planner.Dataset {
	texts := func(values ...any) []any { return values }
	list := []planner.Dataset{
		{Source: meaning.Source{Name: "orders", Rows: 100, Keys: [][]string{{"order_id"}}, Columns: []meaning.SourceColumn{
			{Name: "order_id", Type: "bigint", Distinct: 100, Min: 1.0, Max: 100.0},
			{Name: "customer_id", Type: "bigint", Distinct: 20, Min: 1.0, Max: 20.0},
			{Name: "ordered_on", Type: "date", Distinct: 80, Min: "2024-01-01", Max: "2026-06-30"},
			{Name: "paid_on", Type: "date", Distinct: 70, Nulls: 10, Min: "2024-01-01", Max: "2026-06-30"},
			{Name: "amount", Type: "double", Distinct: 90, Min: 1.0, Max: 900.0},
			{Name: "quantity", Type: "bigint", Distinct: 9, Min: 1.0, Max: 9.0},
			{Name: "unit_price", Type: "double", Distinct: 40, Min: 1.0, Max: 99.0},
			{Name: "status", Type: "varchar", Distinct: 3, Values: texts("delivered", "returned", "cancelled")},
			{Name: "gift", Type: "varchar", Distinct: 2, Values: texts("Y", "N")},
		}, Joins: []meaning.SourceJoin{{Column: "customer_id", To: "customers", Key: "customer_id", Share: 1, IsKey: true}}}},
		{Source: meaning.Source{Name: "customers", Rows: 20, Keys: [][]string{{"customer_id"}}, Columns: []meaning.SourceColumn{
			{Name: "customer_id", Type: "bigint", Distinct: 20, Min: 1.0, Max: 20.0},
			{Name: "customer_name", Type: "varchar", Distinct: 20},
			{Name: "city", Type: "varchar", Distinct: 3, Values: texts("Vienna", "Graz", "Linz")},
			{Name: "segment", Type: "varchar", Distinct: 2, Values: texts("trade", "private")},
		}}},
	}

	for i := range list {
		list[i].Meaning = meaning.Draft(list[i].Source)
	}

	return list
}

// matched returns the values that a question names, as the value index does.
func matched(datasets []planner.Dataset, question string) (list []planner.Match) {
	for _, d := range datasets {
		for _, c := range d.Columns {
			for _, v := range c.Values {
				if at := strings.Index(strings.ToLower(question), strings.ToLower(fmt.Sprint(v))); at >= 0 && len(fmt.Sprint(v)) > 1 {
					list = append(list, planner.Match{Dataset: d.Name, Column: c.Name, Value: fmt.Sprint(v), Start: at, End: at + len(fmt.Sprint(v)), Score: 1})
				}
			}
		}
	}

	return list
}

// TestFind checks statements that are right and statements with one mistake. Nothing may be found in the right ones.
func TestFind(t *testing.T) {
	t.Parallel()

	trees := recorded(t)
	today := time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)

	for _, c := range []struct {
		question, statement string
		want                []Kind
	}{
		{"How many orders were cancelled?", "SELECT count(*) FROM orders WHERE status = 'cancelled'", nil},
		{"How many orders were cancelled?", "SELECT count(*) FROM orders", []Kind{Value}},
		{"How many orders were cancelled?", "SELECT count(*) FROM orders WHERE status = 'returned'", []Kind{Value, Value}},
		{"How many orders were cancelled?", "SELECT count(*) FROM orders WHERE gift = 'cancelled'", []Kind{Value}},
		{"How many orders were cancelled?", "SELECT sum(amount) FROM orders WHERE status = 'cancelled'", []Kind{Function}},
		{"How many orders were cancelled?", "SELECT max(quantity) FROM orders WHERE status = 'cancelled'", []Kind{Function, Function}},
		{"How many gift orders are there?", "SELECT count(*) FROM orders WHERE gift = 'Y'", nil},
		{"How many gift orders are there?", "SELECT count(*) FROM orders WHERE gift = 'N'", []Kind{Value}},
		{"How many orders are not cancelled?", "SELECT count(*) FROM orders WHERE status <> 'cancelled'", nil},
		{"How many orders are not paid?", "SELECT count(*) FROM orders", []Kind{Negation}},
		{"How many orders are not paid?", "SELECT count(*) FROM orders WHERE paid_on IS NULL", nil},
		{"How many orders have no quantity?", "SELECT count(*) FROM orders WHERE quantity IS NULL", []Kind{Value}},
		{"Total amount in May 2026", "SELECT sum(amount) FROM orders WHERE ordered_on >= DATE '2026-05-01' AND ordered_on < DATE '2026-06-01'", nil},
		{"Total amount in May 2026", "SELECT sum(amount) FROM orders WHERE ordered_on BETWEEN DATE '2026-05-01' AND DATE '2026-05-31'", nil},
		{"Total amount in May 2026", "SELECT sum(amount) FROM orders WHERE ordered_on >= DATE '2026-04-01' AND ordered_on < DATE '2026-05-01'", []Kind{Period}},
		{"Total amount in May 2026", "SELECT sum(amount) FROM orders", []Kind{Period}},
		{"Total amount", "SELECT sum(amount) FROM orders WHERE year(ordered_on) = 2025", []Kind{Period}},
		{"Total amount last year", "SELECT sum(amount) FROM orders WHERE year(ordered_on) = 2025", nil},
		{"Total amount last year", "SELECT sum(amount) FROM orders WHERE year(ordered_on) = 2024", []Kind{Period}},
		{"How many orders in the last 30 days?", "SELECT count(*) FROM orders WHERE ordered_on > DATE '2026-06-30' - INTERVAL 30 DAY", nil},
		{"How many orders in the last 30 days?", "SELECT count(*) FROM orders WHERE ordered_on > DATE '2026-06-30' - INTERVAL '3 months'", []Kind{Period}},
		{"Total amount", "SELECT avg(amount) FROM orders", []Kind{Function, Function}},
		{"Total amount", "SELECT sum(unit_price) FROM orders", []Kind{Column, Role}},
		{"Average amount", "SELECT avg(amount) FROM orders", nil},
		{"Average amount", "SELECT sum(amount) FROM orders", []Kind{Function}},
		{"Average amount", "SELECT avg(quantity) FROM orders", []Kind{Column}},
		{"Highest amount", "SELECT max(amount) FROM orders", nil},
		{"Highest amount", "SELECT min(amount) FROM orders", []Kind{Function}},
		{"Median amount", "SELECT avg(amount) FROM orders", []Kind{Function, Function}},
		{"What share of orders was returned?", "SELECT count(*) FROM orders WHERE status = 'returned'", []Kind{Function}},
		{"Amount by status", "SELECT status, sum(amount) FROM orders GROUP BY status", nil},
		{"Amount by status", "SELECT status, sum(amount) FROM orders GROUP BY ALL", nil},
		{"Amount by status", "SELECT sum(amount) FROM orders", []Kind{Column, Group}},
		{"Amount by status", "SELECT gift, sum(amount) FROM orders GROUP BY 1", []Kind{Column, Group}},
		{"Amount by city", "SELECT c.city, sum(o.amount) FROM orders o JOIN customers c ON c.customer_id = o.customer_id GROUP BY c.city", nil},
		{"Amount by city", "WITH x AS (SELECT customer_id, sum(amount) AS a FROM orders GROUP BY customer_id) SELECT city, sum(a) FROM customers JOIN x USING (customer_id) GROUP BY city", nil},
		{"How many customers are there in Graz?", "SELECT count(*) FROM customers JOIN orders USING (customer_id) WHERE city = 'Graz'", []Kind{Function}},
		{"How many customers are there in Graz?", "SELECT count(DISTINCT customers.customer_id) FROM customers JOIN orders USING (customer_id) WHERE city = 'Graz'", nil},
		{"Total amount", "SELECT sum(o.amount) FROM orders o JOIN orders p ON o.status = p.status", []Kind{Repeated, Repeated}},
		{"Average amount of orders in Vienna", "SELECT avg(o.amount) FROM orders o, customers c WHERE o.customer_id = c.customer_id AND c.city = 'Vienna'", nil},
		{"Top 5 customers by amount", "SELECT c.customer_name FROM orders o JOIN customers c USING (customer_id) GROUP BY c.customer_name ORDER BY sum(o.amount) DESC LIMIT 5", nil},
		{"Top 5 customers by amount", "SELECT c.customer_name FROM orders o JOIN customers c USING (customer_id) GROUP BY c.customer_name ORDER BY sum(o.amount) DESC LIMIT 3", []Kind{Number}},
		{"Which customers live in Linz?", "SELECT segment FROM customers WHERE city = 'Linz'", []Kind{Column}},
		{"Orders with an amount over 500", "SELECT * FROM orders WHERE amount > 500", nil},
		{"Orders with an amount over 500", "SELECT * FROM orders WHERE amount > 50", []Kind{Number, Number}},
		{"Customers who never ordered", "SELECT customer_name FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders)", nil},
		{"Customers who never ordered", "SELECT customer_name FROM customers WHERE city NOT IN (SELECT city FROM orders)", []Kind{Column}},
	} {
		require.Contains(t, trees, c.statement)

		datasets := shop()
		found := Find(Request{
			Request:        planner.Request{Question: c.question, Today: today, Datasets: datasets, Matches: matched(datasets, c.question)},
			Interpretation: c.question, Tree: trees[c.statement],
		})

		var kinds []Kind
		for _, d := range found {
			kinds = append(kinds, d.Kind)
		}

		require.Equal(t, c.want, kinds, "%s\n%s\n%v", c.question, c.statement, found)
	}
}

// TestFindAnything checks that trees of other forms and questions without meaning do no harm.
func TestFindAnything(t *testing.T) {
	t.Parallel()

	for statement, tree := range recorded(t) {
		for _, question := range []string{"", "?", "Wie viele Bestellungen gab es?", strings.Repeat("how many orders ", 500)} {
			require.NotPanics(t, func() { Find(Request{Request: planner.Request{Question: question, Datasets: shop()}, Tree: tree}) }, statement)
		}
	}

	for _, tree := range []string{``, `null`, `{}`, `{"statements": []}`, `{"statements": [{"node": {"type": "SELECT_NODE"}}]}`, `{"statements": [{"node": {"type": "SET_OPERATION_NODE"}}]}`, `[1`} {
		require.Empty(t, Find(Request{Request: planner.Request{Question: "how many orders", Datasets: shop()}, Tree: json.RawMessage(tree)}), tree)
	}
}
