package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) checkCommand() *cobra.Command {
	var (
		namespace, question string
		runs, queries       []string
	)

	command := p.act("check FILE", "Check the figures of a text against rows", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		if len(runs)+len(queries) == 0 {
			return usageError{errors.New("name what the text is based on: --run or --query"), "quern check"}
		}

		text, err := readText(args[0])
		if err != nil {
			return err
		}

		request := api.CheckRequest{Text: text, Question: given[string](question)}

		if request.Runs, err = checkedRuns(ctx, client, runs); err != nil {
			return err
		}

		if request.Statements, err = checkedStatements(namespace, queries); err != nil {
			return err
		}

		found, err := api.Read[api.CheckResult](client.CheckText(ctx, request))
		if err != nil {
			return err
		}

		return p.showChecked(found)
	})
	command.Long = `Check the figures of a text against the rows of runs and statements: numbers, dates, quoted values, and statements such as "the highest".
FILE is plain text or Markdown; - is standard input. If the rows do not confirm everything, the exit code is 10.`
	command.Example = `  quern check report.md -n shop --query 'SELECT region, count(*) AS orders FROM orders GROUP BY region'
  quern check - --run 0199c0ea-d6e8 < answer.txt`
	inNamespace(command, &namespace)
	command.Flags().StringArrayVar(&runs, "run", nil, "id of a run whose rows the text is based on; can be repeated")
	command.Flags().StringArrayVar(&queries, "query", nil, "statement that returns the rows; can be repeated")
	command.Flags().StringVar(&question, "question", "", "question that the text answers; its numbers are not checked")

	return command
}

// readText returns the content of a file or, for -, of standard input.
func readText(name string) (string, error) {
	if name == "-" {
		content, err := io.ReadAll(os.Stdin)

		return string(content), err
	}

	content, err := os.ReadFile(name)

	return string(content), err
}

func checkedRuns(ctx context.Context, client *api.Client, names []string) (*[]uuid.UUID, error) {
	var ids []uuid.UUID

	for _, name := range names {
		id, err := findID(name, "`quern runs` shows the ids", recentRuns(ctx, client), func(r api.RunItem) listed { return listed{r.RunID, r.Question} })
		if err != nil {
			return nil, err
		}

		ids = append(ids, id)
	}

	if ids == nil {
		return nil, nil //nolint:nilnil // the field is left out
	}

	return &ids, nil
}

func checkedStatements(namespace string, queries []string) (*[]api.QueryRequest, error) {
	var list []api.QueryRequest

	for _, text := range queries {
		one := api.QueryRequest{Query: text}

		if namespace != "" {
			at, err := namespaceName(namespace)
			if err != nil {
				return nil, err
			}

			one.Username, one.Namespace = &at.owner, &at.namespace
		}

		list = append(list, one)
	}

	if list == nil {
		return nil, nil //nolint:nilnil // the field is left out
	}

	return &list, nil
}

// showChecked prints the claims. The exit code says whether all of them are confirmed.
func (p *program) showChecked(found api.CheckResult) error {
	var failed error
	if found.Unverified > 0 {
		failed = exitError{exitNoAnswer, "", ""}
	}

	if p.format == "json" {
		return errors.Join(p.json(found), failed)
	}

	claims := func(yield func(api.CheckedClaim, error) bool) {
		for _, claim := range found.Claims {
			if !yield(claim, nil) {
				return
			}
		}
	}

	err := list(p, claims, 0, "The text has no claims.",
		column[api.CheckedClaim]{"at", func(c api.CheckedClaim) any { return c.Start }},
		column[api.CheckedClaim]{"claim", func(c api.CheckedClaim) any { return c.Claim }},
		column[api.CheckedClaim]{"confirmed", func(c api.CheckedClaim) any { return map[bool]string{true: "yes", false: "no"}[c.Verified] }},
		column[api.CheckedClaim]{"by", claimedBy},
	)
	if err != nil {
		return err
	}

	if p.format == "table" {
		p.err.printf("%s\n", p.err.style(dim, fmt.Sprintf("confirmed by rows: %d of %d", found.Verified, found.Verified+found.Unverified)))
	}

	return failed
}

// claimedBy returns the calculation or the cells of a claim, or the reason why it is not confirmed.
func claimedBy(c api.CheckedClaim) any {
	switch {
	case c.Reason != nil:
		return *c.Reason
	case c.Calculation != nil:
		return *c.Calculation
	}

	var cells []string

	for _, s := range c.Sources {
		switch {
		case s.Column == nil:
			cells = append(cells, fmt.Sprintf("number of rows of statement %d", s.Step+1))
		case s.Row == nil:
			cells = append(cells, fmt.Sprintf("%s of statement %d", *s.Column, s.Step+1))
		default:
			cells = append(cells, fmt.Sprintf("%s in row %d of statement %d", *s.Column, *s.Row+1, s.Step+1))
		}
	}

	return strings.Join(cells, ", ")
}
