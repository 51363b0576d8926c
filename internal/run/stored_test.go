package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/agent"
)

// TestStoredEvents checks that this version reads all that earlier versions stored, and would store it in the same way.
// Each file of testdata/events has bodies of one kind of event, one per line, and result.ndjson has results of runs. They
// are in the databases of installations, so lines are added and never changed. It follows that a new key must be optional.
func TestStoredEvents(t *testing.T) {
	t.Parallel()

	stored := map[string]func() any{
		string(EventStarted):               func() any { return &agent.RunStarted{} },
		string(agent.EventPlanningStarted): func() any { return &agent.Empty{} },
		string(EventPlan):                  func() any { return &agent.Plan{} },
		string(EventStepStarted):           func() any { return &agent.StepStarted{} },
		string(agent.EventQueryExecuting):  func() any { return &agent.QueryExecuting{} },
		string(EventStep):                  func() any { return &storedStep{} },
		string(agent.EventAnswerStarted):   func() any { return &agent.Empty{} },
		string(agent.EventAnswer):          func() any { return &agent.Conclusion{} },
		string(EventWaiting):               func() any { return &agent.RunCompleted{} },
		string(EventChosen):                func() any { return &agent.OptionChosen{} },
		string(EventCompleted):             func() any { return &agent.Empty{} }, // the result is in the row of the run
		string(EventCancelled):             func() any { return &agent.Empty{} },
		string(EventFailed):                func() any { return &agent.Empty{} }, // code and message are in the row of the run
		"result":                           func() any { return &storedResult{} },
	}

	files, err := filepath.Glob("testdata/events/*.ndjson")
	require.NoError(t, err)
	require.Len(t, files, len(stored), "one file for each kind")

	for name, value := range stored {
		content, err := os.ReadFile(filepath.Join("testdata", "events", name+".ndjson"))
		require.NoError(t, err)

		for line := range strings.Lines(string(content)) {
			line = strings.TrimSuffix(line, "\n")
			into := value()

			decoder := json.NewDecoder(strings.NewReader(line))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(into), "%s: %s", name, line)

			again, err := json.Marshal(into)
			require.NoError(t, err)
			require.Equal(t, line, string(again), name)
		}
	}
}
