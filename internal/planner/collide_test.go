package planner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// lines returns a dataset of sales lines with columns that are not English. The name of the dataset may be that of a column.
func lines(name string, figures ...string) planner.Dataset {
	source := meaning.Source{Name: name, Rows: 2000, Keys: [][]string{{"Beleg-Nr."}}, Columns: []meaning.SourceColumn{
		{Name: "Beleg-Nr.", Type: "varchar", Distinct: 2000},
		{Name: "Datum", Type: "date", Distinct: 600, Min: "2025-01-01", Max: "2026-06-30"},
		{Name: "Kunde", Type: "varchar", Distinct: 80, Values: []any{"Kunde Nr. 66", "Kunde Nr. 69"}},
		{Name: "Ort", Type: "varchar", Distinct: 12, Values: []any{"Wien", "Graz"}},
		{Name: "Region", Type: "varchar", Distinct: 4, Values: []any{"Nord", "Ost"}},
	}}

	for _, figure := range figures {
		source.Columns = append(source.Columns, meaning.SourceColumn{Name: figure, Type: "double", Distinct: 1900, Min: 1.5, Max: 900.0})
	}

	return planner.Dataset{Source: source, Meaning: meaning.Draft(source)}
}

func planOf(question string, in ...planner.Dataset) planner.Plan {
	return planner.Make(planner.Request{Question: question, Today: june(), Datasets: in})
}

func interpretations(plan planner.Plan) (list []string) {
	for _, c := range plan.Candidates {
		list = append(list, c.Interpretation)
	}

	return list
}

// TestCollisions checks that a word that names the rows of a dataset and a column of numbers is never the number of rows
// without asking.
func TestCollisions(t *testing.T) {
	t.Parallel()

	umsatz := lines("umsatz", "Umsatz", "Menge")

	for _, one := range []struct {
		question string
		in       planner.Dataset
		options  []string // none if it is refused, one if it is answered
	}{
		{"Which Kunde has the highest Umsatz?", umsatz, []string{"the *Kunde* with the highest total *Umsatz* of *umsatz*", "the *Kunde* with the highest single *Umsatz* of *umsatz*"}},
		{"Which Region has the lowest Umsatz?", umsatz, []string{"the *Region* with the lowest total *Umsatz* of *umsatz*", "the *Region* with the lowest single *Umsatz* of *umsatz*"}},
		{"Which Kunde has the highest Umsatz in total?", umsatz, []string{"the *Kunde* with the highest total *Umsatz* of *umsatz*"}},
		{"Which Kunde has the highest total Umsatz?", umsatz, []string{"the *Kunde* with the highest total *Umsatz* of *umsatz*"}},
		{"Which month has the highest Umsatz?", umsatz, []string{"the month of *Datum* with the highest total *Umsatz* of *umsatz*", "the month of *Datum* with the highest single *Umsatz* of *umsatz*"}},
		{"top 3 Ort by Umsatz", umsatz, []string{"the 3 *Ort* values with the highest number of *umsatz*", "the 3 *Ort* values with the highest total *Umsatz* of *umsatz*"}},
		{"Which Kunde has the most umsatz?", umsatz, []string{"the *Kunde* with the highest number of *umsatz*", "the *Kunde* with the highest total *Umsatz* of *umsatz*"}},
		{"How many umsatz are there?", umsatz, []string{"number of *umsatz*", "total *Umsatz* of *umsatz*"}},
		{"Total Umsatz by Ort", umsatz, []string{"total *Umsatz* of *umsatz*, by *Ort*"}},
		{"highest Umsatz", umsatz, []string{"highest *Umsatz* of *umsatz*"}},
		{"Which Kunde has the highest Umsatz?", lines("verkaeufe", "Umsatz"), []string{"the *Kunde* with the highest total *Umsatz* of *verkaeufe*", "the *Kunde* with the highest single *Umsatz* of *verkaeufe*"}},
		{"Which Kunde has the highest Umsatz?", lines("umsatz", "Umsatz EUR"), []string{"the *Kunde* with the highest total *Umsatz EUR* of *umsatz*", "the *Kunde* with the highest single *Umsatz EUR* of *umsatz*"}},
		{"Which Kunde has the highest Umsatz?", lines("umsatz", "Umsatz netto"), nil},
		{"Which Kunde has the most Umsatz?", lines("umsatz", "Umsatz netto"), nil},
		{"top 3 Ort by Umsatz", lines("umsatz", "Umsatz netto"), nil},
		{"Which Kunde has the highest Umsatz?", lines("umsatz", "Menge"), []string{"the *Kunde* with the highest number of *umsatz*"}}, // the word names only rows
		// A number of which nothing is known is not added up, and the rows are not counted instead.
		{"Which Kunde has the highest xyz?", lines("xyz", "xyz"), nil},
		{"Which Kunde has the most xyz?", lines("xyz", "xyz"), nil},
		{"top 3 Ort by xyz", lines("xyz", "xyz"), nil},
		// What a customer has of its own is added up only if the question says so.
		{"Which Kunde has the most premiums?", lines("premiums", "premium"), nil},
		// The name of a dataset of amounts may mean an amount.
		{"top 3 Ort by sales", lines("sales", "amount"), []string{"the 3 *Ort* values with the highest number of *sales*", "the 3 *Ort* values with the highest total *amount* of *sales*"}},
		{"Which Ort has the highest sales?", lines("sales", "amount"), []string{"the *Ort* with the highest number of *sales*", "the *Ort* with the highest total *amount* of *sales*"}},
		{"Which Ort has the most orders?", lines("orders", "order_amount"), []string{"the *Ort* with the highest number of *orders*"}},
		{"top 3 Ort by orders", lines("orders", "order_amount"), []string{"the 3 *Ort* values with the highest number of *orders*"}},
	} {
		plan := planOf(one.question, one.in)
		require.Equal(t, one.options, interpretations(plan), "%s (%s): %s %v", one.question, one.in.Name, plan.Reason, plan.Unused)

		switch len(one.options) {
		case 0:
			require.Equal(t, planner.Refuse, plan.Outcome, one.question)
			require.NotEmpty(t, plan.Reason, one.question)
		case 1:
			require.Equal(t, planner.Answer, plan.Outcome, one.question)
		default:
			require.Equal(t, planner.AskBack, plan.Outcome, one.question)
		}
	}
}

