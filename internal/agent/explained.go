package agent

import "quern.dev/quern/internal/planner"

// Basis says what a statement was made from.
type Basis string

const (
	BasisRules Basis = "rules" // the planner filled a form, without a model
	BasisForm  Basis = "form"  // a model filled a form, which was compiled
	BasisSQL   Basis = "sql"   // a model wrote the statement
)

// Explained says what words were taken for. If the planner read the question, these are its words. If a model filled a
// form, they are the words of the interpretation, one entry for each element of the form.
type Explained = planner.Explained

// unusedWords returns the words that the planner did not understand.
func unusedWords(plan planner.Plan) (list []Explained) {
	for _, words := range plan.Unused {
		list = append(list, Explained{Words: words, As: planner.Unused})
	}

	return list
}
