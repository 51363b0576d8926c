package planner_test

import (
	"fmt"
	"testing"
	"time"

	"quern.dev/quern/internal/planner"
)

// BenchmarkPlan finds the likely datasets of a question in a namespace of 50 datasets with 40 columns each.
func BenchmarkPlan(b *testing.B) {
	want := planner.Request{Question: "What is the total amount of sales_gg by region?", Today: time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)}

	for d := range 50 {
		columns := []planner.Column{{Name: "id", Type: "bigint"}, {Name: "region", Type: "varchar"}, {Name: "amount", Type: "double"}, {Name: "sold", Type: "date"}}
		for c := len(columns); c < 40; c++ {
			columns = append(columns, planner.Column{Name: fmt.Sprintf("word%c_label", 'a'+c%26), Type: "varchar"})
		}

		want.Datasets = append(want.Datasets, planner.Dataset{Name: fmt.Sprintf("sales_%c%c", 'a'+d%10, 'e'+d/10), Rows: 1000, Columns: columns})
	}

	for b.Loop() {
		if likely := planner.Likely(want, 4); likely[0] != 26 {
			b.Fatal(likely)
		}
	}
}
