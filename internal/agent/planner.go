package agent

import (
	"cmp"
	"context"
	"encoding/json"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// plannerName is told in the place of a model's.
const plannerName = "planner"

// Planner answers without a model what it surely can: one dataset, one statement. It asks back when there are two
// readings, and refuses the rest.
type Planner struct {
	NL2QL

	Planning bool // it tells a plan and an answer around its step
}

// Answer implements Agent.
func (a Planner) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	if asked.Model != "" || asked.Provider != "" { // it is none of them
		if _, err := a.Models.Choose(asked.Model, asked.Provider); err != nil {
			return Result{}, err
		}
	}

	return a.planning(who, asked, tellerOf(log)).answer(ctx)
}

// planning is a question on its way.
type planning struct {
	Planner

	who      auth.Principal
	asked    Question
	teller   *teller
	datasets []query.About // that the reading is of
	down     error         // why no model answers, where there are models
}

func (a Planner) planning(who auth.Principal, asked Question, t *teller) *planning {
	return &planning{Planner: a, who: who, asked: asked, teller: t}
}

// answer tells what happens as the agents with a model do. A fallback that has no answer tells nothing.
func (p *planning) answer(ctx context.Context) (Result, error) {
	if p.Planning {
		if err := p.teller.say(ctx, PlanningStarted, 0, struct{}{}); err != nil {
			return Result{}, err
		}
	}

	reading, done := begun(p.teller.log.Before())
	result := Result{}

	// What another worker began is finished as it was begun.
	if reading == nil && done == nil {
		var err error
		if reading, result, err = p.read(ctx); err != nil {
			return Result{}, err
		}
	}

	if p.Planning {
		if err := p.teller.say(ctx, Planned, 0, Plan{Steps: []string{p.asked.Text}, Model: plannerName}); err != nil {
			return Result{}, err
		}
	}

	switch {
	case done != nil:
		result = p.say(answered(*done))
	case reading != nil:
		var err error
		if result, err = p.run(ctx, *reading); err != nil {
			return Result{}, err
		}
	}

	if !p.Planning {
		return result, nil
	}

	if err := p.teller.say(ctx, AnswerStarted, 0, struct{}{}); err != nil {
		return Result{}, err
	}

	return result, p.teller.say(ctx, Answered, 0, conclusionOf(result))
}

// read finds the reading of the question, or what is said instead of an answer.
func (p *planning) read(ctx context.Context) (*planner.Candidate, Result, error) {
	if planner.Changes(p.asked.Text) {
		return nil, p.say(without(draft{Outcome: NotPermitted})), nil
	}

	plan, err := p.plan(ctx)
	if err != nil {
		return nil, Result{}, err
	}

	switch outcome := plan.Outcome(); {
	case p.down != nil && (outcome == planner.Refuse || p.refersBack()):
		return nil, Result{}, p.unread()
	case outcome == planner.Answer:
		return &plan.Candidates[0], Result{}, nil
	default:
		result, err := p.instead(ctx, plan)

		return nil, result, err
	}
}

// begun is the statement that was about to run before, and the rows that it had, if it came so far.
func begun(before []Event) (reading *planner.Candidate, done *Step) {
	var said struct {
		Instruction string `json:"instruction"`
		Query       string `json:"query"`
	}

	for _, e := range before {
		switch e.Kind {
		case StepStarted:
			_ = json.Unmarshal(e.Body, &said) // it is ours
		case QueryExecuting:
			if json.Unmarshal(e.Body, &said) == nil {
				reading = &planner.Candidate{SQL: said.Query, Reading: said.Instruction}
			}
		case StepDone:
			step := Step{}
			if json.Unmarshal(e.Body, &step) == nil {
				done = &step
			}
		default:
		}
	}

	return reading, done
}

// totals are looked up beside the words of a question: the names of rows that are sums of the others.
const totals = " . Total . Totals . TOTAL . Grand Total ."

const (
	planned  = 50 // datasets whose names are read
	profiled = 4  // of them, whose values are looked at
)

// plan reads the question with what the asker may see, and nothing else.
func (p *planning) plan(ctx context.Context) (planner.Plan, error) {
	chosen, err := p.choose(ctx, p.who, p.asked, planned)
	if err != nil {
		return planner.Plan{}, err
	}

	today, _ := p.asked.today(p.Now())
	want := planner.Request{Question: p.asked.Text, Today: today}
	linked := p.linkAside(ctx, chosen, &want)

	var known []query.About
	if len(chosen) > profiled {
		known, err = p.Query.Defined(ctx, chosen)
	}

	if unlinked := <-linked; err != nil || unlinked != nil {
		return planner.Plan{}, cmp.Or(err, unlinked)
	}

	if len(chosen) > profiled {
		want.Datasets = planDatasets(p.asked, known)
		chosen = nil

		for _, i := range planner.Likely(want, profiled) {
			chosen = append(chosen, known[i].Item)
		}
	}

	if p.datasets, err = p.Query.AboutEach(ctx, p.who, chosen, func(catalog.Item) bool { return true }); err != nil {
		return planner.Plan{}, err
	}

	want.Datasets = planDatasets(p.asked, p.datasets)

	return planner.Make(want), nil
}

// linkAside links in a goroutine of its own, and says when it is done.
func (p *planning) linkAside(ctx context.Context, chosen []catalog.Item, want *planner.Request) <-chan error {
	linked := make(chan error, 1)

	go func() { linked <- fault.Try(func() error { return p.link(ctx, chosen, want) }) }()

	return linked
}

