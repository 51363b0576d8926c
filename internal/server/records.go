package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/ingest"
)

func (h handlers) ListDocumentRecords(ctx context.Context, request api.ListDocumentRecordsRequestObject) (api.ListDocumentRecordsResponseObject, error) {
	after, err := cursorPlace(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	at, limit := datasetPath(request.Username, request.Namespace, request.DatasetName), pageLimit(request.Params.Limit)

	list, err := h.ingest.Records(ctx, callOf(ctx).who, at, request.IngestionID, after, limit)
	if err != nil {
		return nil, err
	}

	page := api.ListDocumentRecords200JSONResponse{Data: make([]api.DocumentRecord, len(list))}
	for n, record := range list {
		page.Data[n] = showRecord(record)
	}

	if len(list) == limit {
		page.NextCursor = nextPlace(ctx, list[limit-1].Place())
	}

	return page, nil
}

func showRecord(r ingest.Record) api.DocumentRecord {
	shown := api.DocumentRecord{File: r.File, Page: int32(r.Page), Fields: map[string]api.DocumentField{}} //nolint:gosec // at most 5,000
	if r.Row > 0 {
		shown.Row = &r.Row
	}

	for name, f := range r.Fields {
		field := api.DocumentField{Quote: f.Quote, Said: optionalText(f.Said)}
		if f.Page > 0 {
			field.Page, field.From, field.To = new(int32(f.Page)), new(int32(f.From)), new(int32(f.To)) //nolint:gosec // positions in a text of at most 64 MiB
		}

		if f.Flag != "" {
			field.Flag = new(api.DocumentFieldFlag(f.Flag))
		}

		shown.Fields[name] = field
	}

	return shown
}
