package api

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
)

// EventName is the name of an event of a run.
type EventName string

// The events of a run. Each has a body of the type that is named beside it. Ignore events with other names.
const (
	EventRunStarted      EventName = "runStarted"      // RunStartedEvent; the first event of every run
	EventPlanningStarted EventName = "planningStarted" // no content
	EventPlan            EventName = "plan"            // PlanEvent
	EventStepStarted     EventName = "stepStarted"     // StepStartedEvent
	EventQueryExecuting  EventName = "queryExecuting"  // QueryExecutingEvent; once for each attempt of a step
	EventStep            EventName = "step"            // RunStep
	EventAnswerStarted   EventName = "answerStarted"   // no content
	EventAnswer          EventName = "answer"          // AnswerEvent
	EventRunWaiting      EventName = "runWaiting"      // RunWaitingEvent; the last event of a stream while the run waits for a choice
	EventOptionChosen    EventName = "optionChosen"    // OptionChosenEvent; the run goes on
	EventRunCompleted    EventName = "runCompleted"    // RunCompletedEvent; the last event of a run that has a result
	EventRunCancelled    EventName = "runCancelled"    // no content; the last event of a run that was cancelled
	EventRunFailed       EventName = "runFailed"       // RunFailedEvent; the last event of a run that failed or took too long
)

// Event is an event of a run.
type Event struct {
	ID   int64           `json:"id"` // increases by one from event to event
	Name EventName       `json:"event"`
	Data json.RawMessage `json:"data"`
}

// Ends reports whether the event is the last one of its run.
func (e Event) Ends() bool {
	return e.Name == EventRunCompleted || e.Name == EventRunCancelled || e.Name == EventRunFailed
}

// Decode stores the body of the event in the value that body points to. Numbers in rows become json.Number, so that they
// keep all their digits.
func (e Event) Decode(body any) error {
	decoder := json.NewDecoder(bytes.NewReader(e.Data))
	decoder.UseNumber()

	if err := decoder.Decode(body); err != nil {
		return fmt.Errorf("the event %s cannot be read: %w", e.Name, err)
	}

	return nil
}

// RunStartedEvent says which run answers the question.
type RunStartedEvent struct {
	RunID          uuid.UUID `json:"runId"`
	ConversationID uuid.UUID `json:"conversationId"`
}

// PlanEvent is the division of a question into steps.
type PlanEvent struct {
	Steps          []string `json:"steps"` // one instruction for each step
	Reasoning      string   `json:"reasoning"`
	Interpretation string   `json:"interpretation,omitempty"` // the interpretation of the question
	After          [][]int  `json:"after,omitempty"`          // for each step, the steps whose results it needs; absent if none needs any
	Dropped        int      `json:"dropped,omitempty"`        // number of steps that were left out because there were too many
	Model          string   `json:"model,omitempty"`          // "planner" if no model made the plan
}

// StepStartedEvent says that a step begins.
type StepStartedEvent struct {
	Index       int    `json:"index"` // from 0
	Instruction string `json:"instruction"`
	Model       string `json:"model,omitempty"` // "planner" if no model wrote the statement
}

// QueryExecutingEvent says that a statement of a step is about to run.
type QueryExecutingEvent struct {
	Attempt   int         `json:"attempt"` // from 1; a statement that failed is corrected and runs again
	Index     int         `json:"index"`   // of the step
	Query     string      `json:"query"`
	Basis     Basis       `json:"basis,omitempty"`
	Explained []Explained `json:"explained,omitempty"`
}

// AnswerEvent is the answer in words. The result of the run repeats it.
type AnswerEvent struct {
	Response      string         `json:"response"`
	Outcome       Outcome        `json:"outcome"`
	Clarification *Clarification `json:"clarification,omitempty"`
	Checks        *Checks        `json:"checks,omitempty"`
	Citations     []Citation     `json:"citations,omitempty"`
	Doubts        []AnswerDoubt  `json:"doubts,omitempty"`
}

// RunWaitingEvent contains what the run asks. ChooseEvents answers.
type RunWaitingEvent struct {
	Result RunResult `json:"result"`
}

// OptionChosenEvent says which option was chosen.
type OptionChosenEvent struct {
	Number         int    `json:"number"`
	Interpretation string `json:"interpretation"`
}

// RunCompletedEvent contains the result of the run.
type RunCompletedEvent struct {
	Result RunResult `json:"result"`
}

// RunFailedEvent says why the run has no result.
type RunFailedEvent struct {
	Code    ErrorCode `json:"code"`
	Message string    `json:"message"`
}
