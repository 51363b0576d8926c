package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
)

// maxRepairs is how often a model may correct its statement.
const maxRepairs = 3

// NL2QL answers a question with one statement, which a model writes, and its rows. The model has no other way to the
// data than the statement, and the statement has the rights of the asker.
type NL2QL struct {
	Catalog catalog.Catalog
	Query   *query.Query
	Models  *llm.Models
	Now     func() time.Time
}

// Answer implements Agent.
func (a NL2QL) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	model, err := a.Models.Choose(asked.Model, asked.Provider)
	if err != nil {
		return Result{}, err
	}

	t := tellerOf(log)
	if done, ok := finished(log.Before()); ok {
		return answered(done, model.Name), nil
	}

	around, err := a.surround(ctx, who, asked, model)
	if err != nil {
		return Result{}, err
	}

	w := &writing{
		NL2QL: a, who: who, asked: asked, model: model, around: around, teller: t,
		messages: []llm.Message{{Role: llm.User, Text: a.prompt(asked, around)}},
	}

	result, err := w.run(ctx, recorded(log.Before()))
	result.Model, result.Usage = model.Name, &w.usage

	return result, err
}

// writing is a statement in the making.
type writing struct {
	NL2QL

	who      auth.Principal
	asked    Question
	model    llm.Model
	around   surroundings
	teller   *teller
	messages []llm.Message
	usage    Usage
}

// draft is what a model answers.
type draft struct {
	Outcome       Outcome `json:"outcome"`
	Reading       string  `json:"reading"`
	Query         string  `json:"query"`
	Reasoning     string  `json:"reasoning"`
	Clarification *Choice `json:"clarification"`
}

// run lets the model write, and correct, until rows came or it gave up. Drafts that were tried by a worker before are
// not asked for again.
func (w *writing) run(ctx context.Context, tried []draft) (Result, error) {
	var (
		current draft
		ran     *draft // the last one that gave a result
		err     error
	)

	if len(tried) > 0 {
		current = tried[len(tried)-1]
		w.said(current)
	} else if current, err = w.ask(ctx); err != nil {
		return w.failed(err)
	}

	for attempt := max(len(tried), 1); ; attempt++ {
		if current.Outcome != Answer || current.Query == "" {
			return without(current), w.note(ctx, current)
		}

		result, complaint, err := w.try(ctx, current, attempt)
		if err != nil {
			return Result{}, err
		}

		if complaint == "" {
			return w.finish(ctx, current, result)
		}

		if result != nil {
			ran = &current
		}

		if attempt > maxRepairs {
			return w.settle(ctx, current, ran, result, complaint, attempt)
		}

		next, err := w.repair(ctx, complaint)
		if err != nil {
			closeResult(result)

			return w.failed(err)
		}

		if result != nil && sameQuery(next.Query, current.Query) { // it stands by it
			return w.finish(ctx, next, result)
		}

		closeResult(result)

		current = next
	}
}

// note: what is asked back may quote values of any dataset that the model was told of.
func (w *writing) note(ctx context.Context, d draft) error {
	if d.Outcome != Clarification {
		return nil
	}

	var told []query.Read

	for _, one := range w.around.datasets {
		if one.Profile != nil {
			told = append(told, query.Read{
				Account: one.Account, ID: one.ID, Dataset: one.Owner + "/" + one.Namespace + "/" + one.Name, Snapshot: one.Profile.Snapshot,
				CommittedAt: one.Profile.ComputedAt,
			})
		}
	}

	return w.teller.log.Reading(ctx, told)
}

// try runs a draft. A complaint is what the model is told; with it there may be a result that looks wrong.
func (w *writing) try(ctx context.Context, d draft, attempt int) (*query.Result, string, error) {
	if err := w.teller.say(ctx, StepStarted, 0, map[string]any{"index": 0, "instruction": d.Reading}); err != nil {
		return nil, "", err
	}

	err := w.teller.sayTimes(ctx, QueryExecuting, 0, attempt, map[string]any{"index": 0, "query": d.Query, "attempt": attempt})
	if err != nil {
		return nil, "", err
	}

	result, err := w.Query.Run(ctx, w.who, query.Statement{
		Username: w.asked.Username, Namespace: w.asked.Namespace, Text: d.Query, Form: query.Rows, Pinned: w.teller.log.Pinned(), Reading: w.teller.log.Reading,
	})

	switch {
	case isRepairable(err):
		return nil, w.tellable(err, d.Query), nil
	case err != nil:
		return nil, "", err
	}

	complaint, err := w.suspect(ctx, d.Query, result)
	if isRepairable(err) { // a row can fail too
		result.Close()

		return nil, w.tellable(err, d.Query), nil
	}

	if err != nil {
		result.Close()

		return nil, "", err
	}

	return result, complaint, nil
}

func isRepairable(err error) bool {
	return fault.Is(err, fault.QueryInvalid) || fault.Is(err, fault.LimitExceeded)
}