// TestOtherForm checks that an interpretation is offered for each date column in both forms that the words may mean.
func TestOtherForm(t *testing.T) {
	t.Parallel()

	d := lines("verkaeufe", "Umsatz")
	d.Columns = append(d.Columns, meaning.SourceColumn{Name: "Lieferdatum", Type: "date", Distinct: 600, Min: "2025-01-01", Max: "2026-06-30"})
	d.Meaning = meaning.Draft(d.Source)

	plan := planOf("Which Kunde has the highest Umsatz in 2025?", d)
	require.Equal(t, planner.AskBack, plan.Outcome, plan.Reason)
	require.Len(t, plan.Candidates, 4, interpretations(plan))
}

// TestExamples checks that a refusal suggests only questions that are answered without asking back.
func TestExamples(t *testing.T) {
	t.Parallel()

	for _, in := range [][]planner.Dataset{
		{lines("umsatz", "Umsatz", "Menge")},
		{lines("verkaeufe", "Umsatz")},
		{lines("sales", "amount")},
		{lines("xyz", "xyz")},
		loadWorld(t, "testdata/shop", june()).datasets, loadWorld(t, "testdata/hire", june()).datasets,
	} {
		ask := func(question string) planner.Plan {
			return planner.Make(planner.Request{Question: question, Today: june(), Datasets: in})
		}

		plan := ask("What is the meaning of frobnication?")
		require.Equal(t, planner.Refuse, plan.Outcome)
		require.NotEmpty(t, plan.Examples, in[0].Name)

		for _, example := range plan.Examples {
			require.Equal(t, planner.Answer, ask(example).Outcome, example)
		}
	}

	require.Equal(t, []string{"Total Umsatz of umsatz by Kunde", "Average Umsatz of umsatz by Kunde"}, planOf("frobnicate", lines("umsatz", "Umsatz")).Examples)
}

// TestExamplesFit checks that a refusal first suggests questions about what the question names.
func TestExamplesFit(t *testing.T) {
	t.Parallel()

	sales, parcels := lines("sales", "amount"), lines("parcels", "weight")
	parcels.Columns = append(parcels.Columns, meaning.SourceColumn{Name: "carrier", Type: "varchar", Distinct: 3})
	parcels.Meaning = meaning.Draft(parcels.Source)

	plan := planOf("Which carrier frobnicates?", sales, parcels)
	require.Equal(t, planner.Refuse, plan.Outcome)
	require.Equal(t, []string{"How many parcels are there?", "Total weight of parcels by carrier"}, plan.Examples[:2])
	require.Equal(t, "How many sales are there?", planOf("frobnicate", sales, parcels).Examples[0])
}
