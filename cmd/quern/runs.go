package main

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) runsCommand() *cobra.Command {
	var (
		limit                           int
		namespace, status, conversation string
	)

	command := p.act("runs", "List the questions that you asked, newest first", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		parameters := api.ListRunsParams{}

		if namespace != "" {
			at, err := namespaceName(namespace)
			if err != nil {
				return err
			}

			parameters.Username, parameters.Namespace = &at.owner, &at.namespace
		}

		if status != "" {
			parameters.Status = new(api.RunStatus(status))
		}

		if conversation != "" {
			id, err := conversationID(ctx, client, conversation)
			if err != nil {
				return err
			}

			parameters.ConversationID = &id
		}

		none := "No questions yet. `quern ask` asks one."
		if namespace != "" || status != "" || conversation != "" {
			none = "No questions match."
		}

		return list(p, allRuns(ctx, client, parameters), limit, none,
			column[api.RunItem]{"run", func(r api.RunItem) any { return r.RunID }},
			column[api.RunItem]{"status", func(r api.RunItem) any { return string(r.Status) }},
			column[api.RunItem]{"about", func(r api.RunItem) any { return r.Username + "/" + r.Namespace }},
			column[api.RunItem]{"asked", func(r api.RunItem) any { return r.CreatedAt }},
			column[api.RunItem]{"question", func(r api.RunItem) any { return r.Question }},
		)
	})
	limitFlag(command, &limit)
	inNamespace(command, &namespace)
	command.Flags().StringVar(&status, "status", "", "only runs with this status: running, waiting, completed, failed, cancelled or expired")
	command.Flags().StringVar(&conversation, "conversation", "", "only runs of this conversation")

	return command
}

func allRuns(ctx context.Context, client *api.Client, parameters api.ListRunsParams) iter.Seq2[api.RunItem, error] {
	parameters.Limit = new(int32(100))

	return api.Pages(func(cursor *string) ([]api.RunItem, *string, error) {
		parameters.Cursor = cursor
		page, err := api.Read[api.RunList](client.ListRuns(ctx, &parameters))

		return page.Data, page.NextCursor, err
	})
}
