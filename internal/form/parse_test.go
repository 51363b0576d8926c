package form_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/form"
)

// TestParse checks that a form that somebody else filled is read completely or not at all.
func TestParse(t *testing.T) {
	t.Parallel()

	got, err := form.Parse(`{"dataset": "orders", "where": [{"column": "day", "is": "in", "period": {"from": "2026-03-01", "to": "2026-04-01T00:00:00Z"}}, {"column": "id", "is": "is", "values": [9007199254740993]}]}`)
	require.NoError(t, err)
	require.Equal(t, &form.Period{From: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)}, got.Where[0].Period)
	require.Equal(t, json.Number("9007199254740993"), got.Where[1].Values[0], "all digits")

	for text, part := range map[string]string{
		``:                      "cannot be read",
		`[]`:                    "cannot be read",
		`{"dataset": "a"} {}`:   "followed by something else",
		`{"table": "a"}`:        "unknown field",
		`{"where": [{"a": 1}]}`: "unknown field",
		`{"where": [{"column": "a", "is": "in", "period": {"from": "March"}}]}`:  "YYYY-MM-DD",
		`{"where": [{"column": "a", "is": "in", "period": {"since": "March"}}]}`: "unknown field",
		`{"show": ` + strings.Repeat(`[`, 30):                                    "nested too deep",
		`{"dataset": "` + strings.Repeat("a", 20_000) + `"}`:                     "longer than",
	} {
		_, err := form.Parse(text)
		require.ErrorContains(t, err, part, text)
	}

	// Every form of the examples reads as it was written.
	for _, e := range shopExamples() {
		content, err := json.Marshal(e.form)
		require.NoError(t, err)

		again, err := form.Parse(string(content))
		require.NoError(t, err, e.name)
		require.True(t, again.Same(e.form), e.name)
	}
}

// TestSame checks which differences between forms matter.
func TestSame(t *testing.T) {
	t.Parallel()

	parse := func(text string) form.Form {
		f, err := form.Parse(text)
		require.NoError(t, err)

		return f
	}

	one := parse(`{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount"}, "name": "revenue"}], "where": [{"column": "a", "is": "empty"}, {"column": "day", "is": "in", "period": {"from": "2026-01-01", "text": "2026"}}]}`)

	require.True(t, one.Same(parse(`{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount", "dataset": "orders"}, "dataset": "orders"}], "where": [{"column": "day", "dataset": "orders", "is": "in", "period": {"from": "2026-01-01"}}, {"column": "a", "is": "empty"}]}`)))

	for _, other := range []string{
		`{"dataset": "orders", "measures": [{"function": "average", "of": {"column": "amount"}}], "where": [{"column": "a", "is": "empty"}, {"column": "day", "is": "in", "period": {"from": "2026-01-01"}}]}`,
		`{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount"}}], "where": [{"column": "a", "is": "empty"}]}`,
		`{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount"}}], "where": [{"column": "a", "is": "filled"}, {"column": "day", "is": "in", "period": {"from": "2026-01-01"}}]}`,
		`{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount"}}], "where": [{"column": "a", "is": "empty"}, {"column": "day", "is": "in", "period": {"from": "2026-01-02"}}]}`,
		`{"dataset": "orders", "limit": 1, "measures": [{"function": "sum", "of": {"column": "amount"}}], "where": [{"column": "a", "is": "empty"}, {"column": "day", "is": "in", "period": {"from": "2026-01-01"}}]}`,
	} {
		require.False(t, one.Same(parse(other)), other)
	}
}

// TestElements checks that every part of a form is one element, with its words, dataset and column.
func TestElements(t *testing.T) {
	t.Parallel()

	schema := shop().schema

	for _, e := range shopExamples() {
		elements := schema.Elements(e.form)
		want := 1 + len(e.form.Show) + len(e.form.Measures) + len(e.form.Groups) + len(e.form.Where) + len(e.form.Having)

		if e.form.Order != nil {
			want++
		}

		if e.form.Limit > 0 {
			want++
		}

		require.Len(t, elements, want, e.name)

		for _, one := range elements {
			require.NotEmpty(t, one.Words, "%s: %+v", e.name, one)
		}
	}

	require.Empty(t, schema.Elements(form.Form{Dataset: "nothing"}))
}
