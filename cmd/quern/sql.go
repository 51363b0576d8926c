package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"quern.dev/quern/api"
)

func (p *program) sqlCommand() *cobra.Command {
	var (
		namespace string
		out       outFlags
	)

	command := p.act("sql [SQL]", "Type SQL statements at a prompt", cobra.MaximumNArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		if out.path == "" && len(args) > 0 {
			return usageError{errors.New("a statement as an argument needs --out FILE; `quern query` prints its rows"), "quern sql"}
		}

		if out.path != "" {
			return p.saveSQL(ctx, client, namespace, out, args)
		}

		s := &sqlSession{p: p, client: client, timing: true}

		if namespace != "" {
			if err := s.use(namespace); err != nil {
				return err
			}
		}

		if !newTerminal(os.Stdin).screen || !p.out.screen {
			return s.script(ctx, os.Stdin)
		}

		return s.prompt(ctx)
	})
	command.Long = `Type SQL statements at a prompt. A statement can have several lines and ends with a semicolon.

Tab completes the names of datasets and columns. Ctrl-C cancels a statement, Ctrl-D leaves. .help lists the commands of the prompt.
If standard input is not a terminal, its statements run one after another, up to the first one that fails.

The lines that you type are kept in the file sql_history beside your credentials, readable only by you. A line that begins with a space
is not kept.

With --out, one statement from the argument or standard input writes all its rows to a file, as quern query --out does.`
	command.Example = `  quern sql -n shop
  quern sql < statements.sql
  quern sql -n shop --out orders.parquet 'SELECT * FROM orders'`
	inNamespace(command, &namespace)
	out.add(command)

	return command
}

// saveSQL writes the result of one statement to a file.
func (p *program) saveSQL(ctx context.Context, client *api.Client, namespace string, out outFlags, args []string) error {
	text, err := statement(args, "")
	if err != nil {
		return err
	}

	request := api.QueryRequest{Query: text}

	if namespace != "" {
		at, err := namespaceName(namespace)
		if err != nil {
			return err
		}

		request.Username, request.Namespace = &at.owner, &at.namespace
	}

	return p.save(ctx, client, request, out, "quern sql")
}

// sqlSession is a series of statements of one user.
type sqlSession struct {
	p      *program
	client *api.Client
	at     *name // the namespace of names without one; nil if there is none
	timing bool
	names  *sqlNames // what Tab completes; nil until it is needed
}

func (s *sqlSession) use(namespace string) error {
	at, err := namespaceName(namespace)
	if err != nil {
		return err
	}

	s.at, s.names = &at, nil

	return nil
}

// script runs the statements of a reader, up to the first one that fails.
func (s *sqlSession) script(ctx context.Context, input io.Reader) error {
	text, err := io.ReadAll(input)
	if err != nil {
		return err
	}

	statements, rest := splitStatements(string(text))
	if !isBlank(rest) {
		statements = append(statements, rest)
	}

	for _, one := range statements {
		if err := s.run(ctx, one); err != nil {
			return err
		}
	}

	return nil
}

// run runs one statement and prints its result.
func (s *sqlSession) run(ctx context.Context, text string) error {
	request := api.QueryRequest{Query: text}
	if s.at != nil {
		request.Username, request.Namespace = &s.at.owner, &s.at.namespace
	}

	if s.p.format == "csv" {
		return s.p.queryCSV(ctx, s.client, request)
	}

	found, err := api.Read[api.QueryResult](s.client.RunQuery(ctx, nil, request))
	if err != nil {
		return err
	}

	if s.p.format == "json" {
		return s.p.json(found)
	}

	if err := s.page(ctx, len(found.Data), func() error { return s.p.printRows(resultRows{found.Columns, found.Data}) }); err != nil {
		return err
	}

	if s.timing || found.Metadata.Truncated {
		s.p.queryNote(found.Metadata)
	}

	return nil
}

// page prints rows, through a pager if they do not fit on the screen.
func (s *sqlSession) page(ctx context.Context, rows int, show func() error) error {
	_, height, err := term.GetSize(int(s.p.out.file.Fd()))
	pager := pagerCommand()

	if err != nil || s.p.format != "table" || rows+3 < height || pager == "" {
		return show()
	}

	from, to, err := os.Pipe()
	if err != nil {
		return err
	}

	screen := s.p.out
	command := exec.CommandContext(ctx, "sh", "-c", pager)
	command.Stdin, command.Stdout, command.Stderr = from, screen.file, os.Stderr

	if err := command.Start(); err != nil {
		return errors.Join(err, from.Close(), to.Close())
	}

	_ = from.Close()
	s.p.out.file, s.p.out.width = to, screen.columns()
	err = show()
	s.p.out = screen
	_ = to.Close()
	_ = command.Wait() // a pager that is left early ends with an error, too

	return err
}

