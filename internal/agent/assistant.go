package agent

import (
	"context"
	"encoding/json"

	"quern.dev/quern/internal/auth"
)

// Assistant answers a question in several steps: it plans them, lets each be done as nl2ql does one, and writes an answer
// whose figures are looked for in the rows.
type Assistant struct{ NL2QL }

// Answer implements Agent.
func (a Assistant) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	t := tellerOf(log)

	if err := t.say(ctx, PlanningStarted, 0, struct{}{}); err != nil {
		return Result{}, err
	}

	q, err := a.begin(ctx, who, asked, t)
	if err != nil {
		return Result{}, err
	}

	if wasByRules(log.Before()) {
		return q.byRules(ctx, true, errBegun())
	}

	result, err := q.answer(ctx)
	if q.isDown(err) {
		return q.byRules(ctx, true, err)
	}

	result.Model, result.Usage = q.model.Name, new(q.spent.usage())

	return result, err
}

func (q *asking) answer(ctx context.Context) (Result, error) {
	plan, result, err := q.plan(ctx)
	if err != nil {
		return Result{}, err
	}

	if err := q.teller.say(ctx, Planned, 0, plan); err != nil {
		return Result{}, err
	}

	if said, ok := concluded(q.teller.log.Before()); ok {
		said.Reading = plan.Reading

		return said, nil
	}

	var done []attempted

	if len(plan.Steps) > 0 {
		if done, err = q.work(ctx, plan); err != nil {
			return Result{}, err
		}
	}

	if err := q.teller.say(ctx, AnswerStarted, 0, struct{}{}); err != nil {
		return Result{}, err
	}

	if len(plan.Steps) > 0 {
		if result, err = q.conclude(ctx, plan, done); err != nil {
			return Result{}, err
		}
	}

	return result, q.teller.say(ctx, Answered, 0, conclusionOf(result))
}

// conclusion is the answer as it is recorded: with all that is not recorded elsewhere.
type conclusion struct {
	Response      string     `json:"response"`
	Outcome       Outcome    `json:"outcome"`
	Clarification *Choice    `json:"clarification,omitempty"`
	Checks        *Checks    `json:"checks,omitempty"`
	Citations     []Citation `json:"citations,omitempty"`
}

func conclusionOf(r Result) conclusion {
	return conclusion{r.Response, r.Outcome, r.Clarification, r.Checks, r.Citations}
}

// concluded finds the answer that was given before.
func concluded(before []Event) (Result, bool) {
	for _, e := range before {
		var c conclusion
		if e.Kind == Answered && json.Unmarshal(e.Body, &c) == nil {
			return Result{Response: c.Response, Outcome: c.Outcome, Clarification: c.Clarification, Checks: c.Checks, Citations: c.Citations, Steps: []Step{}}, true
		}
	}

	return Result{}, false
}
