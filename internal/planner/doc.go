// Package planner turns a question into SQL without a model, if it can do so with certainty.
//
// It is a small compiler: tokens → possible meanings of each word in a dataset, with scores → the best ways to explain
// all words together → a typed logical form → SQL and the interpretation in words. The form must explain every word
// that has a meaning. A word that it does not explain lowers the confidence, and below a threshold the planner refuses
// to answer: correct answers are more important than many answers. It understands English and uses one dataset for each
// question.
//
// Invariants:
//   - The planner is pure: the same request returns the same plan, and nothing but the request is used.
//   - Names and values are quoted in the SQL, so that they cannot be anything but a name or a value.
package planner

import "time"

// Request is a question and the information about the datasets that it may refer to.
type Request struct {
	Question string
	Today    time.Time
	Datasets []Dataset
	Matches  []Match
	Totals   []Match // values that mark a row as the sum of others; Start and End are ignored
}

// Dataset is the information about a dataset, without its rows.
type Dataset struct {
	Name        string // as statements write it
	Description string
	Rows        int64
	Columns     []Column
	Keys        [][]string
}

// Column is a column with information about its values. Distinct is 0 if the values are not known.
type Column struct {
	Name, Type, Description string

	Distinct, Nulls int64
	Min, Max        any   // number or text; nil if unknown
	Values          []any // most frequent values
}

// Match is a value that words of the question may mean.
type Match struct {
	Dataset, Column, Value string

	Start, End int  // position of the words in the question, in bytes
	Guess      bool // approximate match: the words differ from the value
	Score      float64
}

// Plan is the result of planning a question. The most likely interpretation is first.
type Plan struct {
	Candidates []Candidate
	Language   string   // English name of the question's language; empty for English
	Unknown    []string // words that the most likely interpretation does not explain
	Examples   []string // questions that the planner can answer
}

// Candidate is a possible interpretation of the question.
type Candidate struct {
	Form           Form
	SQL            string
	Interpretation string
	Confidence     float64 // 0 to 1
}

const (
	// Sure is the lowest confidence of an answer. It permits at most one guess, or a few words that have little
	// meaning. The value was chosen with the development questions.
	Sure = 0.74
	// Close is the fraction of the highest confidence that another interpretation needs to cause a clarification.
	Close = 0.93
)

// Outcome is the action to take for a plan.
type Outcome int

// The outcomes of a plan.
const (
	Refuse Outcome = iota
	Answer
	AskBack
)

// Outcome reports whether the most likely interpretation is certain enough, and whether another one is nearly as
// likely.
func (p *Plan) Outcome() Outcome {
	switch {
	case len(p.Candidates) == 0 || p.Candidates[0].Confidence < Sure:
		return Refuse
	case len(p.Candidates) > 1 && p.Candidates[1].Confidence >= Sure && p.Candidates[1].Confidence >= Close*p.Candidates[0].Confidence:
		return AskBack
	default:
		return Answer
	}
}
