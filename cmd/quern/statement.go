package main

import (
	"context"
	"iter"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) statementCommand() *cobra.Command {
	return group("statement", "List, show, cancel and delete long statements, and save their results",
		p.statementList(), p.statementShow(), p.statementSave(),
		p.onStatement("cancel ID", "Cancel a long statement", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
			if _, err := api.Check(client.CancelStatement(ctx, id)); err != nil {
				return err
			}

			return p.done("Cancelled.")
		}),
		p.onStatement("delete ID", "Delete a long statement and its result", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
			if _, err := api.Check(client.DeleteStatement(ctx, id)); err != nil {
				return err
			}

			return p.done("Deleted.")
		}))
}

// onStatement returns a command about one long statement.
func (p *program) onStatement(use, short string, run func(ctx context.Context, client *api.Client, id uuid.UUID) error) *cobra.Command {
	return p.act(use, short, cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := findID(args[0], "`quern statement list` shows the ids", allStatements(ctx, client), func(s api.Statement) listed { return listed{s.ID, s.Query} })
		if err != nil {
			return err
		}

		return run(ctx, client, id)
	})
}

func (p *program) statementList() *cobra.Command {
	var limit int

	command := p.act("list", "List your long statements, newest first", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		return list(p, allStatements(ctx, client), limit, "No long statements. `quern query --out FILE` starts one.",
			column[api.Statement]{"statement", func(s api.Statement) any { return s.ID }},
			column[api.Statement]{"status", func(s api.Statement) any { return string(s.Status) }},
			column[api.Statement]{"format", func(s api.Statement) any { return string(s.Format) }},
			column[api.Statement]{"rows", func(s api.Statement) any { return s.Progress.Rows }},
			column[api.Statement]{"started", func(s api.Statement) any { return s.CreatedAt }},
			column[api.Statement]{"query", func(s api.Statement) any { return s.Query }},
		)
	})
	limitFlag(command, &limit)

	return command
}

func allStatements(ctx context.Context, client *api.Client) iter.Seq2[api.Statement, error] {
	parameters := api.ListStatementsParams{Limit: new(int32(100))}

	return api.Pages(func(cursor *string) ([]api.Statement, *string, error) {
		parameters.Cursor = cursor
		page, err := api.Read[api.StatementList](client.ListStatements(ctx, &parameters))

		return page.Data, page.NextCursor, err
	})
}

func (p *program) statementShow() *cobra.Command {
	return p.onStatement("show ID", "Show a long statement and its progress", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		found, err := api.Read[api.Statement](client.GetStatement(ctx, id))
		if err != nil {
			return err
		}

		if p.format != "table" {
			return p.json(found)
		}

		p.out.printf("%s  %s  %s  %s\n%s\n", found.Status, found.Format, counted(found.Progress.Rows, "row", "rows"), size(found.Progress.Bytes), p.out.clean(found.Query))

		if found.Error != nil {
			p.out.printf("%s: %s\n", p.out.clean(found.Error.Code), p.out.clean(found.Error.Message))
		}

		return nil
	})
}

func (p *program) statementSave() *cobra.Command {
	var path string

	command := p.onStatement("save ID", "Write the result of a long statement to a file", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		saver, bar := p.saver(client, path)
		defer bar.clear()

		done, err := p.awaitStatement(ctx, client, bar, id)
		if err != nil {
			return err
		}

		written, err := saver.Save(ctx, id)
		if err != nil {
			return err
		}

		bar.clear()

		return p.done("Wrote %s, %s, to %s.", counted(done.Progress.Rows, "row", "rows"), size(written), path)
	})
	command.Flags().StringVar(&path, "out", "", "file to write")
	_ = command.MarkFlagRequired("out")

	return command
}
