package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/api"
)

// shownRuns is how many runs `source show` prints.
const shownRuns = 10

func (p *program) showSource(ctx context.Context, client *api.Client, id uuid.UUID) error {
	found, err := api.Read[api.Source](client.GetSource(ctx, id))
	if err != nil {
		return err
	}

	if p.format != "table" {
		return one(p, found, nil, sourceColumns()...)
	}

	from := "deleted, or no longer shared with you"

	connection, err := api.Read[api.Connection](client.GetConnection(ctx, found.ConnectionID))
	if err == nil {
		from = fullName(connection) + ", which leads to " + leadsTo(connection)
	} else if !api.IsCode(err, api.NOTFOUND) {
		return err
	}

	does := "%s loads %s into %s: %s\n"
	if found.Iceberg != nil {
		does = "%s attaches %s as %s: %s\n"
	}

	p.out.printf(does, p.out.clean(found.Name), p.out.clean(loaded(found)), p.out.clean(datasetOf(found)), string(found.Status))

	if found.Reason != nil {
		p.out.printf("%s\n", p.out.clean(*found.Reason))
	}

	p.printOpen(found)

	for _, line := range append([]string{"Connection: " + from + "."}, settings(found)...) {
		p.out.printf("%s\n", p.out.clean(line))
	}

	if last := found.LastRun; last != nil && last.SnapshotID != nil {
		p.out.printf("The last run attached the snapshot %s.\n", p.out.clean(*last.SnapshotID))
	}

	if found.Schedule != nil {
		p.out.printf("Schedule: %s\n", p.out.clean(scheduleText(*found.Schedule)))
	} else {
		p.out.printf("Schedule: none, it runs only when somebody asks.\n")
	}

	if found.NextRunAt != nil {
		p.out.printf("Next run: %s\n", moment(*found.NextRunAt))
	}

	runs := api.Pages(func(cursor *string) ([]api.SourceRun, *string, error) {
		page, err := api.Read[api.SourceRunList](client.ListSourceRuns(ctx, id, &api.ListSourceRunsParams{Cursor: cursor, Limit: new(int32(shownRuns))}))

		return page.Data, nil, err
	})

	return list(p, runs, shownRuns, "It has not run. `quern source run` runs it.", runColumns()...)
}

// settings returns sentences that say what a source loads and how.
func settings(of api.Source) (lines []string) {
	switch {
	case of.Iceberg != nil:
		return []string{fmt.Sprintf("Table: %s in the namespace %s. Each run attaches its current snapshot.", of.Iceberg.Table, of.Iceberg.Namespace)}
	case of.Postgresql != nil:
		lines = rowSettings(*of.Postgresql)
	case of.Paths != nil:
		lines = []string{"Files: " + strings.Join(*of.Paths, ", ")}
	case of.Prefix == "":
		lines = []string{"Files: all that match " + of.Pattern}
	default:
		lines = []string{fmt.Sprintf("Files: under %s, those that match %s", of.Prefix, of.Pattern)}
	}

	if of.Options != nil {
		var texts []string
		for _, option := range differences(api.IngestionOptions{}, *of.Options) {
			texts = append(texts, option.field+" "+option.want)
		}

		lines = append(lines, "Options: "+strings.Join(texts, ", "))
	} else if of.Postgresql == nil {
		lines = append(lines, "Options: none, what the files need is detected.")
	}

	if of.Accept != nil {
		lines = append(lines, "Accepted doubts: "+strings.Join(*of.Accept, ", "))
	}

	if of.Changed != nil && of.Deleted != nil {
		lines = append(lines, fmt.Sprintf("Changed files: %s rows. Deleted files: %s rows.", *of.Changed, *of.Deleted))
	}

	return lines
}

// rowSettings returns sentences that say which rows of a database a source loads.
func rowSettings(rows api.PostgresRows) (lines []string) {
	if rows.Query != nil {
		lines = append(lines, "Query: "+strings.TrimSpace(*rows.Query))
	} else {
		lines = append(lines, "Table: "+strings.Join(slices.DeleteFunc([]string{valueOf(rows.Schema), valueOf(rows.Table)}, func(part string) bool { return part == "" }), "."))
	}

	mode := "Mode: full. Each run replaces all rows of the dataset."

	if rows.Mode == api.Growing {
		mode = fmt.Sprintf("Mode: growing. Each run loads the rows whose %s has grown", valueOf(rows.CursorColumn))
		if rows.Overlap != nil {
			mode += ", and those up to " + *rows.Overlap + " before"
		}

		mode += "."

		if rows.Cursor != nil {
			mode += " The highest value that is loaded is " + *rows.Cursor + "."
		}
	}

	lines = append(lines, mode)

	if rows.Key != nil {
		lines = append(lines, "Key: "+strings.Join(*rows.Key, ", ")+". A row replaces those with the same key.")
	}

	if rows.AsText != nil {
		lines = append(lines, "As text: "+strings.Join(*rows.AsText, ", "))
	}

	return lines
}
