package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) datasetChoices() *cobra.Command {
	var forget bool

	command := p.onDataset("choices DATASET", "Show which meanings of words you chose", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		if forget {
			if _, err := api.Read[any](client.DeleteChoices(ctx, at.owner, at.namespace, at.dataset)); err != nil {
				return err
			}

			return p.done("Your choices in %s are forgotten. You are asked again.", at)
		}

		found, err := api.Read[api.Choices](client.GetChoices(ctx, at.owner, at.namespace, at.dataset))

		return orShow(err, func() error { return p.showChoices(found, at) })
	})
	command.Long = `Show which meanings of words you chose when a question had several. You are not asked again for these words.

Editors also see what other people chose, as proposals. Accept one for everybody with
quern dataset semantics DATASET --synonym COLUMN=WORDS`
	command.Flags().BoolVar(&forget, "forget", false, "forget what you chose in this dataset")

	return command
}

func (p *program) showChoices(found api.Choices, at name) error {
	columns := []column[api.ChosenMeaning]{
		{"words", func(c api.ChosenMeaning) any { return c.Words }},
		{"means", func(c api.ChosenMeaning) any { return c.As }},
		{"column", func(c api.ChosenMeaning) any { return c.Column }},
		{"chosen", func(c api.ChosenMeaning) any { return c.ChosenAt }},
	}

	if p.format == "csv" {
		heads, rows := cells(found.Chosen, columns)

		return p.csv(heads, rows)
	}

	return one(p, found, func() {
		if len(found.Chosen) == 0 {
			p.out.printf("You chose no meanings in %s.\n", at)
		} else {
			p.table(cells(found.Chosen, columns))
		}

		if found.Proposed == nil || len(*found.Proposed) == 0 {
			return
		}

		p.out.printf("\nProposed as synonyms for everybody:\n")
		p.table(cells(*found.Proposed, []column[api.ProposedMeaning]{
			{"words", func(m api.ProposedMeaning) any { return m.Words }},
			{"column", func(m api.ProposedMeaning) any { return m.Column }},
			{"people", func(m api.ProposedMeaning) any { return m.People }},
			{"accept with", func(m api.ProposedMeaning) any {
				return fmt.Sprintf("quern dataset semantics %s --synonym '%s=%s'", at, m.Column, m.Words)
			}},
		}))
	})
}
