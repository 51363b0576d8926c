package agent

import (
	"context"
	"encoding/json"

	"quern.dev/quern/internal/auth"
)

// Assistant answers a question in several steps: it plans them, answers each one as NL2QL does, and writes an answer
// whose figures are looked up in the rows.
type Assistant struct {
	Tools   Tools
	Opinion bool // simple questions and steps get a second opinion from the planner
}

// Answer implements Agent.
func (a Assistant) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	q := &inquiry{tools: a.Tools, who: who, question: asked.withAnswers(), recorder: newRecorder(log), planning: true}

	if err := q.recorder.record(ctx, EventPlanningStarted, 0, Empty{}); err != nil {
		return Result{}, err
	}

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

	s := solution{inquiry: q, dialogue: d, consults: a.Opinion}

	result, err := s.find(ctx)
	if d.isDown(err) {
		return d.byRules(ctx, err)
	}

	result.Model, result.Usage = d.model.Name, new(d.spent.usage())

	return result, err
}

// solution is the answer of Assistant while it is made: the plan, the steps, the words.
type solution struct {
	inquiry  *inquiry
	dialogue *dialogue
	consults bool // steps are compared with a second opinion
}

// find makes the plan, works through its steps and concludes. It skips what an earlier worker has recorded.
func (s solution) find(ctx context.Context) (Result, error) {
	recorder := s.inquiry.recorder

	plan, result, err := s.plan(ctx)
	if err != nil {
		return Result{}, err
	}

	if err := recorder.record(ctx, EventPlan, 0, plan); err != nil {
		return Result{}, err
	}

	if recorded, ok := concluded(s.inquiry.before()); ok {
		recorded.Interpretation = plan.Interpretation

		return recorded, nil
	}

	var done []attempted

	if len(plan.Steps) > 0 {
		if done, err = s.work(ctx, plan); err != nil {
			return Result{}, err
		}
	}

	if err := recorder.record(ctx, EventAnswerStarted, 0, Empty{}); err != nil {
		return Result{}, err
	}

	if len(plan.Steps) > 0 {
		if result, err = s.conclude(ctx, plan, done); err != nil {
			return Result{}, err
		}
	}

	return result, recorder.record(ctx, EventAnswer, 0, conclusionOf(result))
}

// concluded returns the answer that was recorded before an interruption.
func concluded(before []Event) (Result, bool) {
	for _, e := range before {
		var c Conclusion
		if e.Kind == EventAnswer && json.Unmarshal(e.Body, &c) == nil {
			return Result{Response: c.Response, Outcome: c.Outcome, Clarification: c.Clarification, Checks: c.Checks, Citations: c.Citations, Doubts: c.Doubts, Steps: []Step{}}, true
		}
	}

	return Result{}, false
}
