package main

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// policyFlags say what a source does about files that were loaded and are no longer the same.
type policyFlags struct{ changed, deleted string }

func (f *policyFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.changed, "changed", "", "what happens to the rows of a file that has changed: keep or replace (default keep)")
	flags.StringVar(&f.deleted, "deleted", "", "what happens to the rows of a file that is gone: keep or remove (default keep)")
}

func (f *policyFlags) read() (changed *api.SourceChangedFiles, deleted *api.SourceDeletedFiles) {
	return given[api.SourceChangedFiles](f.changed), given[api.SourceDeletedFiles](f.deleted)
}

// pathFlag adds the flag for the files of a source of addresses. A comma is a part of an address.
func pathFlag(command *cobra.Command, paths *[]string) {
	command.Flags().StringArrayVar(paths, "path", nil, "file of a connection to addresses, relative to its address, such as 2026/orders.csv; repeat it for all files")
}

func doubtCodes(accept []string) *[]api.DoubtCode {
	if len(accept) == 0 {
		return nil
	}

	codes := make([]api.DoubtCode, len(accept))
	for i, code := range accept {
		codes[i] = api.DoubtCode(code)
	}

	return &codes
}

func (p *program) sourceChange() *cobra.Command {
	var (
		from, prefix, pattern string
		paths                 []string
		policy                policyFlags
		wish                  uploadWish
		texts                 = map[string]*string{}
		command               *cobra.Command
	)

	command = p.onSource("change", "Change what a source loads from files, and how", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		if err := wish.read(texts); err != nil {
			return err
		}

		change := api.SourceChange{Accept: doubtCodes(wish.accept)}
		change.Changed, change.Deleted = policy.read()

		if command.Flags().Changed("prefix") {
			change.Prefix = &prefix
		}

		if command.Flags().Changed("pattern") {
			change.Pattern = &pattern
		}

		if len(paths) > 0 {
			change.Paths = &paths
		}

		if from != "" {
			connection, err := connectionNamed(ctx, client, from)
			if err != nil {
				return err
			}

			change.ConnectionID = &connection
		}

		if wish.options != (api.IngestionOptions{}) {
			change.Options = &wish.options
		}

		if change == (api.SourceChange{}) {
			return usageError{errors.New("nothing to change: give --connection, --changed, --deleted, --prefix, --pattern, --path, --accept or an option such as --delimiter"), "quern source change"}
		}

		now, err := api.Read[api.Source](client.UpdateSource(ctx, id, change))
		if err != nil {
			return err
		}

		if now.Status == api.SourceStatusStopped {
			return p.done("Changed the source. It is stopped: `quern source resume %s` lets it run again.", p.out.clean(now.Name))
		}

		return p.done("Changed the source. The next run uses it.")
	})
	command.Long = `Change what a source loads from files, and how. What is loaded stays: files that are no longer found are left alone, and other options and
accepted doubts are for files that are loaded from now on. The options together take the place of those that the source had.
With another connection of the same kind, files with the same path and ETag are known there and are not loaded again.`
	flags := command.Flags()
	flags.StringVar(&from, "connection", "", "name or id of another connection of the same kind; OWNER/NAME for one that is shared with you")
	flags.StringVar(&prefix, "prefix", "", "only files whose paths begin with this; empty for all")
	flags.StringVar(&pattern, "pattern", "*", "only files that match this, such as '*.csv'; * for all")
	pathFlag(command, &paths)
	policy.add(command)
	wish.flags(command, texts)

	return command
}

// toldFiles says what became of the rows of files that are no longer the same.
func toldFiles(of api.Source) string {
	switch replaces, removes := of.Changed != nil && *of.Changed == api.SourceChangedFilesReplace, of.Deleted != nil && *of.Deleted == api.SourceDeletedFilesRemove; {
	case replaces && removes:
		return "New content replaces the rows of a changed file, and the rows of a deleted file are removed."
	case replaces:
		return "New content replaces the rows of a changed file. The rows of a deleted file stay."
	case removes:
		return "The rows of a changed file stay as they were loaded. The rows of a deleted file are removed."
	default:
		return "Their rows stay as they were loaded."
	}
}
