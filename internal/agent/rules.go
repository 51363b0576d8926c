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

// unreached is why a model gave no answer that did not get so far as to read the question.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// isDown tells whether the question failed because no model could be reached, and nothing came of it yet. Whoever wants
// a certain model gets no other answer than its own.
func (q *asking) isDown(err error) bool {
	_, failed := errors.AsType[unreached](err)

	return failed && q.asked.Model == "" && q.asked.Provider == "" && q.teller.said(Planned, 0) == 0 && q.teller.said(StepStarted, 0) == 0
}

// byRules answers without the models that cannot be reached, or fails as they did.
func (q *asking) byRules(ctx context.Context, planning bool, down error) (Result, error) {
	p := Planner{NL2QL: q.NL2QL, Planning: planning}.planning(q.who, q.asked, q.teller)
	p.down = down

	result, err := p.answer(ctx)
	result.Usage = new(q.spent.usage())

	return result, err
}

// wasByRules tells whether another worker began the answer without a model.
func wasByRules(before []Event) bool {
	for _, e := range before {
		var said struct {
			Model string `json:"model"`
		}

		if (e.Kind == Planned || e.Kind == StepStarted) && json.Unmarshal(e.Body, &said) == nil && said.Model == plannerName {
			return true
		}
	}

	return false
}

// errBegun is for an answer that was begun by rules: which model did not answer then is not known any more.
func errBegun() error {
	return fault.New(fault.Unavailable, "No model could be reached. Try again later.")
}

// unread is what failed, with why the rules are no help. It says nothing of the data.
func (p *planning) unread() error {
	failed := *fault.From(p.down)
	failed.Message += " The rules that answer without a model do not understand the question either."

	return &failed
}

// say completes what comes of a question with how it was read. Names and values in it are those of somebody's data.
func (p *planning) say(result Result) Result {
	said := []string{result.Response}

	switch {
	case p.down != nil && result.Reading != "":
		said = []string{"No model could be reached, so this was read by rules: " + result.Reading + ".", result.Response}
	case p.down != nil:
		said = []string{"No model could be reached, so this was read by rules.", result.Response}
	case p.refersBack():
		said = []string{"Without a model earlier questions of a conversation are not known: this one was read by itself.", result.Response}
	}

	if p.asked.HelperPrompt != "" {
		said = append(said, "What was to be kept in mind (`helperPrompt`) is not read without a model.")
	}

	result.Response, result.Model = prose(strings.Join(said, "\n\n")), plannerName
	result.Clarification.clean()

	return result
}

// back is a beginning or a word that makes no sense without an earlier question.
var back = regexp.MustCompile(`(?i)^\W*(and|or|but|also|now|then|(what|how) about)\b|\b(those|these|them|they|the same|the others?|(this|that) (one|time)|instead|as well)\b|\b(of|about|for|in|to) (it|that|this)\W*$`)

// refersBack tells whether the question is plainly about an earlier one.
func (p *planning) refersBack() bool {
	return len(p.asked.Earlier) > 0 && back.MatchString(p.asked.Text)
}

// refusalOf says why there is no answer, and what there could be one to.
func refusalOf(plan planner.Plan) string {
	var said []string

	if plan.Language != "" {
		said = append(said, "This seems to be "+plan.Language+". Without a model only questions in English are understood.")
	} else {
		said = append(said, "Without a model this cannot be answered with certainty.")
	}

	if len(plan.Unknown) > 0 {
		said = append(said, "Not understood: "+strings.Join(plan.Unknown, ", ")+".")
	}

	if len(plan.Candidates) > 0 {
		said = append(said, "The closest reading: "+plan.Candidates[0].Reading+".")
	}

	if len(plan.Examples) > 0 {
		said = append(said, "What can be answered, for example:\n- "+strings.Join(plan.Examples, "\n- "))
	}

	return strings.Join(append(said, "SQL always works: `quern query`, or `POST /query`."), "\n\n")
}
