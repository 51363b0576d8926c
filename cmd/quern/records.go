package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) ingestionRecords() *cobra.Command {
	var limit int

	command := p.onIngestion("records", "Show where a model read the fields of the rows of documents", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		return list(p, api.Pages(func(cursor *string) ([]api.DocumentRecord, *string, error) {
			page, err := api.Read[api.DocumentRecordList](client.ListDocumentRecords(ctx, at.owner, at.namespace, at.dataset, id,
				&api.ListDocumentRecordsParams{Cursor: cursor, Limit: new(int32(100))}))

			return page.Data, page.NextCursor, err
		}), limit, "No model read documents for this ingestion.",
			column[api.DocumentRecord]{"file", func(r api.DocumentRecord) any { return r.File }},
			column[api.DocumentRecord]{"page", func(r api.DocumentRecord) any { return r.Page }},
			column[api.DocumentRecord]{"row", func(r api.DocumentRecord) any { return r.Row }},
			column[api.DocumentRecord]{"in doubt", func(r api.DocumentRecord) any { return doubted(r) }},
			column[api.DocumentRecord]{"fields", func(r api.DocumentRecord) any { return strings.Join(slices.Sorted(maps.Keys(r.Fields)), ", ") }})
	})
	limitFlag(command, &limit)

	return command
}

// doubted returns the flagged fields of a record, with what the model said.
func doubted(r api.DocumentRecord) string {
	var list []string

	for _, field := range slices.Sorted(maps.Keys(r.Fields)) {
		f := r.Fields[field]
		if f.Flag == nil {
			continue
		}

		text := fmt.Sprintf("%s: %s", field, *f.Flag)
		if f.Said != nil {
			text += fmt.Sprintf(" (%s)", *f.Said)
		}

		list = append(list, text)
	}

	return strings.Join(list, "; ")
}
