package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMutate checks what each mutation makes of a statement.
func TestMutate(t *testing.T) {
	t.Parallel()

	tables := []knownTable{
		{"sales", []knownColumn{{"sale_id", "number", nil}, {"store_id", "number", nil}, {"qty", "number", nil}, {"sold", "date", nil}, {"paid", "date", nil}, {"pay", "text", []string{"card", "cash"}}, {"kind", "text", []string{"a"}}}},
		{"stores", []knownColumn{{"store_id", "number", nil}, {"city", "text", []string{"Graz", "Wien"}}}},
	}

	for _, c := range []struct {
		kind      mutation
		statement string
		want      []string
	}{
		{dropped, "SELECT sum(qty) FROM sales WHERE pay = 'card' AND sold BETWEEN DATE '2025-01-01' AND DATE '2025-01-31' GROUP BY kind", []string{
			"SELECT sum(qty) FROM sales WHERE pay = 'card'  GROUP BY kind",
			"SELECT sum(qty) FROM sales WHERE  sold BETWEEN DATE '2025-01-01' AND DATE '2025-01-31' GROUP BY kind",
		}},
		{dropped, "SELECT count(*) FILTER (pay='card') FROM sales", []string{"SELECT count(*)  FROM sales"}},
		{otherText, "SELECT count(*) FROM sales WHERE pay = 'card' AND qty > 10", []string{
			"SELECT count(*) FROM sales WHERE pay = 'cash' AND qty > 10", "SELECT count(*) FROM sales WHERE pay = 'card' AND qty > 21",
		}},
		{otherText, "SELECT count(*) FROM sales WHERE year(sold) = 2025 LIMIT 5", []string{"SELECT count(*) FROM sales WHERE year(sold) = 2025 LIMIT 11"}},
		{otherName, "SELECT pay, max(sold) AS pay_day FROM sales GROUP BY pay", []string{
			`SELECT "kind", max(sold) AS pay_day FROM sales GROUP BY "kind"`, `SELECT pay, max("paid") AS pay_day FROM sales GROUP BY pay`,
		}},
		{otherName, "SELECT city FROM sales JOIN stores USING (store_id)", nil}, // there is no other text
		{otherCall, "SELECT avg(qty) FROM sales", []string{"SELECT sum(qty) FROM sales", "SELECT max(qty) FROM sales"}},
		{otherCall, "SELECT count(DISTINCT pay) FROM sales", []string{"SELECT count( pay) FROM sales"}},
		{repeated, "SELECT count(*) FROM stores s WHERE city = 'Graz'", []string{
			`SELECT count(*) FROM stores s JOIN (SELECT "store_id" AS again_key FROM "sales") AS again ON s."store_id" = again.again_key  WHERE city = 'Graz'`,
			`SELECT count(*) FROM stores s JOIN (SELECT "city" AS again_key FROM "stores") AS again ON s."city" = again.again_key  WHERE city = 'Graz'`,
			`SELECT count(*) FROM stores s JOIN (SELECT "city" AS again_key FROM "stores") AS again ON s."city" = again.again_key  WHERE city = 'Graz'`,
		}},
		{shifted, "SELECT 1 FROM sales WHERE sold BETWEEN DATE '2025-02-01' AND DATE '2025-02-28'", []string{
			"SELECT 1 FROM sales WHERE sold BETWEEN DATE '2025-01-01' AND DATE '2025-01-31'",
			"SELECT 1 FROM sales WHERE sold BETWEEN DATE '2024-02-01' AND DATE '2024-02-29'",
			"SELECT 1 FROM sales WHERE sold BETWEEN DATE '2025-03-01' AND DATE '2025-03-31'",
		}},
		{shifted, "SELECT 1 FROM sales WHERE month(sold) = 3 AND qty = 3", []string{
			"SELECT 1 FROM sales WHERE month(sold) = 2 AND qty = 3", "SELECT 1 FROM sales WHERE month(sold) = 4 AND qty = 3",
		}},
	} {
		require.Equal(t, c.want, newMutant(c.statement, tables).mutate(c.kind), "%s: %s", c.kind, c.statement)
	}
}
