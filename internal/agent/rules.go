package agent

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/planner"
)

// unreached marks the error of a model that was unavailable in its first turn, so that it has not answered anything
// yet.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// isDown reports whether the question failed because no model could be reached and no plan or step was recorded yet. A
// caller who chose a model or provider does not get an answer from the planner instead.
func (d *dialogue) isDown(err error) bool {
	q := d.inquiry
	_, failed := errors.AsType[unreached](err)

	return failed && q.question.Model == "" && q.question.Provider == "" && q.recorder.count(EventPlan, 0) == 0 && q.recorder.count(EventStepStarted, 0) == 0
}

// byRules answers with the planner when models cannot be reached. If the planner does not understand the question, it
// fails with the error of the model.
func (d *dialogue) byRules(ctx context.Context, down error) (Result, error) {
	p := &interpreter{inquiry: d.inquiry, down: down}

	result, err := p.respond(ctx)
	result.Usage = new(d.spent.usage())

	return result, err
}

// wasByRules reports whether another worker began the answer with the planner.
func wasByRules(before []Event) bool {
	for _, e := range before {
		var body struct {
			Model string `json:"model"` // of Plan and StepStarted
		}

		if (e.Kind == EventPlan || e.Kind == EventStepStarted) && json.Unmarshal(e.Body, &body) == nil && body.Model == plannerName {
			return true
		}
	}

	return false
}

// errBegun is the reason for an answer that another worker began with the planner. The original error of the model is
// not recorded.
func errBegun() error {
	return fault.New(fault.Unavailable, "No model could be reached. Try again later.")
}

// notUnderstood returns the error of the model, with the addition that the planner does not understand the question. The text
// does not contain data.
func (p *interpreter) notUnderstood() error {
	failed := *fault.From(p.down)
	failed.Message += " The planner does not understand the question either."

	return &failed
}

// annotate completes a result of the planner with notes on how the question was interpreted, and cleans it: names and values
// in the text come from data.
func (p *interpreter) annotate(result Result) Result {
	// The text of an answer is made of cells, which are escaped already, and says the interpretation itself.
	if result.Outcome != Answer {
		result.Response = prose(result.Response)
	}

	words := []string{result.Response}

	switch {
	case p.down != nil && result.Interpretation != "" && result.Outcome != Answer:
		words = []string{prose("No model could be reached, so the planner interpreted the question: " + result.Interpretation + "."), result.Response}
	case p.down != nil:
		words = []string{"No model could be reached, so the planner answered.", result.Response}
	case refersBack(p.inquiry.question) && !p.follows:
		words = []string{"The planner interpreted this question on its own, without the earlier questions of the conversation.", result.Response}
	}

	if p.inquiry.question.HelperPrompt != "" {
		words = append(words, "The planner does not use `helperPrompt`.")
	}

	result.Response, result.Model = strings.Join(words, "\n\n"), plannerName
	result.Clarification.clean()

	return result
}

// back matches a beginning or a word that makes no sense without an earlier question.
var back = regexp.MustCompile(`(?i)^\W*(and|or|but|also|now|then|(what|how) about)\b|\b(those|these|them|they|the same|the others?|(this|that) (one|time)|instead|as well)\b|\b(of|about|for|in|to) (it|that|this)\W*$`)

// refersBack reports whether the question plainly refers to an earlier one.
func refersBack(asked Question) bool {
	return len(asked.Earlier) > 0 && !asked.chosenStatement() && back.MatchString(asked.Text)
}

// refusalOf says why the planner has no answer, and which questions it can answer.
func refusalOf(plan planner.Plan) string {
	var sentences []string

	if plan.Language != "" {
		sentences = append(sentences, "The question seems to be in "+plan.Language+". Without a model, only questions in English are understood.")
	} else {
		sentences = append(sentences, "An answer to this question would be a guess, so there is none.")
	}

	if len(plan.Unused) > 0 {
		sentences = append(sentences, "Not understood: "+strings.Join(plan.Unused, ", ")+".")
	}

	if plan.Reason != "" {
		sentences = append(sentences, plan.Reason)
	}

	if len(plan.Examples) > 0 {
		sentences = append(sentences, "Questions that can be answered, for example:\n- "+strings.Join(plan.Examples, "\n- "))
	}

	return strings.Join(append(sentences, "SQL always works: `quern query`, or `POST /query`."), "\n\n")
}
