package query

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/lake"
)

func TestLasting(t *testing.T) {
	t.Parallel()

	known := trees(t, "lasting")

	for _, text := range []string{
		"SELECT count(*) FROM orders",
		"SELECT city FROM orders ORDER BY city LIMIT 3",
		"SELECT sum(amount) FROM orders WHERE day = $day",
		"SELECT string_agg(city, ',' ORDER BY city) FROM orders",
		"SELECT row_number() OVER (ORDER BY id) FROM orders",
		"SELECT age(day, DATE '2026-01-01') FROM orders",
		"SELECT DISTINCT city FROM orders",
	} {
		require.NoError(t, checked(t, known, text).lasting(Statement{Lasting: true}), text)
	}

	for text := range known {
		require.Error(t, checked(t, known, text).lasting(Statement{Lasting: true}), text)
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()

	columns := func(list ...string) (columns []lake.Column) {
		for _, c := range list {
			columns = append(columns, lake.Column{Name: c, Type: "varchar"})
		}

		return columns
	}
	orders := resolved{Dataset: catalog.Dataset{ID: uuid.New(), Namespace: "shop", Name: "orders"}, owner: "ada", snapshot: lake.Snapshot{Columns: columns("id", "city", "amount", "day")}}
	customers := resolved{Dataset: catalog.Dataset{ID: uuid.New(), Namespace: "shop", Name: "customers"}, owner: "ada", snapshot: lake.Snapshot{Columns: columns("id", "name")}}

	known := trees(t, "needs")

	for text, want := range map[string]string{
		"SELECT count(*) FROM orders WHERE City = 'Vienna'":                                      "orders: city",
		"SELECT * FROM orders":                                                                   "orders: id city amount day",
		"SELECT o.amount FROM orders o JOIN customers c USING (id)":                              "orders: id amount; customers: id",
		"SELECT count(*) FROM orders NATURAL JOIN customers":                                     "orders: id city amount day; customers: id name",
		"SELECT o FROM orders o":                                                                 "orders: id city amount day",
		"SELECT count(*) FROM orders WHERE id IN (SELECT id FROM customers WHERE name = 'city')": "orders: id; customers: id name",
		"SELECT max(amount) FROM orders WHERE day >= $day":                                       "orders: amount day",
	} {
		s := checked(t, known, text)
		reads := []resolved{orders, customers}[:len(s.tables)]

		var found []string

		for _, n := range s.needs(reads) {
			var names []string
			for _, c := range n.Columns {
				names = append(names, c.Name)
			}

			found = append(found, strings.TrimPrefix(n.Dataset, "ada/shop/")+": "+strings.Join(names, " "))
		}

		require.Equal(t, want, strings.Join(found, "; "), text)
	}

	require.Empty(t, known)

	before := []Need{{ID: orders.ID, Dataset: "ada/shop/orders", Columns: []NeedColumn{{"city", "varchar"}, {"amount", "bigint"}}}}
	with := func(change func(*Need)) []Need {
		one := before[0]
		one.Columns = append([]NeedColumn{}, one.Columns...)
		change(&one)

		return []Need{one}
	}

	require.Empty(t, Compare(before, with(func(*Need) {})))
	require.Contains(t, Compare(before, nil), "deleted")
	require.Contains(t, Compare(before, with(func(n *Need) { n.Dataset = "ada/shop/sales" })), "renamed")
	require.Contains(t, Compare(before, with(func(n *Need) { n.Columns = n.Columns[1:] })), "city of ada/shop/orders was removed")
	require.Contains(t, Compare(before, with(func(n *Need) { n.Columns[1].Type = "varchar" })), "was bigint and is varchar")
	require.Contains(t, Compare(before, with(func(n *Need) { n.Columns = append(n.Columns, NeedColumn{"day", "date"}) })), "new column day")
	require.Contains(t, Compare(before, append(with(func(*Need) {}), Need{ID: customers.ID, Dataset: "ada/shop/customers"})), "did not read before")
}
