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

// TestRecallForm checks that a choice between rows and a column of numbers holds for questions of the same form only.
func TestRecallForm(t *testing.T) {
	t.Parallel()

	in := lines("umsatz", "Umsatz", "Menge")

	for _, one := range []struct {
		asked  string
		option int
		then   string
		want   string // empty if the question is still asked back
	}{
		{"top 3 Ort by Umsatz", 1, "top 5 Region by UMSATZ", "the 5 *Region* values with the highest total *Umsatz* of *umsatz*"},
		{"top 3 Ort by Umsatz", 1, "Which Kunde has the most umsatz?", "the *Kunde* with the highest total *Umsatz* of *umsatz*"},
		{"top 3 Ort by Umsatz", 1, "How many umsatz are there?", ""},
		{"top 3 Ort by Umsatz", 1, "How many umsatz are there by Region?", ""},
		{"top 3 Ort by Umsatz", 1, "Which Kunde has the highest number of umsatz?", ""},
		{"top 3 Ort by Umsatz", 1, "list umsatz", ""},
		{"top 3 Ort by Umsatz", 1, "umsatz in 2025", ""},
		{"How many umsatz are there?", 0, "Number of umsatz by Region", "number of *umsatz*, by *Region*"},
		{"How many umsatz are there?", 0, "Umsatz by Region", ""},
		{"How many umsatz are there?", 0, "top 3 Ort by Umsatz", ""},
		{"list umsatz", 0, "Umsatz by Region", ""},
		{"Umsatz by Region", 1, "Umsatz per Ort", "total *Umsatz* of *umsatz*, by *Ort*"},
		{"Umsatz by Region", 1, "How many umsatz are there?", ""},
	} {
		asked := planOf(one.asked, in)
		require.Equal(t, planner.AskBack, asked.Outcome, one.asked)

		var options [][]planner.Explained
		for _, c := range asked.Candidates {
			options = append(options, c.Explained)
		}

		decided := planner.Decided(options, one.option)
		require.Len(t, decided, 1, one.asked)

		asked.Recall(decided)
		require.Equal(t, planner.Answer, asked.Outcome, one.asked)

		then := planOf(one.then, in)
		require.Equal(t, planner.AskBack, then.Outcome, one.then)

		// A choice that was stored without the form of its question decides nothing.
		decided = append(decided, planner.Decision{Words: "umsatz", As: "column", Dataset: "umsatz", Column: "Umsatz"})

		if then.Recall(decided); one.want == "" {
			require.Equal(t, planner.AskBack, then.Outcome, "%s, then %s", one.asked, one.then)

			continue
		}

		require.Equal(t, planner.Answer, then.Outcome, "%s, then %s", one.asked, one.then)
		require.Equal(t, []string{one.want}, interpretations(then))
	}
}

// TestRecallPart checks that a chosen date is not asked about again, although something else is.
func TestRecallPart(t *testing.T) {
	t.Parallel()

	d := lines("verkaeufe", "Umsatz")
	d.Columns = append(d.Columns, meaning.SourceColumn{Name: "Lieferdatum", Type: "date", Distinct: 600, Min: "2025-01-01", Max: "2026-06-30"})
	d.Meaning = meaning.Draft(d.Source)

	asked := planOf("Which Kunde has the highest Umsatz in 2025?", d)
	require.Len(t, asked.Candidates, 4, interpretations(asked))

	var options [][]planner.Explained
	for _, c := range asked.Candidates {
		options = append(options, c.Explained)
	}

	decided := planner.Decided(options, 2)
	require.Equal(t, []planner.Decision{{Said: "2025", As: "date", Dataset: "verkaeufe", Column: "Lieferdatum"}}, decided)

	asked.Recall(decided)
	require.Equal(t, planner.AskBack, asked.Outcome)
	require.Len(t, asked.Candidates, 2, interpretations(asked))
	require.Contains(t, asked.Candidates[0].SQL, "Lieferdatum")
	require.Contains(t, asked.Candidates[1].SQL, "Lieferdatum")

	// Total or single is decided by no word, so nothing but the date is remembered.
	asked = planOf("Which Kunde has the highest Umsatz?", d)
	require.Equal(t, planner.AskBack, asked.Outcome)
	require.Empty(t, planner.Decided([][]planner.Explained{asked.Candidates[0].Explained, asked.Candidates[1].Explained}, 0))
}
