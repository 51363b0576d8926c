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
	var (
		limit   int
		flagged bool
	)

	command := p.onIngestion("records", "Show where a model read the fields of the rows of documents", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		none := "No model read documents for this ingestion."
		if flagged {
			none = "No field is in doubt."
		}

		return list(p, api.Pages(func(cursor *string) ([]api.DocumentRecord, *string, error) {
			page, err := api.Read[api.DocumentRecordList](client.ListDocumentRecords(ctx, at.owner, at.namespace, at.dataset, id,
				&api.ListDocumentRecordsParams{Cursor: cursor, Limit: new(int32(100)), Flagged: &flagged}))

			return page.Data, page.NextCursor, err
		}), limit, none, recordColumns()...)
	})
	limitFlag(command, &limit)
	command.Flags().BoolVar(&flagged, "flagged", false, "only records with a field that is in doubt and not corrected")

	return command
}

func recordColumns() []column[api.DocumentRecord] {
	return []column[api.DocumentRecord]{
		{"record", func(r api.DocumentRecord) any { return r.ID }},
		{"file", func(r api.DocumentRecord) any { return r.File }},
		{"page", func(r api.DocumentRecord) any { return r.Page }},
		{"row", recordRow},
		{"in doubt", func(r api.DocumentRecord) any { return doubted(r) }},
		{"corrected", func(r api.DocumentRecord) any { return correctedFields(r) }},
		{"fields", func(r api.DocumentRecord) any { return strings.Join(slices.Sorted(maps.Keys(r.Fields)), ", ") }},
	}
}

// recordRow returns the row that a record became, if it became one.
func recordRow(r api.DocumentRecord) any {
	if r.Row == nil {
		return ""
	}

	return *r.Row
}

// correctedFields returns the fields that a person decided, and which of them are not in the row yet.
func correctedFields(r api.DocumentRecord) string {
	var list []string

	for _, field := range slices.Sorted(maps.Keys(r.Fields)) {
		switch f := r.Fields[field]; {
		case f.Pending != nil:
			list = append(list, field+" (not loaded)")
		case f.Corrected != nil:
			list = append(list, field)
		}
	}

	return strings.Join(list, ", ")
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
