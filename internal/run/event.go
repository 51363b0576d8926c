package run

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/fault"
)

// The first event of a run, and the three that end one.
const (
	kindStarted   agent.Kind = "run-started"
	kindCompleted agent.Kind = "run-completed"
	kindCancelled agent.Kind = "run-cancelled"
	kindFailed    agent.Kind = "error"
)

// Event is an event with its number.
type Event struct {
	agent.Event

	Seq int64
	At  time.Time
}

// Ends tells whether nothing comes after it.
func (e Event) Ends() bool {
	return e.Kind == kindCompleted || e.Kind == kindCancelled || e.Kind == kindFailed
}

// tells: it says something of the data, so it is for those who may see the data.
func (e Event) tells() bool {
	switch e.Kind {
	case agent.Planned, agent.StepStarted, agent.QueryExecuting, agent.StepDone, agent.Answered, kindCompleted, kindFailed:
		return true
	default:
		return false
	}
}

type started struct {
	RunID          uuid.UUID `json:"runId"`
	ConversationID uuid.UUID `json:"conversationId"`
}

type completed struct {
	Result *agent.Result `json:"result"`
}

type failed struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

func encode(body any) (json.RawMessage, error) { return json.Marshal(body) }
