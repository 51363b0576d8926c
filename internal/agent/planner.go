package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// plannerName is reported as the model of a result that the planner made.
const plannerName = "planner"

// Planner answers without a model the questions that it understands with certainty, with one statement.
// It asks for clarification if a question has several interpretations, and refuses all others.
type Planner struct {
	Tools    Tools
	Planning bool // it writes events for a plan and an answer around its step
}

// Answer implements Agent.
func (a Planner) Answer(ctx context.Context, who auth.Principal, asked Question, log Log) (Result, error) {
	if !asked.chosenStatement() && (asked.Model != "" || asked.Provider != "") { // the planner is not a configured model; report an unknown name
		if _, err := a.Tools.Models.Choose(asked.Model, asked.Provider); err != nil {
			return Result{}, err
		}
	}

	q := &inquiry{tools: a.Tools, who: who, question: asked, recorder: newRecorder(log), planning: a.Planning}

	return (&interpreter{inquiry: q}).respond(ctx)
}

// interpreter answers one question with the planner.
type interpreter struct {
	inquiry  *inquiry
	datasets []query.About   // considered for the interpretation
	totals   []planner.Match // values that mark a row as the sum of others
	follows  bool            // the question was read as a change of the one before it
	down     error           // why no model answered; nil if none is configured
}

// respond answers the question and writes the same events as the agents with a model. If the models are down and the
// planner does not understand the question either, it returns an error before it writes a plan or a step.
func (p *interpreter) respond(ctx context.Context) (Result, error) {
	if err := p.inquiry.recordPlanning(ctx, EventPlanningStarted, Empty{}); err != nil {
		return Result{}, err
	}

	chosen, done := begun(p.inquiry.before())
	result := Result{}

	last := p.inquiry.question.LastChosen()

	switch {
	case done != nil:
	case chosen != nil: // an answer that another worker began is finished with the same statement
		chosen.Check = p.checkAgain(ctx, chosen.SQL)
	case last != nil && last.Query != "":
		chosen = &planner.Candidate{SQL: last.Query, Interpretation: last.Interpretation, Explained: last.Explained, Check: p.checkAgain(ctx, last.Query)}
	default:
		var err error
		if chosen, result, err = p.interpret(ctx); err != nil {
			return Result{}, err
		}
	}

	if err := p.inquiry.recordPlanning(ctx, EventPlan, Plan{Steps: []string{p.inquiry.question.Text}, Model: plannerName}); err != nil {
		return Result{}, err
	}

	switch {
	case done != nil:
		result = p.annotate(answered(*done))
	case chosen != nil:
		var err error
		if result, err = p.show(ctx, *chosen); err != nil {
			return Result{}, err
		}
	}

	if err := p.inquiry.recordPlanning(ctx, EventAnswerStarted, Empty{}); err != nil {
		return Result{}, err
	}

	return result, p.inquiry.recordPlanning(ctx, EventAnswer, conclusionOf(result))
}

// interpret returns the interpretation of the question, or the result to return instead of an answer.
func (p *interpreter) interpret(ctx context.Context) (*planner.Candidate, Result, error) {
	if planner.Changes(p.inquiry.question.Text) {
		return nil, p.annotate(without(draft{Outcome: NotPermitted})), nil
	}

	plan, err := p.candidates(ctx)
	if err == nil && plan.Outcome == planner.AskBack {
		err = p.recall(ctx, &plan)
	}

	if err != nil {
		return nil, Result{}, err
	}

	switch outcome := plan.Outcome; {
	case p.down != nil && (outcome != planner.Answer && outcome != planner.AskBack || refersBack(p.inquiry.question) && !p.follows):
		return nil, Result{}, p.notUnderstood()
	case outcome == planner.Answer:
		return &plan.Candidates[0], Result{}, nil
	default:
		result, err := p.instead(ctx, plan)

		return nil, result, err
	}
}

// begun returns the statement that an earlier worker started and the step with its rows, each nil if the earlier worker
// did not get that far.
func begun(before []Event) (chosen *planner.Candidate, done *Step) {
	var (
		started   StepStarted
		executing QueryExecuting
	)

	for _, e := range before {
		switch e.Kind {
		case EventStepStarted:
			_ = json.Unmarshal(e.Body, &started) // Quern wrote this body
		case EventQueryExecuting:
			if json.Unmarshal(e.Body, &executing) == nil {
				chosen = &planner.Candidate{SQL: executing.Query, Interpretation: started.Instruction, Explained: executing.Explained}
			}
		case EventStep:
			step := Step{}
			if json.Unmarshal(e.Body, &step) == nil {
				done = &step
			}
		default:
		}
	}

	return chosen, done
}

