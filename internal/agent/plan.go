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

// Limits of one question.
const (
	maxSteps      = 6
	parallelSteps = 3
	maxRunTokens  = 400_000
	timeToAnswer  = time.Minute // reserved for writing the answer after the steps
)

// planDraft is the completion of a model that plans.
type planDraft struct {
	Reasoning      string        `json:"reasoning"`
	Interpretation string        `json:"interpretation"`
	Outcome        Outcome       `json:"outcome"`
	Steps          []plannedStep `json:"steps"`
	Clarification  *Choice       `json:"clarification"`
}

type plannedStep struct {
	Instruction string `json:"instruction"`
	After       []int  `json:"after"`
}

// plan asks the model for a plan, unless one was recorded before. If the plan has no steps, the result says why.
func (s solution) plan(ctx context.Context) (Plan, Result, error) {
	for _, e := range s.inquiry.before() {
		var before Plan
		if e.Kind == EventPlan && json.Unmarshal(e.Body, &before) == nil && len(before.Steps) > 0 {
			return before, Result{}, nil
		}
	}

	d, one, err := s.draft(ctx)
	if err != nil {
		result, err := declined(err)

		return Plan{Steps: []string{}}, result, err
	}

	plan := d.tidy(s.inquiry.question)

	if err := s.dialogue.noteWords(ctx, slices.Concat(plan.Steps, d.Clarification.words(), []string{plan.Interpretation, plan.Reasoning})...); err != nil {
		return Plan{}, Result{}, err
	}

	if d.Outcome != Answer {
		plan.Steps, plan.After, plan.Dropped = []string{}, nil, 0

		result := without(draft{Outcome: d.Outcome, Interpretation: plan.Interpretation, Clarification: d.Clarification})
		if result.Outcome == NoData {
			result.Doubts = one.unanswered()
		}

		result.Response = s.inquiry.suggest(ctx, result)

		return plan, result, nil
	}

	return plan, Result{}, nil
}

// draft asks the model for a plan. If the model finds nothing about the question, although the planner is sure, it is asked
// once more. The opinion of the planner is nil if it was not needed.
func (s solution) draft(ctx context.Context) (planDraft, *opinion, error) {
	messages := []llm.Message{{Role: llm.User, Text: s.dialogue.prompt(s.inquiry.question.Text, "")}}
	ask := func() (planDraft, error) {
		return completeAs[planDraft](ctx, s.dialogue, "plan", planPrompt, messages, &llm.Schema{Name: "plan", JSON: planSchema})
	}

	d, err := ask()
	if err != nil || d.Outcome != NoData || !s.consults || !s.inquiry.question.isPlain() {
		return d, nil, err
	}

	considering, stop := context.WithTimeout(ctx, opinionTime)
	defer stop()

	one := opinionOf(considering, s.dialogue, s.inquiry.question.Text)

	complaint := one.contradiction()
	if complaint == "" {
		return d, one, nil
	}

	messages = append(messages, llm.Message{Role: llm.Assistant, Text: plainJSON(d)}, llm.Message{Role: llm.User, Text: complaint})

	if again, err := ask(); err == nil {
		d = again
	}

	return d, one, ctx.Err()
}

// tidy makes a plan that can be executed: at most maxSteps steps, and each step depends only on earlier ones.
func (d *planDraft) tidy(asked Question) Plan {
	plan := Plan{Steps: []string{}, Reasoning: prose(d.Reasoning), Interpretation: prose(d.Interpretation), Dropped: max(len(d.Steps)-maxSteps, 0)}
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

// attempted is the result of a step: its rows, or the reason why it has none.
type attempted struct {
	step   *Step
	result Result
}

// work runs the steps of a plan. Steps that do not need each other run at the same time. A step that cannot be done
// does not stop the others.
func (s solution) work(ctx context.Context, plan Plan) ([]attempted, error) {
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

			one, err := s.attempt(working, plan, i, done)
			if err != nil && errors.Is(stepping.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
				one, err = notDone("The question reached its time limit."), nil
			}

			done[i] = one

			return err
		})
	}

	return done, group.Wait()
}

// forSteps returns a context that ends early enough to leave time for writing the answer.
func forSteps(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}

	return context.WithDeadline(ctx, end.Add(-min(timeToAnswer, time.Until(end)/4)))
}

func notDone(why string) attempted { return attempted{result: Result{Response: why, Outcome: Refused}} }

// attempt runs one step. The steps that it needs have ended before.
func (s solution) attempt(ctx context.Context, plan Plan, index int, done []attempted) (attempted, error) {
	if err := ctx.Err(); err != nil {
		return attempted{}, err
	}

	for _, needed := range plan.needs(index) {
		if done[needed].step == nil {
			return notDone(fmt.Sprintf("It needs step %d, which failed.", needed+1)), nil
		}
	}

	if _, isDone := finished(s.inquiry.before(), index); !isDone && s.dialogue.spent.over() {
		return notDone("The question has used the maximum number of tokens."), nil
	}

	w := newWriter(s.dialogue, index, plan.Steps[index], s.dialogue.prompt(plan.Steps[index], s.earlierSteps(plan, index, done)))
	w.consults, w.isPart = s.consults, len(plan.Steps) > 1

	step, result, err := w.write(ctx)

	return attempted{step, result}, err
}

// earlierSteps describes to the model the question that a step belongs to and the results that the step may use. Each result
// is given as a statement, which the step can repeat inside its own, and as rows if the model may see them.
func (s solution) earlierSteps(plan Plan, index int, done []attempted) string {
	if len(plan.Steps) == 1 {
		return ""
	}

	var text strings.Builder

	fmt.Fprintf(&text, "\nThis is step %d of %d towards the answer to: %s\n", index, len(plan.Steps), s.inquiry.question.Text)

	for _, needed := range plan.needs(index) {
		fmt.Fprintf(&text, "Step %d is done, and can be used in a WITH:\n%s\n", needed, done[needed].step.Query)

		if s.dialogue.around.allows(s.inquiry.recorder.log.Pinned()) {
			fmt.Fprintf(&text, "%s\n", shownOf(*done[needed].step))
		}
	}

	return text.String()
}
