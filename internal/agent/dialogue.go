package agent

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
)

// dialogue is the exchange with a model about one question.
type dialogue struct {
	inquiry *inquiry
	model   llm.Model
	around  surroundings
	spent   *spending
	known   known
	lent    lent
}

// newDialogue chooses the model and collects what it may see of the data.
func newDialogue(ctx context.Context, q *inquiry) (*dialogue, error) {
	model, err := q.tools.Models.Choose(q.question.Model, q.question.Provider)
	if err != nil {
		return nil, err
	}

	used, err := q.tools.Models.Used(ctx, q.who.Account, q.question.Run)
	if err != nil {
		return nil, err
	}

	around, err := surround(ctx, q, model)
	if err != nil {
		return nil, err
	}

	lent, err := q.lend(ctx, around)
	if err != nil {
		return nil, err
	}

	return &dialogue{inquiry: q, model: model, around: around, lent: lent, spent: &spending{used: Usage{used.InputTokens, used.OutputTokens}}}, nil
}

// complete calls the model and counts the tokens that the call used. It marks an Unavailable fault of the first turn as
// unreached.
func (d *dialogue) complete(ctx context.Context, purpose, system string, messages []llm.Message, schema *llm.Schema) (string, error) {
	q := d.inquiry
	response, err := q.tools.Models.Complete(ctx, llm.Call{Account: q.who.Account, Run: q.question.Run, Purpose: purpose}, llm.Request{
		Model: d.model, System: system, Messages: messages, Schema: schema, MaxTokens: maxTokens,
	})
	d.spent.add(response.Usage)

	if fault.Is(err, fault.Unavailable) && response.Turns <= 1 {
		err = unreached{err}
	}

	return response.Text, err
}

// completeAs calls the model for a completion that follows a schema, and decodes it.
func completeAs[T any](ctx context.Context, d *dialogue, purpose, system string, messages []llm.Message, schema *llm.Schema) (value T, err error) {
	text, err := d.complete(ctx, purpose, system, messages, schema)
	if err != nil {
		return value, err
	}

	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return value, fault.Wrap(err, fault.UpstreamUnavailable, "The model did not return a usable answer.")
	}

	return value, nil
}

// noteWords records the datasets whose values the model quotes in these words. The model sees values of more datasets
// than its statements read.
func (d *dialogue) noteWords(ctx context.Context, words ...string) error {
	return noteQuoted(ctx, d.inquiry.recorder.log, d.around.quoted(d.inquiry.question, words))
}

// noteQuoted records the datasets whose values a text quotes. A dataset that the run has read before is recorded already,
// with a snapshot that can differ from the one whose values are quoted.
func noteQuoted(ctx context.Context, log Log, reads []query.Read) error {
	for {
		pinned, fresh := log.Pinned(), []query.Read{}

		for _, read := range reads {
			if _, isPinned := pinned[read.ID]; !isPinned {
				fresh = append(fresh, read)
			}
		}

		// A concurrent step can pin one of them in between.
		if err := log.BeforeRead(ctx, fresh); !errors.Is(err, ErrMoved) {
			return err
		}
	}
}

// declined turns the refusal of a model into a result with the outcome Refused. It returns every other error as it is.
func declined(err error) (Result, error) {
	if errors.Is(err, llm.ErrRefused) {
		return Result{Response: "The model declined to answer. Rephrase the question.", Steps: []Step{}, Outcome: Refused}, nil
	}

	return Result{}, err
}

// spending counts the tokens that a run used, including those used before an interruption.
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

// over reports whether a run has used as many tokens as a run may.
func (s *spending) over() bool {
	used := s.usage()

	return used.InputTokens+used.OutputTokens >= maxRunTokens
}
