package planner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/planner"
)

// TestFollowUps checks that a follow-up question changes only what it names. It is refused if one of its words is not
// explained.
func TestFollowUps(t *testing.T) {
	t.Parallel()

	shop := loadWorld(t, "testdata/shop", june())

	for _, one := range []struct{ first, then, same string }{
		{"How many orders were cancelled?", "and paid?", "How many orders were paid?"},
		{"How many orders were cancelled?", "by month", "Number of cancelled orders by month"},
		{"How many orders were cancelled?", "What about 2025?", "How many orders were cancelled in 2025?"},
		{"How many orders were cancelled in 2025?", "and in 2026?", "How many orders were cancelled in 2026?"},
		{"Number of orders per channel in 2025", "by status instead", "Number of orders per status in 2025"},
		{"Number of orders per channel in 2025", "in March 2026", "Number of orders per channel in March 2026"},
		{"Number of customers in Vienna", "and in Oslo?", "Number of customers in Oslo"},
		{"Number of customers in Vienna", "How about business customers?", "Number of customers in Vienna in the segment business"},
		{"Revenue by category", "only in 2025", "Revenue by category in 2025"},
		{"Revenue by category", "monthly", "Revenue by month"},
		{"Which customers have no phone?", "in Vienna", "Which customers have no phone in Vienna?"},
	} {
		first := shop.ask(one.first)
		require.Equal(t, planner.Answer, first.Outcome, one.first)

		same := shop.ask(one.same)
		require.Equal(t, planner.Answer, same.Outcome, one.same)

		then := planner.Follow(shop.request(one.then), first.Candidates[0].Form)
		require.Equal(t, planner.Answer, then.Outcome, "%s: %s", one.first, one.then)
		require.Equal(t, same.Candidates[0].SQL, then.Candidates[0].SQL, "%s: %s", one.first, one.then)
		require.Equal(t, first, shop.ask(one.first), "the earlier form is not changed")
	}

	first := shop.ask("Number of orders per channel in 2025")

	for _, text := range []string{"and on Mars?", "and?", "by unicorn", "what about the average?", "how many?", "by month and moon", "", "thanks", "those that are blue"} {
		require.Equal(t, planner.Refuse, planner.Follow(shop.request(text), first.Candidates[0].Form).Outcome, text)
	}
}
