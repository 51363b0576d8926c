package main

import (
	"context"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) usageCommand() *cobra.Command {
	return p.act("usage", "Show what you used today and what is left", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		found, err := api.Read[api.Usage](client.GetUsage(ctx))
		if err != nil {
			return err
		}

		columns := []column[api.UsageItem]{
			{"what", func(u api.UsageItem) any { return u.Kind }},
			{"used", func(u api.UsageItem) any { return u.Used }},
			{"limit", func(u api.UsageItem) any { return optional(u.Limit) }},
			{"left", func(u api.UsageItem) any { return optional(u.Left) }},
		}

		if p.format == "csv" {
			heads, rows := cells(found.Items, columns)

			return p.csv(heads, rows)
		}

		return one(p, found, func() {
			if len(found.Items) == 0 {
				p.out.printf("No usage today. Usage counts the tokens of models.\n")

				return
			}

			p.table(cells(found.Items, columns))
			p.err.printf("%s\n", p.err.style(dim, "Counted since midnight UTC; resets at "+moment(found.ResetsAt)+"."))
		})
	})
}

// optional returns a number, or nil if there is none.
func optional(number *int64) any {
	if number == nil {
		return nil
	}

	return *number
}
