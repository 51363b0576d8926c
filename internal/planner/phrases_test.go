package planner_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/planner"
)

// phrases returns parts of questions about the shop.
func phrases() []string {
	return strings.Split(`how many|number of|total|average|median|share of|what percentage of|top 3|bottom|which|who|list|show|when|compare|different|
	the most|the fewest|the highest|the lowest|the cheapest|the last|the first|most common|customers|orders|order lines|products|customer|order|ordered|shipped|joined|revenue|quantity|
	unit price|list price|price|weight|kg|city|country|category|status|channel|segment|phone|name|month|year|Vienna|Oslo|AT|NO|IT|paid|cancelled|web|app|business|Kitchen|Tent|Ada Berg|
	by|per|for each|and|or|vs|not|never|without|with no|yet|still|between|to|after|before|since|until|more than|less than|at least|exactly|cheaper than|than|5|10|2 and 4|20%|1,200|
	2025|2026|March|March 2026|last month|Q1 2026|1 March|2026-03-05|in|of|with|all|across all|sorted by|descending|difference between|how much|each`, "|")
}

// TestPhrases checks that planning ends for the beginning of a question with the end of another and phrases at random,
// and that the plan is sound: the numbers of candidates fit the outcome, and the SQL is quoted. Texts made of bytes at
// random seldom get that far.
func TestPhrases(t *testing.T) {
	t.Parallel()

	const questions = 8_000

	text, err := os.ReadFile("testdata/questions.txt")
	require.NoError(t, err)

	about, _, _ := strings.Cut(string(text), "## staff")
	known, parts := strings.Split(strings.TrimSpace(about), "\n"), phrases()
	shop, random, answered := loadWorld(t, "testdata/shop", june()), rand.New(rand.NewPCG(1, 2)), 0

	for range questions {
		one, two := strings.Fields(known[random.IntN(len(known))]), strings.Fields(known[random.IntN(len(known))])
		words := slices.Concat(one[:1+random.IntN(len(one))], two[random.IntN(len(two)):])

		for range random.IntN(3) {
			words = append(words, strings.TrimSpace(parts[random.IntN(len(parts))]))
		}

		question := strings.Join(words, " ")

		var plan planner.Plan

		require.NotPanics(t, func() { plan = shop.ask(question) }, question)
		checkPlan(t, plan, question, "")

		if plan.Outcome == planner.Answer {
			answered++
		}
	}

	t.Logf("%d of %d answered", answered, questions)
	require.Positive(t, answered)
}

// checkPlan checks that the numbers of candidates fit the outcome, and that names and values are quoted.
func checkPlan(t *testing.T, plan planner.Plan, name, value string) {
	t.Helper()

	for _, c := range plan.Candidates {
		require.NotEmpty(t, c.Interpretation)
		checkSQL(t, c.SQL, name, value)
	}

	switch plan.Outcome {
	case planner.Answer, planner.DidYouMean:
		require.Len(t, plan.Candidates, 1)
	case planner.AskBack:
		require.Greater(t, len(plan.Candidates), 1)
	case planner.Refuse:
		require.Empty(t, plan.Candidates)
	}
}
