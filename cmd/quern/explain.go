package main

import (
	"fmt"
	"strings"

	"quern.dev/quern/api"
)

// explained prints what words were taken for, if the user asked for it.
func (a *asking) explained(result api.RunResult) {
	if !a.explain {
		return
	}

	if result.Explained != nil || len(result.Steps) < 2 {
		a.words("", result.Explained)

		return
	}

	for _, step := range result.Steps {
		a.words(fmt.Sprintf("Query %d", step.Index+1), step.Explained)
	}
}

// doubts prints where a statement does not fit the question, and which rows are not counted. They are part of the answer, so that a script sees them, too.
func (a *asking) doubts(list *[]api.AnswerDoubt) {
	if list == nil {
		return
	}

	for _, one := range *list {
		text := one.Text
		if one.Kind != leftOut {
			text = "Doubt: " + text
		}

		a.out.printf("%s\n", a.out.clean(wrap(text, a.out.columns())))
	}
}

const leftOut = "leftOut" // kind of a doubt about rows that are not counted

// withoutLosses returns the text of a result without the rows that are not counted, which are printed as doubts.
func withoutLosses(result api.RunResult) string {
	text := result.Response

	if result.Doubts != nil {
		for _, one := range *result.Doubts {
			if one.Kind == leftOut {
				text = strings.Replace(text, "\n\n"+one.Text, "", 1)
			}
		}
	}

	return text
}

func (a *asking) words(title string, list *[]api.Explained) {
	if list == nil || len(*list) == 0 {
		return
	}

	a.section(title)

	rows := make([][]any, len(*list))
	for i, e := range *list {
		rows[i] = []any{e.Words, e.As, valueOf(e.Dataset), valueOf(e.Column), valueOf(e.How)}
	}

	a.table([]string{"words", "taken for", "dataset", "column", "how"}, rows)
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}

	return *text
}

// madeFrom says what a model made its statement from. The planner always fills a form.
func madeFrom(basis *api.Basis) string {
	switch {
	case basis == nil:
		return ""
	case *basis == api.BasisForm:
		return ", with a form"
	case *basis == api.BasisSQL:
		return ", with SQL of its own"
	default:
		return ""
	}
}

// verifiedNote says which verified question answered, and with which values.
func verifiedNote(v api.AnsweredByVerified) string {
	note := fmt.Sprintf("verified by: %s on %s, question %s", v.Author, v.VerifiedAt.Format("2006-01-02"), v.ID)

	var values []string
	for _, p := range v.Parameters {
		values = append(values, p.Name+" = "+p.Value)
	}

	if len(values) > 0 {
		note += " with " + strings.Join(values, ", ")
	}

	return note
}
