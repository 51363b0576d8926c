package main

import (
	"context"

	"github.com/spf13/cobra"

	"quern.dev/quern/internal/app"
)

func engine() *cobra.Command {
	set := operate("set OWNER/NAMESPACE/DATASET duckdb|trino", "Set the engine that reads a dataset; statements that start later use it", cobra.ExactArgs(2),
		func(ctx context.Context, o app.Operator, args []string) error {
			return o.SetEngine(ctx, args[0], args[1])
		})
	set.Long = set.Short + `.

A statement that reads at least one dataset on Trino runs on Trino as a whole. trino needs QUERN_TRINO_URL. See docs/trino.md.`

	group := &cobra.Command{Use: "engine", Short: "Choose whether DuckDB or Trino reads a dataset"}
	group.AddCommand(set,
		operate("list", "List the datasets that Trino reads; DuckDB reads all others", cobra.NoArgs,
			func(ctx context.Context, o app.Operator, _ []string) error { return o.ListEngines(ctx) }))

	return group
}
