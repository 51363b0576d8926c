package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) restoreCommand() *cobra.Command {
	var as string

	command := p.act("restore NAME", "Restore a dataset or a namespace that you deleted", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := findDeleted(ctx, client, args[0])
		if err != nil {
			return err
		}

		restored, err := api.Read[api.RestoredItem](client.RestoreDeleted(ctx, id, api.Restoration{Name: given[string](as)}))
		if err != nil {
			return explainRestore(err, as)
		}

		called := deletedName(restored.Namespace, restored.Dataset).String()

		return one(p, restored, func() { p.out.printf("Restored %s.\n", p.out.clean(called)) },
			column[api.RestoredItem]{"id", func(r api.RestoredItem) any { return r.ID }},
			column[api.RestoredItem]{"kind", func(r api.RestoredItem) any { return string(r.Kind) }},
			column[api.RestoredItem]{"name", func(api.RestoredItem) any { return called }},
		)
	})
	command.Flags().StringVar(&as, "as", "", "restore it under this name, without the namespace")
	command.Long = command.Short + `.

NAME is NAMESPACE/DATASET, NAMESPACE, or an id of ` + "`quern deleted`" + `. If a name was deleted several times, the last
one is restored; an id restores another. A namespace comes back without datasets: restore each of them.
` + "`quern dataset restore`" + ` restores an earlier snapshot of a dataset that is not deleted.`

	return command
}

// findDeleted returns the id of what was deleted last with that name, or whose id text begins.
func findDeleted(ctx context.Context, client *api.Client, text string) (uuid.UUID, error) {
	const hint = "`quern deleted` lists what can be restored"

	if id, err := uuid.Parse(text); err == nil {
		return id, nil
	}

	wanted := strings.TrimPrefix(text, "self/")

	for item, err := range allDeleted(ctx, client) {
		if err != nil {
			return uuid.Nil, err
		}

		called := deletedName(item.Namespace, item.Dataset).String()
		if strings.EqualFold(wanted, called) || item.Dataset != nil && strings.EqualFold(wanted, item.Username+"/"+called) {
			return item.ID, nil
		}
	}

	id, err := findID(text, hint, allDeleted(ctx, client), func(d api.DeletedItem) listed {
		return listed{d.ID, deletedName(d.Namespace, d.Dataset).String() + ", deleted " + moment(d.DeletedAt)}
	})
	if failed, is := errors.AsType[exitError](err); is && failed.code == exitNotFound {
		return uuid.Nil, exitError{exitNotFound, fmt.Sprintf("you deleted nothing named %q that can still be restored", text), hint + "."}
	}

	return id, err
}

// explainRestore adds what a person at the command line can do.
func explainRestore(err error, as string) error {
	answer, is := errors.AsType[*api.Error](err)

	switch {
	case is && answer.ErrorCode == api.CONFLICT && as == "":
		return exitError{exitState, err.Error(), "`quern restore --as NEW_NAME` restores it under another name."}
	case is && answer.ErrorCode == api.NOTFOUND:
		return exitError{exitNotFound, "you deleted nothing with this id that can still be restored", "`quern deleted` lists what can be restored."}
	default:
		return err
	}
}
