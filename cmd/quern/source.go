package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) sourceCommand() *cobra.Command {
	return group("source", "Load the files of a connection into a dataset, or attach a table, and keep it fresh", p.sourceAdd(), p.sourceList(),
		p.onSource("show", "Show a source and its last runs", p.showSource), p.sourceRun(), p.sourceChange(), p.sourceSchedule(), p.sourceExport(), p.sourceApply(),
		p.sourceActive("pause", "Keep a source from running", false, "Paused the source."),
		p.sourceActive("resume", "Let a source run again that was paused or stopped", true, "The source is active. `quern source run` loads its new files."),
		p.onSource("delete", "Delete a source; what it loaded stays", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
			if _, err := api.Read[any](client.DeleteSource(ctx, id)); err != nil {
				return err
			}

			return p.done("Deleted the source. What it loaded stays.")
		}))
}

// onSource returns a command on one source, which is named by its name or its id.
func (p *program) onSource(verb, short string, do func(ctx context.Context, client *api.Client, id uuid.UUID) error) *cobra.Command {
	return p.act(verb+" NAME", short, cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		for one, err := range allSources(ctx, client) {
			if err != nil {
				return err
			}

			if strings.EqualFold(one.Name, args[0]) {
				return do(ctx, client, one.ID)
			}
		}

		id, err := findNamed("source", args[0], "`quern source list` shows the names and ids", allSources(ctx, client), func(s api.Source) listed { return listed{s.ID, s.Name} })
		if err != nil {
			return err
		}

		return do(ctx, client, id)
	})
}

func (p *program) sourceActive(verb, short string, active bool, said string) *cobra.Command {
	return p.onSource(verb, short, func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		now, err := api.Read[api.Source](client.UpdateSource(ctx, id, api.SourceChange{Active: &active}))
		if err != nil {
			return err
		}

		if !active || now.OpenFiles == nil {
			return p.done("%s", said)
		}

		if waits := slices.ContainsFunc(*now.OpenFiles, func(f api.SourceOpenFile) bool { return f.Status == api.SourceOpenFileStatusWaiting }); waits {
			said = "The source is active, but its next run stops again unless somebody decides about what waits, or the file is corrected."
		}

		if err := p.done("%s", said); err != nil || p.format != "table" {
			return err
		}

		p.printOpen(now)

		return nil
	})
}

// printOpen prints the files that wait and those that are left out.
func (p *program) printOpen(of api.Source) {
	if of.OpenFiles == nil {
		return
	}

	for _, f := range *of.OpenFiles {
		what := "the rows"
		if f.Path != nil {
			what = p.out.clean(*f.Path)
		}

		state := "left out, because it could not be loaded"
		if f.Status == api.SourceOpenFileStatusWaiting {
			state = "waits for somebody to decide"
		}

		if f.IngestionID != nil {
			state += fmt.Sprintf(": `quern ingestion show %s %s` says why", p.out.clean(datasetOf(of)), f.IngestionID)
		}

		p.out.printf("  %s %s\n", what, state)
	}
}

