package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) connectionDelete() *cobra.Command {
	var yes bool

	command := p.onConnection("delete", "Delete a connection with its secret", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		found, err := api.Read[api.Connection](client.GetConnection(ctx, id))
		if err != nil {
			return err
		}

		if found.Owner == nil && !yes { // one of somebody else is refused
			lost, err := lostWith(ctx, client, found)
			if err != nil {
				return err
			}

			if err := p.confirm(false, strings.Join(append(lost, fmt.Sprintf("Delete the connection %s with its secret?", found.Name)), " ")); err != nil {
				return err
			}
		}

		if _, err := api.Read[any](client.DeleteConnection(ctx, id)); err != nil {
			return err
		}

		return p.done("Deleted the connection.")
	})
	command.Long = `Delete a connection with its secret. Sources that use it stop, and their attached datasets can no longer be read; what was loaded stays. To keep a
source of files, give it another connection first: ` + "`quern source change NAME --connection OTHER`" + `.`
	yesFlag(command, &yes)

	return command
}

// lostWith returns sentences that say what no longer works without a connection of the caller.
func lostWith(ctx context.Context, client *api.Client, of api.Connection) (lost []string, err error) {
	var sources, attached, people []string

	for one, err := range allSources(ctx, client) {
		switch {
		case err != nil:
			return nil, err
		case one.ConnectionID != of.ID:
			continue
		case one.Iceberg != nil:
			attached = append(attached, datasetOf(one))
		}

		sources = append(sources, fmt.Sprintf("%s (%s)", one.Name, datasetOf(one)))
	}

	shares, err := api.Read[api.ConnectionShareList](client.ListConnectionShares(ctx, of.ID))

	switch {
	case api.IsCode(err, api.FORBIDDEN): // only a token with the role owner sees the shares
		people = []string{"unknown, `quern connection shares` needs a token with the role owner"}
	case err != nil:
		return nil, err
	}

	for _, share := range shares {
		people = append(people, share.Username)
	}

	for _, one := range []struct {
		names []string
		text  string
	}{
		{sources, "Sources that stop: %s."}, {attached, "Attached datasets that can no longer be read: %s."}, {people, "People with whom it is shared, whose sources stop too: %s."},
	} {
		if len(one.names) > 0 {
			lost = append(lost, fmt.Sprintf(one.text, strings.Join(one.names, ", ")))
		}
	}

	return lost, nil
}
