// Quern is the client: it uploads files and sends questions and SQL, from a terminal or a script. It uses only the HTTP
// API of the service. Each command has a file; docs/cli.md describes the commands and the exit codes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/build"
	"quern.dev/quern/internal/signin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

	p := newProgram()
	root := p.root()
	root.SetArgs(withComments(os.Args[1:]))

	err := unknownCommand(root, root.ExecuteContext(ctx))

	// From here on, a second Ctrl-C ends the process at once.
	interrupted := ctx.Err() != nil
	stop()

	os.Exit(p.report(err, interrupted))
}

// program is the state that all commands share.
type program struct {
	out, err terminal

	server, token, format string
	escape                bool   // escape formulas in CSV
	home                  string // folder of the credentials and the state of uploads
	stopped               bool   // the command has printed that it was interrupted
}

func newProgram() *program {
	return &program{out: newTerminal(os.Stdout), err: newTerminal(os.Stderr)}
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "quern",
		Short: "Load data into Quern, share it, and ask questions about it",
		Long: `Load data into Quern, share it, and ask questions about it.

Datasets are named NAMESPACE/DATASET, or OWNER/NAMESPACE/DATASET if another person owns them.
The server comes from --server, from QUERN_SERVER, or from the last ` + "`quern login`" + `.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           build.Read().Version + " " + runtime.Version(),
		PersistentPreRunE: func(*cobra.Command, []string) error { return p.prepare() },
	}
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if strings.HasPrefix(err.Error(), "unknown ") { // an error of cobra
			err = fmt.Errorf("%w. %s has the flags %s.%s", err, cmd.CommandPath(), flagNames(cmd), otherWay(err.Error()))
		}

		return usageError{err, cmd.CommandPath()}
	})

	flags := root.PersistentFlags()
	flags.StringVar(&p.server, "server", "", "address of the service (QUERN_SERVER)")
	flags.StringVar(&p.token, "token", "", "API token to use instead of the sign-in; QUERN_TOKEN is safer, because process lists do not show it")
	flags.StringVarP(&p.format, "output", "o", "table", "output format: table, json, csv or ndjson")
	flags.BoolVar(&p.escape, "escape-formulas", false, "in CSV, add an apostrophe before texts that a spreadsheet would run as formulas")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "csv", "ndjson"}, cobra.ShellCompDirectiveNoFileComp))

	root.AddCommand(
		p.loginCommand(), p.logoutCommand(), p.whoamiCommand(), p.namespaceCommand(), p.datasetCommand(), p.deletedCommand(), p.restoreCommand(), p.uploadCommand(), p.uploadsCommand(), p.ingestionCommand(), p.rowsCommand(),
		p.exportCommand(), p.shareCommand(), p.unshareCommand(), p.sharesCommand(), p.leaveCommand(), p.queryCommand(), p.sqlCommand(), p.statementCommand(), p.askCommand(), p.checkCommand(), p.modelsCommand(), p.suggestCommand(), p.runsCommand(), p.conversationCommand(),
		p.rateCommand(), p.semanticsCommand(), p.verifiedCommand(), p.benchmarkCommand(), p.tokenCommand(), p.usageCommand(), p.auditCommand(), p.watchCommand(), p.webhookCommand(), p.connectionCommand(), p.sourceCommand(), p.mcpCommand(), version(),
	)

	for _, command := range root.Commands() {
		sayUsage(command)
	}

	return root
}

// sayUsage makes every command return a usageError for wrong arguments.
func sayUsage(command *cobra.Command) {
	if check := command.Args; check != nil {
		command.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{fmt.Errorf("%w. Write: %s", err, strings.TrimSuffix(cmd.UseLine(), " [flags]")), cmd.CommandPath()}
			}

			return nil
		}
	}

	for _, child := range command.Commands() {
		sayUsage(child)
	}
}

// flagOfUsage matches a flag at the beginning of its line in the usage of a command.
var flagOfUsage = regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[\w-]+)`)

// flagNames lists the flags of a command, without those that every command has.
func flagNames(cmd *cobra.Command) string {
	var names []string

	for _, found := range flagOfUsage.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
		names = append(names, found[1])
	}

	return strings.Join(names, ", ")
}

func (p *program) prepare() error {
	if !slices.Contains([]string{"table", "json", "csv", "ndjson"}, p.format) {
		return usageError{fmt.Errorf("--output must be table, json, csv or ndjson, not %q", p.format), "quern"}
	}

	var err error
	if p.home, err = signin.Home(os.Getenv); err != nil {
		return fmt.Errorf("%w; set QUERN_HOME to a folder for credentials", err)
	}

	return nil
}

// connect returns a client of the service that the flags, the environment or the last login name.
func (p *program) connect() (*api.Client, error) {
	token, err := p.tokens()
	if err != nil {
		return nil, err
	}

	return api.Connect(api.Settings{
		Server: p.server, Token: token, UserAgent: "quern/" + build.Read().Version, Retry: api.Retry{Waiting: p.waiting},
	})
}

// group returns a command that only contains other commands.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}

			return cmd.Help()
		},
	}
	command.AddCommand(children...)

	return command
}

// act returns a command that calls the service.
func (p *program) act(use, short string, args cobra.PositionalArgs, run func(ctx context.Context, client *api.Client, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := p.connect()
			if err != nil {
				return err
			}

			return run(cmd.Context(), client, args)
		},
	}
}

// done prints that a change was made; formats for programs print nothing.
func (p *program) done(format string, args ...any) error {
	if p.format == "table" {
		p.out.printf(format+"\n", args...)
	}

	return nil
}

func version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), "quern", build.Read().Version, runtime.Version())
		},
	}
}
