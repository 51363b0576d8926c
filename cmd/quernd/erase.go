package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"quern.dev/quern/internal/app"
)

const eraseWait = 10 * time.Minute

func erase() *cobra.Command {
	var how app.Erasure

	group := &cobra.Command{
		Use: "erase", Short: "Erase a dataset, its history or a user at once",
		Long: `Erase a dataset or a user at once, without a grace period. It cannot be undone. The command records the erasure, and a worker of the service does it,
also if the command or the service is killed meanwhile. Run the command again to see the receipt. See docs/erasure.md.`,
	}
	group.AddCommand(
		operate("dataset OWNER/NAMESPACE/DATASET", "Erase a dataset; name a deleted one by its id: OWNER/ID", cobra.ExactArgs(1),
			func(ctx context.Context, o app.Operator, args []string) error {
				return o.EraseDataset(ctx, args[0], how)
			}),
		operate("history OWNER/NAMESPACE/DATASET", "Erase everything that a dataset had before its current rows, after rows were deleted", cobra.ExactArgs(1),
			func(ctx context.Context, o app.Operator, args []string) error {
				return o.EraseHistory(ctx, args[0], how)
			}),
		operate("user USERNAME", "Erase a user with everything that the account owns", cobra.ExactArgs(1),
			func(ctx context.Context, o app.Operator, args []string) error { return o.EraseUser(ctx, args[0], how) }),
	)
	group.PersistentFlags().BoolVar(&how.JSON, "json", false, "print the receipt as JSON")
	group.PersistentFlags().DurationVar(&how.Wait, "wait", eraseWait, "how long to wait for the service; 0 only records the erasure")

	return group
}
