package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/doubt"
	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/planner"
)

const (
	checkTime = 10 * time.Second // longest duration of a check, with its wait for a slot
	maxLosses = 100              // rows of its result
)

// check returns the check of the form of a draft. A statement that the model wrote has none.
func (d draft) check() form.Check {
	if d.filled == nil {
		return form.Check{}
	}

	return d.filled.statement.Check
}

// leftOut counts the rows that a statement does not count because they lack a row of another dataset, and returns what a reader must
// know about them. It runs before the statement: a result that is open has a slot, and a run that waits for a second one
// could wait for another run that does the same. Both statements read the same snapshots. A check that fails is no reason not to
// answer.
func (q *inquiry) leftOut(ctx context.Context, s statement, check form.Check) (list []Doubt, err error) {
	if check.SQL == "" {
		return nil, nil
	}

	if err := q.announce(ctx, s); err != nil {
		return nil, err
	}

	sentences, err := q.count(ctx, check)

	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		q.tools.Query.Log.WarnContext(ctx, "rows that an answer leaves out were not counted", "run", q.question.Run, "error", err)

		sentences = check.Uncounted()
	}

	for _, text := range sentences {
		list = append(list, Doubt{Kind: doubt.LeftOut, Text: prose(text)})
	}

	return list, nil
}

// count runs a check.
func (q *inquiry) count(ctx context.Context, check form.Check) ([]string, error) {
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()

	result, err := q.execute(ctx, statement{text: check.SQL, isCheck: true})
	if err != nil {
		return nil, err
	}
	defer result.Close()

	rows, _, err := result.Look(maxLosses)
	if err != nil {
		return nil, err
	}

	found := make([]form.Found, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row, &found[i]); err != nil {
			return nil, err
		}
	}

	return check.Sentences(found), nil
}

// notCounted returns what a reader must know about the rows that a step does not count.
func notCounted(step Step) (list []string) {
	for _, d := range step.Doubts {
		if d.Kind == doubt.LeftOut {
			list = append(list, d.Text)
		}
	}

	return list
}

// checkAgain returns the check of a statement that was made earlier: of an option that the caller chose, or of a question that another
// worker began to answer. The check is empty if the statement cannot be made again.
func (p *interpreter) checkAgain(ctx context.Context, sql string) form.Check {
	last := p.inquiry.question.LastChosen()
	if last == nil || last.Query != sql {
		plan, err := p.candidates(ctx)

		i := slices.IndexFunc(plan.Candidates, func(c planner.Candidate) bool { return c.SQL == sql })
		if err != nil || i < 0 {
			return form.Check{}
		}

		return plan.Candidates[i].Check
	}

	parsed, err := form.Parse(string(last.Form))
	if err != nil {
		return form.Check{}
	}

	items, err := p.inquiry.choose(ctx, planned)
	if err != nil {
		return form.Check{}
	}

	items = slices.DeleteFunc(items, func(d catalog.Item) bool { return !strings.Contains(sql, form.Quoted(nameOf(p.inquiry.question, d))) })

	schema, err := p.schema(ctx, items, true)
	if err != nil {
		return form.Check{}
	}

	statement, err := schema.Compile(parsed)
	if err != nil {
		return form.Check{}
	}

	return statement.Check
}
