// Quernd is the server and the operators' commands. It contains little code: internal/app does the work.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"quern.dev/quern/internal/app"
)

func main() {
	if err := command().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "quernd:", app.Explain(err))
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "quernd",
		Short:         "Serve and operate Quern",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       stamped(),
	}
	root.AddCommand(serve(), dev(), migrate(), user(), token(), dataset(), connections(), limit(), engine(), usage(), erase(), audit(), fsck(), store(), backup(), restore(), doctor(), version())

	return root
}

func serve() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the API until a stop signal",
		Long:  "Serve the API until a stop signal. Settings come from the environment: see docs/configuration.md.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.Serve(cmd.Context(), os.Environ(), os.Stderr)
		},
	}
}

func dev() *cobra.Command {
	var options app.DevOptions

	command := &cobra.Command{
		Use:   "dev",
		Short: "Run Quern with everything that it needs on this machine, to try it",
		Long: `Run Quern with everything that it needs on this machine, to try it. All ports are on loopback. The command starts PostgreSQL
(unless QUERN_DATABASE_URL is set) and versitygw, an S3 server; provides an issuer that asks for a name but no password; and
loads sample data. Ctrl-C stops everything; the data is kept. See docs/dev.md.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.Dev(cmd.Context(), os.Environ(), options, cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Dir, "dir", "", "folder for data, logs and secrets (default $XDG_STATE_HOME/quern/dev, else ~/.local/state/quern/dev, for root /var/lib/quern/dev)")
	flags.IntVar(&options.Port, "port", 0, "port of the API on 127.0.0.1 (default: the port of the last start, or 8080)")
	flags.IntVar(&options.IssuerPort, "issuer-port", 0, "port of the issuer on 127.0.0.1 (default: the port of the first start, or 8081)")
	flags.BoolVar(&options.LeaveCredentials, "leave-credentials", false, "do not sign in the quern command of this machine")
	flags.BoolVar(&options.NoSample, "no-sample", false, "do not load the sample data")

	return command
}

func migrate() *cobra.Command {
	var role string

	command := operate("migrate", "Bring the database schema up to date", cobra.NoArgs,
		func(ctx context.Context, o app.Operator, _ []string) error { return o.Migrate(ctx, role) })
	command.Flags().StringVar(&role, "grant", "", "database role of the server: grant it the rights that it needs and revoke all others")

	return command
}

func user() *cobra.Command {
	group := &cobra.Command{Use: "user", Short: "List, disable, enable, release and export users"}
	group.AddCommand(
		operate("list", "List every user", cobra.NoArgs,
			func(ctx context.Context, o app.Operator, _ []string) error { return o.ListUsers(ctx) }),
		operate("disable USERNAME", "Disable a user; all tokens are refused from the next request on", cobra.ExactArgs(1),
			func(ctx context.Context, o app.Operator, args []string) error { return o.DisableUser(ctx, args[0]) }),
		operate("enable USERNAME", "Enable a disabled user", cobra.ExactArgs(1),
			func(ctx context.Context, o app.Operator, args []string) error { return o.EnableUser(ctx, args[0]) }),
		operate("release USERNAME", "Release a username, so that another identity can take it", cobra.ExactArgs(1),
			func(ctx context.Context, o app.Operator, args []string) error { return o.ReleaseUser(ctx, args[0]) }),
		inspect("export USERNAME FOLDER", "Copy all that a user has into a new folder: rows as JSON, uploaded files, data files", cobra.ExactArgs(2),
			func(ctx context.Context, i app.Inspector, args []string) error {
				return i.ExportUser(ctx, args[0], args[1])
			}),
	)

	return group
}

func token() *cobra.Command {
	group := &cobra.Command{Use: "token", Short: "Revoke API tokens"}
	group.AddCommand(operate("revoke ID", "Revoke an API token and all tokens that were created with it", cobra.ExactArgs(1),
		func(ctx context.Context, o app.Operator, args []string) error { return o.RevokeToken(ctx, args[0]) }))

	return group
}

func dataset() *cobra.Command {
	group := &cobra.Command{Use: "dataset", Short: "Restore and transfer datasets"}
	group.AddCommand(
		operate("restore OWNER/NAMESPACE/DATASET", "Restore the dataset that was last deleted at this address", cobra.ExactArgs(1),
			func(ctx context.Context, o app.Operator, args []string) error { return o.RestoreDataset(ctx, args[0]) }),
		operate("transfer OWNER/NAMESPACE/DATASET NEW_OWNER", "Transfer a dataset to another user", cobra.ExactArgs(2),
			func(ctx context.Context, o app.Operator, args []string) error {
				return o.TransferDataset(ctx, args[0], args[1])
			}),
	)

	return group
}

func connections() *cobra.Command {
	group := &cobra.Command{Use: "connection", Short: "Change the key of the secrets of connections"}
	group.AddCommand(operate("rewrap", "Seal the secrets that QUERN_SOURCE_OTHER_KEY opens with QUERN_SOURCE_KEY; the service may run meanwhile", cobra.NoArgs,
		func(ctx context.Context, o app.Operator, _ []string) error { return o.RewrapConnections(ctx) }))

	return group
}

func audit() *cobra.Command {
	var limit int

	command := operate("audit USERNAME", "Print what happened to a user's data, newest first", cobra.ExactArgs(1),
		func(ctx context.Context, o app.Operator, args []string) error { return o.Audit(ctx, args[0], limit) })
	command.Flags().IntVarP(&limit, "limit", "n", 100, "number of entries")

	return command
}

func fsck() *cobra.Command {
	var (
		age    time.Duration
		remove bool
	)

	command := inspect("fsck", "Compare the database with the object store, and report differences", cobra.NoArgs,
		func(ctx context.Context, i app.Inspector, _ []string) error { return i.Fsck(ctx, age, remove) })
	command.Flags().DurationVar(&age, "age", app.FsckAge, "check only objects whose key contains a day at least this long ago; less than the default is safe only while no process prepares uploads")
	command.Flags().BoolVar(&remove, "delete", false, "remove objects that no row lists")

	return command
}

func store() *cobra.Command {
	group := &cobra.Command{Use: "store", Short: "Set up the object store"}
	group.AddCommand(
		inspect("cors ORIGIN...", "Allow web pages of these origins to upload to the bucket", cobra.MinimumNArgs(1),
			func(ctx context.Context, i app.Inspector, args []string) error { return i.AllowOrigins(ctx, args) }),
		inspect("claim", "Bind the location to this database, after a restore or a move", cobra.NoArgs,
			func(ctx context.Context, i app.Inspector, _ []string) error { return i.ClaimStore(ctx) }),
	)

	return group
}

// inspect returns a command on the database and the object store.
func inspect(use, short string, args cobra.PositionalArgs, run func(context.Context, app.Inspector, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			inspector, err := app.NewInspector(os.Environ(), cmd.OutOrStdout())
			if err != nil {
				return err
			}

			return run(cmd.Context(), inspector, args)
		},
	}
}

// operate returns a command on the database.
func operate(use, short string, args cobra.PositionalArgs, run func(context.Context, app.Operator, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			operator, err := app.NewOperator(os.Environ(), cmd.OutOrStdout())
			if err != nil {
				return err
			}

			return run(cmd.Context(), operator, args)
		},
	}
}
