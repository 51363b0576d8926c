package agent

import (
	"encoding/json"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// Kind is the name of an event, as the log stores it and clients receive it.
type Kind string

// The events of a run. Each has a body of the type that is named beside it. Stored logs and clients depend on the names
// and on the JSON of the bodies, including the order of the keys. The package api declares the same for clients.
const (
	EventRunStarted      Kind = "runStarted"      // RunStarted
	EventPlanningStarted Kind = "planningStarted" // Empty
	EventPlan            Kind = "plan"            // Plan
	EventStepStarted     Kind = "stepStarted"     // StepStarted
	EventQueryExecuting  Kind = "queryExecuting"  // QueryExecuting
	EventStep            Kind = "step"            // Step
	EventAnswerStarted   Kind = "answerStarted"   // Empty
	EventAnswer          Kind = "answer"          // Conclusion
	EventRunWaiting      Kind = "runWaiting"      // RunCompleted, with the result that asks for a choice
	EventOptionChosen    Kind = "optionChosen"    // OptionChosen
	EventRunCompleted    Kind = "runCompleted"    // RunCompleted
	EventRunCancelled    Kind = "runCancelled"    // Empty
	EventRunFailed       Kind = "runFailed"       // RunFailed
)

// Event is one entry in the log of a run. Its body is the JSON that clients receive.
type Event struct {
	Kind  Kind
	Index int // index of the step; 0 if the event does not belong to a step
	Body  json.RawMessage
}

// Empty is the body of an event that says only that something happened.
type Empty struct{}

// RunStarted is the body of the first event of a run.
type RunStarted struct {
	RunID          uuid.UUID `json:"runId"`
	ConversationID uuid.UUID `json:"conversationId"`
}

// Plan is the division of a question into steps.
type Plan struct {
	Steps          []string `json:"steps"`
	Reasoning      string   `json:"reasoning"`
	Interpretation string   `json:"interpretation,omitempty"`
	After          [][]int  `json:"after,omitempty"`   // by step, the indexes of the steps whose results it needs
	Dropped        int      `json:"dropped,omitempty"` // number of steps left out because the plan had too many
	Model          string   `json:"model,omitempty"`   // "planner" or "verified" if the planner or a verified question made the plan, else empty
}

// StepStarted is the body of the event that a step begins.
type StepStarted struct {
	Index       int    `json:"index"`
	Instruction string `json:"instruction"`
	Model       string `json:"model,omitempty"` // "planner" or "verified" if the planner or a person wrote the statement, else empty
}

// QueryExecuting is the body of the event that a statement of a step is about to run. A step has one such event for each
// attempt.
type QueryExecuting struct {
	Attempt   int         `json:"attempt"` // from 1
	Index     int         `json:"index"`
	Query     string      `json:"query"`
	Basis     Basis       `json:"basis,omitempty"`
	Explained []Explained `json:"explained,omitempty"`
	Verified  *VerifiedAs `json:"verified,omitempty"`
}

// Step is one statement with its rows.
type Step struct {
	Index       int               `json:"index"`
	Instruction string            `json:"instruction"`
	Query       string            `json:"query"`
	Reasoning   string            `json:"reasoning"`
	Columns     []query.Column    `json:"columns"`
	Data        []json.RawMessage `json:"data"` // first rows
	RowCount    int64             `json:"rowCount"`
	Truncated   bool              `json:"truncated"`
	Basis       Basis             `json:"basis,omitempty"`
	Explained   []Explained       `json:"explained,omitempty"`
	Verified    *VerifiedAs       `json:"verified,omitempty"`
	Doubts      []Doubt           `json:"doubts,omitempty"`
}

// Conclusion is the body of the answer event. It contains the fields of the result that no other event contains.
type Conclusion struct {
	Response      string     `json:"response"`
	Outcome       Outcome    `json:"outcome"`
	Clarification *Choice    `json:"clarification,omitempty"`
	Checks        *Checks    `json:"checks,omitempty"`
	Citations     []Citation `json:"citations,omitempty"`
	Doubts        []Doubt    `json:"doubts,omitempty"` // of an answer without a step
}

func conclusionOf(r Result) Conclusion {
	return Conclusion{r.Response, r.Outcome, r.Clarification, r.Checks, r.Citations, r.Doubts}
}

// OptionChosen is the body of the event that the caller chose an option. The run goes on from there.
type OptionChosen struct {
	Number         int    `json:"number"`
	Interpretation string `json:"interpretation"`
}

// RunCompleted is the body of the last event of a run that has a result. The log stores it without the result, which is
// in the row of the run. The event that a run waits is stored with its result, because the row has it only until the choice.
type RunCompleted struct {
	Result *Result `json:"result"`
}

// RunFailed is the body of the last event of a run that failed or expired. The log stores it empty: code and message are
// in the row of the run.
type RunFailed struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}
