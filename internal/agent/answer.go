package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/grounding"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
)

// What a model is shown of a step.
const (
	shownRows  = 50
	shownBytes = 16 << 10
)

// shown is a step as the one who writes the answer sees it.
type shown struct {
	Step        int               `json:"step"`
	Instruction string            `json:"instruction"`
	Query       string            `json:"query"`
	Columns     []query.Column    `json:"columns"`
	RowCount    int64             `json:"rowCount"`
	Rows        []json.RawMessage `json:"rows"` // the first
}

func showStep(s Step) shown {
	one := shown{Step: s.Index, Instruction: s.Instruction, Query: s.Query, Columns: s.Columns, RowCount: s.RowCount, Rows: []json.RawMessage{}}
	room := shownBytes

	for _, row := range s.Data[:min(len(s.Data), shownRows)] {
		row = query.Unmark(row)
		if room -= len(row); room < 0 {
			break
		}

		one.Rows = append(one.Rows, row)
	}

	return one
}

// shownOf is a step in the words of a prompt, a row a line, so that they can be counted.
func shownOf(s Step) string {
	one := showStep(s)
	rows := one.Rows
	one.Rows = nil

	head, _ := json.Marshal(one) //nolint:errchkjson // it was made from JSON

	var text strings.Builder

	fmt.Fprintf(&text, "%s\n", head)

	for i, row := range rows {
		fmt.Fprintf(&text, "row %d: %s\n", i, row)
	}

	return text.String()
}

func (s shown) ground() grounding.Step {
	step := grounding.Step{Index: s.Step, Rows: s.Rows, RowCount: s.RowCount, Complete: int64(len(s.Rows)) == s.RowCount}
	for _, c := range s.Columns {
		step.Columns = append(step.Columns, c.Name)
	}

	return step
}

// conclude makes the answer of what was done.
func (q *asking) conclude(ctx context.Context, plan Plan, done []attempted) (Result, error) {
	result := Result{Reading: plan.Reading, Steps: []Step{}, Outcome: Answer}

	var (
		steps []Step
		found int64
	)

	for _, one := range done {
		if one.step != nil {
			steps, found = append(steps, *one.step), found+one.step.RowCount
		}
	}

	switch {
	case len(steps) == 0 && len(done) == 1:
		result.Response, result.Outcome, result.Clarification = done[0].result.Response, done[0].result.Outcome, done[0].result.Clarification

		return result, nil
	case len(steps) == 0:
		result.Response, result.Outcome = "None of the steps towards an answer could be done.", Refused
	case found == 0:
		result.Response, result.Outcome = "No rows match.", NoData
	case !q.around.allows(q.teller.log.Pinned()):
		result.Response = rowsOnly(steps) + " The model may not see rows, so it wrote no answer."
	default:
		if err := q.ground(ctx, &result, steps, q.remarks(plan, done)); err != nil {
			return Result{}, err
		}
	}

	result.Response = strings.Join(append([]string{result.Response}, q.remarks(plan, done)...), "\n\n")

	return result, nil
}

// rowsOnly says what was found without a model.
func rowsOnly(steps []Step) string {
	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = fmt.Sprintf("Step %d: %s", s.Index+1, answered(s).Response)
	}

	return strings.Join(words, " ")
}

// remarks say what the answer lacks, and that the data are not what they were.
func (q *asking) remarks(plan Plan, done []attempted) (said []string) {
	if len(done) > 1 {
		for i, one := range done {
			if one.step == nil {
				said = append(said, fmt.Sprintf("Step %d could not be done: %s", i+1, one.result.Response))
			}
		}
	}

	if plan.Dropped > 0 {
		said = append(said, fmt.Sprintf("The plan had %d steps more than the %d that a question may have; they were left out.", plan.Dropped, maxSteps))
	}

	if names := q.changed(); len(names) > 0 {
		said = append(said, "The data changed since this was asked before: "+strings.Join(names, ", ")+".")
	}

	return said
}

