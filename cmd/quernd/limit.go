package main

import (
	"context"

	"github.com/spf13/cobra"

	"quern.dev/quern/internal/app"
)

func limit() *cobra.Command {
	group := &cobra.Command{
		Use: "limit", Short: "Set, show and remove limits of users",
		Long: `Set, show and remove limits of users. A limit of a user takes precedence over the limits of the user's groups, and these over the limit of
everyone. If several groups of a user have a limit, the highest applies. See docs/limits.md.`,
	}
	group.AddCommand(setLimit(), showLimit(), unsetLimit())

	return group
}

func setLimit() *cobra.Command {
	var of app.LimitOf

	command := operate("set KIND AMOUNT", "Set a limit", cobra.ExactArgs(2),
		func(ctx context.Context, o app.Operator, args []string) error {
			return o.SetLimit(ctx, of, args[0], args[1])
		})
	command.Long = "Set a limit. It replaces an earlier one and takes effect at once on all replicas.\n" + app.LimitHelp()
	limitFlags(command, &of)

	return command
}

func unsetLimit() *cobra.Command {
	var of app.LimitOf

	command := operate("unset KIND", "Remove a limit, so that the next more general one applies", cobra.ExactArgs(1),
		func(ctx context.Context, o app.Operator, args []string) error { return o.UnsetLimit(ctx, of, args[0]) })
	limitFlags(command, &of)

	return command
}

func showLimit() *cobra.Command {
	var user string

	command := operate("show", "Show all limits that are set or, with --user, what a user has used and which limits apply", cobra.NoArgs,
		func(ctx context.Context, o app.Operator, _ []string) error {
			if user == "" {
				return o.ShowLimits(ctx)
			}

			return o.ShowUsage(ctx, user)
		})
	command.Flags().StringVar(&user, "user", "", "username")

	return command
}

// limitFlags adds the flags that say for whom a limit is. Exactly one of them is required: a forgotten flag must not limit everyone.
func limitFlags(command *cobra.Command, of *app.LimitOf) {
	flags := command.Flags()
	flags.StringVar(&of.User, "user", "", "username: the limit of one user")
	flags.StringVar(&of.Group, "group", "", "name of a group of the issuer: the limit of each of its members")
	flags.BoolVar(&of.Everyone, "everyone", false, "the limit of each user")
	command.MarkFlagsOneRequired("user", "group", "everyone")
	command.MarkFlagsMutuallyExclusive("user", "group", "everyone")
}

func usage() *cobra.Command {
	var from, to string

	export := operate("export", "Print what all users used on each day, as CSV", cobra.NoArgs,
		func(ctx context.Context, o app.Operator, _ []string) error { return o.ExportUsage(ctx, from, to) })
	export.Flags().StringVar(&from, "from", "", "first day (UTC), such as 2026-11-01")
	export.Flags().StringVar(&to, "to", "", "last day (UTC), such as 2026-11-30")
	_ = export.MarkFlagRequired("from") // the flag exists
	_ = export.MarkFlagRequired("to")

	group := &cobra.Command{Use: "usage", Short: "Export what users used"}
	group.AddCommand(export)

	return group
}