// settle ends it when the model may not correct any more: with what looks wrong and yet is a result, if there is one.
func (w *writing) settle(ctx context.Context, current draft, ran *draft, result *query.Result, complaint string, attempt int) (Result, error) {
	if result != nil {
		return w.finish(ctx, current, result)
	}

	if ran != nil {
		again, _, err := w.try(ctx, *ran, attempt+1)
		if err != nil {
			return Result{}, err
		}

		if again != nil {
			return w.finish(ctx, *ran, again)
		}
	}

	return Result{
		Response: "No query could be written that answers this. The last one failed: " + prose(complaint), Reading: current.Reading,
		Steps: []Step{}, Outcome: Refused,
	}, nil
}

// finish records the rows.
func (w *writing) finish(ctx context.Context, d draft, result *query.Result) (Result, error) {
	step, err := w.teller.log.Step(ctx, Step{Instruction: d.Reading, Query: d.Query, Reasoning: d.Reasoning}, result)
	if err != nil {
		return Result{}, err
	}

	return answered(step, ""), nil
}

// failed turns what a model would not do into an outcome. What it could not do is a fault.
func (w *writing) failed(err error) (Result, error) {
	if errors.Is(err, llm.ErrRefused) {
		return Result{Response: "The model declines to answer this. Ask in other words.", Steps: []Step{}, Outcome: Refused}, nil
	}

	return Result{}, err
}

// ask gets a draft.
func (w *writing) ask(ctx context.Context) (draft, error) {
	response, err := w.Models.Complete(ctx, llm.Call{Account: w.who.Account, Run: w.asked.Run, Purpose: "query"}, llm.Request{
		Model: w.model, System: nl2qlPrompt, Messages: w.messages, Schema: &llm.Schema{Name: "statement", JSON: nl2qlSchema}, MaxTokens: maxTokens,
	})
	w.usage.InputTokens += response.Usage.InputTokens
	w.usage.OutputTokens += response.Usage.OutputTokens

	if err != nil {
		return draft{}, err
	}

	var d draft
	if err := json.Unmarshal([]byte(response.Text), &d); err != nil {
		return draft{}, fault.Wrap(err, fault.UpstreamUnavailable, "The model gave no usable answer.")
	}

	w.said(d)

	d.Reading, d.Reasoning, d.Query = prose(d.Reading), prose(d.Reasoning), strings.TrimSpace(d.Query)

	if c := d.Clarification; c != nil {
		c.Question = prose(c.Question)
		for i := range c.Options {
			c.Options[i] = prose(c.Options[i])
		}
	}

	return d, nil
}

// repair lets the model know what was wrong.
func (w *writing) repair(ctx context.Context, complaint string) (draft, error) {
	w.messages = append(w.messages, llm.Message{Role: llm.User, Text: complaint})

	return w.ask(ctx)
}

// said keeps what the model said, so that it knows what is corrected.
func (w *writing) said(d draft) {
	text, _ := json.Marshal(d) //nolint:errchkjson // strings
	w.messages = append(w.messages, llm.Message{Role: llm.Assistant, Text: string(text)})
}

// without is the result of a draft that has no statement.
func without(d draft) Result {
	result := Result{Reading: d.Reading, Steps: []Step{}, Outcome: d.Outcome}

	switch {
	case d.Outcome == Clarification && d.Clarification != nil && d.Clarification.Question != "":
		result.Response, result.Clarification = d.Clarification.Question, d.Clarification
	case d.Outcome == NotPermitted:
		result.Response = "Questions only read. Nothing can be changed, shared or deleted by asking."
	case d.Outcome == NoData, d.Outcome == Answer:
		result.Response, result.Outcome = "Nothing that you can see answers this.", NoData
	default:
		result.Response, result.Outcome = "This cannot be answered from data.", Refused
	}

	return result
}

// answered is the result of rows.
func answered(step Step, model string) Result {
	result := Result{Reading: step.Instruction, Outcome: Answer, Model: model}

	switch step.RowCount {
	case 0:
		result.Response, result.Outcome = "No rows match.", NoData
	case 1:
		result.Response = "1 row."
	default:
		result.Response = fmt.Sprintf("%d rows.", step.RowCount)
	}

	return result
}

// finished finds the rows that were recorded before.
func finished(before []Event) (step Step, ok bool) {
	for _, e := range before {
		if e.Kind == StepDone && json.Unmarshal(e.Body, &step) == nil {
			return step, true
		}
	}

	return step, false
}

// recorded are the statements that were tried before, with the reading of the question.
func recorded(before []Event) (tried []draft) {
	var reading struct {
		Instruction string `json:"instruction"`
	}

	for _, e := range before {
		switch e.Kind {
		case StepStarted:
			_ = json.Unmarshal(e.Body, &reading) // it is ours
		case QueryExecuting:
			d := draft{Outcome: Answer, Reading: reading.Instruction}
			if json.Unmarshal(e.Body, &d) == nil {
				tried = append(tried, d)
			}
		default:
		}
	}

	return tried
}

func sameQuery(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

func closeResult(result *query.Result) {
	if result != nil {
		result.Close()
	}
}
