package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) queryCommand() *cobra.Command {
	var (
		namespace, file, moment string
		request                 api.QueryRequest
		explain, truncate       bool
		given                   []string
		out                     outFlags
	)

	command := p.act("query [SQL]", "Run one SELECT statement", cobra.MaximumNArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		var err error
		if request.Query, err = statement(args, file); err != nil {
			return err
		}

		if request.Parameters, err = parameters(given); err != nil {
			return err
		}

		if namespace != "" {
			at, err := namespaceName(namespace)
			if err != nil {
				return err
			}

			request.Username, request.Namespace = &at.owner, &at.namespace
		}

		if explain {
			request.Explain = &explain
		}

		if moment != "" {
			asOf, err := parseMoment(moment)
			if err != nil {
				return err
			}

			request.AsOf = &asOf
		}

		if truncate {
			request.Truncate = &truncate
		}

		if out.path != "" {
			return p.save(ctx, client, request, out, "quern query")
		}

		return p.query(ctx, client, request)
	})
	command.Long = `Run one SELECT statement from the argument, from a file, or from standard input.

A dataset is named dataset, namespace.dataset or owner.namespace.dataset. A part with a dot or a hyphen needs double quotes.
--namespace is needed only for names without a namespace.

With --out, a worker of the server runs the statement, and the file gets all rows, however many. If the command is interrupted, run it again: it goes on
where it was.`
	command.Example = `  quern query 'SELECT region, count(*) FROM shop.orders GROUP BY region'
  quern query -n shop 'SELECT * FROM orders WHERE region = $region AND day >= $since' --param region=north --param since:date=2026-11-01
  quern query -n shop --file report.sql --output csv > report.csv
  quern query -n shop 'SELECT * FROM orders' --out orders.parquet`
	inNamespace(command, &namespace)
	out.add(command)
	command.Flags().StringVar(&file, "file", "", "file with the statement; - for standard input")
	command.Flags().StringArrayVar(&given, "param", nil, "value of a parameter: NAME=VALUE for $NAME, VALUE for $1 or ?; a text, or NAME:TYPE=VALUE and :TYPE=VALUE. Repeat it for more")
	command.Flags().StringVar(&moment, "as-of", "", "read the data as of this time, such as 2026-11-01 or 2026-11-01T12:00:00Z")
	command.Flags().BoolVar(&truncate, "truncate", false, "write the first rows of a result that is too large for CSV, instead of an error")
	command.Flags().BoolVar(&explain, "explain", false, "show the plan instead of running the statement")

	return command
}

// query runs a statement and prints its rows.
func (p *program) query(ctx context.Context, client *api.Client, request api.QueryRequest) error {
	if p.format == "csv" {
		if p.escape {
			request.EscapeFormulas = &p.escape
		}

		return p.queryCSV(ctx, client, request)
	}

	found, err := api.Read[api.QueryResult](client.RunQuery(ctx, nil, request))
	if err != nil {
		return err
	}

	if p.format == "json" {
		return p.json(found)
	}

	if err := p.printRows(resultRows{found.Columns, found.Data}); err != nil {
		return err
	}

	p.queryNote(found.Metadata)

	return nil
}

// statement returns the SQL from the argument, the file or standard input.
func statement(args []string, file string) (string, error) {
	switch {
	case len(args) == 1 && file != "":
		return "", usageError{errors.New("give the statement as an argument or with --file, not both"), "quern query"}
	case len(args) == 1:
		return args[0], nil
	case file != "" && file != "-":
		content, err := os.ReadFile(file)

		return string(content), err
	case file == "" && newTerminal(os.Stdin).screen:
		return "", usageError{errors.New("no statement: give it as an argument, with --file, or on standard input"), "quern query"}
	}

	content, err := io.ReadAll(os.Stdin)
	if err == nil && strings.TrimSpace(string(content)) == "" {
		err = usageError{errors.New("standard input contains no statement"), "quern query"}
	}

	return string(content), err
}

func parseMoment(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}

	return time.Time{}, usageError{fmt.Errorf("%q is not a time: write 2026-11-01 or 2026-11-01T12:00:00Z", text), "quern query"}
}

// queryCSV writes the CSV that the service returns, as a stream.
func (p *program) queryCSV(ctx context.Context, client *api.Client, request api.QueryRequest) error {
	response, err := api.Check(client.RunQuery(ctx, nil, request, func(_ context.Context, request *http.Request) error {
		request.Header.Set("Accept", "text/csv")

		return nil
	}))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()

	if _, err := io.Copy(p.out.file, response.Body); err != nil {
		return err
	}

	if strings.Contains(response.Header.Get("X-Quern-Result"), `"truncated":true`) {
		p.err.printf("The result was truncated. A LIMIT in the statement allows up to 100,000 rows.\n")
	}

	return nil
}

func (p *program) queryNote(about api.QueryMetadata) {
	if p.format != "table" {
		return
	}

	note := fmt.Sprintf("%s in %d ms", counted(about.Count, "row", "rows"), about.ElapsedMs)
	if !p.err.screen && !about.Truncated {
		return
	}

	if about.Truncated {
		note += "; truncated. A LIMIT in the statement allows up to 100,000 rows"
	}

	p.err.printf("%s\n", p.err.style(dim, note))
}