func (p *program) sourceAdd() *cobra.Command {
	var (
		from, prefix, pattern string
		paths                 []string
		wish                  uploadWish
		rows                  rowsFlags
		texts                 = map[string]*string{}
		timing                schedule
		policy                policyFlags
	)

	command := p.act("add NAME DATASET", "Load the files of a connection into a dataset, or attach an Iceberg table", cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := datasetName(args[1])
		if err != nil {
			return err
		}

		if err := wish.read(texts); err != nil {
			return err
		}

		if from == "" {
			return usageError{errors.New("give --connection, the name of a connection: `quern connection list` shows them"), "quern source add"}
		}

		connection, err := connectionNamed(ctx, client, from)
		if err != nil {
			return err
		}

		wanted := api.NewSource{
			Name: args[0], ConnectionID: connection, Username: &at.owner, Namespace: at.namespace, DatasetName: at.dataset, Prefix: given[string](prefix),
			Pattern: given[string](pattern), Options: &wish.options, Accept: doubtCodes(wish.accept),
		}
		wanted.Changed, wanted.Deleted = policy.read()

		if len(paths) > 0 {
			wanted.Paths = &paths
		}

		if wanted.Schedule, err = timing.read("quern source add"); err != nil {
			return err
		}

		if isCatalog, err := catalogIs(ctx, client, connection); err != nil {
			return err
		} else if isCatalog {
			return p.attach(ctx, client, wanted, rows)
		}

		if rows.given() {
			if wanted.Postgresql, err = rows.read(); err != nil {
				return err
			}

			wanted.Options = nil
		}

		made, err := api.Read[api.Source](client.CreateSource(ctx, nil, wanted))
		if err != nil {
			return err
		}

		if made.NextRunAt != nil {
			return p.done("Added the source %s. It loads into %s at %s and then again and again. `quern source run %s` does it now.", p.out.clean(made.Name), at, moment(*made.NextRunAt), p.out.clean(made.Name))
		}

		return p.done("Added the source %s. `quern source run %s` loads into %s.", p.out.clean(made.Name), p.out.clean(made.Name), at)
	})
	flags := command.Flags()
	flags.StringVar(&from, "connection", "", "name or id of the connection; OWNER/NAME for one that is shared with you")
	flags.StringVar(&prefix, "prefix", "", "only files whose paths begin with this")
	flags.StringVar(&pattern, "pattern", "", "only files that match this, such as '*.csv'; without / it is compared with the last part of the path")
	pathFlag(command, &paths)
	timing.flags(command)
	policy.add(command)
	wish.flags(command, texts)
	rows.add(command)

	return command
}

func (p *program) sourceRun() *cobra.Command {
	return p.onSource("run", "Load the new files of a source, and wait", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		begun, err := api.Read[api.SourceRun](client.RunSource(ctx, id, nil))
		if err != nil {
			return err
		}

		for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
			found, err := api.Read[api.Source](client.GetSource(ctx, id))
			if err != nil {
				return err
			}

			if last := found.LastRun; last != nil && last.ID == begun.ID && last.FinishedAt != nil {
				return p.ranSource(found, *last)
			}

			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
		}
	})
}

// ranSource prints how a run has ended.
func (p *program) ranSource(found api.Source, run api.SourceRun) error {
	err := one(p, run, func() {
		switch {
		case found.Iceberg != nil && run.SnapshotID != nil:
			p.out.printf("Attached the snapshot %s with %s in %s.\n", p.out.clean(*run.SnapshotID), counted(run.Rows, "row", "rows"), counted(run.Files, "file", "files"))
		case found.Iceberg != nil: // it has not come so far
		case found.Postgresql != nil:
			p.out.printf("Loaded %s.\n", counted(run.Rows, "row", "rows"))
		case run.Files == 0 && run.Status == api.SourceRunStatusCompleted: // a wrong pattern shows
			p.out.printf("Found no new file among %s.\n", p.out.clean(loaded(found)))
		default:
			p.out.printf("Loaded %s with %s.\n", counted(run.Files, "file", "files"), counted(run.Rows, "row", "rows"))
		}

		p.printNotes(found, run)
	}, runColumns()...)
	if err != nil || run.Status == api.SourceRunStatusCompleted {
		return err
	}

	failed := exitError{exitNotLoaded, "the run " + string(run.Status), "The next run tries again."}
	if run.Reason != nil {
		failed.text += ": " + p.out.clean(*run.Reason)
	}

	if run.Status == api.SourceRunStatusStopped {
		failed.hint = fmt.Sprintf("`quern source resume %s` lets it run again.", p.out.clean(found.Name))
	}

	if run.IngestionID != nil {
		failed.hint = fmt.Sprintf("`quern ingestion show %s %s` shows why, `retry` and `cancel` decide. Then `quern source resume %s`.", p.out.clean(datasetOf(found)), run.IngestionID, p.out.clean(found.Name))
	}

	return failed
}

