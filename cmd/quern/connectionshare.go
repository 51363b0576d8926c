package main

import (
	"context"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

const connectionShareHelp = `

USER is a username or @GROUP. The user need not have signed in yet. People with a share can make sources with the connection and load
everything that its credentials can read. They do not see the secret and cannot change the connection.`

func (p *program) connectionShare() *cobra.Command {
	command := p.act("share NAME USER", "Let a user or a group use a connection", cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := connectionNamed(ctx, client, args[0])
		if err != nil {
			return err
		}

		if _, err := api.Read[any](client.ShareConnection(ctx, id, nil, api.NewConnectionShare{Username: args[1]})); err != nil {
			return err
		}

		return p.done("%s may now use the connection %s.", args[1], args[0])
	})
	command.Long = command.Short + "." + connectionShareHelp

	return command
}

func (p *program) connectionUnshare() *cobra.Command {
	command := p.act("unshare NAME USER", "Stop sharing a connection", cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := connectionNamed(ctx, client, args[0])
		if err != nil {
			return err
		}

		_, err = api.Read[any](client.UnshareConnection(ctx, id, api.NewConnectionShare{Username: args[1]}))
		if api.IsCode(err, api.NOTFOUND) {
			return exitError{exitNotFound, "the connection " + args[0] + " is not shared with " + args[1], "`quern connection shares " + args[0] + "` lists its shares. A group stands with @ before its name."}
		}

		if err != nil {
			return err
		}

		return p.done("%s may no longer use the connection %s. Sources that use it stop at their next file.", args[1], args[0])
	})
	command.Long = command.Short + "." + connectionShareHelp

	return command
}

func (p *program) connectionShares() *cobra.Command {
	return p.act("shares NAME", "List with whom a connection is shared", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := connectionNamed(ctx, client, args[0])
		if err != nil {
			return err
		}

		return list(p, api.Pages(func(*string) ([]api.ConnectionShare, *string, error) {
			all, err := api.Read[api.ConnectionShareList](client.ListConnectionShares(ctx, id))

			return all, nil, err
		}), 0, "The connection is not shared.",
			column[api.ConnectionShare]{"user", func(s api.ConnectionShare) any { return s.Username }},
			column[api.ConnectionShare]{"note", func(s api.ConnectionShare) any {
				if s.Pending != nil && *s.Pending {
					return "has not signed in yet"
				}

				return ""
			}},
		)
	})
}
