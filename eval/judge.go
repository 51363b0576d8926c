package main

import (
	"quern.dev/quern/api"
)

// verdict is the judgement of an answer.
type verdict string

const (
	right        verdict = "right"
	wrong        verdict = "wrong"         // a wrong answer, or an answer to a question that has none
	refusedRight verdict = "refused-right" // the question has no answer
	refusedWrong verdict = "refused-wrong"
	asked        verdict = "asked" // a clarification, which is neither an answer nor a refusal
	failed       verdict = "failed"
)

// mark is a question with its judged answer.
type mark struct {
	question *question

	Verdict        verdict
	Failure        string
	Interpretation string
	Query          string
	Basis          api.Basis // of the last statement
	Outcome        string
	Model          string
	Rows           resultSet
	Repairs        int
	Input          int64 // tokens
	Output         int64
	Seconds        float64
	Options        []bool // of a question back: whether it gives a right answer
}

func (m mark) right() bool { return m.Verdict == right || m.Verdict == refusedRight }

func judge(q *question, got answer) mark {
	m := mark{question: q, Failure: got.failure, Repairs: max(got.attempts-1, 0), Seconds: got.took.Seconds()}

	result := got.result
	if result == nil {
		m.Verdict = failed

		return m
	}

	m.Outcome = string(result.Outcome)
	if result.Interpretation != nil {
		m.Interpretation = *result.Interpretation
	}

	if result.Model != nil {
		m.Model = *result.Model
	}

	if result.Usage != nil {
		m.Input, m.Output = result.Usage.InputTokens, result.Usage.OutputTokens
	}

	whole := len(result.Steps) > 0
	if whole {
		last := result.Steps[len(result.Steps)-1]
		m.Query, m.Rows, whole = last.Query, rowsOf(last), !last.Truncated

		if last.Basis != nil {
			m.Basis = *last.Basis
		}
	}

	m.Verdict = decide(q, result.Outcome, m.Rows, whole)

	return m
}

// decide compares a result with the expected answers. A truncated result is never right: it has more rows than any
// answer of a set.
func decide(q *question, outcome api.Outcome, rows resultSet, whole bool) verdict {
	ran := len(rows.Columns) > 0

	switch outcome {
	case api.OutcomeAnswer, api.OutcomeAnswerUnverified:
		// Rows with ties may be in any order.
		if q.Answerable && whole && ran && matchesAny(rows, q.accepted(), q.Ordered && !q.TieSensitive) {
			return right
		}

		return wrong
	case api.OutcomeClarification:
		return asked
	case api.OutcomeNoData:
		if q.Answerable && ran && len(rows.Rows) == 0 && matchesAny(rows, q.accepted(), false) {
			return right
		}
	default:
	}

	switch {
	case q.Answerable:
		return refusedWrong
	case len(rows.Rows) > 0:
		return wrong
	}

	return refusedRight
}

func rowsOf(step api.RunStep) resultSet {
	var set resultSet

	for _, column := range step.Columns {
		set.Columns = append(set.Columns, column.Name)
	}

	for _, cells := range step.Data {
		row := make([]any, len(set.Columns))
		for i, name := range set.Columns {
			row[i] = cells[name]
		}

		set.Rows = append(set.Rows, row)
	}

	return set
}
