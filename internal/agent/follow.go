package agent

import (
	"context"
	"slices"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/planner"
)

const followed = 5 // latest turns of a conversation from which a question may go on

// follow plans a question that changes the one before it: "and in Austria?". A question that can be read on its own is.
func (p *interpreter) follow(ctx context.Context, chosen []catalog.Item, want planner.Request) (planner.Plan, error) {
	made := planner.Make(want)
	if made.Outcome == planner.Answer || made.Outcome == planner.AskBack || len(p.inquiry.question.Earlier) == 0 {
		return made, nil
	}

	last, err := p.lastForm(ctx, chosen, want)
	if err != nil || last == nil {
		return made, err
	}

	if changed := planner.Follow(want, *last); changed.Outcome != planner.Refuse {
		p.follows = true

		return changed, nil
	}

	return made, nil
}

// lastForm returns the form of the last turn, nil if its statement is not one that the planner makes today: a model wrote
// it, or the data has changed.
func (p *interpreter) lastForm(ctx context.Context, chosen []catalog.Item, want planner.Request) (last *form.Form, err error) {
	turns := p.inquiry.question.Earlier

	for _, turn := range turns[max(0, len(turns)-followed):] {
		again := want
		again.Question = turn.Question

		if again.Matches, _, err = p.lookUp(ctx, chosen, turn.Question); err != nil {
			return nil, err
		}

		plans := []planner.Plan{planner.Make(again)}
		if last != nil {
			plans = append(plans, planner.Follow(again, *last))
		}

		last = nil

		for _, made := range plans {
			for _, c := range made.Candidates {
				if slices.Contains(turn.Queries, c.SQL) {
					last = &c.Form
				}
			}
		}
	}

	return last, nil
}
