package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/verified"
)

// BasisVerified is the basis of a statement that a person verified.
const BasisVerified Basis = "verified"

// verifiedName is reported as the model of a result that a verified question made.
const verifiedName = "verified"

// VerifiedAs says which verified question answered, and with which values.
type VerifiedAs struct {
	ID         uuid.UUID        `json:"id"`
	Question   string           `json:"question"`
	Author     string           `json:"author"`
	VerifiedAt time.Time        `json:"verifiedAt"`
	Parameters []verified.Given `json:"parameters"`
}

// Verified answers with verified questions, and leaves all other questions to another agent.
type Verified struct {
	Agent    Agent
	Tools    Tools
	Planning bool // it writes events for a plan and an answer around its step
}

// Answer implements Agent.
func (a Verified) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	if asked.By == ByRules {
		return Planner{Tools: a.Tools, Planning: a.Planning}.Answer(ctx, who, asked, log)
	}

	v := &verifiedAnswer{inquiry: &inquiry{tools: a.Tools, who: who, question: asked, recorder: newRecorder(log), planning: a.Planning}}

	if !v.mayAnswer() {
		return a.Agent.Answer(ctx, who, asked, log)
	}

	found, err := v.find(ctx)
	if err != nil {
		return Result{}, err
	}

	if found == nil {
		return a.Agent.Answer(ctx, who, asked, log)
	}

	return v.respond(ctx, *found)
}

// verifiedAnswer is an answer with a verified question while it is made.
type verifiedAnswer struct{ inquiry *inquiry }

// mayAnswer reports whether a verified question may answer. A caller who names a model, or who tells a model more than the question says,
// wants that model. An answer that another agent began stays with it.
func (v *verifiedAnswer) mayAnswer() bool {
	q := v.inquiry.question

	return q.By == "" && q.Model == "" && q.Provider == "" && q.HelperPrompt == "" && len(q.Chosen) == 0 && q.AsOf.IsZero() && !refersBack(q) && !v.isOthers()
}

// isOthers reports whether another agent began the answer.
func (v *verifiedAnswer) isOthers() bool {
	return slices.ContainsFunc(v.inquiry.before(), func(e Event) bool {
		var body struct {
			Model string `json:"model"` // of Plan and StepStarted
		}

		return (e.Kind == EventPlan || e.Kind == EventStepStarted) && (json.Unmarshal(e.Body, &body) != nil || body.Model != verifiedName)
	})
}

// found is the verified question that answers, with the values of its parameters. done is the step if its rows are already recorded.
type found struct {
	verified.Match

	as   VerifiedAs
	done *Step
}

// find returns the verified question that answers, nil if there is none. An answer that another worker began is finished with the same
// statement and the same values.
func (v *verifiedAnswer) find(ctx context.Context) (*found, error) {
	q := v.inquiry.question

	if begun, err := v.begun(ctx); err != nil || begun != nil {
		return begun, err
	}

	match, err := v.inquiry.tools.Verified.Match(ctx, v.inquiry.who, q.path(), q.Text)
	if err != nil || match == nil || !v.isWithin(match.Question) {
		return nil, err
	}

	return &found{Match: *match, as: VerifiedAs{
		ID: match.Question.ID, Question: match.Question.Question, Author: match.Question.Author, VerifiedAt: match.Question.VerifiedAt,
		Parameters: append([]verified.Given{}, match.Given...),
	}}, nil
}

// isWithin reports whether the verified question reads only datasets that the caller named, if the caller named any.
func (v *verifiedAnswer) isWithin(one verified.Question) bool {
	asked := v.inquiry.question

	return len(asked.Datasets) == 0 || !slices.ContainsFunc(one.Needs, func(n query.Need) bool {
		return !slices.ContainsFunc(asked.Datasets, func(name string) bool {
			at := asked.path().Named(name)

			return strings.EqualFold(n.Dataset, v.inquiry.who.NameOf(at.Username)+"/"+at.Namespace+"/"+at.Dataset)
		})
	})
}

