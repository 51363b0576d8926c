package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// sharedName parses what can be shared: NAMESPACE, NAMESPACE/DATASET or OWNER/NAMESPACE/DATASET.
func sharedName(text string) (name, error) {
	if strings.Contains(text, "/") {
		return datasetName(text)
	}

	return namespaceName(text)
}

const shareHelp = `

TARGET is NAMESPACE, which covers every dataset in it, present and future, or NAMESPACE/DATASET.
USER is a username or @GROUP. The user need not have signed in yet.`

func (p *program) shareCommand() *cobra.Command {
	var role string

	command := p.act("share TARGET USER", "Share a namespace or a dataset", cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := sharedName(args[0])
		if err != nil {
			return err
		}

		body := api.NewShare{Username: args[1], Role: api.ShareRole(role)}

		if at.dataset == "" {
			_, err = api.Read[any](client.GrantNamespaceShare(ctx, at.owner, at.namespace, nil, body))
		} else {
			_, err = api.Read[any](client.GrantDatasetShare(ctx, at.owner, at.namespace, at.dataset, nil, body))
		}

		if err != nil {
			return err
		}

		return p.done("%s is now %s of %s.", args[1], role, at)
	})
	command.Long = command.Short + "." + shareHelp
	command.Flags().StringVar(&role, "role", "viewer", "role to give: a viewer reads and queries, an editor also loads and changes data")

	return command
}

func (p *program) unshareCommand() *cobra.Command {
	command := p.act("unshare TARGET USER", "Stop sharing a namespace or a dataset", cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := sharedName(args[0])
		if err != nil {
			return err
		}

		body := api.ShareRevocation{Username: args[1]}

		if at.dataset == "" {
			_, err = api.Read[any](client.RevokeNamespaceShare(ctx, at.owner, at.namespace, body))
		} else {
			_, err = api.Read[any](client.RevokeDatasetShare(ctx, at.owner, at.namespace, at.dataset, body))
		}

		if api.IsCode(err, api.NOTFOUND) {
			hint := "`quern shares " + args[0] + "` lists its shares. A share of a namespace covers its datasets."
			if rest, failed := otherAccess(ctx, client, at, args[1]); failed == nil && len(rest) > 0 {
				hint = strings.Join(rest, "\n")
			}

			return exitError{exitNotFound, at.String() + " is not shared with " + args[1], hint}
		}

		if err != nil {
			return err
		}

		rest, failed := otherAccess(ctx, client, at, args[1])
		if failed != nil { // the share has ended all the same
			rest = []string{"Whether other shares give " + args[1] + " access could not be read. `quern shares` lists them."}
		}

		err = p.done("%s is no longer shared with %s.", at, args[1])
		for _, line := range rest {
			p.err.tellf("%s", p.err.clean(line))
		}

		return err
	})
	command.Long = command.Short + "." + shareHelp

	return command
}

func (p *program) sharesCommand() *cobra.Command {
	command := p.act("shares TARGET", "List the shares of a namespace or a dataset", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := sharedName(args[0])
		if err != nil {
			return err
		}

		return list(p, api.Pages(func(*string) ([]api.Share, *string, error) {
			all, err := sharesOf(ctx, client, at)

			return all, nil, err
		}), 0, at.String()+" is not shared.",
			column[api.Share]{"user", func(s api.Share) any { return s.Username }},
			column[api.Share]{"role", func(s api.Share) any { return string(s.Role) }},
			column[api.Share]{"note", func(s api.Share) any {
				var notes []string

				if s.Via != nil {
					notes = append(notes, "through the namespace")
				}

				if s.Pending != nil && *s.Pending {
					notes = append(notes, "has not signed in yet")
				}

				return strings.Join(notes, ", ")
			}},
		)
	})
	command.Long = command.Short + "." + shareHelp

	return command
}

func sharesOf(ctx context.Context, client *api.Client, at name) (api.ShareList, error) {
	if at.dataset == "" {
		return api.Read[api.ShareList](client.ListNamespaceShares(ctx, at.owner, at.namespace))
	}

	return api.Read[api.ShareList](client.ListDatasetShares(ctx, at.owner, at.namespace, at.dataset))
}
