package grounding_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/grounding"
)

func step(index int, columns string, rows ...string) grounding.Step {
	s := grounding.Step{Index: index, Columns: strings.Split(columns, ","), RowCount: int64(len(rows)), Complete: true}
	for _, row := range rows {
		s.Rows = append(s.Rows, json.RawMessage(row))
	}

	return s
}

func shops() []grounding.Step {
	return []grounding.Step{
		step(0, "city,orders,revenue_eur,opened,change_pct",
			`{"city":"Berlin","orders":120,"revenue_eur":1234567.89,"opened":"2019-03-04","change_pct":-12.5,"__metadata":{"score":1}}`,
			`{"city":"Munich","orders":80,"revenue_eur":"987654.30","opened":"2021-11-30","change_pct":4.2}`,
			`{"city":"New York","orders":50,"revenue_eur":500000,"opened":"2024-01-31","change_pct":null}`),
		step(2, "month,sales", `{"month":"2026-09-01","sales":31000.4}`, `{"month":"2026-10-01","sales":22115.35}`),
		step(1, "year,visits,rate", `{"year":2024,"visits":80000,"rate":0.125}`, `{"year":2025,"visits":100000,"rate":0.25}`),
	}
}

// TestCheck checks which claims are verified. In the expected claims, ! marks one that is not verified.
func TestCheck(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ answer, claims string }{
		{"Berlin has 120 orders [[0:0:orders]].", "120"},
		{"Berlin has **120** orders [[0:0:orders]].", "120"},
		{"Berlin has 121 [[0:0:orders]] orders.", "!121"},
		{"Munich has 120 [[0:0:orders]] orders.", "!120"},
		{"Berlin has 120 orders[[0:0:orders]], Munich 80 [[0:1:orders]].", "120, 80"},
		{"Berlin has 80 orders[[0:1:orders]], Munich 120 [[0:0:orders]].", "!80, !120"},
		{"Munich, unlike Berlin with 120 [[0:0:orders]], has 80 [[0:1:orders]].", "120, 80"},
		{"The largest is 120 [[0:0:orders]], Munich has 80 [[0:1:orders]].", "120, 80"},
		{"The revenue of Berlin is 120 [[0:0:orders]].", "!120"},
		{"Berlin: €1,234,567.89 [[0:0:revenue_eur]].", "€1,234,567.89"},
		{"Berlin: 1.234.567,89 € [[0:0:revenue_eur]].", "1.234.567,89 €"},
		{"Berlin: 1 234 568 € [[0:0:revenue_eur]].", "1 234 568 €"},
		{"Berlin: €1.2 million [[0:0:revenue_eur]].", "€1.2 million"},
		{"Berlin: 1,2 Mio. € [[0:0:revenue_eur]].", "1,2 Mio. €"},
		{"Berlin: 1,2 M€ [[0:0:revenue_eur]].", "1,2 M€"},
		{"Berlin: 1,23 million d’euros [[0:0:revenue_eur]].", "1,23 million d’euros"},
		{"Berlin: $1.2 million [[0:0:revenue_eur]].", "!$1.2 million"},
		{"Berlin: €1.3 million [[0:0:revenue_eur]].", "!€1.3 million"},
		{"Berlin: about €1,230,000 [[0:0:revenue_eur]].", "€1,230,000"},
		{"Berlin: over €1,200,000 [[0:0:revenue_eur]].", "€1,200,000"},
		{"Berlin: nearly €1,200,000 [[0:0:revenue_eur]].", "!€1,200,000"},
		{"Berlin: 120 € [[0:0:orders]] orders.", "!120 €"},
		{"Berlin fell by 12.5 % [[0:0:change_pct]].", "12.5 %"},
		{"Berlin: -12.5% [[0:0:change_pct]].", "-12.5%"},
		{"Berlin: +12.5% [[0:0:change_pct]].", "!+12.5%"},
		{"The rate in 2024 was 12,5 Prozent [[1:0:rate]].", "12,5 Prozent"},
		{"There are 3 [[0:count]] cities.", "3"},
		{"There are 3 cities, not 4.", "3, !4"},
		{"Together they have 250 orders [[= sum(0:*:orders)]].", "250"},
		{"In total there are 250 orders.", "250"},
		{"In total there are 120 orders.", "!120"},
		{"Berlin has 48% [[= 0:0:orders / sum(0:*:orders)]] of all orders.", "48%"},
		{"Berlin's share of total orders is 150% [[= 0:0:orders / 0:1:orders]].", "!150%"},
		{"Visits rose by 25 % [[= (1:1:visits - 1:0:visits) / 1:0:visits]].", "25 %"},
		{"Visits rose by 25 % [[= 1:1:visits / 1:0:visits - 1]].", "25 %"},
		{"Visits rose by 20 % [[= (1:1:visits - 1:0:visits) / 1:1:visits]].", "!20 %"},
		{"Visits stiegen von 80.000 [[1:0:visits]] auf 100.000 [[1:1:visits]], um 25 % [[= (1:1:visits - 1:0:visits) / 1:0:visits]].", "80.000, 100.000, 25 %"},
		{"Munich has 40 orders fewer than Berlin [[= 0:1:orders - 0:0:orders]].", "40, fewer"},
		{"Munich has 40 orders [[= 0:1:orders - 0:0:orders]] more than Berlin.", "!40, !more"},
		{"Berlin opened on March 4, 2019 [[0:0:opened]], Munich on 30. November 2021.", "March 4, 2019, 30. November 2021"},
		{"Berlin opened on March 5, 2019.", "!March 5, 2019"},
		{"Berlin ouvre le 4 mars 2019.", "4 mars 2019"},
		{"The first is \"Berlin\" [[0:0:city]], then “Munich”, but not \"Paris\".", "Berlin, Munich, !Paris"},
		{"New York [[0:2:city]] has 50 [[0:2:orders]].", "New York, 50"},
		{"Sales fell by 28.7% [[= (2:1:sales - 2:0:sales) / 2:0:sales]] from September 2026 to 22,115.35 [[2:1:sales]] in October.", "fell, 28.7%, September 2026, 22,115.35"},
		{"Sales were 31,000.40 in October.", "!31,000.40"},
		{"Les ventes d’octobre 2026 : 22 115,35 [[2:1:sales]], soit 8 885,05 de moins [[= 2:0:sales - 2:1:sales]] qu’en septembre 2026.", "octobre 2026, 22 115,35, 8 885,05, septembre 2026"},
		{"Berlin is worth €10,288.07 an order [[= 0:0:revenue_eur / 0:0:orders]], 1.5 times as many as Munich [[= 0:0:orders / 0:1:orders]].", "€10,288.07, 1.5"},
		{"| City | Orders |\n|:--|--:|\n| Berlin | 120 |\n| **Both** | **200 [[= 0:0:orders + 0:1:orders]]** |", "120, 200"},
		{"Since 2024 the 5 best are these: Berlin with 120 orders.", "120"},
		{"| city | orders |\n|---|---|\n| Berlin | 120 |\n| Munich | 120 [[0:0:orders]] |", "120, !120"},
		{"Orders:\n\n1. Berlin: 120\n2. Munich: 90", "120, !90"},
		{"Berlin has 120 orders [[0:9:orders]].", "!120"},
		{"Berlin has 120 orders [[5:0:orders]].", "!120"},
		{"Berlin has 120 orders [[0:0:sales]].", "!120"},
		{"Berlin has 120 orders [[0:*:orders]].", "!120"},
		{"Berlin has 120 orders [[= 120]].", "!120"},
		{"Berlin has 999 orders [[= 0:0:orders * 0 + 999]].", "!999"},
		{"Berlin has 120 orders [[nonsense]].", "!120"},
		{"Experts expect 4,711 next year.", "!4,711"},
		{"See step 1 and the A320.", ""},
		{"Berlin has one hundred and twenty orders, Munich eighty.", "one hundred and twenty, eighty"},
		{"New York has fifty orders. Munich hat achtzig orders. New York compte cinquante orders.", "fifty, achtzig, cinquante"},
		{"New York has eighteen orders. Munich hat achtzehn orders. New York compte dix-huit orders.", "!eighteen, !achtzehn, !dix-huit"},
		{"The two cities and these three have orders for six reasons.", ""},
		{"Berlin has the highest orders, New York the lowest.", "highest, lowest"},
		{"Munich has the highest orders.", "!highest"},
		{"Munich has one of the highest orders and is not the highest in orders.", ""},
		{"Munich ranks second by orders, Berlin is in third place by orders.", "second, !third"},
		{"Munich has the second highest orders.", "second highest"},
		{"Berlin has a higher number of orders than Munich.", "higher"},
		{"Munich hat bei orders einen höheren Wert als Berlin.", "!höheren"},
		{"Berlin has more than twice the orders of New York.", "twice"},
		{"Berlin has more than twice the orders of Munich.", "!twice"},
		{"From 2024 to 2025, visits rose. From 2024 to 2025, visits fell.", "rose, !fell"},
		{"Entre 2024 et 2025, visits recule.", "!recule"},
		{"Berlin accounts for about half of total orders, Munich for half of total orders.", "half, !half"},
	} {
		report := grounding.Check(test.answer, "What are the 5 best?", shops())
		require.NotContains(t, report.Text, "[[")

		var claims []string

		for _, claim := range report.Claims {
			mark := ""
			if !claim.Verified {
				mark = "!"

				require.NotEmpty(t, claim.Reason)
			}

			require.Equal(t, claim.Text, report.Text[claim.At:claim.At+len(claim.Text)])
			claims = append(claims, mark+claim.Text)
		}

		require.Equal(t, test.claims, strings.Join(claims, ", "), "%s\n%+v", test.answer, report.Claims)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()

	row := int64(0)
	report := grounding.Check("Berlin has 48% [[= 0:0:orders / sum(0:*:orders)]] of all orders.", "", shops())
	require.Equal(t, []grounding.Claim{{
		Text: "48%", At: 11, Verified: true, Calculation: "0:0:orders / sum(0:*:orders)",
		Sources: []grounding.Source{{Step: 0, Row: &row, Column: "orders"}, {Step: 0, Column: "orders"}},
	}}, report.Claims)

	report = grounding.Check("Berlin has 120 orders.", "", shops())
	require.Equal(t, []grounding.Source{{Step: 0, Row: &row, Column: "orders"}}, report.Claims[0].Sources)
}