// begun returns what an earlier worker began.
func (v *verifiedAnswer) begun(ctx context.Context) (*found, error) {
	var (
		executing QueryExecuting
		done      *Step
	)

	for _, e := range v.inquiry.before() {
		switch e.Kind {
		case EventQueryExecuting:
			_ = json.Unmarshal(e.Body, &executing) // Quern wrote this body
		case EventStep:
			step := Step{}
			if json.Unmarshal(e.Body, &step) == nil {
				done = &step
			}
		default:
		}
	}

	if executing.Verified == nil {
		return nil, nil //nolint:nilnil // nothing was begun
	}

	one, err := v.inquiry.tools.Verified.Get(ctx, v.inquiry.who, v.inquiry.question.path(), executing.Verified.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}

	if done == nil && (err != nil || one.Query != executing.Query || one.Status != verified.Active) {
		return nil, fault.New(fault.Conflict, "The verified question was changed while it was being answered. Ask again.")
	}

	return &found{Match: verified.Match{Question: one, Given: executing.Verified.Parameters}, as: *executing.Verified, done: done}, nil
}

// respond runs the statement and writes the same events as the other agents.
func (v *verifiedAnswer) respond(ctx context.Context, one found) (Result, error) {
	plan := Plan{Steps: []string{v.inquiry.question.Text}, Model: verifiedName}

	if err := errors.Join(v.inquiry.recordPlanning(ctx, EventPlanningStarted, Empty{}), v.inquiry.recordPlanning(ctx, EventPlan, plan)); err != nil {
		return Result{}, err
	}

	result, err := v.show(ctx, one)
	if err != nil {
		return Result{}, err
	}

	result.Response, result.Model = prose(result.Response), verifiedName

	if err := v.inquiry.recordPlanning(ctx, EventAnswerStarted, Empty{}); err != nil {
		return Result{}, err
	}

	return result, v.inquiry.recordPlanning(ctx, EventAnswer, conclusionOf(result))
}

// show runs the statement with the rights of the caller and records its rows.
func (v *verifiedAnswer) show(ctx context.Context, one found) (Result, error) {
	if one.done != nil {
		return answered(*one.done), nil
	}

	interpretation := prose(one.Question.Interpreted(one.Given))

	rows, err := v.inquiry.execute(ctx, statement{
		instruction: interpretation, text: one.Question.Query, attempt: 1, model: verifiedName, basis: BasisVerified, explained: one.explained(),
		verified: &one.as, needs: one.Question.Needs,
	})

	if changed, ok := errors.AsType[*query.ChangedError](err); ok {
		if err := v.inquiry.tools.Verified.Suspend(ctx, v.inquiry.who, one.Question, changed.Reason); err != nil {
			return Result{}, err
		}

		return Result{
			Response:       "The verified question was suspended because its data has changed. " + changed.Reason + " Ask again for an answer that is not verified.",
			Interpretation: interpretation, Steps: []Step{}, Outcome: Refused,
		}, nil
	}

	if err != nil {
		return Result{}, err
	}

	step, err := v.inquiry.recorder.log.Step(ctx, Step{
		Instruction: interpretation, Query: one.Question.Query, Reasoning: prose("Answered by a question that " + one.as.Author + " verified on " + one.as.VerifiedAt.Format(time.DateOnly) + "."),
		Basis: BasisVerified, Explained: one.explained(), Verified: &one.as,
	}, rows)
	if err != nil {
		return Result{}, err
	}

	return answered(step), nil
}

// explained says which words were taken for values.
func (f found) explained() (list []Explained) {
	for _, p := range f.Question.Parameters {
		words, ok := f.Words[p.Name]
		if !ok {
			continue
		}

		one := Explained{Words: words, As: "number"}

		switch dataset, column, isColumn := strings.Cut(p.Column, "."); {
		case isColumn:
			one.As, one.Dataset, one.Column = "value", dataset, column
		case p.Period != "":
			one.As = "period"
		}

		list = append(list, one)
	}

	return list
}

// suggest returns the text of a result that is no answer, with similar verified questions. They are never an answer.
func (q *inquiry) suggest(ctx context.Context, result Result) string {
	if result.Outcome != Refused && result.Outcome != NoData && result.Outcome != Clarification {
		return result.Response
	}

	return result.Response + q.nearby(ctx)
}

// nearby returns a list of similar verified questions, for the text of a question that was not answered. It returns "" if there are none.
func (q *inquiry) nearby(ctx context.Context) string {
	if q.tools.Verified == nil {
		return ""
	}

	near, err := q.tools.Verified.Near(ctx, q.who, q.question.path(), q.question.Text)
	if err != nil || len(near) == 0 { // only a suggestion
		return ""
	}

	var (
		reads []query.Read
		list  []string
	)

	for _, one := range near {
		list = append(list, one.Text)

		reads = append(reads, one.Reads...)
	}

	if noteQuoted(ctx, q.recorder.log, unique(reads)) != nil {
		return ""
	}

	return "\n\nVerified questions that are similar:\n- " + strings.Join(list, "\n- ")
}
