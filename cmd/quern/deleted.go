package main

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) deletedCommand() *cobra.Command {
	var limit int

	command := p.act("deleted", "List what you deleted and can restore, newest first", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		return list(p, allDeleted(ctx, client), limit, "Nothing to restore.",
			column[api.DeletedItem]{"id", func(d api.DeletedItem) any { return d.ID }},
			column[api.DeletedItem]{"kind", func(d api.DeletedItem) any { return string(d.Kind) }},
			column[api.DeletedItem]{"name", func(d api.DeletedItem) any { return deletedName(d.Namespace, d.Dataset).String() }},
			column[api.DeletedItem]{"deleted", func(d api.DeletedItem) any { return d.DeletedAt }},
			column[api.DeletedItem]{"erased", func(d api.DeletedItem) any { return d.ErasedAt }},
		)
	})
	limitFlag(command, &limit)

	return command
}

func allDeleted(ctx context.Context, client *api.Client) iter.Seq2[api.DeletedItem, error] {
	return api.Pages(func(cursor *string) ([]api.DeletedItem, *string, error) {
		page, err := api.Read[api.DeletedList](client.ListDeleted(ctx, &api.ListDeletedParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}

// deletedName returns the name of something that the caller owns.
func deletedName(namespace string, dataset *string) name {
	if dataset == nil {
		return name{"self", namespace, ""}
	}

	return name{"self", namespace, *dataset}
}