const (
	planned  = 50 // datasets whose names and definitions are considered
	profiled = 12 // most likely ones of these, whose profiles are read
)

// candidates interprets the question, using only what the caller may see. It may run a statement.
func (p *interpreter) candidates(ctx context.Context) (planner.Plan, error) {
	plan, again, err := p.plan(ctx)
	if err != nil {
		return planner.Plan{}, err
	}

	isNew, err := p.findTotals(ctx, p.datasets, func(name string) bool { return aggregates(plan, name) })
	if err != nil || !isNew {
		return plan, err
	}

	return again()
}

// plan interprets the question without running a statement. again interprets it once more, with the total rows that are known by then.
func (p *interpreter) plan(ctx context.Context) (made planner.Plan, again func() (planner.Plan, error), err error) {
	q := p.inquiry

	chosen, err := q.choose(ctx, planned)
	if err != nil {
		return planner.Plan{}, nil, err
	}

	today, _ := q.question.today(q.tools.Now())
	want := planner.Request{Question: q.question.Text, Today: today}
	matched := p.matchAside(ctx, chosen, &want)

	var known []query.About
	if len(chosen) > profiled {
		known, err = q.tools.Query.Defined(ctx, q.who, chosen)
	}

	if unmatched := <-matched; err != nil || unmatched != nil {
		return planner.Plan{}, nil, cmp.Or(err, unmatched)
	}

	if len(chosen) > profiled {
		want.Datasets = planDatasets(q.question, known, nil)
		chosen = nil

		for _, i := range planner.Likely(want, profiled) {
			chosen = append(chosen, known[i].Item)
		}
	}

	if p.datasets, err = q.tools.Query.About(ctx, q.who, chosen, func(catalog.Item) bool { return true }); err != nil {
		return planner.Plan{}, nil, err
	}

	again = func() (planner.Plan, error) {
		want.Datasets = planDatasets(q.question, p.datasets, p.totals)

		return p.follow(ctx, chosen, want)
	}

	made, err = again()

	return made, again, err
}

// matchAside calls match in a goroutine and sends its error on the channel when it has ended.
func (p *interpreter) matchAside(ctx context.Context, chosen []catalog.Item, want *planner.Request) <-chan error {
	matched := make(chan error, 1)

	go func() { matched <- fault.Try(func() error { return p.match(ctx, chosen, want) }) }()

	return matched
}

// match looks up the words of the question among the values of the datasets and stores the matches in want.
func (p *interpreter) match(ctx context.Context, chosen []catalog.Item, want *planner.Request) (err error) {
	want.Matches, p.totals, err = p.lookUp(ctx, chosen, want.Question)

	return err
}

// lookUp returns the values of the datasets that the words of a text mean, and the values that mark total rows.
func (p *interpreter) lookUp(ctx context.Context, chosen []catalog.Item, text string) (found, marks []planner.Match, err error) {
	asked := p.inquiry.question

	var local []catalog.Dataset

	for _, d := range chosen {
		if inNamespace(asked, d) {
			local = append(local, d.Dataset)
		}
	}

	if len(local) == 0 {
		return nil, nil, nil
	}

	matched, err := p.inquiry.tools.Query.Match(ctx, p.inquiry.who, query.MatchRequest{
		Username: asked.Username, Namespace: asked.Namespace, Seen: local, Question: text + form.TotalNames(),
	})

	for _, m := range matched.Matches {
		one := planner.Match{Dataset: m.Dataset, Column: m.Column, Value: m.Value, Start: m.Start, End: m.End, Guess: m.Guess(), Score: m.Score}

		switch {
		case m.End <= len(text):
			found = append(found, one)
		case m.Start >= len(text) && !one.Guess && form.IsTotal(m.Value):
			marks = append(marks, one)
		}
	}

	return found, marks, err
}

func planDatasets(asked Question, known []query.About, totals []planner.Match) []planner.Dataset {
	list := make([]planner.Dataset, len(known))
	for i, d := range known {
		list[i] = planDataset(asked, d)

		for _, m := range totals {
			if m.Dataset == list[i].Name {
				list[i].Totals = append(list[i].Totals, m)
			}
		}
	}

	// A join leads to one row only if the column that it leads to is a key.
	for i := range list {
		for j := range list[i].Joins {
			one := &list[i].Joins[j]
			one.IsKey = slices.ContainsFunc(list, func(d planner.Dataset) bool {
				return d.Name == one.To && slices.ContainsFunc(d.Keys, func(key []string) bool { return len(key) == 1 && key[0] == one.Key })
			})
		}

		list[i].Meaning = known[i].Meaning
	}

	return list
}