// TestCellIsNoMarker checks that text from a cell is not a citation, even if it looks like a marker.
func TestCellIsNoMarker(t *testing.T) {
	t.Parallel()

	steps := []grounding.Step{step(0, "note,n", `{"note":"worth 5 [[0:0:n]]","n":5}`, `{"note":"plain","n":7}`)}
	report := grounding.Check(`The note is "worth 5 [[0:0:n]]", and 7 [[0:1:n]] is the other n.`, "", steps)
	require.Equal(t, `The note is "worth 5 [[0:0:n]]", and 7 is the other n.`, report.Text)
	require.Len(t, report.Claims, 2)
	require.Equal(t, "worth 5 [[0:0:n]]", report.Claims[0].Text)
	require.Equal(t, "note", report.Claims[0].Sources[0].Column)
	require.Equal(t, "7", report.Claims[1].Text)
	require.True(t, report.Claims[1].Verified)
}

// TestPartOfTheRows checks that a total over rows that the writer has not seen is not verified.
func TestPartOfTheRows(t *testing.T) {
	t.Parallel()

	steps := shops()
	steps[0].Complete, steps[0].RowCount = false, 5000
	report := grounding.Check("In total there are 250 orders [[= sum(0:*:orders)]] in 5,000 rows.", "", steps)
	require.Len(t, report.Claims, 2)
	require.False(t, report.Claims[0].Verified)
	require.Contains(t, report.Claims[0].Reason, "more rows")
	require.True(t, report.Claims[1].Verified)
}

