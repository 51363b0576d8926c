package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// TestPromptNamesForm checks that the prompt describes every member and every word of a form, and stays short.
func TestPromptNamesForm(t *testing.T) {
	t.Parallel()

	var names []string

	for _, of := range []any{
		form.Form{}, form.Column{}, form.Term{}, form.Measure{}, form.Group{}, form.Condition{}, form.Rows{}, form.Having{}, form.Order{}, form.Period{},
	} {
		for field := range reflect.TypeOf(of).Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				names = append(names, name)
			}
		}
	}

	for _, word := range []form.Comparison{
		form.Is, form.IsNot, form.MoreThan, form.AtLeast, form.LessThan, form.AtMost, form.Between, form.Empty, form.Filled, form.In, form.InMonth, form.Latest,
		form.Exists, form.NotExists,
	} {
		names = append(names, string(word))
	}

	for _, word := range []form.Function{form.Count, form.CountDistinct, form.Sum, form.Average, form.Median, form.Min, form.Max} {
		names = append(names, string(word))
	}

	for _, word := range []form.Grain{form.Day, form.Week, form.Month, form.Quarter, form.Year} {
		names = append(names, string(word))
	}

	for _, word := range []form.Op{form.Plus, form.Minus, form.Times, form.Over, form.Days, form.Number} {
		names = append(names, string(word))
	}

	require.Greater(t, len(names), 60)

	_, about, _ := strings.Cut(nl2qlPrompt, "The form is a JSON object")
	about, _, found := strings.Cut(about, "The statement:")
	require.True(t, found)

	for _, name := range names {
		require.Contains(t, about, name)
	}

	require.Less(t, len(nl2qlPrompt), 10_000, "it is sent with every question")

	// The example of the prompt is a form.
	_, example, found := strings.Cut(about, "by region in March 2026\" is\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "\n\n")
	_, err := form.Parse(example)
	require.NoError(t, err)
}

// TestFill checks what becomes of the form of a model: a statement with an explanation, or a complaint.
func TestFill(t *testing.T) {
	t.Parallel()

	schema := &form.Schema{Datasets: []form.Dataset{
		{
			Name: "orders", Row: "order", Keys: [][]string{{"id"}},
			Columns: []form.ColumnInfo{
				{Name: "id", Type: "bigint", Role: meaning.Identifier},
				{Name: "amount", Type: "double", Role: meaning.Amount},
				{Name: "price", Type: "double", Role: meaning.Price},
				{Name: "buyer", Type: "bigint", Role: meaning.Identifier},
				{Name: "payer", Type: "bigint", Role: meaning.Identifier},
			},
			Joins: []form.Join{{Columns: []string{"buyer"}, To: "people", Keys: []string{"id"}}, {Columns: []string{"payer"}, To: "people", Keys: []string{"id"}}},
		},
		{
			Name: "people", Row: "person", Keys: [][]string{{"id"}},
			Columns: []form.ColumnInfo{{Name: "id", Type: "bigint", Role: meaning.Identifier}, {Name: "city", Type: "varchar", Role: meaning.Category}},
		},
	}}

	made, err := fill(schema, `{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount"}}], "groups": [{"dataset": "people", "column": "city", "via": ["payer"]}]}`)
	require.NoError(t, err)
	require.Contains(t, made.statement.SQL, `sum(`)
	require.Equal(t, []Explained{
		{Words: "*orders*", As: "rows", Dataset: "orders"},
		{Words: "total *amount* of *orders*", As: "measure", Dataset: "orders", Column: "amount"},
		{Words: "*city* of the *person* (by *payer*)", As: "group", Dataset: "people", Column: "city"},
	}, made.explained)

	// A text of the model cannot become a link.
	made, err = fill(schema, `{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount"}, "name": "![x](https://evil.example)"}]}`)
	require.NoError(t, err)
	content, err := json.Marshal(made.explained)
	require.NoError(t, err)
	require.NotContains(t, string(content), "evil.example")

	for text, part := range map[string]string{
		`{"dataset": "nothing"}`:                                                                                          "the dataset nothing does not exist. Correct the form",
		`{"dataset": "orders", "show": [{"column": "colour"}]}`:                                                           "has no column colour. Correct the form",
		`{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "price"}}]}`:                             "does not add up",
		`{"dataset": "people", "measures": [{"function": "sum", "of": {"dataset": "orders", "column": "amount"}}]}`:       "many rows of orders",
		`{"dataset": "orders", "measures": [{"function": "count"}], "groups": [{"dataset": "people", "column": "city"}]}`: "2 ways lead from orders to people: via buyer; via payer. Name the one",
		`SELECT 1`: "cannot be read",
	} {
		_, err := fill(schema, text)
		require.Error(t, err, text)
		require.Contains(t, complainOf(err), part)
	}
}

// TestRecorded checks that a worker that goes on keeps what the statement of an earlier worker was made from.
func TestRecorded(t *testing.T) {
	t.Parallel()

	words := []Explained{{Words: "*orders*", As: "rows", Dataset: "orders"}}
	body, err := json.Marshal(QueryExecuting{Attempt: 1, Query: "SELECT 1", Basis: BasisForm, Explained: words})
	require.NoError(t, err)

	tried := recorded([]Event{{Kind: EventQueryExecuting, Body: body}}, 0)
	require.Len(t, tried, 1)
	require.Equal(t, BasisForm, tried[0].basis)
	require.Equal(t, words, tried[0].explained())
}
