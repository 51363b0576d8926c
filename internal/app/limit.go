package app

import (
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/fault"
)

// LimitOf says for whom a limit is.
type LimitOf = catalog.LimitOf

// LimitHelp returns the kinds and amounts of limits for the help of commands.
func LimitHelp() string {
	return "KIND is " + catalog.KindNames() + ". AMOUNT is a whole number, a size such as 10GiB, or unlimited."
}

// unlimited is the amount that sets no limit.
const unlimited = "unlimited"

// SetLimit sets a limit of a user, a group or everyone.
func (o Operator) SetLimit(ctx context.Context, of LimitOf, kind, amount string) error {
	limited, err := catalog.ParseKind(kind)
	if err != nil {
		return err
	}

	number, err := parseAmount(amount)
	if err != nil {
		return err
	}

	return o.withCatalog(ctx, func(c catalog.Catalog) error {
		return o.said(c.SetLimit(ctx, auth.ByCommand(), catalog.Limit{Of: of, Kind: limited, Amount: number}), "the limit of %s for %s is %s", kind, of, amountText(number))
	})
}

// UnsetLimit removes a limit of a user, a group or everyone.
func (o Operator) UnsetLimit(ctx context.Context, of LimitOf, kind string) error {
	limited, err := catalog.ParseKind(kind)
	if err != nil {
		return err
	}

	return o.withCatalog(ctx, func(c catalog.Catalog) error {
		return o.said(c.UnsetLimit(ctx, auth.ByCommand(), of, limited), "the limit of %s for %s is removed", kind, of)
	})
}

const limitsPage = 500

// ShowLimits prints all limits.
func (o Operator) ShowLimits(ctx context.Context) error {
	return o.withCatalog(ctx, func(c catalog.Catalog) error {
		table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "FOR\tKIND\tLIMIT")

		var after *catalog.Limit

		for {
			page, next, err := c.Limits(ctx, after, limitsPage)
			if err != nil {
				return err
			}

			for _, l := range page {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", l.Of, l.Kind, amountText(l.Amount))
			}

			if after = next; next == nil {
				return table.Flush()
			}
		}
	})
}

// ShowUsage prints what a user has used today, and the limits that apply to the user.
func (o Operator) ShowUsage(ctx context.Context, username string) error {
	return o.withCatalog(ctx, func(c catalog.Catalog) error {
		usage, err := c.UsageOf(ctx, username)
		if err != nil {
			return err
		}

		table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "KIND\tUSED\tLIMIT\tRESETS")

		for _, u := range usage.Items {
			limit := unlimited
			if u.Limit != nil {
				limit = amountText(*u.Limit)
			}

			resets := "never"
			if u.Kind.Resets() {
				resets = usage.Resets().Format(time.RFC3339)
			}

			_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", u.Kind, u.Amount, limit, resets)
		}

		return table.Flush()
	})
}

const daysPage = 1000

// ExportUsage prints what all users used from one day to another, both included, as CSV.
func (o Operator) ExportUsage(ctx context.Context, from, to string) error {
	first, err := parseDay("from", from)
	if err != nil {
		return err
	}

	last, err := parseDay("to", to)
	if err != nil {
		return err
	}

	if last.Before(first) {
		return fault.Invalid("to", "must not be before --from")
	}

	return o.withCatalog(ctx, func(c catalog.Catalog) error {
		out := csv.NewWriter(o.out)
		_ = out.Write([]string{"day", "username", "account", "kind", "amount"}) // Error returns its error

		for after, more := (catalog.Day{}), true; more; {
			page, err := c.Days(ctx, first, last, after, daysPage)
			if err != nil {
				return err
			}

			for _, d := range page {
				amount := strconv.FormatInt(d.Amount, 10)
				if d.Kind == catalog.QuerySeconds {
					amount = fmt.Sprintf("%d.%03d", d.Amount/1000, d.Amount%1000)
				}

				_ = out.Write([]string{d.Day.Format(time.DateOnly), d.Username, d.Account.String(), string(d.Kind), amount})
				after = d
			}

			more = len(page) == daysPage
		}

		out.Flush()

		return out.Error()
	})
}

func parseDay(field, text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, fault.Invalid(field, "must be a day such as 2026-11-30")
	}

	return day, nil
}

// parseAmount parses the amount of a limit: 0, a number, a size such as 10GiB, or "unlimited".
func parseAmount(text string) (int64, error) {
	switch text {
	case unlimited:
		return catalog.Unlimited, nil
	case "0": // is no size
		return 0, nil
	}

	amount, err := config.ParseBytes(text)
	if err != nil {
		return 0, fault.Invalid("amount", `must be a whole number such as 200, a size such as 10GiB, or "unlimited"`)
	}

	return int64(amount), nil
}

func amountText(amount int64) string {
	if amount == catalog.Unlimited {
		return unlimited
	}

	return strconv.FormatInt(amount, 10)
}
