//go:build scripted

package agent

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// Script is an agent that does what the question says, which is a JSON document. It needs no model. It gives tests
// predictable runs, and only the program that tests build contains it.
type Script struct {
	Query    *query.Query
	Planning bool // it writes events for a plan and an answer, as Assistant does
}

// script is the content of a question.
type script struct {
	Reasoning      string       `json:"reasoning"`
	Steps          []scriptStep `json:"steps"`
	Response       string       `json:"response"`
	Interpretation string       `json:"interpretation"`
	Outcome        Outcome      `json:"outcome"`
	Clarification  *Choice      `json:"clarification"`
	Pause          int          `json:"pause"` // milliseconds before each step
	Fail           bool         `json:"fail"`
	Then           *script      `json:"then"` // what follows when the caller has chosen an option without a statement
}

type scriptStep struct {
	Instruction string   `json:"instruction"`
	Reasoning   string   `json:"reasoning"`
	Queries     []string `json:"queries"` // all but the last are expected to fail
}

// Answer implements Agent.
func (s Script) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	var do script
	if json.Unmarshal([]byte(asked.Text), &do) != nil {
		return Result{Response: "The question is not a script.", Steps: []Step{}, Outcome: Refused, Model: "script"}, nil //nolint:nilerr // that is the answer
	}

	q := &inquiry{tools: Tools{Query: s.Query}, who: who, question: asked, recorder: newRecorder(log), planning: s.Planning}

	if asked.chosenStatement() {
		return (&interpreter{inquiry: q}).respond(ctx)
	}

	if last := asked.LastChosen(); last != nil && do.Then != nil {
		do = *do.Then
		do.Response = strings.ReplaceAll(do.Response, "<chosen>", last.Interpretation)
	}

	do.Clarification.clean()

	if s.Planning {
		plan := Plan{Steps: []string{}, Reasoning: do.Reasoning}
		for _, step := range do.Steps {
			plan.Steps = append(plan.Steps, step.Instruction)
		}

		if err := q.recorder.record(ctx, EventPlanningStarted, 0, Empty{}); err != nil {
			return Result{}, err
		}

		if err := q.recorder.record(ctx, EventPlan, 0, plan); err != nil {
			return Result{}, err
		}
	}

	result := Result{Response: do.Response, Interpretation: do.Interpretation, Outcome: do.Outcome, Clarification: do.Clarification, Model: "script"}
	if result.Outcome == "" {
		result.Outcome = Answer
	}

	for i, want := range do.Steps {
		if err := pause(ctx, time.Duration(do.Pause)*time.Millisecond); err != nil {
			return Result{}, err
		}

		if err := s.step(ctx, q, i, want); err != nil {
			return Result{}, err
		}
	}

	if do.Fail {
		return Result{}, fault.New(fault.Unavailable, "The model did not answer.")
	}

	return result, s.answer(ctx, q, result)
}

func (s Script) answer(ctx context.Context, q *inquiry, result Result) error {
	if !s.Planning {
		return nil
	}

	if err := q.recorder.record(ctx, EventAnswerStarted, 0, Empty{}); err != nil {
		return err
	}

	return q.recorder.record(ctx, EventAnswer, 0, conclusionOf(result))
}

// step runs the statements of a step, unless its rows are recorded.
func (s Script) step(ctx context.Context, q *inquiry, index int, want scriptStep) error {
	if q.recorder.count(EventStep, index) > 0 {
		return nil
	}

	if err := q.recorder.record(ctx, EventStepStarted, index, StepStarted{Index: index, Instruction: want.Instruction}); err != nil {
		return err
	}

	for attempt, text := range want.Queries {
		result, err := q.execute(ctx, statement{index: index, instruction: want.Instruction, text: text, attempt: attempt + 1})
		if fault.Is(err, fault.QueryInvalid) && attempt < len(want.Queries)-1 {
			continue
		}

		if err != nil {
			return err
		}

		_, err = q.recorder.log.Step(ctx, Step{Index: index, Instruction: want.Instruction, Query: text, Reasoning: want.Reasoning}, result)

		return err
	}

	return nil
}

func pause(ctx context.Context, lasting time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lasting):
		return nil
	}
}
