package a2a

import (
	"encoding/json"
	"fmt"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"

	"quern.dev/quern/internal/run"
)

const answerArtifact = "answer"

// answerOrder is the order of the assistant: the task, the working status, the plan, the instruction of each step, the rows
// of each step, the answer, the final status. A run that waits for a choice has no answer yet; after the choice it has
// everything from the working status on. Rows are delivered in the order of the steps, whichever step finished first.
type answerOrder struct {
	*telling

	planned bool
	out     int              // number of steps whose rows were delivered
	held    map[int]run.Step // finished steps that wait for an earlier step
}

func (o *answerOrder) next(event run.Event) ([]protocol.Event, error) {
	switch event.Kind {
	case run.EventStarted:
		return []protocol.Event{submitted(o.run)}, nil
	case run.EventCancelled, run.EventFailed, run.EventCompleted:
		return o.end(event, o.complete)
	case run.EventWaiting:
		waits, err := o.waiting(event)

		return append(o.begin(event.At), waits), err
	case run.EventChosen:
		o.planned, o.out, o.held = false, 0, nil

		return o.choose(event.At), nil
	case run.EventPlan:
		var plan run.Plan
		if err := json.Unmarshal(event.Body, &plan); err != nil {
			return nil, err
		}

		return o.plan(event.At, plan)
	case run.EventStepStarted:
		var started run.StepStarted
		if err := json.Unmarshal(event.Body, &started); err != nil {
			return nil, err
		}

		return o.plan(event.At, run.Plan{Steps: []string{started.Instruction}})
	case run.EventStep:
		return o.step(event)
	default:
		return o.begin(event.At), nil
	}
}

// plan returns the updates for the plan, once. A run without a plan has a plan of one step.
func (o *answerOrder) plan(at time.Time, plan run.Plan) ([]protocol.Event, error) {
	all := o.begin(at)
	if o.planned {
		return all, nil
	}

	o.planned = true

	if plan.Steps == nil {
		plan.Steps = []string{}
	}

	steps, err := data(map[string]any{"steps": plan.Steps})
	all = append(all, o.working(at, "plan", text(plan.Reasoning, fmt.Sprintf("Steps to the answer: %d.", len(plan.Steps))), steps))

	for i, instruction := range plan.Steps {
		all = append(all, o.working(at, stepName(i), text(instruction, stepName(i))))
	}

	return all, err
}

func (o *answerOrder) step(event run.Event) ([]protocol.Event, error) {
	var step run.Step
	if err := json.Unmarshal(event.Body, &step); err != nil {
		return nil, err
	}

	all, err := o.plan(event.At, run.Plan{Steps: []string{step.Instruction}})
	if err != nil {
		return nil, err
	}

	if o.held == nil {
		o.held = map[int]run.Step{}
	}

	for o.held[step.Index] = step; ; o.out++ {
		following, isDone := o.held[o.out]
		if !isDone {
			return all, nil
		}

		delete(o.held, o.out)

		found, err := o.rows(following)
		if err != nil {
			return nil, err
		}

		all = append(all, found)
	}
}

// complete returns the updates from the result that were not delivered before. The result contains the steps that the
// reader may see now.
func (o *answerOrder) complete(at time.Time, result run.Result) ([]protocol.Event, error) {
	plan := run.Plan{}
	for _, step := range result.Steps {
		plan.Steps = append(plan.Steps, step.Instruction)
	}

	all, err := o.plan(at, plan)
	if err != nil {
		return nil, err
	}

	for _, step := range result.Steps {
		if step.Index < o.out {
			continue
		}

		found, err := o.rows(step)
		if err != nil {
			return nil, err
		}

		all = append(all, found)
	}

	words := text(result.Response, said(result))
	words.MediaType = markdown

	known := outcomeOf(o.run, result)
	known["citations"] = append([]any{}, anys(result.Citations)...)
	part, err := data(known)

	return append(all, o.artifact(answerArtifact, nil, words, part), o.completed(at, result)), err
}

func (o *answerOrder) rows(step run.Step) (protocol.Event, error) {
	part, err := data(o.rowsOf(step))

	return o.artifact(stepName(step.Index), stepOf(step), text(step.Query, noQuery), part), err
}

func stepName(index int) string { return fmt.Sprintf("step-%d", index) }

func anys[T any](list []T) (all []any) {
	for _, one := range list {
		all = append(all, one)
	}

	return all
}
