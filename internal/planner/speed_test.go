package planner_test

import (
	"fmt"
	"slices"
	"testing"

	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// BenchmarkPlan plans a question in a namespace of 50 datasets with 40 columns each: the likely datasets, and the
// plan among the 12 whose profiles the service reads, and among all.
func BenchmarkPlan(b *testing.B) {
	want := planner.Request{Question: "What is the total amount of sales_gg by region?", Today: june()}

	for d := range 50 {
		source := meaning.Source{Name: fmt.Sprintf("sales_%c%c", 'a'+d%10, 'e'+d/10), Rows: 1000, Keys: [][]string{{"id"}}, Columns: []meaning.SourceColumn{
			{Name: "id", Type: "bigint", Distinct: 1000},
			{Name: "region", Type: "varchar", Distinct: 4, Values: []any{"North", "South"}},
			{Name: "amount", Type: "double", Distinct: 900},
			{Name: "sold", Type: "date", Distinct: 300},
		}}

		for c := len(source.Columns); c < 40; c++ {
			source.Columns = append(source.Columns, meaning.SourceColumn{Name: fmt.Sprintf("word%c_label", 'a'+c%26), Type: "varchar", Distinct: 900})
		}

		want.Datasets = append(want.Datasets, planner.Dataset{Source: source, Meaning: meaning.Draft(source)})
	}

	b.Run("likely", func(b *testing.B) {
		for b.Loop() {
			if likely := planner.Likely(want, 4); !slices.Contains(likely, 26) {
				b.Fatal(likely)
			}
		}
	})

	for _, n := range []int{12, 50} {
		some := want
		some.Datasets = want.Datasets[max(0, 30-n):max(30, n)]

		b.Run(fmt.Sprintf("datasets=%d", n), func(b *testing.B) {
			for b.Loop() {
				if plan := planner.Make(some); plan.Outcome != planner.Answer {
					b.Fatal(plan.Outcome, plan.Unused, plan.Reason)
				}
			}
		})
	}
}
