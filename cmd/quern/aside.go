package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) ingestionAside() *cobra.Command {
	var (
		limit int
		to    string
	)

	command := p.onIngestion("aside", "Show the rows that an ingestion set aside because they did not fit", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		if to != "" {
			return p.saveAside(ctx, client, at, id, to)
		}

		return list(p, api.Pages(func(cursor *string) ([]api.SetAsideRow, *string, error) {
			page, err := api.Read[api.SetAsideRowList](client.ListSetAsideRows(ctx, at.owner, at.namespace, at.dataset, id,
				&api.ListSetAsideRowsParams{Cursor: cursor, Limit: new(int32(100))}))

			return page.Data, page.NextCursor, err
		}), limit, "The ingestion set no rows aside.",
			column[api.SetAsideRow]{"file", func(r api.SetAsideRow) any { return r.File }},
			column[api.SetAsideRow]{"row", func(r api.SetAsideRow) any { return r.Row }},
			column[api.SetAsideRow]{"reason", func(r api.SetAsideRow) any { return r.Reason }})
	})
	command.Aliases = []string{"rejected"}
	limitFlag(command, &limit)
	command.Flags().StringVar(&to, "to", "", "write all of them to this file: .csv, .ndjson or .parquet")

	return command
}

// saveAside writes all rows set aside to a file, in the format that its name says.
func (p *program) saveAside(ctx context.Context, client *api.Client, at name, id uuid.UUID, to string) error {
	format := "csv"
	if ending := filepath.Ext(to); ending != "" {
		format = ending[1:]
	}

	if !slices.Contains([]string{"csv", "ndjson", "parquet"}, format) {
		return usageError{fmt.Errorf("the name in --to must end in .csv, .ndjson or .parquet, not in .%s", format), "quern ingestion aside"}
	}

	params := &api.ExportSetAsideRowsParams{Format: given[api.ExportSetAsideRowsParamsFormat](format)}
	if p.escape {
		params.EscapeFormulas = &p.escape
	}

	response, err := api.Check(client.ExportSetAsideRows(ctx, at.owner, at.namespace, at.dataset, id, params))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()

	written, err := save(to, response.Body)
	if err != nil {
		return err
	}

	p.err.printf("Wrote %s to %s.\n", size(written), to)

	return nil
}
