package main

import (
	"quern.dev/quern/api"
)

// verdict is how a question came out.
type verdict string

const (
	right        verdict = "right"
	wrong        verdict = "wrong"         // an answer that is not the one, or one where there is none
	refusedRight verdict = "refused-right" // nothing was there to answer
	refusedWrong verdict = "refused-wrong"
	asked        verdict = "asked" // back, which answers neither
	failed       verdict = "failed"
)

// mark is a question with what came of it.
type mark struct {
	question *question

	Verdict verdict
	Failure string
	Reading string
	Query   string
	Outcome string
	Model   string
	Rows    resultSet
	Repairs int
	Input   int64 // tokens
	Output  int64
	Seconds float64
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
	if result.Reading != nil {
		m.Reading = *result.Reading
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
	}

	m.Verdict = decide(q, result.Outcome, m.Rows, whole)

	return m
}

// decide compares. A result that is cut has more rows than any answer of a set.
func decide(q *question, outcome api.Outcome, rows resultSet, whole bool) verdict {
	ran := len(rows.Columns) > 0

	switch outcome {
	case api.OutcomeAnswer:
		// Ties may come in any order.
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
