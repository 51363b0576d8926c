package planner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// TestRecall checks that a choice decides the same words of other questions, and nothing else.
func TestRecall(t *testing.T) {
	t.Parallel()

	for _, one := range []struct {
		world, asked string
		option       int
		then, sql    string // sql is empty if the question is still asked back
	}{
		{"hotel", "Total cost", 1, "Cost by region", `sum("actual_cost")`},
		{"hotel", "Total cost", 0, "What is the average COST?", `avg("planned_cost")`},
		{"shop", "What is the average price?", 1, "Lowest price", `min("list_price")`},
		{"shop", "Best selling product", 1, "Best-selling products", `"quantity" * `},
		{"shop", "Orders on 2026-03-05", 1, "Orders on 2026-03-06", ""}, // a list or a number: no word decides it
		{"shop", "What is the average price?", 1, "Best selling product", ""},
		{"hotel", "Total cost", 1, "What is the average price?", ""},
	} {
		world := loadWorld(t, "testdata/"+one.world, june())

		asked := world.ask(one.asked)
		require.Equal(t, planner.AskBack, asked.Outcome, one.asked)

		var options [][]planner.Explained
		for _, c := range asked.Candidates {
			options = append(options, c.Explained)
		}

		decided := planner.Decided(options, one.option)

		again := world.ask(one.asked)
		again.Recall(decided)

		then := world.ask(one.then)
		then.Recall(decided)

		if one.sql == "" {
			require.NotEqual(t, planner.Answer, then.Outcome, one.then)

			continue
		}

		require.Equal(t, planner.Answer, again.Outcome, one.asked)
		require.Equal(t, asked.Candidates[one.option].SQL, again.Candidates[0].SQL, one.asked)
		require.Equal(t, planner.Answer, then.Outcome, one.then)
		require.Contains(t, then.Candidates[0].SQL, one.sql, one.then)
		require.Contains(t, then.Candidates[0].Notes[len(then.Candidates[0].Notes)-1], "You chose before that", one.then)

		confirmed := 0

		for _, e := range then.Candidates[0].Explained {
			if e.How == "confirmed" {
				confirmed++
			}
		}

		require.Positive(t, confirmed, one.then)

		// Two decisions that contradict each other decide nothing.
		then = world.ask(one.then)
		then.Recall(append(decided, planner.Decided(options, 1-one.option)...))
		require.Equal(t, planner.AskBack, then.Outcome, one.then)
	}
}

// TestRecallDate checks that a chosen date column holds for other times and for groups, and that a corrected typing
// error decides nothing.
func TestRecallDate(t *testing.T) {
	t.Parallel()

	source := meaning.Source{Name: "claims", Rows: 900, Keys: [][]string{{"claim_id"}}, Columns: []meaning.SourceColumn{
		{Name: "claim_id", Type: "bigint", Distinct: 900},
		{Name: "city", Type: "varchar", Distinct: 4, Values: []any{"Vienna", "Oslo"}},
		{Name: "loss_date", Type: "date", Distinct: 300, Min: "2025-01-01", Max: "2026-05-01"},
		{Name: "decision_date", Type: "date", Distinct: 300, Min: "2025-01-01", Max: "2026-05-01"},
	}}

	ask := func(question string, known ...planner.Decision) planner.Plan {
		plan := planner.Make(planner.Request{Question: question, Today: june(), Datasets: []planner.Dataset{{Source: source, Meaning: meaning.Draft(source)}}})
		plan.Recall(known)

		return plan
	}

	asked := ask("How many claims in 2025?")
	require.Equal(t, planner.AskBack, asked.Outcome, asked.Reason)

	var options [][]planner.Explained
	for _, c := range asked.Candidates {
		options = append(options, c.Explained)
	}

	decided := planner.Decided(options, 1)
	require.Equal(t, []planner.Decision{{Said: "2025", As: "date", Dataset: "claims", Column: options[1][2].Column}}, decided)

	for _, question := range []string{"How many claims in March 2026?", "Number of claims by month"} {
		plan := ask(question, decided...)
		require.Equal(t, planner.Answer, plan.Outcome, question)
		require.Contains(t, plan.Candidates[0].SQL, options[1][2].Column, question)
	}

	typo := ask("How many claims by decisoin date?", decided...)
	require.Equal(t, planner.DidYouMean, typo.Outcome, typo.Unused)
	require.Empty(t, planner.Decided([][]planner.Explained{typo.Candidates[0].Explained}, 0))
}