// link looks up the words of the question among the values of the datasets.
func (p *planning) link(ctx context.Context, chosen []catalog.Item, want *planner.Request) error {
	var local []catalog.Dataset

	for _, d := range chosen {
		if inNamespace(p.asked, d) {
			local = append(local, d.Dataset)
		}
	}

	if len(local) == 0 {
		return nil
	}

	linked, err := p.Query.Link(ctx, p.who, query.LinkRequest{
		Username: p.asked.Username, Namespace: p.asked.Namespace, Seen: local, Question: p.asked.Text + totals,
	})

	for _, l := range linked.Links {
		one := planner.Link{Dataset: l.Dataset, Column: l.Column, Value: l.Value, Start: l.Start, End: l.End, Guess: l.Guess(), Score: l.Score}

		switch {
		case l.End <= len(p.asked.Text):
			want.Links = append(want.Links, one)
		case l.Start >= len(p.asked.Text) && !one.Guess:
			want.Totals = append(want.Totals, one)
		}
	}

	return err
}

func planDatasets(asked Question, known []query.About) []planner.Dataset {
	list := make([]planner.Dataset, len(known))
	for i, d := range known {
		list[i] = planDataset(asked, d)
	}

	return list
}

// planDataset is a dataset as the planner knows it.
func planDataset(asked Question, d query.About) planner.Dataset {
	known := planner.Dataset{Name: nameOf(asked, d.Item), Description: d.Definition.DataDescription, Rows: d.RowCount}
	profiles := map[string]query.ColumnProfile{}

	if d.Profile != nil {
		known.Keys = d.Profile.Keys

		for _, c := range d.Profile.Columns {
			profiles[c.Name] = c
		}
	}

	for _, c := range d.Columns[:min(len(d.Columns), maxColumns)] {
		p := profiles[c.Name]
		one := planner.Column{
			Name: c.Name, Type: c.Type, Description: d.Definition.SchemaDefinition[c.Name], Distinct: p.Distinct, Nulls: p.Nulls, Min: valueOf(p.Min), Max: valueOf(p.Max),
		}

		for _, top := range p.TopValues {
			one.Values = append(one.Values, valueOf(top.Value))
		}

		known.Columns = append(known.Columns, one)
	}

	return known
}

// valueOf is nil if there is none.
func valueOf(content json.RawMessage) any {
	var value any
	if len(content) == 0 || json.Unmarshal(content, &value) != nil {
		return nil
	}

	return value
}

const maxOptions = 3 // that are asked back

// instead is what comes of a question that is not answered. It may quote values, so it notes what they are of.
func (p *planning) instead(ctx context.Context, plan planner.Plan) (Result, error) {
	if len(p.datasets) == 0 {
		return p.say(without(draft{Outcome: NoData})), nil
	}

	var read []query.Read

	for _, d := range p.datasets {
		if d.Profile != nil {
			read = append(read, query.Read{
				Account: d.Account, ID: d.ID, Dataset: d.Owner + "/" + d.Namespace + "/" + d.Name, Snapshot: d.Profile.Snapshot, CommittedAt: d.Profile.ComputedAt,
			})
		}
	}

	if err := p.teller.log.Reading(ctx, read); err != nil {
		return Result{}, err
	}

	if plan.Outcome() == planner.Refuse {
		return p.say(Result{Response: refusalOf(plan), Steps: []Step{}, Outcome: Refused}), nil
	}

	choice := &Choice{Question: "The question can be read in more than one way. Which one is meant?"}

	for _, c := range plan.Candidates[:min(len(plan.Candidates), maxOptions)] {
		if c.Confidence >= planner.Close*plan.Candidates[0].Confidence {
			choice.Options = append(choice.Options, c.Reading)
		}
	}

	return p.say(Result{
		Response: choice.Question, Reading: plan.Candidates[0].Reading, Steps: []Step{}, Outcome: Clarification, Clarification: choice,
	}), nil
}

// run gets the rows of a reading.
func (p *planning) run(ctx context.Context, reading planner.Candidate) (Result, error) {
	if err := p.teller.say(ctx, StepStarted, 0, map[string]any{"index": 0, "instruction": reading.Reading, "model": plannerName}); err != nil {
		return Result{}, err
	}

	if err := p.teller.say(ctx, QueryExecuting, 0, map[string]any{"index": 0, "query": reading.SQL, "attempt": 1}); err != nil {
		return Result{}, err
	}

	rows, err := p.Query.Run(ctx, p.who, query.Statement{
		Username: p.asked.Username, Namespace: p.asked.Namespace, Text: reading.SQL, Form: query.Rows, Pinned: p.teller.log.Pinned(), Reading: p.teller.log.Reading,
	})

	switch {
	case isRepairable(err) && p.down != nil:
		return Result{}, p.unread()
	case isRepairable(err):
		return p.say(Result{
			Response: "The query for this reading failed: " + fault.From(err).Message, Reading: reading.Reading, Steps: []Step{}, Outcome: Refused,
		}), nil
	case err != nil:
		return Result{}, err
	}

	step, err := p.teller.log.Step(ctx, Step{Instruction: reading.Reading, Query: reading.SQL, Reasoning: "Read by rules, without a model."}, rows)
	if err != nil {
		return Result{}, err
	}

	return p.say(answered(step)), nil
}
