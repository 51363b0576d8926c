package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
)

// maxRepairs is how many times a model may correct its statement.
const maxRepairs = 3

// writer gets the statement of a step from a model and executes it.
type writer struct {
	dialogue    *dialogue
	index       int
	instruction string // from a plan; if empty, the interpretation of the model is used
	messages    []llm.Message
	consults    bool     // it compares the result with a second opinion of the planner
	opinion     *opinion // nil if there is no second opinion
	verdict     verdict
	isPart      bool    // it is one of several steps, so that the instruction is what is asked
	doubted     bool    // the model was told once what is doubtful
	reformed    bool    // the model was told once that its form cannot be used
	leftOut     []Doubt // about the rows that the statement at hand does not count
}

func newWriter(d *dialogue, index int, instruction, prompt string) *writer {
	return &writer{dialogue: d, index: index, instruction: instruction, messages: []llm.Message{{Role: llm.User, Text: prompt}}}
}

// draft is a completion of the model.
type draft struct {
	Reasoning      string  `json:"reasoning"`
	Interpretation string  `json:"interpretation"`
	Outcome        Outcome `json:"outcome"`
	Form           string  `json:"form,omitempty"` // JSON of a form; Query is then what the model thinks of it, and is replaced
	Query          string  `json:"query"`
	Clarification  *Choice `json:"clarification"`

	basis    Basis
	filled   *filled     // the form, if it compiles
	recorded []Explained // of a form that an earlier worker compiled
	unusable string      // why the form cannot be used, although the model corrected it
}

// write asks the model for a statement, and for corrections until the statement returns rows. If the model gives up, the
// step is nil and the result says why. A statement that an earlier worker tried is not requested from the model again,
// and recorded rows are not read again.
func (w *writer) write(ctx context.Context) (*Step, Result, error) {
	if done, ok := finished(w.dialogue.inquiry.before(), w.index); ok {
		return &done, Result{}, nil
	}

	var (
		current draft
		ran     *draft // last draft that ran
		err     error
	)

	hear, stop := w.consult(ctx)
	defer stop()

	tried := recorded(w.dialogue.inquiry.before(), w.index)

	if len(tried) > 0 {
		current = tried[len(tried)-1]
		w.remember(current)
	} else if current, err = w.ask(ctx); err != nil {
		return w.failed(err)
	}

	if current.Outcome == Answer || current.Outcome == NoData {
		w.opinion = hear()
	}

	w.doubted = len(tried) > 1

	if current, err = w.reconsider(ctx, current); err != nil {
		return w.failed(err)
	}

	for attempt := max(len(tried), 1); ; attempt++ {
		if current.Outcome != Answer || current.Query == "" {
			return nil, w.without(current), nil
		}

		result, complaint, err := w.try(ctx, current, attempt)
		if err != nil {
			return nil, Result{}, err
		}

		isDoubt := complaint == "" && !w.doubted
		if isDoubt {
			complaint = w.doubt(ctx, current, result)
		}

		if complaint == "" {
			return w.finish(ctx, current, result)
		}

		if result != nil {
			ran = new(current)
		}

		if attempt > maxRepairs || w.dialogue.spent.over() {
			return w.settle(ctx, current, ran, result, complaint, attempt)
		}

		next, err := w.repair(ctx, complaint)
		if err != nil && isDoubt && ctx.Err() == nil { // the second opinion was the only complaint
			return w.finish(ctx, current, result)
		}

		if err != nil {
			closeResult(result)

			return w.failed(err)
		}

		if result != nil && sameQuery(next.Query, current.Query) { // the model confirms its statement
			return w.finish(ctx, next, result)
		}

		closeResult(result)

		current = next
	}
}

