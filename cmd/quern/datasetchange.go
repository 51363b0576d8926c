package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) datasetCreate() *cobra.Command {
	var description string

	command := p.onDataset("create DATASET", "Create an empty dataset", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		if err := p.create(ctx, client, at, description); err != nil {
			return err
		}

		return p.done("Created %s. `quern upload FILE %s` loads rows.", at, at)
	})
	command.Flags().StringVar(&description, "description", "", "what the dataset is about")

	return command
}

// create creates a dataset under the caller's own name.
func (p *program) create(ctx context.Context, client *api.Client, at name, description string) error {
	if err := p.mayCreate(ctx, client, at); err != nil {
		return err
	}

	_, err := api.Read[api.Dataset](client.CreateDataset(ctx, at.namespace, at.dataset, nil, api.InferDefinitionChange{DataDescription: given[string](description)}))

	return err
}

// mayCreate returns an error unless the dataset would be under the caller's own name: datasets can be created only
// there.
func (p *program) mayCreate(ctx context.Context, client *api.Client, at name) error {
	if at.owner == "self" {
		return nil
	}

	me, err := api.Read[api.Me](client.GetMe(ctx))
	if err != nil {
		return err
	}

	if !strings.EqualFold(me.Username, at.owner) {
		return exitError{exitForbidden, fmt.Sprintf("%s belongs to %s, and you are %s", at, at.owner, me.Username), "Only the owner can create datasets there. Write NAMESPACE/DATASET for a dataset of your own."}
	}

	return nil
}

func (p *program) datasetDescribe() *cobra.Command {
	var (
		description string
		columns     map[string]string
		draft       bool
		from        []string
		file        string
	)

	command := p.onDataset("describe DATASET", "Describe a dataset and its columns", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		if draft {
			made, err := api.Read[api.InferDefinition](client.DraftInferDefinition(ctx, at.owner, at.namespace, at.dataset))
			if err != nil {
				return err
			}

			return p.showDefinition(made)
		}

		if len(from) > 0 {
			return p.draftFrom(ctx, client, at, from)
		}

		if file != "" {
			return p.defineFrom(ctx, client, at, file)
		}

		found, err := api.Read[api.InferDefinition](client.GetInferDefinition(ctx, at.owner, at.namespace, at.dataset))
		if err != nil || description == "" && len(columns) == 0 {
			return errors.Join(err, p.showDefinition(found))
		}

		change := api.InferDefinitionChange{DataDescription: given[string](description)}

		if len(columns) > 0 { // the service replaces the whole map
			if found.SchemaDefinition == nil {
				found.SchemaDefinition = map[string]string{}
			}

			maps.Copy(found.SchemaDefinition, columns)
			change.SchemaDefinition = &found.SchemaDefinition
		}

		saved, err := api.Read[api.InferDefinition](client.PutInferDefinition(ctx, at.owner, at.namespace, at.dataset, nil, change))
		if err != nil {
			return err
		}

		return p.showDefinition(saved)
	})
	command.Long = `Describe a dataset and its columns, for people and models. Without a flag, show the descriptions.

--draft-from lets a language model propose the descriptions that it needs to read rows out of documents: write them to a file
(--output json), edit the file, and send it with --file.`
	command.Example = `  quern dataset describe shop/lines --column 'price=for one, in EUR'
  quern dataset describe shop/lines --draft-from invoice.pdf --output json > lines.json
  quern dataset describe shop/lines --file lines.json`
	command.Flags().StringVar(&description, "description", "", "what the dataset is about")
	command.Flags().StringToStringVar(&columns, "column", nil, "description of a column, as NAME=TEXT; can be repeated")
	command.Flags().BoolVar(&draft, "draft", false, "show a draft computed from the values, and save nothing")
	command.Flags().StringSliceVar(&from, "draft-from", nil, "show a draft that a model proposes from these documents, and save nothing; can be repeated")
	command.Flags().StringVar(&file, "file", "", "file with the descriptions, as JSON; - for standard input")
	command.MarkFlagsMutuallyExclusive("draft", "draft-from", "file", "description")
	command.MarkFlagsMutuallyExclusive("draft", "draft-from", "file", "column")

	return command
}

