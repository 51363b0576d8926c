package api

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEventTypes checks that the types of events contain everything that the service sends. It decodes the bodies that the
// service stored, which are the same except for those of the last event and of large steps.
func TestEventTypes(t *testing.T) {
	t.Parallel()

	folder := filepath.Join("..", "internal", "run", "testdata", "events")
	bodies := map[EventName]func() any{
		EventRunStarted:      func() any { return &RunStartedEvent{} },
		EventPlanningStarted: func() any { return &struct{}{} },
		EventPlan:            func() any { return &PlanEvent{} },
		EventStepStarted:     func() any { return &StepStartedEvent{} },
		EventQueryExecuting:  func() any { return &QueryExecutingEvent{} },
		EventStep:            func() any { return &RunStep{} },
		EventAnswerStarted:   func() any { return &struct{}{} },
		EventAnswer:          func() any { return &AnswerEvent{} },
		EventRunWaiting:      func() any { return &RunWaitingEvent{} },
		EventOptionChosen:    func() any { return &OptionChosenEvent{} },
		EventRunCompleted:    func() any { return &RunCompletedEvent{} },
		EventRunCancelled:    func() any { return &struct{}{} },
		EventRunFailed:       func() any { return &RunFailedEvent{} },
	}

	files, err := filepath.Glob(filepath.Join(folder, "*.ndjson"))
	require.NoError(t, err)
	require.Len(t, files, len(bodies)+1, "one for each event, and result.ndjson")

	for name, body := range bodies {
		for _, line := range sentAs(t, folder, name) {
			into := body()
			decoder := json.NewDecoder(strings.NewReader(line))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(into), "%s: %s", name, line)

			again, err := json.Marshal(into)
			require.NoError(t, err)
			require.JSONEq(t, line, string(again), name)
			require.NoError(t, Event{Name: name, Data: json.RawMessage(line)}.Decode(body()))
		}
	}

	require.ErrorContains(t, Event{Name: EventPlan, Data: json.RawMessage("[]")}.Decode(&PlanEvent{}), "the event plan cannot be read")
}

// sentAs returns the bodies of an event as clients receive them.
func sentAs(t *testing.T, folder string, name EventName) (lines []string) {
	t.Helper()

	file := string(name)

	switch name {
	case EventRunFailed:
		return []string{`{"code": "TIMEOUT", "message": "The question reached its time limit."}`}
	case EventRunCompleted:
		file = "result"
	default:
	}

	content, err := os.ReadFile(filepath.Join(folder, file+".ndjson"))
	require.NoError(t, err)

	for line := range bytes.Lines(content) {
		line = bytes.TrimSpace(line)

		switch {
		case bytes.Contains(line, []byte(`"object":`)): // clients receive the rows of the object instead
		case name == EventRunCompleted:
			lines = append(lines, `{"result": `+string(line)+`}`)
		default:
			lines = append(lines, string(line))
		}
	}

	return lines
}