// changed are the datasets that are not as they were when the same was asked before.
func (q *asking) changed() (names []string) {
	read := q.teller.log.Pinned()

	for _, turn := range slices.Backward(q.asked.Earlier) {
		if !sameQuery(strings.ToLower(turn.Question), strings.ToLower(q.asked.Text)) {
			continue
		}

		for _, d := range q.around.datasets {
			now, isRead := read[d.ID]
			if before, wasRead := turn.Read[d.ID]; isRead && wasRead && now != before {
				names = append(names, nameOf(q.asked, d.Item))
			}
		}

		break
	}

	return names
}

// ground lets the model write, looks for what it says in the rows, and lets it correct once what is not there.
func (q *asking) ground(ctx context.Context, result *Result, steps []Step, remarks []string) error {
	given := make([]grounding.Step, len(steps))
	for i, s := range steps {
		given[i] = showStep(s).ground()
	}

	messages := []llm.Message{{Role: llm.User, Text: q.toAnswer(steps, remarks)}}

	var report grounding.Report

	for range 2 {
		text, err := q.complete(ctx, "answer", answerPrompt, messages, nil)
		if err != nil {
			return q.unwritten(ctx, result, steps, report, err)
		}

		checked := grounding.Check(prose(text), q.asked.Text, given)
		if report.Text == "" || unverified(checked) <= unverified(report) {
			report = checked
		}

		complaint := complain(checked)
		if complaint == "" {
			break
		}

		messages = append(messages, llm.Message{Role: llm.Assistant, Text: text}, llm.Message{Role: llm.User, Text: complaint})
	}

	result.say(report)

	return nil
}

// unwritten is for a model that wrote nothing that can be used: the rows are there all the same, and what it wrote before
// it should have corrected it.
func (q *asking) unwritten(ctx context.Context, result *Result, steps []Step, report grounding.Report, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return err
	}

	if result.say(report); report.Text == "" {
		result.Response, result.Checks = rowsOnly(steps)+" The model wrote no answer to them. Ask again later.", nil
	}

	return nil
}

func unverified(report grounding.Report) (count int) {
	for _, claim := range report.Claims {
		if !claim.Verified {
			count++
		}
	}

	return count
}

// complain tells the model what could not be found.
func complain(report grounding.Report) string {
	var text strings.Builder

	for _, claim := range report.Claims {
		if !claim.Verified {
			fmt.Fprintf(&text, "- %s: %s\n", claim.Text, claim.Reason)
		}
	}

	if text.Len() == 0 {
		return ""
	}

	return "These could not be found in the rows:\n" + text.String() + "Write the whole answer again. Correct them, give the marker that shows where they are, or leave them out."
}

// say sets the answer, with where its claims come from.
func (r *Result) say(report grounding.Report) {
	r.Response, r.Checks, r.Citations = prose(report.Text), &Checks{Claims: len(report.Claims), Unverified: []string{}}, nil

	for _, claim := range report.Claims {
		if !claim.Verified {
			r.Checks.Unverified = append(r.Checks.Unverified, claim.Text)

			continue
		}

		r.Checks.Verified++

		for _, from := range claim.Sources {
			r.Citations = append(r.Citations, Citation{Claim: claim.Text, Step: from.Step, Row: from.Row, Column: from.Column, Calculation: claim.Calculation})
		}
	}
}

// toAnswer is what the answer is to be written from.
func (q *asking) toAnswer(steps []Step, remarks []string) string {
	var text strings.Builder

	text.WriteString("Steps:\n")

	for _, s := range steps {
		text.WriteString(shownOf(s))
	}

	for _, remark := range remarks {
		fmt.Fprintf(&text, "\nThe asker is told: %s\n", remark)
	}

	q.circumstances(&text)
	fmt.Fprintf(&text, "\nQuestion:\n%s", q.asked.Text)

	return text.String()
}
