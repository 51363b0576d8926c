package agent

import (
	"context"
	"strings"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/doubt"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// Doubt is a difference between a question and the statement that answers it.
type Doubt = doubt.Doubt

// isPlain reports whether the text of the question says everything that was asked. A helper prompt, earlier turns and
// answers to a model say more, in words that the rules do not understand.
func (q Question) isPlain() bool {
	return q.HelperPrompt == "" && len(q.Earlier) == 0 && len(q.Chosen) == 0
}

// audit compares a statement that the model wrote with the question. It returns nothing for a form, whose compiler
// checks more. A failed audit is logged, because the answer does not depend on it.
func (w *writer) audit(ctx context.Context, d draft, result *query.Result) []Doubt {
	q := w.dialogue.inquiry
	if d.basis != BasisSQL || !q.question.isPlain() || len(result.Tree) == 0 {
		return nil
	}

	known, err := w.dialogue.planned(ctx, w.asked())
	if err != nil {
		q.tools.Query.Log.WarnContext(ctx, "a statement was not compared with its question", "run", q.question.Run, "error", err)

		return nil
	}

	found := doubt.Find(doubt.Request{Request: known, Interpretation: w.instruction + " " + d.Interpretation, Tree: result.Tree})
	for i := range found {
		found[i].Text, found[i].Words = prose(found[i].Text), prose(found[i].Words)
	}

	return found
}

// asked returns the words that the statement answers: those of the question, or of one of several steps.
func (w *writer) asked() string {
	if w.isPart {
		return w.instruction
	}

	return w.dialogue.inquiry.question.Text
}

// planned returns what the planner knows for a text about the datasets that the model sees.
func (d *dialogue) planned(ctx context.Context, text string) (planner.Request, error) {
	q, items := d.inquiry, make([]catalog.Item, len(d.around.datasets))
	for i, one := range d.around.datasets {
		items[i] = one.Item
	}

	today, _ := q.question.today(q.tools.Now())
	want := planner.Request{Question: text, Today: today}
	rules := &interpreter{inquiry: q}

	if err := rules.match(ctx, items, &want); err != nil {
		return want, err
	}

	about, err := q.tools.Query.About(ctx, q.who, items, func(catalog.Item) bool { return true })
	want.Datasets = planDatasets(q.question, about, rules.totals)

	return want, err
}

// complaintOf returns the message to the model about doubts, as far as the model may see them; "" if there are none.
func (w *writer) complaintOf(found []Doubt) string {
	var text strings.Builder

	for _, one := range found {
		if !one.Indexed || w.dialogue.around.least >= llm.ExposeValues {
			text.WriteString("- " + one.Text + "\n")
		}
	}

	if text.Len() == 0 {
		return ""
	}

	return "The statement ran. It was compared with the words of the question, by rules that know less than you do:\n" + text.String() +
		"Think again about what was asked. If yours is right give the same again. Otherwise correct it."
}

// doubt returns what is doubtful about a draft that ran, as a message for the model: the second opinion if it differs, else
// what the audit found. The model is told once, and only if the operator allows the additional request.
func (w *writer) doubt(ctx context.Context, d draft, result *query.Result) string {
	complaint := w.opinion.doubt(d, result)
	if complaint == "" && w.consults && w.opinion.judge(d, result) != agreed {
		complaint = w.complaintOf(w.audit(ctx, d, result))
	}

	w.doubted = complaint != ""

	return complaint
}

// reconsider asks a model once more that finds nothing about a question, although the planner is sure.
func (w *writer) reconsider(ctx context.Context, d draft) (draft, error) {
	complaint := w.opinion.contradiction()
	if d.Outcome != NoData || complaint == "" || w.doubted {
		return d, nil
	}

	w.doubted = true

	next, err := w.repair(ctx, complaint)
	if err != nil && ctx.Err() == nil { // the second opinion was the only complaint
		return d, nil
	}

	return next, err
}

// without returns the result for a draft that has no statement, with the doubt of the planner.
func (w *writer) without(d draft) Result {
	result := without(d)
	if result.Outcome == NoData {
		result.Doubts = w.opinion.unanswered()
	}

	return result
}
