package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) leaveCommand() *cobra.Command {
	command := p.act("leave OWNER/TARGET", "Give up a namespace or a dataset that is shared with you", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := foreignName(args[0])
		if err != nil {
			return err
		}

		var left api.LeftShare
		if at.dataset == "" {
			left, err = api.Read[api.LeftShare](client.LeaveNamespace(ctx, at.owner, at.namespace))
		} else {
			left, err = api.Read[api.LeftShare](client.LeaveDataset(ctx, at.owner, at.namespace, at.dataset))
		}

		if err != nil {
			return err
		}

		return one(p, left, func() {
			p.out.printf("%s is no longer shared with you.\n", at)

			for _, share := range left.Remaining {
				via := ""
				if share.Via != nil {
					via = ", through the namespace"
				}

				p.out.printf("You still have access as %s: %s%s.\n", share.Role, p.out.clean(share.Username), via)
			}
		}, column[api.LeftShare]{"remaining", func(l api.LeftShare) any { return len(l.Remaining) }})
	})
	command.Long = command.Short + `.

TARGET is NAMESPACE or NAMESPACE/DATASET. Only a share with your own username can be left. Access through a group,
or for a dataset through its namespace, stays, and so do shares of single datasets of a namespace.`

	return command
}

// foreignName parses what another person shares: OWNER/NAMESPACE or OWNER/NAMESPACE/DATASET.
func foreignName(text string) (name, error) {
	switch strings.Count(text, "/") {
	case 1:
		return namespaceName(text)
	case 2: //nolint:mnd // the slashes of OWNER/NAMESPACE/DATASET
		return datasetName(text)
	default:
		return name{}, usageError{fmt.Errorf("%q is not shared with you: write OWNER/NAMESPACE or OWNER/NAMESPACE/DATASET", text), "quern leave"}
	}
}
