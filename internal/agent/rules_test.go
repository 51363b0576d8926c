package agent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/planner"
)

func TestRefersBack(t *testing.T) {
	t.Parallel()

	earlier := []Turn{{Question: "How many orders are late?"}}

	for text, back := range map[string]bool{
		"And by region?": true, "How many of those are late?": true, "What about Vienna?": true, "the same for 2025": true, "Who ordered them?": true, "What is the average of it?": true,
		"How many orders are there?": false, "Orders that are late and paid": false, "Which customers in Theseus ordered?": false, "How many orders in Andorra?": false,
	} {
		require.Equal(t, back, refersBack(Question{Text: text, Earlier: earlier}), text)
		require.False(t, refersBack(Question{Text: text}), "there is nothing to refer to")
	}
}

// TestNotUnderstood checks that the error of a model keeps its code and its retry delay.
func TestNotUnderstood(t *testing.T) {
	t.Parallel()

	failed := fault.New(fault.Unavailable, "The model cannot be reached.")
	failed.RetryAfter = time.Minute

	known := fault.From((&interpreter{down: unreached{failed}}).notUnderstood())
	require.Equal(t, fault.Unavailable, known.Code)
	require.Equal(t, time.Minute, known.RetryAfter)
	require.Contains(t, known.Message, "The model cannot be reached. The planner")
	require.Equal(t, "The model cannot be reached.", failed.Message)
}

func TestWasByRules(t *testing.T) {
	t.Parallel()

	event := func(kind Kind, body string) Event { return Event{Kind: kind, Body: json.RawMessage(body)} }

	require.False(t, wasByRules(nil))
	require.False(t, wasByRules([]Event{event(EventPlanningStarted, `{}`), event(EventPlan, `{"steps": ["a"]}`)}))
	require.False(t, wasByRules([]Event{event(EventStepStarted, `{"index": 0, "instruction": "planner"}`)}))
	require.True(t, wasByRules([]Event{event(EventPlanningStarted, `{}`), event(EventPlan, `{"steps": ["a"], "model": "planner"}`)}))
	require.True(t, wasByRules([]Event{event(EventStepStarted, `{"index": 0, "instruction": "a", "model": "planner"}`)}))
}

func TestRefusal(t *testing.T) {
	t.Parallel()

	said := refusalOf(planner.Plan{
		Reason: "The values of price do not add up.", Unused: []string{"profit"}, Examples: []string{"How many orders are there?"},
	})

	for _, part := range []string{"profit", "do not add up", "How many orders are there?", "`quern query`", "`POST /query`"} {
		require.Contains(t, said, part)
	}
}
