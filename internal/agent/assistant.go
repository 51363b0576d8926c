package agent

import (
	"context"

	"quern.dev/quern/internal/auth"
)

// Assistant answers a question in the order plan, steps, answer. Its plan has one step, the question.
type Assistant struct{ NL2QL }

// Answer implements Agent.
func (a Assistant) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	t := tellerOf(log)

	if err := t.say(ctx, PlanningStarted, 0, struct{}{}); err != nil {
		return Result{}, err
	}

	if err := t.say(ctx, Planned, 0, Plan{Steps: []string{asked.Text}}); err != nil {
		return Result{}, err
	}

	result, err := a.NL2QL.Answer(ctx, who, asked, log)
	if err != nil {
		return result, err
	}

	if err := t.say(ctx, AnswerStarted, 0, struct{}{}); err != nil {
		return Result{}, err
	}

	return result, t.say(ctx, Answered, 0, map[string]string{"response": result.Response})
}
