package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) conversationCommand() *cobra.Command {
	return group("conversation", "List, show, rename and delete conversations", p.conversationList(), p.conversationShow(),
		p.act("rename ID TITLE", "Rename a conversation", cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error {
			id, err := conversationID(ctx, client, args[0])
			if err != nil {
				return err
			}

			changed, err := api.Read[api.ConversationItem](client.RenameConversation(ctx, id, api.ConversationChange{Title: args[1]}))
			if err != nil {
				return err
			}

			return p.done("Renamed to %q.", changed.Title)
		}), p.conversationDelete())
}

func (p *program) conversationList() *cobra.Command {
	var (
		limit     int
		namespace string
	)

	command := p.act("list", "List your conversations, most recently active first", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		parameters := api.ListConversationsParams{Limit: new(int32(100))}

		if namespace != "" {
			at, err := namespaceName(namespace)
			if err != nil {
				return err
			}

			parameters.Username, parameters.Namespace = &at.owner, &at.namespace
		}

		return list(p, allConversations(ctx, client, parameters), limit, "No conversations yet. `quern ask` starts one.",
			column[api.ConversationItem]{"conversation", func(c api.ConversationItem) any { return c.ID }},
			column[api.ConversationItem]{"about", func(c api.ConversationItem) any { return c.Username + "/" + c.Namespace }},
			column[api.ConversationItem]{"last", func(c api.ConversationItem) any { return c.UpdatedAt }},
			column[api.ConversationItem]{"title", func(c api.ConversationItem) any { return c.Title }},
		)
	})
	limitFlag(command, &limit)
	inNamespace(command, &namespace)

	return command
}

func allConversations(ctx context.Context, client *api.Client, parameters api.ListConversationsParams) iter.Seq2[api.ConversationItem, error] {
	return api.Pages(func(cursor *string) ([]api.ConversationItem, *string, error) {
		parameters.Cursor = cursor
		page, err := api.Read[api.ConversationList](client.ListConversations(ctx, &parameters))

		return page.Data, page.NextCursor, err
	})
}

func conversationID(ctx context.Context, client *api.Client, text string) (uuid.UUID, error) {
	all := allConversations(ctx, client, api.ListConversationsParams{Limit: new(int32(100))})

	return findID(text, "`quern conversation list` shows the ids", all, func(c api.ConversationItem) listed { return listed{c.ID, c.Title} })
}

func (p *program) conversationShow() *cobra.Command {
	return p.act("show ID", "Show the questions and answers of a conversation", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := conversationID(ctx, client, args[0])
		if err != nil {
			return err
		}

		found, err := api.Read[api.Conversation](client.GetConversation(ctx, id))
		if err != nil {
			return err
		}

		columns := []column[api.Turn]{
			{"run", func(t api.Turn) any { return t.RunID }},
			{"status", func(t api.Turn) any { return string(t.Status) }},
			{"question", func(t api.Turn) any { return t.Question }},
			{"answer", func(t api.Turn) any {
				if t.Result == nil {
					return ""
				}

				return t.Result.Response
			}},
		}

		if p.format == "csv" {
			heads, rows := cells(found.Turns, columns)

			return p.csv(heads, rows)
		}

		return one(p, found, func() {
			p.out.printf("%s\n", p.out.style(bold, p.out.clean(found.Title)))

			for _, turn := range found.Turns {
				p.out.printf("\n%s %s\n", p.out.style(cyan, "?"), p.out.clean(wrap(turn.Question, p.out.columns()-2)))

				switch {
				case turn.Result == nil:
					p.out.printf("%s\n", p.out.style(dim, "("+string(turn.Status)+")"))
				case turn.Result.Outcome == api.OutcomeWithheld:
					p.out.printf("%s\n", p.out.style(dim, "(withheld: you can no longer see the data that it was read from)"))
				default:
					for _, step := range turn.Result.Steps {
						p.out.printf("%s\n", p.out.style(dim, indent(p.out.clean(strings.TrimSpace(step.Query)), "  ")))
					}

					p.out.printf("%s\n", p.out.clean(wrap(turn.Result.Response, p.out.columns())))
					p.options(turn.Result.Clarification)
				}

				line := "run: " + turn.RunID.String()
				if turn.Feedback != nil {
					line += ", rated " + thumb(turn.Feedback.ThumbsUp)
				}

				p.out.printf("%s\n", p.out.style(dim, line))
			}
		})
	})
}

func (p *program) conversationDelete() *cobra.Command {
	var yes bool

	command := p.act("delete ID", "Delete a conversation with its questions and answers", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := conversationID(ctx, client, args[0])
		if err != nil {
			return err
		}

		if err := p.confirm(yes, fmt.Sprintf("Delete the conversation %s?", id)); err != nil {
			return err
		}

		if _, err := api.Read[any](client.DeleteConversation(ctx, id)); err != nil {
			return err
		}

		return p.done("Deleted.")
	})
	yesFlag(command, &yes)

	return command
}
