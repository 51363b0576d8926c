package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) datasetKey() *cobra.Command {
	var (
		duplicates string
		remove     bool
	)

	command := p.act("key DATASET [COLUMN...]", "Show, declare or remove the key of a dataset", cobra.MinimumNArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := datasetName(args[0])

		switch columns := args[1:]; {
		case err != nil:
			return err
		case remove && len(columns) > 0:
			return usageError{errors.New("--remove takes no columns"), "quern dataset key"}
		case remove:
			return p.removeKey(ctx, client, at)
		case len(columns) == 0 && duplicates != "":
			return usageError{errors.New("--duplicates needs the columns of the key"), "quern dataset key"}
		case len(columns) == 0:
			return p.showKey(ctx, client, at)
		default:
			saved, err := api.Read[api.DatasetKey](client.PutKey(ctx, at.owner, at.namespace, at.dataset, api.KeyDeclaration{
				Columns: columns, Duplicates: given[api.KeyDeclarationDuplicates](duplicates),
			}))
			if err != nil {
				return err
			}

			return p.done("The key of %s is %s.", at, keyText(&saved))
		}
	})
	command.Long = `Show, declare or remove the key of a dataset: the columns whose values identify a row. All rows must have values there, and no two the
same. From then on, rows of a load that violate the key are set aside, or with --duplicates refuse the load fails. Merges use the key.`
	command.Example = `  quern dataset key shop/stock sku
  quern dataset key shop/lines order_id line --duplicates refuse
  quern dataset key shop/stock --remove`
	command.Flags().StringVar(&duplicates, "duplicates", "", "what happens to rows of a load that violate the key: setAside (default) or refuse")
	command.Flags().BoolVar(&remove, "remove", false, "remove the key")

	return command
}

func (p *program) removeKey(ctx context.Context, client *api.Client, at name) error {
	if _, err := api.Read[any](client.DeleteKey(ctx, at.owner, at.namespace, at.dataset)); err != nil {
		return err
	}

	return p.done("%s has no key now.", at)
}

func (p *program) showKey(ctx context.Context, client *api.Client, at name) error {
	found, err := api.Read[api.Dataset](client.GetDataset(ctx, at.owner, at.namespace, at.dataset))
	if err != nil {
		return err
	}

	key := found.Metadata.Key
	if key == nil {
		return p.done("%s has no key. `quern dataset key %s COLUMN` declares one.", at, at)
	}

	return one(p, *key, func() {
		p.facts(fact{"key", strings.Join(key.Columns, ", ")}, fact{"duplicates", string(key.Duplicates)})
	})
}

// keyText returns a key for people, or nothing if there is none.
func keyText(key *api.DatasetKey) any {
	switch {
	case key == nil:
		return nil
	case key.Duplicates == api.KeyDuplicatesRefuse:
		return fmt.Sprintf("%s (loads with duplicates are refused)", strings.Join(key.Columns, ", "))
	default:
		return fmt.Sprintf("%s (duplicates are set aside)", strings.Join(key.Columns, ", "))
	}
}