// try runs a draft. It returns a complaint for the model if the statement failed or its result looks wrong; in the
// latter case it also returns the result.
func (w *writer) try(ctx context.Context, d draft, attempt int) (*query.Result, string, error) {
	asked := statement{index: w.index, instruction: w.instructed(d), text: d.Query, attempt: attempt, basis: d.basis, explained: d.explained()}

	var err error
	if w.leftOut, err = w.dialogue.inquiry.leftOut(ctx, asked, d.check()); err != nil {
		return nil, "", err
	}

	result, err := w.dialogue.inquiry.execute(ctx, asked)

	switch {
	case isRepairable(err):
		return nil, w.tellable(err, d.Query), nil
	case err != nil:
		return nil, "", err
	}

	complaint, err := w.suspect(ctx, d.Query, result)
	if isRepairable(err) { // reading a row can fail too
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

// settle ends the step when the model may not correct its statement any more. It uses a result that looks wrong if
// there is one, else it refuses.
func (w *writer) settle(ctx context.Context, current draft, ran *draft, result *query.Result, complaint string, attempt int) (*Step, Result, error) {
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

	return nil, noStatement(current, strings.TrimSuffix(complaint, correctIt)), nil
}

func noStatement(d draft, why string) Result {
	return Result{Response: "No statement was found that answers the question. " + prose(why), Interpretation: d.Interpretation, Steps: []Step{}, Outcome: Refused}
}

// finish records the rows of the step.
func (w *writer) finish(ctx context.Context, d draft, result *query.Result) (*Step, Result, error) {
	reasoning, found := w.opinion.weigh(d, result)

	w.verdict = found
	if w.instruction == "" { // a step of a plan has its doubts only
		d.Reasoning = reasoning
	}

	step, err := w.dialogue.inquiry.recorder.log.Step(ctx, Step{
		Index: w.index, Instruction: w.instructed(d), Query: d.Query, Reasoning: d.Reasoning, Basis: d.basis, Explained: d.explained(),
		Doubts: slices.Concat(w.leftOut, w.audit(ctx, d, result), w.opinion.doubts(w.verdict)),
	}, result)

	return &step, Result{}, err
}

func (w *writer) failed(err error) (*Step, Result, error) {
	result, err := declined(err)

	return nil, result, err
}

// instructed returns the instruction of the step as events show it.
func (w *writer) instructed(d draft) string { return cmp.Or(w.instruction, d.Interpretation) }

// ask requests a draft from the model. If its form cannot be used, the model may correct it once; after that a form that
// cannot be used is ignored, and without a statement of the model there is no answer.
func (w *writer) ask(ctx context.Context) (draft, error) {
	for {
		d, err := w.request(ctx)
		if err != nil {
			return draft{}, err
		}

		complaint, err := w.compile(ctx, &d)

		switch {
		case err != nil:
			return draft{}, err
		case complaint != "" && !w.reformed:
			w.reformed = true
			w.messages = append(w.messages, llm.Message{Role: llm.User, Text: complaint})

			continue
		case complaint != "":
			d.unusable = complaint
		}

		return d, w.dialogue.noteWords(ctx, append(d.Clarification.words(), d.Interpretation, d.Reasoning)...)
	}
}

func (w *writer) request(ctx context.Context) (draft, error) {
	d, err := completeAs[draft](ctx, w.dialogue, "query", nl2qlPrompt, w.messages, &llm.Schema{Name: "statement", JSON: nl2qlSchema})
	if err != nil {
		return draft{}, err
	}

	w.remember(d)

	d.Interpretation, d.Reasoning, d.Query = prose(d.Interpretation), prose(d.Reasoning), strings.TrimSpace(d.Query)
	d.Form = strings.TrimSpace(d.Form)
	d.Clarification.clean()

	return d, nil
}

// repair sends a complaint to the model and requests another draft.
func (w *writer) repair(ctx context.Context, complaint string) (draft, error) {
	w.messages = append(w.messages, llm.Message{Role: llm.User, Text: complaint})

	return w.ask(ctx)
}

// remember adds a draft to the messages, so that the model sees what it is correcting.
func (w *writer) remember(d draft) {
	w.messages = append(w.messages, llm.Message{Role: llm.Assistant, Text: plainJSON(d)})
}

// finished returns a step whose rows were recorded before an interruption.
func finished(before []Event, index int) (step Step, ok bool) {
	for _, e := range before {
		if e.Kind == EventStep && e.Index == index && json.Unmarshal(e.Body, &step) == nil {
			return step, true
		}
	}

	return step, false
}

// recorded returns the statements of a step that were tried before an interruption, with the interpretation of the
// question.
func recorded(before []Event, index int) (tried []draft) {
	var started StepStarted

	for _, e := range before {
		switch {
		case e.Index != index:
		case e.Kind == EventStepStarted:
			_ = json.Unmarshal(e.Body, &started) // Quern wrote this body
		case e.Kind == EventQueryExecuting:
			var executing QueryExecuting
			if json.Unmarshal(e.Body, &executing) == nil {
				tried = append(tried, draft{
					Outcome: Answer, Interpretation: started.Instruction, Query: executing.Query, basis: executing.Basis, recorded: executing.Explained,
				})
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
