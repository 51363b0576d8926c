package server

import (
	"context"
	"strconv"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/source"
)

func (h handlers) ListSources(ctx context.Context, request api.ListSourcesRequestObject) (api.ListSourcesResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.sources.List(ctx, callOf(ctx).who, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListSources200JSONResponse{Data: make([]api.Source, len(found)), NextCursor: nextCursor(ctx, next)}
	for i, one := range found {
		page.Data[i] = showSource(one)
	}

	return page, nil
}

func (h handlers) CreateSource(ctx context.Context, request api.CreateSourceRequestObject) (api.CreateSourceResponseObject, error) {
	body := request.Body
	want := source.Want{
		Name: body.Name, Connection: body.ConnectionID, At: datasetPath(auth.Self, body.Namespace, body.DatasetName), Prefix: value(body.Prefix), Pattern: "*",
		Accept: codes(body.Accept), Changed: source.Policy(value(body.Changed)), Deleted: source.Policy(value(body.Deleted)), Once: once(ctx, request.Params.IdempotencyKey),
	}

	if body.Username != nil {
		want.At.Username = *body.Username
	}

	if body.Pattern != nil {
		want.Pattern = *body.Pattern
	}

	if body.Options != nil {
		want.Options = readOptions(*body.Options)
	}

	if body.Schedule != nil {
		want.Schedule = readSchedule(*body.Schedule)
	}

	if body.Paths != nil {
		want.Paths = *body.Paths
	}

	if body.Postgresql != nil {
		want.Rows = readRowsOf(*body.Postgresql)
	}

	if body.Iceberg != nil {
		want.Table = &source.Table{Namespace: body.Iceberg.Namespace, Name: body.Iceberg.Table}
	}

	made, err := h.sources.Create(ctx, callOf(ctx).who, want)
	if err != nil {
		return nil, err
	}

	return api.CreateSource201JSONResponse{
		Headers: api.CreateSource201ResponseHeaders{Location: h.address("sources", made.ID.String())}, Body: showSource(made),
	}, nil
}

func (h handlers) GetSource(ctx context.Context, request api.GetSourceRequestObject) (api.GetSourceResponseObject, error) {
	found, err := h.sources.Get(ctx, callOf(ctx).who, request.SourceID)

	return api.GetSource200JSONResponse(showSource(found)), err
}

func (h handlers) UpdateSource(ctx context.Context, request api.UpdateSourceRequestObject) (api.UpdateSourceResponseObject, error) {
	body := request.Body
	if *body == (api.SourceChange{}) {
		return nil, fault.New(fault.ValidationFailed, "The request changes nothing. Give active, schedule or another field.")
	}

	change := source.Change{
		Active: body.Active, Connection: body.ConnectionID, Prefix: body.Prefix, Pattern: body.Pattern, Paths: body.Paths, Changed: (*source.Policy)(body.Changed), Deleted: (*source.Policy)(body.Deleted),
	}
	if body.Schedule != nil {
		change.Schedule = new(readSchedule(*body.Schedule))
	}

	if body.Options != nil {
		change.Options = new(readOptions(*body.Options))
	}

	if body.Accept != nil {
		change.Accept = new(codes(body.Accept))
	}

	changed, err := h.sources.Update(ctx, callOf(ctx).who, request.SourceID, change)

	return api.UpdateSource200JSONResponse(showSource(changed)), err
}

func (h handlers) DeleteSource(ctx context.Context, request api.DeleteSourceRequestObject) (api.DeleteSourceResponseObject, error) {
	return api.DeleteSource204Response{}, h.sources.Delete(ctx, callOf(ctx).who, request.SourceID)
}

func (h handlers) RunSource(ctx context.Context, request api.RunSourceRequestObject) (api.RunSourceResponseObject, error) {
	begun, err := h.sources.Run(ctx, callOf(ctx).who, request.SourceID, once(ctx, request.Params.IdempotencyKey))
	if err != nil {
		return nil, err
	}

	return api.RunSource202JSONResponse{
		Headers: api.RunSource202ResponseHeaders{Location: h.address("sources", request.SourceID.String(), "runs")}, Body: showSourceRun(begun),
	}, nil
}

func (h handlers) ListSourceRuns(ctx context.Context, request api.ListSourceRunsRequestObject) (api.ListSourceRunsResponseObject, error) {
	before, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.sources.Runs(ctx, callOf(ctx).who, request.SourceID, before, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListSourceRuns200JSONResponse{Data: make([]api.SourceRun, len(found)), NextCursor: nextCursor(ctx, next)}
	for i, one := range found {
		page.Data[i] = showSourceRun(one)
	}

	return page, nil
}

func showSource(s source.Source) api.Source {
	shown := api.Source{
		ID: s.ID, Name: s.Name, ConnectionID: s.Connection, Username: s.At.Username, Namespace: s.At.Namespace, DatasetName: s.At.Dataset, Prefix: s.Prefix, Pattern: s.Pattern,
		Options: showOptions(s.Options), Status: api.SourceStatus(s.Status), CreatedAt: s.CreatedAt.UTC(),
	}

	if len(s.Accept) > 0 {
		shown.Accept = &s.Accept
	}

	if len(s.Paths) > 0 {
		shown.Paths = &s.Paths
	}

	switch {
	case s.Table != nil:
		shown.Iceberg = &api.IcebergTable{Namespace: s.Table.Namespace, Table: s.Table.Name}
	case s.Rows != nil:
		shown.Postgresql = showRowsOf(s)
	default:
		shown.Changed, shown.Deleted = new(api.SourceChangedFiles(s.Changed)), new(api.SourceDeletedFiles(s.Deleted))
	}

	shown.Reason, shown.IngestionID = optionalText(s.Stop.Reason), optionalID(s.Stop.Ingestion)

	if s.Stop.Code != "" {
		shown.ReasonCode = new(api.SourceReasonCode(s.Stop.Code))
	}

	if len(s.Open) > 0 {
		open := make([]api.SourceOpenFile, len(s.Open))
		for i, one := range s.Open {
			open[i] = api.SourceOpenFile{Path: optionalText(one.Path), Status: api.SourceOpenFileStatus(one.Status), IngestionID: optionalID(one.Ingestion)}
		}

		shown.OpenFiles = &open
	}

	shown.Schedule, shown.NextRunAt = showSchedule(s.Schedule), optionalTime(s.NextRunAt())

	if s.LastRun != nil {
		shown.LastRun = new(showSourceRun(*s.LastRun))
	}

	return shown
}

func showSourceRun(r source.Run) api.SourceRun {
	shown := api.SourceRun{
		ID: r.ID, Status: api.SourceRunStatus(r.Status), Files: r.Files, Rows: r.Rows, Bytes: r.Bytes, Changed: r.Changed, Deleted: r.Deleted,
		FilesReplaced: r.Replaced, FilesRemoved: r.Removed, FilesEmpty: r.Empty, FilesLeftOut: r.LeftOut, RowsReplaced: r.RowsReplaced, RowsRemoved: r.RowsRemoved, RowsSetAside: r.RowsSetAside,
		CreatedAt: r.CreatedAt.UTC(), SlotAt: optionalTime(r.Slot), StartedAt: optionalTime(r.StartedAt), FinishedAt: optionalTime(r.FinishedAt),
	}
	shown.Reason, shown.IngestionID = optionalText(r.Stop.Reason), optionalID(r.Stop.Ingestion)

	if r.Pinned != nil {
		shown.SnapshotID = new(strconv.FormatInt(*r.Pinned, 10))
	}

	if len(r.Notes) > 0 {
		notes := make([]api.SourceNote, len(r.Notes))
		for i, note := range r.Notes {
			notes[i] = api.SourceNote{Path: note.Path, Event: api.SourceNoteEvent(note.Event)}
		}

		shown.Notes = &notes
	}

	return shown
}

func readSchedule(given api.NewSchedule) source.Schedule {
	return source.Schedule{Cron: value(given.Cron), TimeZone: value(given.TimeZone), Jitter: time.Duration(value(given.JitterMinutes)) * time.Minute}
}

// showSchedule returns nil if there is none.
func showSchedule(s source.Schedule) *api.Schedule {
	if s.Cron == "" {
		return nil
	}

	return &api.Schedule{Cron: s.Cron, TimeZone: s.TimeZone, JitterMinutes: int32(s.Jitter / time.Minute)} //nolint:gosec // it was an int32
}

// showOptions returns nil if nothing is set.
func showOptions(o ingest.Options) *api.IngestionOptions {
	shown := api.IngestionOptions{
		Delimiter: optionalText(o.Delimiter), Quote: o.Quote, Decimal: optionalText(o.Decimal), Thousands: o.Thousands, DateFormat: optionalText(o.DateFormat), Encoding: optionalText(o.Encoding),
		Header: o.Header, RowsAt: optionalText(o.RowsAt), Sheet: optionalText(o.Sheet),
	}

	if o.SkipRows != 0 {
		shown.SkipRows = new(int32(o.SkipRows)) //nolint:gosec // it was an int32
	}

	if o.Extract != "" {
		shown.Extract = new(api.IngestionOptionsExtract(o.Extract))
	}

	if len(o.NullValues) > 0 {
		shown.NullValues = &o.NullValues
	}

	if len(o.Types) > 0 {
		shown.Types = &o.Types
	}

	if shown == (api.IngestionOptions{}) {
		return nil
	}

	return &shown
}
