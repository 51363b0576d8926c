package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"quern.dev/quern/internal/grounding"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
)

// Limits of what a model sees of the rows of one step.
const (
	shownRows  = 50
	shownBytes = 16 << 10
)

// shown is a step as the model that writes the answer sees it.
type shown struct {
	Step        int               `json:"step"`
	Instruction string            `json:"instruction"`
	Query       string            `json:"query"`
	Columns     []query.Column    `json:"columns"`
	RowCount    int64             `json:"rowCount"`
	Rows        []json.RawMessage `json:"rows,omitempty"` // first rows
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

// shownOf returns a step as text for a prompt, with one numbered line for each row.
func shownOf(s Step) string {
	one := showStep(s)
	rows := one.Rows
	one.Rows = nil

	var text strings.Builder

	fmt.Fprintf(&text, "%s\n", plainJSON(one))

	for i, row := range rows {
		fmt.Fprintf(&text, "row %d: %s\n", i, row)
	}

	return text.String()
}

func (s shown) forGrounding() grounding.Step {
	step := grounding.Step{Index: s.Step, Rows: s.Rows, RowCount: s.RowCount, Complete: int64(len(s.Rows)) == s.RowCount}
	for _, c := range s.Columns {
		step.Columns = append(step.Columns, c.Name)
	}

	return step
}

// conclude makes the result from the steps that were attempted.
func (s solution) conclude(ctx context.Context, plan Plan, done []attempted) (Result, error) {
	result := Result{Interpretation: plan.Interpretation, Steps: []Step{}, Outcome: Answer}

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
		result.Response, result.Outcome, result.Clarification, result.Doubts = done[0].result.Response, done[0].result.Outcome, done[0].result.Clarification, done[0].result.Doubts

		return result, nil
	case len(steps) == 0:
		result.Response, result.Outcome = "No step of the plan succeeded.", Refused
	case found == 0:
		result.Response, result.Outcome = "No rows match.", NoData
	case !s.dialogue.around.allows(s.inquiry.recorder.log.Pinned()):
		result.Response = rowsOnly(steps) + "\n\nThe model may not see rows, so it wrote no answer."
	default:
		if err := s.writeAnswer(ctx, &result, steps, s.remarks(plan, done)); err != nil {
			return Result{}, err
		}
	}

	result.Response = strings.Join(append([]string{result.Response}, s.remarks(plan, done)...), "\n\n")

	return result, nil
}

// rowsOnly returns what each step found, for an answer that no model wrote.
func rowsOnly(steps []Step) string {
	if len(steps) == 1 {
		return withoutLosses(steps[0]).Response
	}

	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = fmt.Sprintf("Step %d: %s", s.Index+1, withoutLosses(s).Response)
	}

	return strings.Join(words, "\n\n")
}

// remarks returns notes for the caller: rows that are not counted, steps that could not be done or were left out, and datasets that
// changed since the same question was asked before.
func (s solution) remarks(plan Plan, done []attempted) (notes []string) {
	for _, one := range done {
		if one.step != nil {
			notes = append(notes, notCounted(*one.step)...)
		}
	}

	if len(done) > 1 {
		for i, one := range done {
			if one.step == nil {
				notes = append(notes, fmt.Sprintf("Step %d failed: %s", i+1, one.result.Response))
			}
		}
	}

	if plan.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("The plan had %d steps more than the maximum of %d. They were skipped.", plan.Dropped, maxSteps))
	}

	if names := s.changed(); len(names) > 0 {
		notes = append(notes, "The data has changed since this question was last asked: "+strings.Join(names, ", ")+".")
	}

	return notes
}

// changed returns the names of the datasets whose snapshot differs from the one that was read when the same question
// was last asked in this conversation.
func (s solution) changed() (names []string) {
	read := s.inquiry.recorder.log.Pinned()

	for _, turn := range slices.Backward(s.inquiry.question.Earlier) {
		if !sameQuery(strings.ToLower(turn.Question), strings.ToLower(s.inquiry.question.Text)) {
			continue
		}

		for _, d := range s.dialogue.around.datasets {
			now, isRead := read[d.ID]
			if before, wasRead := turn.Read[d.ID]; isRead && wasRead && now != before {
				names = append(names, nameOf(s.inquiry.question, d.Item))
			}
		}

		break
	}

	return names
}

// writeAnswer asks the model for an answer and looks up its claims in the rows. If some are not found, the model may correct
// the answer once; the version with fewer unverified claims is used.
func (s solution) writeAnswer(ctx context.Context, result *Result, steps []Step, remarks []string) error {
	given := make([]grounding.Step, len(steps))
	for i, step := range steps {
		given[i] = showStep(step).forGrounding()
	}

	messages := []llm.Message{{Role: llm.User, Text: s.toAnswer(steps, remarks)}}

	var report grounding.Report

	for range 2 {
		text, err := s.dialogue.complete(ctx, "answer", answerPrompt, messages, nil)
		if err != nil {
			return s.unwritten(ctx, result, steps, report, err)
		}

		checked, err := grounding.CheckWithin(ctx, prose(text), s.inquiry.question.Text, given, math.MaxInt)
		if err != nil {
			return err
		}

		if report.Text == "" || unverified(checked) <= unverified(report) {
			report = checked
		}

		complaint := complain(checked)
		if complaint == "" {
			break
		}

		messages = append(messages, llm.Message{Role: llm.Assistant, Text: text}, llm.Message{Role: llm.User, Text: complaint})
	}

	result.setAnswer(report)

	return nil
}

// unwritten handles a failed completion: it uses the previous draft if there is one, else it reports row counts. It
// returns the error only if the run was canceled or its time is over.
func (s solution) unwritten(ctx context.Context, result *Result, steps []Step, report grounding.Report, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return err
	}

	if result.setAnswer(report); report.Text == "" {
		result.Response, result.Checks = rowsOnly(steps)+"\n\nThe model wrote no answer. Ask again later.", nil
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

// complain returns the message to the model about the claims that were not found, or "" if all were found.
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

// toAnswer returns the prompt from which the model writes the answer.
func (s solution) toAnswer(steps []Step, remarks []string) string {
	var text strings.Builder

	text.WriteString("Steps:\n")

	for _, step := range steps {
		text.WriteString(shownOf(step))
	}

	for _, remark := range remarks {
		fmt.Fprintf(&text, "\nThe asker is told: %s\n", remark)
	}

	s.dialogue.circumstances(&text)
	fmt.Fprintf(&text, "\nQuestion:\n%s", s.inquiry.question.Text)

	return text.String()
}