func (p *program) showDefinition(found api.InferDefinition) error {
	type said struct{ Column, Text string }

	var all []said
	for column, text := range maps.All(found.SchemaDefinition) {
		all = append(all, said{column, text})
	}

	sortBy(all, func(s said) string { return s.Column })

	columns := []column[said]{{"column", func(s said) any { return s.Column }}, {"description", func(s said) any { return s.Text }}}
	if p.format == "csv" {
		heads, rows := cells(all, columns)

		return p.csv(heads, rows)
	}

	return one(p, found, func() {
		if found.DataDescription == "" && len(all) == 0 {
			p.out.printf("No descriptions yet. Use --description and --column to add them, or --draft or --draft-from to see a draft.\n")
		}

		p.facts(fact{"description", found.DataDescription})

		if len(all) > 0 {
			p.out.printf("\n")
			p.table(cells(all, columns))
		}
	})
}

func (p *program) datasetRename() *cobra.Command {
	return p.onDataset("rename DATASET NEW_NAME", "Rename a dataset", 2, func(ctx context.Context, client *api.Client, at name, args []string) error {
		if _, err := api.Read[api.Dataset](client.UpdateDataset(ctx, at.owner, at.namespace, at.dataset, api.DatasetChange{Name: &args[0]})); err != nil {
			return err
		}

		return p.done("Renamed %s to %s.", at, args[0])
	})
}

func (p *program) datasetMove() *cobra.Command {
	command := p.onDataset("move DATASET NAMESPACE", "Move a dataset to another of your namespaces", 2, func(ctx context.Context, client *api.Client, at name, args []string) error {
		moved, err := api.Read[api.Dataset](client.UpdateDataset(ctx, at.owner, at.namespace, at.dataset, api.DatasetChange{Namespace: &args[0]}))
		if err != nil {
			return err
		}

		return p.done("Moved %s to %s. Shares of %s cover it now, those of %s no longer do.", at, moved.Dataset.Namespace+"/"+moved.Dataset.Name, moved.Dataset.Namespace, at.namespace)
	})
	command.Long = command.Short + `.

Shares of the dataset itself stay. Whoever sees it only through a share of its former namespace no longer does, and whoever
has a share of the new namespace does.`

	return command
}

func (p *program) datasetExposure() *cobra.Command {
	return p.onDataset("exposure DATASET schema|values|rows", "Change what external models may see", 2, func(ctx context.Context, client *api.Client, at name, args []string) error {
		_, err := api.Read[api.Dataset](client.UpdateDataset(ctx, at.owner, at.namespace, at.dataset, api.DatasetChange{Exposure: given[api.DatasetChangeExposure](args[0])}))
		if err != nil {
			return err
		}

		return p.done("Exposure of %s to external models: %s.", at, args[0])
	})
}

func (p *program) datasetClear() *cobra.Command {
	var yes bool

	command := p.onDataset("clear DATASET", "Remove all rows; earlier snapshots are kept", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		if err := p.confirm(yes, fmt.Sprintf("Remove all rows of %s?", at)); err != nil {
			return err
		}

		if _, err := api.Read[api.Dataset](client.ClearDataset(ctx, at.owner, at.namespace, at.dataset)); err != nil {
			return err
		}

		return p.done("%s is now empty. `quern dataset restore` restores an earlier snapshot.", at)
	})
	yesFlag(command, &yes)

	return command
}

func (p *program) datasetDelete() *cobra.Command {
	var yes bool

	command := p.onDataset("delete DATASET", "Delete a dataset", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		if err := p.confirm(yes, fmt.Sprintf("Delete %s with all its rows, its history and the answers that came from it?", at)); err != nil {
			return err
		}

		if _, err := api.Read[any](client.DeleteDataset(ctx, at.owner, at.namespace, at.dataset)); err != nil {
			return err
		}

		return p.done("Deleted %s. `quern restore %s` restores it; `quern deleted` shows until when.", at, at)
	})
	yesFlag(command, &yes)

	return command
}