// planDataset returns what the planner needs to know about a dataset.
func planDataset(asked Question, d query.About) (known planner.Dataset) {
	known.Name, known.Rows = nameOf(asked, d.Item), d.RowCount
	profiles := map[string]query.ColumnProfile{}

	known.Keys = d.Keys()

	if d.Profile != nil {
		for _, c := range d.Profile.Columns {
			profiles[c.Name] = c
		}

		for _, j := range d.Profile.Joins {
			known.Joins = append(known.Joins, meaning.SourceJoin{Column: j.Column, To: nameOf(asked, j.With), Key: j.To, Share: j.Share})
		}
	}

	for _, c := range d.Columns[:min(len(d.Columns), maxColumns)] {
		p := profiles[c.Name]
		one := meaning.SourceColumn{
			Name: c.Name, Type: c.Type, Description: d.Definition.SchemaDefinition[c.Name], Distinct: p.Distinct, Nulls: p.Nulls, Min: valueOf(p.Min), Max: valueOf(p.Max),
		}

		for _, top := range p.TopValues {
			one.Values = append(one.Values, valueOf(top.Value))
		}

		known.Columns = append(known.Columns, one)
	}

	return known
}

// valueOf decodes a value. It returns nil if there is none.
func valueOf(content json.RawMessage) any {
	var value any
	if len(content) == 0 || json.Unmarshal(content, &value) != nil {
		return nil
	}

	return value
}

// instead returns the result for a question that is not answered: no data, a refusal or a clarification. The text may
// quote values, so the datasets that they come from are recorded as read.
func (p *interpreter) instead(ctx context.Context, plan planner.Plan) (Result, error) {
	if len(p.datasets) == 0 {
		return p.annotate(without(draft{Outcome: NoData})), nil
	}

	var read []query.Read

	for _, d := range p.datasets {
		if d.Profile != nil {
			read = append(read, query.Read{
				Account: d.Account, ID: d.ID, Dataset: d.Owner + "/" + d.Namespace + "/" + d.Name, Snapshot: d.Profile.Snapshot, CommittedAt: d.Profile.ComputedAt,
			})
		}
	}

	if err := noteQuoted(ctx, p.inquiry.recorder.log, read); err != nil {
		return Result{}, err
	}

	if plan.Outcome == planner.Refuse {
		return p.annotate(Result{Response: refusalOf(plan) + p.inquiry.nearby(ctx), Steps: []Step{}, Outcome: Refused, Explained: unusedWords(plan)}), nil
	}

	choice := &Choice{Question: "The question has more than one interpretation. Which one do you mean?"}
	if plan.Outcome == planner.DidYouMean {
		choice.Question = "Did you mean this?"
	}

	for _, c := range plan.Candidates {
		content, err := json.Marshal(c.Form)
		if err != nil {
			return Result{}, err
		}

		choice.Options = append(choice.Options, Option{Interpretation: c.Interpretation, Query: c.SQL, Form: content, Explained: c.Explained})
	}

	return p.annotate(Result{
		Response: choice.Question + p.inquiry.nearby(ctx), Interpretation: plan.Candidates[0].Interpretation, Steps: []Step{}, Outcome: Clarification, Clarification: choice,
	}), nil
}

// show executes the statement of an interpretation and records its rows.
func (p *interpreter) show(ctx context.Context, chosen planner.Candidate) (Result, error) {
	asked := statement{
		instruction: chosen.Interpretation, text: chosen.SQL, attempt: 1, model: plannerName, basis: BasisRules, explained: chosen.Explained,
	}

	leftOut, err := p.inquiry.leftOut(ctx, asked, chosen.Check)
	if err != nil {
		return Result{}, err
	}

	rows, err := p.inquiry.execute(ctx, asked)

	switch {
	case isRepairable(err) && p.down != nil:
		return Result{}, p.notUnderstood()
	case isRepairable(err):
		return p.annotate(Result{
			Response: "The statement for this interpretation failed: " + fault.From(err).Message, Interpretation: chosen.Interpretation, Steps: []Step{}, Outcome: Refused,
		}), nil
	case err != nil:
		return Result{}, err
	}

	reasoning := prose(strings.Join(append([]string{"Answered by the planner, without a model."}, chosen.Notes...), " "))

	step, err := p.inquiry.recorder.log.Step(ctx, Step{
		Instruction: chosen.Interpretation, Query: chosen.SQL, Reasoning: reasoning, Basis: BasisRules, Explained: chosen.Explained, Doubts: leftOut,
	}, rows)
	if err != nil {
		return Result{}, err
	}

	return p.annotate(answered(step)), nil
}
