package agent

import (
	"context"
	"slices"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/planner"
)

// recall uses what the caller chose before, so that the same words are not asked about again.
func (p *interpreter) recall(ctx context.Context, plan *planner.Plan) error {
	items := make([]catalog.Item, len(p.datasets))
	for i, d := range p.datasets {
		items[i] = d.Item
	}

	found, err := p.inquiry.tools.Catalog.Remembered(ctx, p.inquiry.who, items)
	if err != nil {
		return err
	}

	var known []planner.Decision

	for _, item := range items {
		for _, one := range found[item.ID] {
			known = append(known, planner.Decision{Words: one.Words, As: one.Kind, Dataset: nameOf(p.inquiry.question, item), Column: one.Column})
		}
	}

	plan.Recall(known)

	return nil
}

// Decided returns what the choice of an option of the planner decides about words, and what the other options say about
// the same words.
func (c *Choice) Decided(number int) (chosen, others []planner.Decision) {
	at := slices.IndexFunc(c.Options, func(o Option) bool { return o.Number == number })
	options := make([][]Explained, len(c.Options))

	for i, o := range c.Options {
		if len(o.Explained) == 0 { // an option of a model
			return nil, nil
		}

		options[i] = o.Explained
	}

	for i := range options {
		if i != at {
			others = append(others, planner.Decided(options, i)...)
		}
	}

	return planner.Decided(options, at), others
}

// Dataset returns the path of a dataset that an explanation names.
func (q Question) Dataset(name string) catalog.Path { return q.path().Named(name) }
