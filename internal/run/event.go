package run

import (
	"encoding/json"
	"time"

	"quern.dev/quern/internal/agent"
)

// The events that show the progress of a run. Package agent declares all of them and their bodies.
const (
	EventStarted     = agent.EventRunStarted
	EventPlan        = agent.EventPlan
	EventStepStarted = agent.EventStepStarted
	EventStep        = agent.EventStep
	EventWaiting     = agent.EventRunWaiting
	EventChosen      = agent.EventOptionChosen
	EventCompleted   = agent.EventRunCompleted
	EventCancelled   = agent.EventRunCancelled
	EventFailed      = agent.EventRunFailed

	// EventBegun means that a worker has started the run. It is stored as a column of the run and not as an event of the
	// log, so it has the number of the first event, which it follows, and only FollowTask delivers it.
	EventBegun agent.Kind = "begun"
)

// The bodies of these events.
type (
	Plan        = agent.Plan
	StepStarted = agent.StepStarted
	Step        = agent.Step
	Completion  = agent.RunCompleted
	Chosen      = agent.OptionChosen
	Choice      = agent.Chosen
	Failure     = agent.RunFailed
	Basis       = agent.Basis
	Explained   = agent.Explained
	VerifiedAs  = agent.VerifiedAs
	Doubt       = agent.Doubt
)

// Event is an event of the log with its number.
type Event struct {
	agent.Event

	Seq int64
	At  time.Time
}

// Ends reports whether the event is the last one of the run.
func (e Event) Ends() bool {
	return e.Kind == EventCompleted || e.Kind == EventCancelled || e.Kind == EventFailed
}

// Rests reports whether nothing follows the event for now: it is the last one of the run, or the run waits for a choice. A
// stream ends with it, unless the run has gone on by then.
func (e Event) Rests() bool { return e.Ends() || e.Kind == EventWaiting }

// revealsData reports whether the event can reveal data, so that only readers who may see the data may receive its content.
func (e Event) revealsData() bool {
	switch e.Kind {
	case EventPlan, EventStepStarted, agent.EventQueryExecuting, EventStep, agent.EventAnswer, EventWaiting, EventChosen, EventCompleted, EventFailed:
		return true
	default:
		return false
	}
}

func encode(body any) (json.RawMessage, error) { return json.Marshal(body) }

// begun returns the event for a worker that started the run at the given time.
func begun(at time.Time) Event {
	return Event{Event: agent.Event{Kind: EventBegun, Body: json.RawMessage("{}")}, Seq: 1, At: at}
}