// TestHostileSizes checks that long answers about long steps take about a second, whatever they contain. The limit is
// higher because the machine may be busy; work that is not linear takes much longer.
func TestHostileSizes(t *testing.T) {
	t.Parallel()

	s := grounding.Step{Columns: []string{"name", "a", "b", "note"}, RowCount: 1000, Complete: true}
	for row := range 1000 {
		s.Rows = append(s.Rows, json.RawMessage(fmt.Sprintf(`{"name":"name %d","a":%d,"b":%d.5,"note":"[[%d:0:a]] x"}`, row%50, row, row%7, row)))
	}

	size := 2_000
	if full() {
		size = 8_500
	}

	var text strings.Builder
	for _, piece := range []string{"1 ", "name 7 has 1 a, ", "[[= sum(0:*:a) / max(0:*:b)]] ", "| 1 ", "1. 12:30 ", "[["} {
		text.WriteString(strings.Repeat(piece, size/len(piece)) + "\n")
	}

	begin := time.Now()
	grounding.Check(text.String(), text.String()[:10_000], []grounding.Step{s})
	require.Less(t, time.Since(begin), 2*time.Minute)
}

func FuzzCheck(f *testing.F) {
	for _, answer := range []string{
		"Berlin has 120 orders [[0:0:orders]].", "[[= (0:0:orders - 0:1:orders) / sum(0:*:orders)]] 1,2 Mio. € \"x\" « y »", "| a | 1 |\n|---|\n- 2\n1. 3", "31. Januar 2026 1er mai −5 % $3bn",
	} {
		f.Add(answer, "how many 5?", `{"city":"Berlin [[0:0:x]]","orders":1e5,"opened":"2026-01-31"}`)
	}

	f.Fuzz(func(t *testing.T, answer, question, row string) {
		steps := append(shops(), grounding.Step{Index: 7, Columns: []string{"city", "orders", "opened", ""}, Rows: []json.RawMessage{json.RawMessage(row)}, RowCount: 1, Complete: true})
		report := grounding.Check(answer, question, steps)

		end := 0
		for _, claim := range report.Claims {
			require.GreaterOrEqual(t, claim.At, end)
			require.Equal(t, claim.Text, report.Text[claim.At:claim.At+len(claim.Text)])
			require.Equal(t, claim.Verified, claim.Reason == "")

			end = claim.At
		}
	})
}
