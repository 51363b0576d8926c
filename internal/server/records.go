package server

import (
	"context"
	"strconv"
	"strings"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/ingest"
)

func (h handlers) ListDocumentRecords(ctx context.Context, request api.ListDocumentRecordsRequestObject) (api.ListDocumentRecordsResponseObject, error) {
	after, err := cursorPlace(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	at, limit := datasetPath(request.Username, request.Namespace, request.DatasetName), pageLimit(request.Params.Limit)

	list, err := h.ingest.Records(ctx, callOf(ctx).who, at, request.IngestionID, ingest.RecordsPage{After: after, Limit: limit, Flagged: value(request.Params.Flagged)})
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

func (h handlers) GetDocumentRecordText(ctx context.Context, request api.GetDocumentRecordTextRequestObject) (api.GetDocumentRecordTextResponseObject, error) {
	at, of := datasetPath(request.Username, request.Namespace, request.DatasetName), recordPlace(request.RecordID)

	pages, err := h.ingest.RecordText(ctx, callOf(ctx).who, at, request.IngestionID, of)
	if err != nil {
		return nil, err
	}

	shown := api.GetDocumentRecordText200JSONResponse{Pages: make([]api.DocumentPage, len(pages))}
	for n, p := range pages {
		shown.Pages[n] = api.DocumentPage{Page: int32(p.Page), Text: p.Text} //nolint:gosec // at most 5,000
	}

	return shown, nil
}

func (h handlers) CorrectField(ctx context.Context, request api.CorrectFieldRequestObject) (api.CorrectFieldResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)
	of := ingest.FieldPlace{Ingestion: request.IngestionID, Record: recordPlace(request.RecordID), Name: request.FieldName}

	corrected, err := h.ingest.Correct(ctx, callOf(ctx).who, at, of, value(request.Body.Value))
	if err != nil {
		return nil, err
	}

	return api.CorrectField200JSONResponse(showRecord(corrected)), nil
}

func (h handlers) UncorrectField(ctx context.Context, request api.UncorrectFieldRequestObject) (api.UncorrectFieldResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)
	of := ingest.FieldPlace{Ingestion: request.IngestionID, Record: recordPlace(request.RecordID), Name: request.FieldName}

	found, err := h.ingest.Uncorrect(ctx, callOf(ctx).who, at, of)
	if err != nil {
		return nil, err
	}

	return api.UncorrectField200JSONResponse(showRecord(found)), nil
}

func (h handlers) ReloadIngestion(ctx context.Context, request api.ReloadIngestionRequestObject) (api.ReloadIngestionResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	made, err := h.ingest.Reload(ctx, callOf(ctx).who, at, request.IngestionID, once(ctx, request.Params.IdempotencyKey))
	if err != nil {
		return nil, err
	}

	return api.ReloadIngestion202JSONResponse{Body: showIngestion(made), Headers: api.ReloadIngestion202ResponseHeaders{
		Location: h.address("data", callOf(ctx).who.NameOf(request.Username), request.Namespace, request.DatasetName, "ingestions", made.ID.String()),
	}}, nil
}

// recordPlace returns the place that an id of a record names. The contract has checked its form.
func recordPlace(id string) ingest.Place {
	position, number, _ := strings.Cut(id, "-")
	file, _ := strconv.ParseInt(position, 10, 32) // at most five digits
	row, _ := strconv.ParseInt(number, 10, 64)

	return ingest.Place{File: int32(file), Row: row}
}

func showRecord(r ingest.Record) api.DocumentRecord {
	shown := api.DocumentRecord{ID: r.Name(), File: r.File, Page: int32(r.Page), Fields: map[string]api.DocumentField{}} //nolint:gosec // at most 5,000
	if r.Row > 0 {
		shown.Row = &r.Row
	}

	for name, f := range r.Fields {
		field := api.DocumentField{Value: optionalText(f.Now()), Quote: f.Quote, Said: optionalText(f.Said)}
		if f.Page > 0 {
			field.Page, field.From, field.To = new(int32(f.Page)), new(int32(f.From)), new(int32(f.To)) //nolint:gosec // positions in a text of at most 64 MiB
		}

		if f.Corrected {
			field.Corrected = new(true)
		}

		if f.IsPending() {
			field.Pending = new(true)
		}

		if f.IsFlagged() {
			field.Flag = new(api.DocumentFieldFlag(f.Flag))
		}

		shown.Fields[name] = field
	}

	return shown
}
