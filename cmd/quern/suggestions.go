package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) suggestCommand() *cobra.Command {
	var limit int

	command := p.act("suggest [NAMESPACE|DATASET]", "Suggest questions that the rules answer, about what you can see", cobra.MaximumNArgs(1),
		func(ctx context.Context, client *api.Client, args []string) error {
			parameters := api.SuggestQuestionsParams{Limit: new(int32(limit))} //nolint:gosec // the service checks it

			if len(args) == 1 {
				at, err := suggestAbout(args[0])
				if err != nil {
					return err
				}

				parameters.Username, parameters.Namespace = &at.owner, &at.namespace
				if at.dataset != "" {
					parameters.Dataset = &at.dataset
				}
			}

			return list(p, api.Pages(func(*string) ([]api.Suggestion, *string, error) {
				found, err := api.Read[api.SuggestionList](client.SuggestQuestions(ctx, &parameters))

				return found.Data, nil, err
			}), 0, "No suggestions. They need a dataset with rows.",
				column[api.Suggestion]{"question", func(s api.Suggestion) any { return s.Question }},
				column[api.Suggestion]{"about", func(s api.Suggestion) any { return s.Username + "/" + s.Namespace + "/" + s.Dataset }},
			)
		})
	command.Flags().IntVar(&limit, "limit", 4, "at most this many, up to 8")

	return command
}

// suggestAbout reads the name of a namespace of the caller, or of a dataset.
func suggestAbout(text string) (name, error) {
	if strings.Contains(text, "/") {
		return datasetName(text)
	}

	return namespaceName(text)
}
