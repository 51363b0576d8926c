// Package agent answers questions: question → plan → query → rows → answer, told as events while it happens.
//
// An agent keeps nothing. What it did stands in the Log, which outlives the process that it runs in: an agent that is
// started again finds there what was done before, and does only the rest.
//
// Faults: whatever ends a run as failed; a question that cannot be answered is a Result with another outcome.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/query"
)

// Agent answers questions of one kind. It is used by many goroutines.
type Agent interface {
	Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error)
}

// Question is what somebody wants to know.
type Question struct {
	Username     string    `json:"username"` // owner of the namespace
	Namespace    string    `json:"namespace"`
	Text         string    `json:"-"`
	Datasets     []string  `json:"datasets,omitempty"`
	HelperPrompt string    `json:"helperPrompt,omitempty"`
	Model        string    `json:"model,omitempty"`
	Provider     string    `json:"provider,omitempty"`
	AsOf         time.Time `json:"asOf,omitzero"`
	TimeZone     string    `json:"timeZone,omitempty"`
	MessageID    string    `json:"messageId,omitempty"` // what another agent that asks calls its message
	Earlier      []Turn    `json:"-"`                   // of the conversation, oldest first
	Run          uuid.UUID `json:"-"`
}

// Turn is an earlier question, what was asked of the data for it, and the snapshots that were read.
type Turn struct {
	Question string
	Queries  []string
	Read     map[uuid.UUID]uuid.UUID // by dataset
}

// Kind names an event.
type Kind string

// The events between a run's beginning and its end.
const (
	PlanningStarted Kind = "planningStarted"
	Planned         Kind = "plan"
	StepStarted     Kind = "stepStarted"
	QueryExecuting  Kind = "queryExecuting"
	StepDone        Kind = "step"
	AnswerStarted   Kind = "answerStarted"
	Answered        Kind = "answer"
)

// Event is something that happened. Its body is JSON as it goes out.
type Event struct {
	Kind  Kind
	Index int // of the step that it is about; 0 if it is about none
	Body  json.RawMessage
}

// Log is where an agent says what it does, and finds what it did before it was interrupted.
type Log interface {
	// Before gives what was written before this process took over, in order.
	Before() []Event
	// Write adds an event. From then on others see it.
	Write(ctx context.Context, event Event) error
	// Pinned are the snapshots that the run has read: whatever it reads again it reads as it was.
	Pinned() map[uuid.UUID]uuid.UUID
	// Reading notes what is about to be read, before anything is known of it. Whoever may not see it later sees nothing
	// that the run said of it, so an agent notes what it looks up before it writes, and gives this to its statements.
	// ErrMoved.
	Reading(ctx context.Context, reads []query.Read) error
	// Step runs a statement, keeps its rows and adds the event of the step.
	Step(ctx context.Context, step Step, result *query.Result) (Step, error)
}

// ErrMoved says that a step that is done at the same time has read an earlier snapshot. Whoever reads the one that is
// pinned now has the same data.
var ErrMoved = errors.New("another snapshot is pinned")

// Plan is what is to be done.
type Plan struct {
	Steps     []string `json:"steps"`
	Reasoning string   `json:"reasoning"`
	Reading   string   `json:"reading,omitempty"`
	After     [][]int  `json:"after,omitempty"`   // by step, those whose results it needs
	Dropped   int      `json:"dropped,omitempty"` // steps that were too many
	Model     string   `json:"model,omitempty"`   // if no model made it
}

// Step is one statement with its rows.
type Step struct {
	Index       int               `json:"index"`
	Instruction string            `json:"instruction"`
	Query       string            `json:"query"`
	Reasoning   string            `json:"reasoning"`
	Columns     []query.Column    `json:"columns"`
	Data        []json.RawMessage `json:"data"` // the first rows
	RowCount    int64             `json:"rowCount"`
	Truncated   bool              `json:"truncated"`
}

// Outcome is how a question was answered.
type Outcome string

const (
	Answer        Outcome = "answer"
	NoData        Outcome = "no_data"
	Clarification Outcome = "clarification"
	NotPermitted  Outcome = "not_permitted"
	Refused       Outcome = "refused"
	Withheld      Outcome = "withheld" // by the run, when it is read
)

// Result is what comes of a question.
type Result struct {
	Response      string     `json:"response"`
	Reading       string     `json:"reading,omitempty"`
	Steps         []Step     `json:"steps"`
	Outcome       Outcome    `json:"outcome"`
	Clarification *Choice    `json:"clarification,omitempty"`
	Checks        *Checks    `json:"checks,omitempty"`
	Citations     []Citation `json:"citations,omitempty"`
	AsOf          []Moment   `json:"asOf,omitempty"`
	Model         string     `json:"model,omitempty"`
	Usage         *Usage     `json:"usage,omitempty"`
	Opinion       string     `json:"-"` // what the rules say of it, for the trace
}

// ByRules tells whether no model answered.
func (r *Result) ByRules() bool { return r.Model == plannerName }

// Choice is asked back when a question has two readings.
type Choice struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

// clean takes out what a model must not say.
func (c *Choice) clean() {
	if c == nil {
		return
	}

	c.Question = prose(c.Question)
	for i := range c.Options {
		c.Options[i] = prose(c.Options[i])
	}
}

func (c *Choice) words() []string {
	if c == nil {
		return nil
	}

	return append([]string{c.Question}, c.Options...)
}

// Checks is how much of an answer was found in the rows.
type Checks struct {
	Claims     int      `json:"claims"`
	Verified   int      `json:"verified"`
	Unverified []string `json:"unverified"`
}

// Citation says where a claim of the answer comes from. A claim that was calculated has one for each cell or column.
type Citation struct {
	Claim       string `json:"claim"` // as the answer has it
	Step        int    `json:"step"`
	Row         *int64 `json:"row,omitempty"`    // from 0; none if it is about all rows
	Column      string `json:"column,omitempty"` // none if it is about the number of rows
	Calculation string `json:"calculation,omitempty"`
}

// Moment is a snapshot that was read.
type Moment struct {
	Dataset     string    `json:"dataset"`
	SnapshotID  string    `json:"snapshotId"`
	CommittedAt time.Time `json:"committedAt"`
}

// Usage is what the models took.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}
