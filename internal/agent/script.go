package agent

import (
	"context"
	"encoding/json"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// Script is an agent that does what the question says, which is JSON. It needs no model: for those who build on the
// service and want to know beforehand what happens.
type Script struct {
	Query    *query.Query
	Planning bool // it says its plan and its answer, as an assistant does
}

// script is what a question asks it to do.
type script struct {
	Reasoning     string       `json:"reasoning"`
	Steps         []scriptStep `json:"steps"`
	Response      string       `json:"response"`
	Reading       string       `json:"reading"`
	Outcome       Outcome      `json:"outcome"`
	Clarification *Choice      `json:"clarification"`
	Pause         int          `json:"pause"` // milliseconds before each step
	Fail          bool         `json:"fail"`
}

type scriptStep struct {
	Instruction string   `json:"instruction"`
	Reasoning   string   `json:"reasoning"`
	Queries     []string `json:"queries"` // all but the last are attempts that are expected to be refused
}

// Answer implements Agent.
func (s Script) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	var do script
	if json.Unmarshal([]byte(asked.Text), &do) != nil {
		return Result{Response: "The question is not a script.", Steps: []Step{}, Outcome: Refused, Model: "script"}, nil //nolint:nilerr // that is the answer
	}

	t := tellerOf(log)

	if s.Planning {
		plan := Plan{Steps: []string{}, Reasoning: do.Reasoning}
		for _, step := range do.Steps {
			plan.Steps = append(plan.Steps, step.Instruction)
		}

		if err := t.say(ctx, PlanningStarted, 0, struct{}{}); err != nil {
			return Result{}, err
		}

		if err := t.say(ctx, Planned, 0, plan); err != nil {
			return Result{}, err
		}
	}

	result := Result{Response: do.Response, Reading: do.Reading, Outcome: do.Outcome, Clarification: do.Clarification, Model: "script"}
	if result.Outcome == "" {
		result.Outcome = Answer
	}

	for i, want := range do.Steps {
		if err := pause(ctx, time.Duration(do.Pause)*time.Millisecond); err != nil {
			return Result{}, err
		}

		if err := s.step(ctx, who, asked, t, i, want); err != nil {
			return Result{}, err
		}
	}

	if do.Fail {
		return Result{}, fault.New(fault.Unavailable, "The model did not answer.")
	}

	return result, s.answer(ctx, t, result)
}

func (s Script) answer(ctx context.Context, t *teller, result Result) error {
	if !s.Planning {
		return nil
	}

	if err := t.say(ctx, AnswerStarted, 0, struct{}{}); err != nil {
		return err
	}

	return t.say(ctx, Answered, 0, conclusionOf(result))
}

// step runs the statements of a step, unless its rows are recorded.
func (s Script) step(ctx context.Context, who auth.Principal, asked Question, t *teller, index int, want scriptStep) error {
	if t.said(StepDone, index) > 0 {
		return nil
	}

	if err := t.say(ctx, StepStarted, index, map[string]any{"index": index, "instruction": want.Instruction}); err != nil {
		return err
	}

	for attempt, text := range want.Queries {
		err := t.sayTimes(ctx, QueryExecuting, index, attempt+1, map[string]any{"index": index, "query": text, "attempt": attempt + 1})
		if err != nil {
			return err
		}

		result, err := s.Query.Run(ctx, who, query.Statement{
			Username: asked.Username, Namespace: asked.Namespace, Text: text, Form: query.Rows, Pinned: t.log.Pinned(), Reading: t.log.Reading,
		})
		if fault.Is(err, fault.QueryInvalid) && attempt < len(want.Queries)-1 {
			continue
		}

		if err != nil {
			return err
		}

		_, err = t.log.Step(ctx, Step{Index: index, Instruction: want.Instruction, Query: text, Reasoning: want.Reasoning}, result)

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