// pagerCommand returns the pager of the user; empty if there is none.
func pagerCommand() string {
	if pager, isSet := os.LookupEnv("PAGER"); isSet {
		return pager
	}

	if _, err := exec.LookPath("less"); err == nil {
		return "less -FRSX"
	}

	return ""
}

// prompt reads statements from the terminal until the user leaves.
func (s *sqlSession) prompt(ctx context.Context) error {
	// Ctrl-C ends a statement here, and not the program.
	signal.Reset(os.Interrupt)

	interrupts := make(chan os.Signal, 1)

	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	keys := &keyReader{from: os.Stdin}
	line := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, os.Stdout}, "")
	line.History = openHistory(filepath.Join(s.p.home, "sql_history"))
	line.AutoCompleteCallback = func(text string, at int, key rune) (string, int, bool) { return s.complete(ctx, line, text, at, key) }

	s.p.out.printf("Statements end with a semicolon. .help lists the commands of the prompt.\n")

	var pending string

	for ctx.Err() == nil {
		text, err := s.readLine(line, pending != "")

		switch {
		case errors.Is(err, io.EOF):
			s.p.out.printf("\n")

			return nil
		case err != nil:
			return err
		case keys.taken():
			pending = ""

			continue
		case pending == "" && strings.HasPrefix(strings.TrimSpace(text), "."):
			if isDone := s.command(ctx, strings.Fields(text), interrupts); isDone {
				return nil
			}

			continue
		}

		statements, rest := splitStatements(pending + text + "\n")
		if pending = rest; isBlank(rest) {
			pending = ""
		}

		for _, one := range statements {
			if !s.interruptible(ctx, one, interrupts) {
				break
			}
		}
	}

	return ctx.Err()
}

// readLine reads a line in raw mode. Between lines the terminal is in its usual mode, so that Ctrl-C is a signal.
func (s *sqlSession) readLine(line *term.Terminal, isContinued bool) (string, error) {
	before, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(os.Stdin.Fd()), before) }()

	if columns, height, err := term.GetSize(int(os.Stdin.Fd())); err == nil && columns > 0 {
		_ = line.SetSize(columns, height) // fails only if it cannot write
	}

	prompt := "quern> "
	if s.at != nil {
		prompt = s.at.namespace + "> "
	}

	if isContinued {
		prompt = strings.Repeat(" ", max(0, len(prompt)-3)) + "-> "
	}

	line.SetPrompt(prompt)

	return line.ReadLine()
}

// interruptible runs a statement that Ctrl-C cancels, and prints a failure. It returns false if the statements that follow on the
// same line must not run.
func (s *sqlSession) interruptible(ctx context.Context, text string, interrupts <-chan os.Signal) bool {
	running, cancel := context.WithCancel(ctx)
	defer cancel()

	for len(interrupts) > 0 {
		<-interrupts // of an earlier statement
	}

	ended := make(chan struct{})
	defer close(ended)

	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-ended:
		}
	}()

	err := s.run(running, text)

	switch {
	case err == nil:
		return true
	case running.Err() != nil && ctx.Err() == nil:
		s.p.err.printf("\nCancelled.\n")
	default:
		s.p.report(err, false)
	}

	return false
}

const sqlHelp = `.tables [NAMESPACE]   list the datasets that you can see
.describe DATASET     list the columns of a dataset
.use NAMESPACE        the namespace of names without one; without NAMESPACE, none
.timing on|off        say how long a statement took
.help                 this text
.quit                 leave; so does Ctrl-D

Statements end with a semicolon. Ctrl-C cancels a statement.
`

// command runs a command of the prompt. It returns true if the user leaves.
func (s *sqlSession) command(ctx context.Context, words []string, interrupts <-chan os.Signal) (isDone bool) {
	argument := strings.TrimSuffix(strings.Join(words[1:], " "), ";")

	switch words[0] {
	case ".quit", ".exit":
		return true
	case ".help":
		s.p.out.printf("%s", sqlHelp)
	case ".tables":
		statement := "SHOW TABLES"
		if argument != "" {
			statement += " FROM " + argument
		}

		s.interruptible(ctx, statement, interrupts)
	case ".describe":
		s.interruptible(ctx, "DESCRIBE "+argument, interrupts)
	case ".use":
		if argument == "" {
			s.at, s.names = nil, nil
		} else if err := s.use(argument); err != nil {
			s.p.report(err, false)
		}
	case ".timing":
		if !slices.Contains([]string{"on", "off"}, argument) {
			s.p.err.printf("Write .timing on or .timing off.\n")

			break
		}

		s.timing = argument == "on"
	default:
		s.p.err.printf("%s\n", fmt.Sprintf("There is no command %s. .help lists the commands.", s.p.err.clean(words[0])))
	}

	return false
}
