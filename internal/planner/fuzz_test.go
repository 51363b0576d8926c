package planner_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// FuzzPlan checks that planning ends for any question and dataset, that the same request returns the same plan, and that
// names and values stay quoted in the SQL.
func FuzzPlan(f *testing.F) {
	for _, seed := range [][3]string{
		{"How many orders per region in March 2026?", "region", "North"},
		{"top 5 a'b by c\"d over 3 and between 1 and 2", `c"d`, `a'b`},
		{"what share of 2026 1990s Q3 2025 first half is not > 5%", "first half", "2026"},
		{"difference between x and y compared to more than at least", "x", "y"},
		{"which has the largest", "", ""},
		{"Ähm … wie viele \xff σάς", "σ", "\x00"},
		{"customers with fewer than 3 orders in 2026 not in NO or IT", "orders", "NO"},
		{"total amount in amount without amount per amount", "amount", "amount"},
		{"the 3 latest, longest and cheapest of all; DROP TABLE x --", "id; --", "'; --"},
		{"31 February 2026 to 0 March, 99999999999999999999th of 1.2.3-4/5", "of", "1.2.3-4/5"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}

	shop := loadWorld(f, "testdata/shop", june())

	f.Fuzz(func(t *testing.T, question, name, value string) {
		at := max(strings.Index(question, value), 0)
		one := planner.Dataset{
			Source: meaning.Source{
				Name: name, Rows: 9, Keys: [][]string{{name}, {"gone"}, {}},
				Columns: []meaning.SourceColumn{
					{Name: name, Type: "varchar", Distinct: 3, Values: []any{value, "1,200", nil}},
					{Name: value, Type: "bigint", Distinct: 9, Min: 1.0, Max: 9.0},
					{Name: "placed on", Type: "date", Nulls: 2, Distinct: 5, Min: "2025-01-01", Max: value},
					{Name: "amount", Type: "double", Distinct: 9, Description: question},
					{Name: "customer_id", Type: "bigint", Nulls: 1, Distinct: 9},
				},
				Joins: []meaning.SourceJoin{{Column: "customer_id", To: "customers", Key: "customer_id", Share: 0.5, IsKey: true}, {Column: "gone", To: value, Key: name, IsKey: true}},
			},
			Totals: []planner.Match{{Dataset: name, Column: name, Value: "Total"}},
		}
		one.Meaning = meaning.Draft(one.Source)

		want := planner.Request{
			Question: question, Today: june(), Datasets: append([]planner.Dataset{one}, shop.datasets...),
			Matches: append(shop.matches(question), planner.Match{Dataset: name, Column: name, Value: value, Start: at, End: at + len(value), Score: 0.9}, planner.Match{Start: -4, End: 1 << 40},
				planner.Match{Dataset: name, Column: name, Value: value, Start: 1 << 40, End: -4, Guess: true}),
		}

		plan := planner.Make(want)
		checkPlan(t, plan, name, value)
		require.Equal(t, plan, planner.Make(want), "the same again")
		require.LessOrEqual(t, len(planner.Likely(want, 1)), 1)
	})
}

// checkSQL removes quoted names and values and checks that the rest cannot do harm.
func checkSQL(t *testing.T, sql, name, value string) {
	t.Helper()

	var rest strings.Builder

	for i := 0; i < len(sql); {
		if sql[i] != '"' && sql[i] != '\'' {
			rest.WriteByte(sql[i])
			i++

			continue
		}

		end := i + 1
		for end < len(sql) && (sql[end] != sql[i] || end+1 < len(sql) && sql[end+1] == sql[i]) {
			if sql[end] == sql[i] {
				end++
			}

			end++
		}

		require.Less(t, end, len(sql), "a quote that does not end: %s", sql)

		i = end + 1
	}

	require.NotContains(t, rest.String(), ";")
	require.NotContains(t, rest.String(), "--")
	require.True(t, strings.HasPrefix(rest.String(), "SELECT ") || strings.HasPrefix(rest.String(), "WITH "), "%s (%q, %q)", sql, name, value)
}
