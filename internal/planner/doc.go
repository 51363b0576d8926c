// Package planner turns a question into SQL without a model, where it surely can.
//
// It is a small compiler: tokens → what each word may mean in a dataset, with scores → the best ways to explain all
// words together → a typed logical form → SQL and the reading in words. Every word that says something must be
// explained by the form. One that is not lowers the confidence, and below a threshold there is no answer: being right
// comes before answering much. English, one dataset.
//
// Invariants:
//   - It is pure: the same request gives the same plan, and it knows nothing but the request.
//   - Names and values stand in the SQL quoted, so that none of them can be more than a name or a value.
package planner

import "time"

// Request is a question and what is known of the datasets that it may be about.
type Request struct {
	Question string
	Today    time.Time
	Datasets []Dataset
	Links    []Link
	Totals   []Link // values that say that a row is the sum of others; their places do not count
}

// Dataset is what is known of one without its rows.
type Dataset struct {
	Name        string // in statements
	Description string
	Rows        int64
	Columns     []Column
	Keys        [][]string
}

// Column is a column with what its values look like. Distinct is 0 if nothing is known of them.
type Column struct {
	Name, Type, Description string

	Distinct, Nulls int64
	Min, Max        any   // number or text, nil if unknown
	Values          []any // the most frequent
}

// Link is a value that words of the question may mean.
type Link struct {
	Dataset, Column, Value string

	Start, End int  // of the words, in bytes
	Guess      bool // it is not written as the value is
	Score      float64
}

// Plan is what came of a question, the most likely reading first.
type Plan struct {
	Candidates []Candidate
	Language   string   // English name of the language if it is another
	Unknown    []string // words that the likeliest reading does not explain
	Examples   []string // questions that can be answered
}

// Candidate is a way to read the question.
type Candidate struct {
	Form       Form
	SQL        string
	Reading    string
	Confidence float64 // 0 to 1
}

const (
	// Sure is the confidence from which a reading is an answer: at most one guess, or a few words that say little. It was
	// set on development questions.
	Sure = 0.74
	// Close is how much of the confidence of the first another reading needs to be asked back about.
	Close = 0.93
)

// Outcome is what to do with a plan.
type Outcome int

// What a plan can come to.
const (
	Refuse Outcome = iota
	Answer
	AskBack
)

// Outcome says whether the likeliest reading is sure enough, and the only one that is.
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
