package agent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChoiceOfModel checks that options are numbered, that a model can write them as texts, and that empty ones are left out.
func TestChoiceOfModel(t *testing.T) {
	t.Parallel()

	var c Choice
	require.NoError(t, json.Unmarshal([]byte(`{"question": "Which?", "options": ["a [x](http://y)", "<b></b>", {"interpretation": "c", "query": "SELECT 1"}]}`), &c))
	c.clean()

	require.Equal(t, []Option{{Number: 1, Interpretation: "a x"}, {Number: 2, Interpretation: "c", Query: "SELECT 1"}}, c.Options)
	require.Equal(t, []string{"Which?", "a x", "c"}, c.words())

	second, found := c.Option(2)
	require.True(t, found)
	require.Equal(t, "c", second.Interpretation)

	_, found = c.Option(3)
	require.False(t, found)

	result := &Result{Outcome: Clarification, Clarification: &c}
	require.True(t, result.Asks())
	require.False(t, (&Result{Outcome: Clarification, Clarification: &Choice{Question: "Which?"}}).Asks(), "there is nothing to choose")
}

// TestChosen checks that a choice survives the database, and that only a model sees it as part of the question.
func TestChosen(t *testing.T) {
	t.Parallel()

	asked := Question{Text: "How many?", Chosen: []Chosen{{Option: Option{Number: 2, Interpretation: "orders", Form: json.RawMessage(`{}`)}, Asked: "Of what?", Event: 7}}}
	content, err := json.Marshal(asked)
	require.NoError(t, err)

	var read Question
	require.NoError(t, json.Unmarshal(content, &read))
	require.Equal(t, asked.Chosen, read.Chosen)
	require.Equal(t, "How many?\n\nYou asked: Of what?\nThe answer: orders", asked.withAnswers().Text)

	asked.Chosen[0].Query = "SELECT 1"
	require.Equal(t, "How many?", asked.withAnswers().Text)
	require.True(t, asked.chosenStatement())
}
