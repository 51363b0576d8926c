package planner_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/planner"
)

// FuzzPlan checks that planning ends for any question and dataset, and that names and values stay quoted in the SQL.
func FuzzPlan(f *testing.F) {
	for _, seed := range [][3]string{
		{"How many orders per region in March 2026?", "region", "North"},
		{"top 5 a'b by c\"d over 3 and between 1 and 2", `c"d`, `a'b`},
		{"what share of 2026 1990s Q3 2025 first half is not > 5%", "first half", "2026"},
		{"difference between x and y compared to more than at least", "x", "y"},
		{"which has the largest", "", ""},
		{"Ähm … wie viele \xff σάς", "σ", "\x00"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}

	f.Fuzz(func(t *testing.T, question, name, value string) {
		at := max(strings.Index(question, value), 0)
		want := planner.Request{
			Question: question, Today: time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC),
			Datasets: []planner.Dataset{
				{Name: name, Rows: 9, Columns: []planner.Column{
					{Name: name, Type: "varchar", Distinct: 3, Values: []any{value, "1,200", nil}},
					{Name: value, Type: "bigint", Distinct: 9, Min: 1.0, Max: 9.0},
					{Name: "placed on", Type: "date", Nulls: 2, Distinct: 5, Min: "2025-01-01", Max: value},
					{Name: "amount", Type: "double", Distinct: 9, Description: question},
				}},
				orders(),
			},
			Matches: []planner.Match{{Dataset: name, Column: name, Value: value, Start: at, End: at + len(value), Score: 0.9}, {Start: -4, End: 1 << 40}},
			Totals:  []planner.Match{{Dataset: name, Column: name, Value: value}},
		}

		plan := planner.Make(want)
		require.True(t, slices.IsSortedFunc(plan.Candidates, func(a, b planner.Candidate) int { return int(1e9 * (b.Confidence - a.Confidence)) }))

		for _, c := range plan.Candidates {
			require.GreaterOrEqual(t, c.Confidence, 0.0)
			require.LessOrEqual(t, c.Confidence, 1.0)
			require.NotEmpty(t, c.Interpretation)
			checkSQL(t, c.SQL, name, value)
		}

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
	require.True(t, strings.HasPrefix(rest.String(), "SELECT "), "%s (%q, %q)", sql, name, value)
}