// printNotes prints what a run did beside loading files, and what became of files that were loaded before.
func (p *program) printNotes(found api.Source, run api.SourceRun) {
	stay := int64(0)
	if found.Changed != nil && *found.Changed == api.SourceChangedFilesKeep {
		stay += run.Changed
	}

	if found.Deleted != nil && *found.Deleted == api.SourceDeletedFilesKeep {
		stay += run.Deleted
	}

	for _, told := range []struct {
		count int64
		text  string
	}{
		{run.FilesReplaced, fmt.Sprintf("Replaced %s of %s.", counted(run.RowsReplaced, "row", "rows"), counted(run.FilesReplaced, "file", "files"))},
		{run.FilesRemoved, fmt.Sprintf("Removed %s of %s.", counted(run.RowsRemoved, "row", "rows"), counted(run.FilesRemoved, "file that is gone", "files that are gone"))},
		{run.RowsSetAside, fmt.Sprintf("Set aside: %s. `quern ingestion list %s` shows the ingestions.", counted(run.RowsSetAside, "row", "rows"), p.out.clean(datasetOf(found)))},
		{run.FilesEmpty, fmt.Sprintf("Left out because they are empty: %s.", counted(run.FilesEmpty, "file", "files"))},
		{run.FilesLeftOut, fmt.Sprintf("Left out because they could not be loaded before: %s. `quern source show %s` lists them.", counted(run.FilesLeftOut, "file", "files"), p.out.clean(found.Name))},
		{stay, fmt.Sprintf("Of the files that were loaded before, %d changed and %d are gone. %s", run.Changed, run.Deleted, toldFiles(found))},
	} {
		if told.count > 0 {
			p.out.printf("%s\n", told.text)
		}
	}

	if run.Notes != nil {
		for _, note := range *run.Notes {
			p.out.printf("  %s %s\n", string(note.Event), p.out.clean(note.Path))
		}
	}
}

// datasetOf returns the name of the dataset of a source.
func datasetOf(s api.Source) string { return name{s.Username, s.Namespace, s.DatasetName}.String() }

func runColumns() []column[api.SourceRun] {
	return []column[api.SourceRun]{
		{"started", func(r api.SourceRun) any { return r.CreatedAt }},
		{"status", func(r api.SourceRun) any { return string(r.Status) }},
		{"files", func(r api.SourceRun) any { return r.Files }},
		{"rows", func(r api.SourceRun) any { return r.Rows }},
		{"bytes", func(r api.SourceRun) any { return r.Bytes }},
		{"replaced", func(r api.SourceRun) any { return r.FilesReplaced }},
		{"removed", func(r api.SourceRun) any { return r.FilesRemoved }},
		{"rows replaced", func(r api.SourceRun) any { return r.RowsReplaced }},
		{"rows removed", func(r api.SourceRun) any { return r.RowsRemoved }},
		{"set aside", func(r api.SourceRun) any { return r.RowsSetAside }},
		{"empty", func(r api.SourceRun) any { return r.FilesEmpty }},
		{"left out", func(r api.SourceRun) any { return r.FilesLeftOut }},
		{"changed", func(r api.SourceRun) any { return r.Changed }},
		{"deleted", func(r api.SourceRun) any { return r.Deleted }},
		{"reason", func(r api.SourceRun) any {
			if r.Reason == nil {
				return ""
			}

			return *r.Reason
		}},
	}
}

func (p *program) sourceList() *cobra.Command {
	var limit int

	command := p.act("list", "List your sources", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		return list(p, allSources(ctx, client), limit, "No sources. `quern source add NAME DATASET` adds one.", sourceColumns()...)
	})
	limitFlag(command, &limit)

	return command
}

func sourceColumns() []column[api.Source] {
	return []column[api.Source]{
		{"id", func(s api.Source) any { return s.ID }},
		{"name", func(s api.Source) any { return s.Name }},
		{"status", func(s api.Source) any { return string(s.Status) }},
		{"dataset", func(s api.Source) any { return s.Username + "/" + s.Namespace + "/" + s.DatasetName }},
		{"loads", func(s api.Source) any { return loaded(s) }},
		{"last run", func(s api.Source) any {
			if s.LastRun == nil {
				return ""
			}

			return s.LastRun.CreatedAt
		}},
		{"outcome", func(s api.Source) any {
			if s.LastRun == nil {
				return ""
			}

			return string(s.LastRun.Status)
		}},
		{"next run", func(s api.Source) any { return s.NextRunAt }},
	}
}

func allSources(ctx context.Context, client *api.Client) iter.Seq2[api.Source, error] {
	return api.Pages(func(cursor *string) ([]api.Source, *string, error) {
		page, err := api.Read[api.SourceList](client.ListSources(ctx, &api.ListSourcesParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}
