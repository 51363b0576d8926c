package agent

import (
	"cmp"
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
	Opinion bool // simple questions are read by rules too
}

// Answer implements Agent.
func (a NL2QL) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	q, err := a.begin(ctx, who, asked, tellerOf(log))
	if err != nil {
		return Result{}, err
	}

	if wasByRules(log.Before()) {
		return q.byRules(ctx, false, errBegun())
	}

	w := q.write(0, "", q.prompt(asked.Text, ""))
	w.whole = true

	step, result, err := w.run(ctx)
	if q.isDown(err) {
		return q.byRules(ctx, false, err)
	}

	if step != nil {
		result = answered(*step)
	}

	result.Model, result.Usage, result.Opinion = q.model.Name, new(q.spent.usage()), string(w.verdict)

	return result, err
}

// writing is the statement of a step in the making.
type writing struct {
	*asking

	index       int
	instruction string // of a plan; without one it is how the model reads the question
	messages    []llm.Message
	whole       bool     // it is the whole question
	second      *opinion // of the rules, if they have one
	verdict     verdict
}

func (q *asking) write(index int, instruction, prompt string) *writing {
	return &writing{asking: q, index: index, instruction: instruction, messages: []llm.Message{{Role: llm.User, Text: prompt}}}
}

// draft is what a model answers.
type draft struct {
	Outcome       Outcome `json:"outcome"`
	Reading       string  `json:"reading"`
	Query         string  `json:"query"`
	Reasoning     string  `json:"reasoning"`
	Clarification *Choice `json:"clarification"`
}

// run lets the model write, and correct, until rows came or it gave up, and the result says why. What was tried by a
// worker before is not asked for again, and rows that were recorded are not read again.
func (w *writing) run(ctx context.Context) (*Step, Result, error) {
	if done, ok := finished(w.teller.log.Before(), w.index); ok {
		return &done, Result{}, nil
	}

	var (
		current draft
		ran     *draft // the last one that gave a result
		err     error
	)

	hear, stop := w.consult(ctx)
	defer stop()

	tried := recorded(w.teller.log.Before(), w.index)

	if len(tried) > 0 {
		current = tried[len(tried)-1]
		w.said(current)
	} else if current, err = w.ask(ctx); err != nil {
		return w.failed(err)
	}

	if current.Outcome == Answer {
		w.second = hear()
	}

	for attempt := max(len(tried), 1); ; attempt++ {
		if current.Outcome != Answer || current.Query == "" {
			return nil, without(current), nil
		}

		result, complaint, err := w.try(ctx, current, attempt)
		if err != nil {
			return nil, Result{}, err
		}

		isDoubt := complaint == "" && attempt == 1
		if isDoubt {
			complaint = w.doubt(result)
		}

		if complaint == "" {
			return w.finish(ctx, current, result)
		}

		if result != nil {
			ran = new(current)
		}

		if attempt > maxRepairs || w.spent.over() {
			return w.settle(ctx, current, ran, result, complaint, attempt)
		}

		next, err := w.repair(ctx, complaint)
		if err != nil && isDoubt && ctx.Err() == nil { // nothing else is wrong with it
			return w.finish(ctx, current, result)
		}

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

// try runs a draft. A complaint is what the model is told; with it there may be a result that looks wrong.
func (w *writing) try(ctx context.Context, d draft, attempt int) (*query.Result, string, error) {
	if err := w.teller.say(ctx, StepStarted, w.index, map[string]any{"index": w.index, "instruction": w.instructed(d)}); err != nil {
		return nil, "", err
	}

	err := w.teller.sayTimes(ctx, QueryExecuting, w.index, attempt, map[string]any{"index": w.index, "query": d.Query, "attempt": attempt})
	if err != nil {
		return nil, "", err
	}

	result, err := w.read(ctx, d.Query)

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

// read runs a statement, again if another step was first to say of which moment the data are.
func (w *writing) read(ctx context.Context, statement string) (*query.Result, error) {
	for {
		result, err := w.Query.Run(ctx, w.who, query.Statement{
			Username: w.asked.Username, Namespace: w.asked.Namespace, Text: statement, Form: query.Rows, Pinned: w.teller.log.Pinned(), Reading: w.teller.log.Reading,
		})
		if !errors.Is(err, ErrMoved) || ctx.Err() != nil {
			return result, err
		}
	}
}

func isRepairable(err error) bool {
	return fault.Is(err, fault.QueryInvalid) || fault.Is(err, fault.LimitExceeded)
}

// settle ends it when the model may not correct any more: with what looks wrong and yet is a result, if there is one.
func (w *writing) settle(ctx context.Context, current draft, ran *draft, result *query.Result, complaint string, attempt int) (*Step, Result, error) {
	if result != nil {
		return w.finish(ctx, current, result)
	}

	if ran != nil {
		again, _, err := w.try(ctx, *ran, attempt+1)
		if err != nil {
			return nil, Result{}, err
		}

		if again != nil {
			return w.finish(ctx, *ran, again)
		}
	}

	return nil, Result{
		Response: "No query could be written that answers this. " + prose(strings.TrimSuffix(complaint, correctIt)), Reading: current.Reading,
		Steps: []Step{}, Outcome: Refused,
	}, nil
}

// finish records the rows.
func (w *writing) finish(ctx context.Context, d draft, result *query.Result) (*Step, Result, error) {
	d = w.weigh(d, result)

	step, err := w.teller.log.Step(ctx, Step{Index: w.index, Instruction: w.instructed(d), Query: d.Query, Reasoning: d.Reasoning}, result)

	return &step, Result{}, err
}

func (w *writing) failed(err error) (*Step, Result, error) {
	result, err := declined(err)

	return nil, result, err
}

// instructed is what the step is said to do.
func (w *writing) instructed(d draft) string { return cmp.Or(w.instruction, d.Reading) }

// ask gets a draft.
func (w *writing) ask(ctx context.Context) (draft, error) {
	d, err := completeAs[draft](ctx, w.asking, "query", nl2qlPrompt, w.messages, &llm.Schema{Name: "statement", JSON: nl2qlSchema})
	if err != nil {
		return draft{}, err
	}

	w.said(d)

	d.Reading, d.Reasoning, d.Query = prose(d.Reading), prose(d.Reasoning), strings.TrimSpace(d.Query)
	d.Clarification.clean()

	return d, w.note(ctx, append(d.Clarification.words(), d.Reading, d.Reasoning)...)
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
func answered(step Step) Result {
	result := Result{Reading: step.Instruction, Outcome: Answer}

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

// finished finds the rows of a step that were recorded before.
func finished(before []Event, index int) (step Step, ok bool) {
	for _, e := range before {
		if e.Kind == StepDone && e.Index == index && json.Unmarshal(e.Body, &step) == nil {
			return step, true
		}
	}

	return step, false
}

// recorded are the statements of a step that were tried before, with the reading of the question.
func recorded(before []Event, index int) (tried []draft) {
	var reading struct {
		Instruction string `json:"instruction"`
	}

	for _, e := range before {
		switch {
		case e.Index != index:
		case e.Kind == StepStarted:
			_ = json.Unmarshal(e.Body, &reading) // it is ours
		case e.Kind == QueryExecuting:
			d := draft{Outcome: Answer, Reading: reading.Instruction}
			if json.Unmarshal(e.Body, &d) == nil {
				tried = append(tried, d)
			}
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
