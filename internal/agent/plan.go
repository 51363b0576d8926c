package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
)

// What one question may take.
const (
	maxSteps      = 6
	parallelSteps = 3
	maxRunTokens  = 400_000
	timeToAnswer  = time.Minute // that is left when no step is begun any more
)

// planDraft is what a model plans.
type planDraft struct {
	Outcome       Outcome       `json:"outcome"`
	Reading       string        `json:"reading"`
	Reasoning     string        `json:"reasoning"`
	Steps         []plannedStep `json:"steps"`
	Clarification *Choice       `json:"clarification"`
}

type plannedStep struct {
	Instruction string `json:"instruction"`
	After       []int  `json:"after"`
}

// plan lets the model plan, unless that was done before. Without a step the result says why.
func (q *asking) plan(ctx context.Context) (Plan, Result, error) {
	for _, e := range q.teller.log.Before() {
		var before Plan
		if e.Kind == Planned && json.Unmarshal(e.Body, &before) == nil && len(before.Steps) > 0 {
			return before, Result{}, nil
		}
	}

	d, err := completeAs[planDraft](ctx, q, "plan", planPrompt, []llm.Message{{Role: llm.User, Text: q.prompt(q.asked.Text, "")}}, &llm.Schema{Name: "plan", JSON: planSchema})
	if err != nil {
		result, err := declined(err)

		return Plan{Steps: []string{}}, result, err
	}

	plan := d.tidy(q.asked)

	if err := q.note(ctx, slices.Concat(plan.Steps, d.Clarification.words(), []string{plan.Reading, plan.Reasoning})...); err != nil {
		return Plan{}, Result{}, err
	}

	if d.Outcome != Answer {
		plan.Steps, plan.After, plan.Dropped = []string{}, nil, 0

		return plan, without(draft{Outcome: d.Outcome, Reading: plan.Reading, Clarification: d.Clarification}), nil
	}

	return plan, Result{}, nil
}

// tidy makes a plan that can be carried out: not too long, and no step before one that it needs.
func (d *planDraft) tidy(asked Question) Plan {
	plan := Plan{Steps: []string{}, Reasoning: prose(d.Reasoning), Reading: prose(d.Reading), Dropped: max(len(d.Steps)-maxSteps, 0)}
	d.Clarification.clean()

	if len(d.Steps) == 0 {
		d.Steps = []plannedStep{{Instruction: asked.Text}}
	}

	depends := false

	for i, step := range d.Steps[:min(len(d.Steps), maxSteps)] {
		after := []int{}

		for _, needed := range step.After {
			if needed >= 0 && needed < i && !slices.Contains(after, needed) {
				after, depends = append(after, needed), true
			}
		}

		plan.Steps, plan.After = append(plan.Steps, prose(step.Instruction)), append(plan.After, after)
	}

	if !depends {
		plan.After = nil
	}

	return plan
}

func (p Plan) needs(index int) []int {
	if index >= len(p.After) {
		return nil
	}

	return p.After[index]
}

// attempted is what came of a step: rows, or why there are none.
type attempted struct {
	step   *Step
	result Result
}

// work does the steps, those that need no other at the same time. One that cannot be done is no reason not to do others.
func (q *asking) work(ctx context.Context, plan Plan) ([]attempted, error) {
	stepping, stop := forSteps(ctx)
	defer stop()

	done, ready := make([]attempted, len(plan.Steps)), make([]chan struct{}, len(plan.Steps))
	for i := range ready {
		ready[i] = make(chan struct{})
	}

	group, working := errgroup.WithContext(stepping)
	slots := make(chan struct{}, parallelSteps)

	for i := range plan.Steps {
		group.Go(func() (err error) {
			defer close(ready[i])
			defer fault.Recover(&err)

			for _, needed := range plan.needs(i) {
				<-ready[needed]
			}

			slots <- struct{}{}
			defer func() { <-slots }()

			one, err := q.attempt(working, plan, i, done)
			if err != nil && errors.Is(stepping.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
				one, err = notDone("There was no time left for it."), nil
			}

			done[i] = one

			return err
		})
	}

	return done, group.Wait()
}

// forSteps ends before the question must be answered.
func forSteps(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}

	return context.WithDeadline(ctx, end.Add(-min(timeToAnswer, time.Until(end)/4)))
}

func notDone(why string) attempted { return attempted{result: Result{Response: why, Outcome: Refused}} }

// attempt does one step. Those that it needs are done.
func (q *asking) attempt(ctx context.Context, plan Plan, index int, done []attempted) (attempted, error) {
	if err := ctx.Err(); err != nil {
		return attempted{}, err
	}

	for _, needed := range plan.needs(index) {
		if done[needed].step == nil {
			return notDone(fmt.Sprintf("It needs step %d.", needed+1)), nil
		}
	}

	if _, isDone := finished(q.teller.log.Before(), index); !isDone && q.spent.over() {
		return notDone("The question has taken as many tokens as one may."), nil
	}

	step, result, err := q.write(index, plan.Steps[index], q.prompt(plan.Steps[index], q.before(plan, index, done))).run(ctx)

	return attempted{step, result}, err
}

// before tells a step what it is part of, and the results that it may use: as statements, which it can repeat as a part
// of its own, and as far as the model may see them as rows.
func (q *asking) before(plan Plan, index int, done []attempted) string {
	if len(plan.Steps) == 1 {
		return ""
	}

	var text strings.Builder

	fmt.Fprintf(&text, "\nThis is step %d of %d towards the answer to: %s\n", index, len(plan.Steps), q.asked.Text)

	for _, needed := range plan.needs(index) {
		fmt.Fprintf(&text, "Step %d is done, and can be used in a WITH:\n%s\n", needed, done[needed].step.Query)

		if q.around.allows(q.teller.log.Pinned()) {
			fmt.Fprintf(&text, "%s\n", shownOf(*done[needed].step))
		}
	}

	return text.String()
}
