package agent

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
)

// asking is a question that a model answers.
type asking struct {
	NL2QL

	who    auth.Principal
	asked  Question
	model  llm.Model
	around surroundings
	teller *teller
	spent  *spending
}

func (a NL2QL) begin(ctx context.Context, who auth.Principal, asked Question, t *teller) (*asking, error) {
	model, err := a.Models.Choose(asked.Model, asked.Provider)
	if err != nil {
		return nil, err
	}

	used, err := a.Models.Used(ctx, who.Account, asked.Run)
	if err != nil {
		return nil, err
	}

	around, err := a.surround(ctx, who, asked, model)
	if err != nil {
		return nil, err
	}

	return &asking{NL2QL: a, who: who, asked: asked, model: model, around: around, teller: t, spent: &spending{used: Usage{used.InputTokens, used.OutputTokens}}}, nil
}

// complete asks the model, and counts what that took.
func (q *asking) complete(ctx context.Context, purpose, system string, messages []llm.Message, schema *llm.Schema) (string, error) {
	response, err := q.Models.Complete(ctx, llm.Call{Account: q.who.Account, Run: q.asked.Run, Purpose: purpose}, llm.Request{
		Model: q.model, System: system, Messages: messages, Schema: schema, MaxTokens: maxTokens,
	})
	q.spent.add(response.Usage)

	if fault.Is(err, fault.Unavailable) && response.Turns <= 1 {
		err = unreached{err}
	}

	return response.Text, err
}

// completeAs is for an answer that has a form.
func completeAs[T any](ctx context.Context, q *asking, purpose, system string, messages []llm.Message, schema *llm.Schema) (value T, err error) {
	text, err := q.complete(ctx, purpose, system, messages, schema)
	if err != nil {
		return value, err
	}

	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return value, fault.Wrap(err, fault.UpstreamUnavailable, "The model gave no usable answer.")
	}

	return value, nil
}

// note notes the datasets whose values a model quotes in what it says of the question: it is told of more than it reads.
func (q *asking) note(ctx context.Context, words ...string) error {
	return q.teller.log.Reading(ctx, q.around.quoted(q.asked, words))
}

// declined turns what a model would not do into an outcome. What it could not do is a fault.
func declined(err error) (Result, error) {
	if errors.Is(err, llm.ErrRefused) {
		return Result{Response: "The model declines to answer this. Ask in other words.", Steps: []Step{}, Outcome: Refused}, nil
	}

	return Result{}, err
}

// spending counts what the models took for a run, also before it was interrupted.
type spending struct {
	mu   sync.Mutex
	used Usage
}

func (s *spending) add(u llm.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.used.InputTokens += u.InputTokens
	s.used.OutputTokens += u.OutputTokens
}

func (s *spending) usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.used
}

// over tells whether a run has taken as much as one may.
func (s *spending) over() bool {
	used := s.usage()

	return used.InputTokens+used.OutputTokens >= maxRunTokens
}
