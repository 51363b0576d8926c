// Package agent answers questions: question → plan → query → rows → answer. It writes an event for each stage as the
// stage happens.
//
// The way of a question: Answer of NL2QL, Assistant or Planner makes an inquiry. With a model, a dialogue holds what the
// model may see, and a writer gets the statement of each step from it; a solution has the plan, the steps and the answer of
// Assistant. Without a model, an interpreter uses the planner. All of them run statements with inquiry.execute.
//
// An agent has no state of its own. Its Log records what it did and outlives the process: an agent that is started
// again reads there what was done before, and does only the rest.
//
// Faults: every error ends the run as failed. A question that cannot be answered is not an error but a Result with an
// outcome other than Answer.
package agent

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/query"
)

// Agent answers questions of one kind. It is safe for concurrent use.
type Agent interface {
	Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error)
}

// Question is a question of a caller, with its options.
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
	MessageID    string    `json:"messageId,omitempty"` // ID that an A2A client gave its message
	MaxRows      int       `json:"maxRows,omitempty"`   // rows that an A2A client wants in an artifact at most; 0 means no wish
	Chosen       []Chosen  `json:"chosen,omitempty"`    // what the caller chose when the run asked back, oldest first
	By           By        `json:"by,omitempty"`        // how a question of a benchmark is answered; empty for all other questions
	Earlier      []Turn    `json:"-"`                   // earlier turns of the conversation, oldest first
	Run          uuid.UUID `json:"-"`
}

// By says what answers a question of a benchmark. Such a question is asked without earlier ones, and no verified question answers it:
// the benchmark knows the verified answer, and compares it with what is answered without it.
type By string

// What answers the questions of a benchmark.
const (
	ByRules By = "rules" // the planner
	ByModel By = "model" // the model that the question names
)

// Turn is an earlier question, the statements that ran for it, and the snapshots that they read.
type Turn struct {
	Question string
	Queries  []string
	Last     *Step                   // its last step, with its first rows; nil unless it is the turn before and the caller may still see all that it read
	Read     map[uuid.UUID]uuid.UUID // snapshot by dataset
}

// Log records what an agent does, and returns what was recorded before an interruption.
type Log interface {
	// Before returns the events that were written before this process took over the run, in order. They begin after the
	// last choice of the caller, which starts the work anew.
	Before() []Event
	// Write adds events, all or none. Readers of the run see them from then on.
	Write(ctx context.Context, events ...Event) error
	// Pinned returns the snapshots that the run has read, by dataset. Later statements of the run read the same
	// snapshots.
	Pinned() map[uuid.UUID]uuid.UUID
	// BeforeRead records the datasets and snapshots that are about to be read, before any of their data is used. A
	// caller who loses access to one of these datasets can no longer see what the run says about it. Therefore an agent
	// records what it looks up before it writes about it, and passes this method to its statements. It fails with
	// ErrMoved if the run has pinned another snapshot of a dataset.
	BeforeRead(ctx context.Context, reads []query.Read) error
	// Step reads the rows of the result, stores them, writes the event of the step and closes the result.
	Step(ctx context.Context, step Step, result *query.Result) (Step, error)
}

// ErrMoved reports that the run has already pinned another snapshot of a dataset, because a concurrent step was first
// to read it. A statement that runs again reads the pinned snapshot, and so has the same data as that step.
var ErrMoved = errors.New("another snapshot is pinned")

// Outcome says how a question was answered.
type Outcome string

const (
	Answer           Outcome = "answer"
	AnswerUnverified Outcome = "answer_unverified" // some claims of the text were not found in the rows
	NoData           Outcome = "no_data"
	Clarification    Outcome = "clarification"
	NotPermitted     Outcome = "not_permitted"
	Refused          Outcome = "refused"
	Withheld         Outcome = "withheld" // set when the run is read, not by agents
)

// Result is the result of answering a question.
type Result struct {
	Response       string      `json:"response"`
	Interpretation string      `json:"interpretation,omitempty"`
	Steps          []Step      `json:"steps"`
	Outcome        Outcome     `json:"outcome"`
	Clarification  *Choice     `json:"clarification,omitempty"`
	Checks         *Checks     `json:"checks,omitempty"`
	Citations      []Citation  `json:"citations,omitempty"`
	AsOf           []Moment    `json:"asOf,omitempty"`
	Model          string      `json:"model,omitempty"`
	Usage          *Usage      `json:"usage,omitempty"`
	Basis          Basis       `json:"basis,omitempty"`     // that of the only step, from the log
	Explained      []Explained `json:"explained,omitempty"` // likewise; without a step, the words that were not understood
	Verified       *VerifiedAs `json:"verified,omitempty"`  // likewise, if a verified question answered
	Doubts         []Doubt     `json:"doubts,omitempty"`    // those of all steps, from the log; without a step, those about the outcome
	Opinion        string      `json:"-"`                   // verdict of the second opinion, for the trace
}

// ByRules reports whether the planner answered, without a model.
func (r *Result) ByRules() bool { return r.Model == plannerName }

// Checks counts the claims of an answer and those that were found in the rows.
type Checks struct {
	Claims     int      `json:"claims"`
	Verified   int      `json:"verified"`
	Unverified []string `json:"unverified"`
	Places     []Place  `json:"places,omitempty"` // absent in runs of earlier versions
}

// Place is where a claim stands in the response, counted in Unicode characters.
type Place struct {
	Claim    string `json:"claim"`
	Start    int    `json:"start"`
	End      int    `json:"end"` // exclusive
	Verified bool   `json:"verified"`
}

// Citation says where a claim of the answer comes from. A calculated claim has one citation for each cell or column
// that it uses.
type Citation struct {
	Claim       string `json:"claim"` // as the answer writes it
	Step        int    `json:"step"`
	Row         *int64 `json:"row,omitempty"`    // from 0; nil if the claim is about all rows
	Column      string `json:"column,omitempty"` // empty if the claim is about the number of rows
	Calculation string `json:"calculation,omitempty"`
}

// Moment is a snapshot that was read.
type Moment struct {
	Dataset     string    `json:"dataset"`
	SnapshotID  string    `json:"snapshotId"`
	CommittedAt time.Time `json:"committedAt"`
}

// Usage is the number of tokens that calls to models used.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}
