package main

import (
	"context"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) modelsCommand() *cobra.Command {
	return p.act("models", "List the models that `quern ask --model` can name", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		return list(p, api.Pages(func(*string) ([]api.Model, *string, error) {
			found, err := api.Read[api.ModelList](client.ListModels(ctx))

			return found.Data, nil, err
		}), 0, "No models. This service answers questions by rules.",
			column[api.Model]{"model", func(m api.Model) any { return m.Name }},
			column[api.Model]{"provider", func(m api.Model) any { return m.Provider }},
			column[api.Model]{"default", func(m api.Model) any {
				if m.Default {
					return "yes"
				}

				return ""
			}},
			column[api.Model]{"may see", func(m api.Model) any { return string(m.Exposure) }},
		)
	})
}
