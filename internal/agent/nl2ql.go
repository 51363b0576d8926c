package agent

import (
	"context"
	"strings"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/grounding"
)

// NL2QL answers a question with one statement, which a model writes, and its rows. The model can reach the data only
// through the statement, and the statement has the rights of the caller.
type NL2QL struct {
	Tools   Tools
	Opinion bool // simple questions get a second opinion from the planner
}

// Answer implements Agent.
func (a NL2QL) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	q := &inquiry{tools: a.Tools, who: who, question: asked.withAnswers(), recorder: newRecorder(log)}

	if asked.chosenStatement() {
		return (&interpreter{inquiry: q}).respond(ctx)
	}

	d, err := newDialogue(ctx, q)
	if err != nil {
		return Result{}, err
	}

	if wasByRules(q.before()) {
		return d.byRules(ctx, errBegun())
	}

	w := newWriter(d, 0, "", d.prompt(q.question.Text, ""))
	w.consults = a.Opinion

	step, result, err := w.write(ctx)
	if d.isDown(err) {
		return d.byRules(ctx, err)
	}

	if step != nil {
		result = answered(*step)
	} else if err == nil {
		result.Response = q.suggest(ctx, result)
	}

	result.Model, result.Usage, result.Opinion = d.model.Name, new(d.spent.usage()), string(w.verdict)

	return result, err
}

// without returns the result for a draft that has no statement.
func without(d draft) Result {
	if d.Query == "" && d.unusable != "" {
		return noStatement(d, d.unusable)
	}

	result := Result{Interpretation: d.Interpretation, Steps: []Step{}, Outcome: d.Outcome}

	switch {
	case d.Outcome == Clarification && d.Clarification != nil && d.Clarification.Question != "":
		result.Response, result.Clarification = d.Clarification.Question, d.Clarification
	case d.Outcome == NotPermitted:
		result.Response = "Questions only read data. They cannot change, share or delete anything."
	case d.Outcome == NoData, d.Outcome == Answer:
		result.Response, result.Outcome = "No dataset that you can see answers this question.", NoData
	default:
		result.Response, result.Outcome = "Data cannot answer this question.", Refused
	}

	return result
}

// answered returns the result for a step that has run. Its text says what was asked, what was found, and which rows were left
// out.
func answered(step Step) Result {
	result := withoutLosses(step)
	result.Response = strings.Join(append([]string{result.Response}, notCounted(step)...), "\n\n")

	return result
}

// withoutLosses is answered without the rows that were left out.
func withoutLosses(step Step) Result {
	if step.RowCount == 0 {
		return Result{Response: "No rows match.", Interpretation: step.Instruction, Outcome: NoData}
	}

	columns := make([]grounding.Column, len(step.Columns))
	for i, c := range step.Columns {
		columns[i] = grounding.Column{Name: c.Name, Type: c.Type}
	}

	return Result{Response: grounding.Render(prose(step.Instruction), columns, step.Data, step.RowCount), Interpretation: step.Instruction, Outcome: Answer}
}
