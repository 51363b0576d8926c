package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"text/tabwriter"

	"quern.dev/quern/api"
)

// tryOptions asks a question that is asked back once more for each of its options, chooses it, and returns which ones give a
// right answer.
func (s *service) tryOptions(ctx context.Context, q *question, o options, script *script, got answer) ([]bool, error) {
	if got.result == nil || got.result.Outcome != api.OutcomeClarification || got.result.Clarification == nil {
		return nil, nil
	}

	options := got.result.Clarification.Options
	rights := make([]bool, len(options))

	for i, option := range options {
		if option.Query == nil { // a model would have to go on
			return nil, nil
		}

		again, err := s.askOne(ctx, q, o, script)
		if err != nil {
			return nil, err
		}

		chosen, err := s.api.ChooseOptionWithResponse(ctx, again.run, nil, api.OptionChoice{Option: option.Number})
		if err != nil {
			return nil, err
		}

		if chosen.JSON200 == nil {
			return nil, refusal("choosing an option", chosen.HTTPResponse, chosen.Body)
		}

		rights[i] = judge(q, answer{result: chosen.JSON200.Result}).Verdict == right

		if err := s.forgetChoices(ctx, q); err != nil {
			return nil, err
		}
	}

	return rights, nil
}

// forgetChoices makes the service ask back again, about the tables of a question.
func (s *service) forgetChoices(ctx context.Context, q *question) error {
	for _, table := range q.tables() {
		forgotten, err := s.api.DeleteChoicesWithResponse(ctx, s.user, q.namespace(), table.dataset)
		if err != nil {
			return err
		}

		if forgotten.StatusCode() != http.StatusNoContent {
			return refusal("forgetting choices", forgotten.HTTPResponse, forgotten.Body)
		}
	}

	return nil
}

// risk is how many questions are answered, and how many of the answers are right, if more than the sure ones count.
type risk struct {
	Name     string `json:"name"`
	Answered int    `json:"answered"`
	Right    int    `json:"right"`
}

// risks returns what answers would cost and gain that are not given: the guesses that are offered, and the first option of a
// question back. In the last line somebody chooses the right option, if there is one.
func risks(marks []mark) []risk {
	list := []risk{{Name: "sure answers"}, {Name: `and every "Did you mean this?"`}, {Name: "and the first option of each question back"}, {Name: "and the right option, if there is one"}}

	for _, m := range marks {
		if !m.question.strict() {
			continue
		}

		for i := range list {
			answered, isRight := m.at(i)
			if answered {
				list[i].Answered++
			}

			if isRight {
				list[i].Right++
			}
		}
	}

	return list
}

// at returns whether a question is answered, and rightly, at a level of risks.
func (m mark) at(level int) (answered, isRight bool) {
	const (
		guesses = iota + 1
		first
		chosen
	)

	if m.Verdict == right || m.Verdict == wrong {
		return true, m.Verdict == right
	}

	switch isGuess := len(m.Options) == 1; {
	case len(m.Options) == 0:
		return false, false
	case level == chosen:
		isRight = slices.Contains(m.Options, true)

		return isRight, isRight
	case isGuess && level >= guesses, level == first:
		return true, m.Options[0]
	default:
		return false, false
	}
}

// printRisks prints the risk and the coverage of each level.
func (r *report) printRisks(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)

	fmt.Fprintln(table, "\nrisk and coverage\tanswered\tcoverage\tprecision")

	for _, one := range r.Risks {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", one.Name, one.Answered, share(one.Answered, r.Total.Answerable), share(one.Right, one.Answered))
	}

	fmt.Fprintln(table)

	return table.Flush()
}
