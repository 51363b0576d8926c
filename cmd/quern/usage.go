package main

import (
	"context"
	"time"

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
			{"resets", func(u api.UsageItem) any { return resets(u.ResetsAt) }},
		}

		if p.format == "csv" {
			heads, rows := cells(found.Items, columns)

			return p.csv(heads, rows)
		}

		return one(p, found, func() {
			if len(found.Items) == 0 {
				p.out.printf("No usage today, and no limits.\n")

				return
			}

			p.table(cells(found.Items, columns))
			p.err.printf("%s\n", p.err.style(dim, "Counted since midnight UTC."))
		})
	})
}

// resets returns when a count begins again, or nil if it does not.
func resets(at *time.Time) any {
	if at == nil {
		return nil
	}

	return moment(*at)
}

// optional returns a number, or nil if there is none.
func optional(number *int64) any {
	if number == nil {
		return nil
	}

	return *number
}
