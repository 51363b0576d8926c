package planner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// TestDescribedColumn checks that the description of a column explains a word that no name does.
func TestDescribedColumn(t *testing.T) {
	t.Parallel()

	for description, want := range map[string]planner.Outcome{"": planner.Refuse, "postage of the order": planner.Answer} {
		d := planner.Dataset{Source: meaning.Source{Name: "orders", Rows: 200, Columns: []meaning.SourceColumn{
			{Name: "region", Type: "varchar", Distinct: 4}, {Name: "amt", Type: "double", Distinct: 190, Min: 3.0, Max: 9000.0, Description: description},
		}}}
		d.Meaning = meaning.Draft(d.Source)

		plan := planner.Make(planner.Request{Question: "What is the total postage of orders?", Today: time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC), Datasets: []planner.Dataset{d}})
		require.Equal(t, want, plan.Outcome, "%q: %+v", description, plan)

		if want == planner.Answer {
			require.Contains(t, plan.Candidates[0].SQL, `sum("amt")`)
		}
	}
}
