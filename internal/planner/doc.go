// Package planner turns a question into a form without a model, if the question says everything that the form needs.
//
// Each word of the question is in one of four states: explained by exactly one element of the form, a function word of a
// closed list, guessed, or unused. A question is answered only if nothing is guessed and nothing is unused. A guess is
// at most offered ("Did you mean …?"), and an unused word is a refusal that names it. If the words have two meanings in
// the data, the planner asks which one. There are no scores.
//
// Invariants:
//   - The planner is pure: the same request returns the same plan, and nothing but the request is used.
//   - It knows the datasets by their names, profiles and meanings. What a number may be used for is decided there.
package planner

import (
	"time"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
)

// Request is a question and the information about the datasets that it may refer to.
type Request struct {
	Question string
	Today    time.Time
	Datasets []Dataset
	Matches  []Match
}

// Dataset is the information about a dataset, without its rows.
type Dataset struct {
	meaning.Source

	Meaning meaning.Meaning
	Totals  []Match // values that mark a row as the sum of others
}

// Match is a value that words of the question may mean.
type Match struct {
	Dataset, Column, Value string

	Start, End int  // position of the words in the question, in bytes
	Guess      bool // approximate match: the words differ from the value
	Score      float64
}

// Plan is the result of planning a question.
type Plan struct {
	Outcome    Outcome
	Candidates []Candidate // one for an answer; the options of a question back
	Language   string      // English name of the question's language; empty for English
	Unused     []string    // words that no interpretation explains
	Reason     string      // why the question is refused, if all words are understood
	Examples   []string    // questions that the planner can answer
}

// Candidate is a possible interpretation of the question.
type Candidate struct {
	Form           form.Form
	SQL            string
	Interpretation string
	Notes          []string // what a reader of the rows must know
	Explained      []Explained
	Check          form.Check // of rows that the figures may leave out
}

// Unused is what words are taken for that no interpretation explains.
const Unused = "unused"

// Explained says what words of the question were taken for.
type Explained struct {
	Words   string `json:"words"`
	As      string `json:"as"` // column, value, dataset, measure, period, number, function
	Dataset string `json:"dataset,omitempty"`
	Column  string `json:"column,omitempty"`
	How     string `json:"how,omitempty"` // guessed; confirmed, if the caller chose it before; or empty, if the words say it
}

// Outcome is the action to take for a plan.
type Outcome int

// The outcomes of a plan.
const (
	Refuse     Outcome = iota
	Answer             // the only candidate
	AskBack            // which of the candidates
	DidYouMean         // whether the candidate is meant: part of it is a guess
)
