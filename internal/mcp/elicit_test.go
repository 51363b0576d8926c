package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/run"
)

// TestQuestionFits checks that a question to the user of a host has the size of a result at most, whatever a model wrote.
func TestQuestionFits(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("\x01ä\"", 10_000)
	asked := &agent.Choice{Question: long}

	for i := range 1000 {
		asked.Options = append(asked.Options, agent.Option{Number: i + 1, Interpretation: long})
	}

	shown := showRun(run.Run{ID: uuid.New(), Status: run.Waiting, Result: &run.Result{Response: long, Outcome: agent.Clarification, Clarification: asked}})
	waits, isQuestion := isQuestion(shown)
	require.True(t, isQuestion)

	text, err := json.Marshal(question(waits))
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), maxResult)
	require.Greater(t, strings.Count(string(text), `"const"`), 10)
}
