package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
)

func (h handlers) CreateIngestion(ctx context.Context, request api.CreateIngestionRequestObject) (api.CreateIngestionResponseObject, error) {
	want := ingest.Request{Session: request.Body.SessionID, Mode: ingest.Append, Once: once(ctx, request.Params.IdempotencyKey)}
	if request.Body.FileIds != nil {
		want.Files = *request.Body.FileIds
	}

	if request.Body.Mode != nil {
		want.Mode = ingest.Mode(*request.Body.Mode)
	}

	want.Key = value(request.Body.Key)

	if request.Body.DryRun != nil {
		want.DryRun = *request.Body.DryRun
	}

	if request.Body.Options != nil {
		want.Options = readOptions(*request.Body.Options)
	}

	want.Sample, want.Draft = int(value(request.Body.Sample)), value(request.Body.Draft)
	want.Accept = codes(request.Body.Accept)

	made, err := h.ingest.Create(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName), want)
	if err != nil {
		return nil, err
	}

	return api.CreateIngestion202JSONResponse{Body: showIngestion(made), Headers: api.CreateIngestion202ResponseHeaders{
		Location: h.address("data", callOf(ctx).who.NameOf(request.Username), request.Namespace, request.DatasetName, "ingestions", made.ID.String()),
	}}, nil
}

func (h handlers) GetIngestion(ctx context.Context, request api.GetIngestionRequestObject) (api.GetIngestionResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	found, err := h.ingest.Get(ctx, callOf(ctx).who, at, request.IngestionID)
	if err != nil {
		return nil, err
	}

	return api.GetIngestion200JSONResponse(showIngestion(found)), nil
}

func (h handlers) ListIngestions(ctx context.Context, request api.ListIngestionsRequestObject) (api.ListIngestionsResponseObject, error) {
	before, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	at, limit := datasetPath(request.Username, request.Namespace, request.DatasetName), pageLimit(request.Params.Limit)

	list, err := h.ingest.List(ctx, callOf(ctx).who, at, before, limit)
	if err != nil {
		return nil, err
	}

	page := api.ListIngestions200JSONResponse{Data: make([]api.Ingestion, len(list))}
	for n, i := range list {
		page.Data[n] = showIngestion(i)
	}

	if len(list) == limit {
		page.NextCursor = nextCursor(ctx, list[limit-1].ID)
	}

	return page, nil
}

func (h handlers) RetryIngestion(ctx context.Context, request api.RetryIngestionRequestObject) (api.RetryIngestionResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	var accept []string
	if request.Body != nil {
		accept = codes(request.Body.Accept)
	}

	queued, err := h.ingest.Retry(ctx, callOf(ctx).who, at, request.IngestionID, accept)
	if err != nil {
		return nil, err
	}

	return api.RetryIngestion202JSONResponse(showIngestion(queued)), nil
}

func (h handlers) CancelIngestion(ctx context.Context, request api.CancelIngestionRequestObject) (api.CancelIngestionResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	cancelled, err := h.ingest.Cancel(ctx, callOf(ctx).who, at, request.IngestionID)
	if err != nil {
		return nil, err
	}

	return api.CancelIngestion200JSONResponse(showIngestion(cancelled)), nil
}

func (h handlers) ListSnapshots(ctx context.Context, request api.ListSnapshotsRequestObject) (api.ListSnapshotsResponseObject, error) {
	position, err := decodeCursor(ctx, request.Params.Cursor, sequenceBytes)
	if err != nil {
		return nil, err
	}

	var before int64
	if position != nil {
		before = int64(binary.BigEndian.Uint64(position)) //nolint:gosec // what is not ours finds nothing
	}

	at, limit := datasetPath(request.Username, request.Namespace, request.DatasetName), pageLimit(request.Params.Limit)

	list, err := h.ingest.Snapshots(ctx, callOf(ctx).who, at, before, limit)
	if err != nil {
		return nil, err
	}

	page := api.ListSnapshots200JSONResponse{Data: make([]api.Snapshot, len(list))}
	for n, s := range list {
		page.Data[n] = showSnapshot(s)
	}

	if len(list) == limit {
		page.NextCursor = encodeCursor(ctx, binary.BigEndian.AppendUint64(nil, uint64(list[limit-1].Sequence))) //nolint:gosec // counted from 1
	}

	return page, nil
}

const sequenceBytes = 8

func (h handlers) RestoreSnapshot(ctx context.Context, request api.RestoreSnapshotRequestObject) (api.RestoreSnapshotResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	made, err := h.ingest.Restore(ctx, callOf(ctx).who, at, request.SnapshotID)
	if err != nil {
		return nil, err
	}

	return api.RestoreSnapshot200JSONResponse(showSnapshot(made)), nil
}

func showSnapshot(s ingest.Snapshot) api.Snapshot {
	return api.Snapshot{
		SnapshotID: s.ID, CommittedAt: s.CommittedAt, Operation: api.SnapshotOperation(s.Operation), RowCount: s.Rows, Current: s.Current,
	}
}

// readOptions treats absent and empty options alike, except those for which empty is a choice.
func readOptions(o api.IngestionOptions) ingest.Options {
	options := ingest.Options{
		Delimiter: value(o.Delimiter), Quote: o.Quote, Decimal: value(o.Decimal), Thousands: o.Thousands, DateFormat: value(o.DateFormat),
		Encoding: value(o.Encoding), Header: o.Header, Sheet: value(o.Sheet), NullValues: value(o.NullValues), Types: value(o.Types),
		RowsAt: value(o.RowsAt), Extract: string(value(o.Extract)),
	}
	if o.SkipRows != nil {
		options.SkipRows = int(*o.SkipRows)
	}

	return options
}

// codes returns the codes of the accepted doubts.
func codes(accept *[]api.DoubtCode) (list []string) {
	for _, code := range value(accept) {
		list = append(list, string(code))
	}

	return list
}

// value returns what pointer points to, or the zero value for nil.
func value[T any](pointer *T) (v T) {
	if pointer != nil {
		v = *pointer
	}

	return v
}

func showIngestion(i ingest.Ingestion) api.Ingestion {
	shown := api.Ingestion{
		ID: i.ID, Status: api.IngestionStatus(i.Status), Mode: api.IngestionMode(i.Mode), DryRun: i.DryRun, SessionID: i.Session,
		FileIds: make([]uuid.UUID, len(i.Files)), CreatedAt: i.CreatedAt, StartedAt: optionalTime(i.StartedAt), FinishedAt: optionalTime(i.FinishedAt),
		Progress: api.IngestionProgress{
			Phase: i.Phase, BytesDone: i.BytesDone, BytesTotal: i.BytesTotal, RowsDone: i.RowsDone, RowsSetAside: i.RowsSetAside,
		},
	}

	names := make([]string, len(i.Files))
	for n, f := range i.Files {
		shown.FileIds[n], names[n] = f.ID, f.Name
	}

	if len(names) > 0 {
		shown.Filenames = &names
	}

	if len(i.Key) > 0 {
		shown.Key = &i.Key
	}

	if i.Snapshot != uuid.Nil {
		shown.SnapshotID = &i.Snapshot
	}

	if len(i.Warnings) > 0 {
		shown.Warnings = &i.Warnings
	}

	if len(i.Doubts) > 0 {
		shown.Doubts = new(showDoubts(i.Doubts))
	}

	if len(i.Accepted) > 0 {
		shown.Accepted = &i.Accepted
	}

	if i.ErrorCode != "" {
		shown.Error = &api.Failure{Code: api.ErrorCode(i.ErrorCode), Message: i.ErrorMessage}
	}

	if len(i.SetAside) > 0 {
		aside := make([]api.SetAsideRow, len(i.SetAside))
		for n, s := range i.SetAside {
			aside[n] = showSetAside(s)
		}

		shown.SetAside = &aside
	}

	if i.Preview != nil {
		shown.Preview = showPreview(*i.Preview)
	}

	if i.PagesTotal > 0 {
		shown.Progress.PagesDone, shown.Progress.PagesTotal = new(int32(i.PagesDone)), new(int32(i.PagesTotal)) //nolint:gosec // at most 100 files of 5,000 pages
	}

	shown.Documents = showDocuments(i.Files)

	return shown
}

// showDocuments returns the documents that a model has read, nil if there are none.
func showDocuments(files []ingest.File) *[]api.ReadDocument {
	var read []api.ReadDocument

	for _, f := range files {
		if f.Pages > 0 {
			read = append(read, api.ReadDocument{File: f.Name, Pages: int32(f.Pages), InputTokens: f.InputTokens, OutputTokens: f.OutputTokens}) //nolint:gosec // at most 5,000
		}
	}

	if read == nil {
		return nil
	}

	return &read
}

func showPreview(found ingest.Preview) *api.IngestionPreview {
	preview := &api.IngestionPreview{
		Columns: make([]api.ResultColumn, len(found.Columns)), Rows: make([]api.Row, len(found.Rows)), Doubts: showDoubts(found.Doubts),
	}

	for n, c := range found.Columns {
		preview.Columns[n] = api.ResultColumn{Name: c.Name, Type: c.Type}
	}

	for n, row := range found.Rows {
		preview.Rows[n] = row
	}

	if d := found.Definition; d != nil {
		preview.Definition = &api.DraftedDefinition{DataDescription: d.About, SchemaDefinition: d.Fields, Quotes: d.Quotes}
	}

	return preview
}

func showDoubts(doubts []ingest.Doubt) []api.Doubt {
	shown := make([]api.Doubt, len(doubts))
	for n, d := range doubts {
		shown[n] = api.Doubt{Column: optionalText(d.Column), Option: optionalText(d.Option), Code: optionalText(d.Code), Message: d.Message}
		if len(d.Suggestions) > 0 {
			shown[n].Suggestions = &d.Suggestions
		}
	}

	return shown
}

func optionalText(text string) *string {
	if text == "" {
		return nil
	}

	return &text
}

// names returns the names in a parameter, which are written as a line of CSV: a name may have a comma.
func names(list string) ([]string, error) {
	line := csv.NewReader(strings.NewReader(list))
	line.LazyQuotes = true // a quote within a name needs no quotes

	found, err := line.Read()
	if err != nil {
		return nil, fault.Invalid("key", "must be names of columns, separated by commas. A name with a comma stands in double quotes.")
	}

	return found, nil
}

// appendRows adds the rows of the body to a dataset. It is not a generated handler, because a sealed process parses the
// body.
func (s *Server) appendRows(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r.Context())

	owner := r.PathValue("username")
	if owner == "" {
		owner = auth.Self
	}

	hash := sha256.New()
	rows := ingest.Rows{
		Mode: ingest.Append, Format: rowFormats()[mediaType(r)], Body: io.TeeReader(r.Body, hash),
		Once: func() auth.Once {
			if r.Header.Get("Idempotency-Key") == "" {
				return auth.Once{}
			}

			return auth.Once{Key: r.Header.Get("Idempotency-Key"), Operation: c.operation, RequestHash: requestHash(r, hash.Sum(nil))}
		},
	}

	if given := r.URL.Query(); given.Has("mode") {
		rows.Mode = ingest.Mode(given.Get("mode"))
	}

	if given := r.URL.Query(); given.Has("key") {
		var err error
		if rows.Key, err = names(given.Get("key")); err != nil {
			return err
		}
	}

	rows.DryRun = r.URL.Query().Get("dryRun") == "true"

	stored, err := s.config.Ingest.Append(r.Context(), c.who, datasetPath(owner, r.PathValue("namespace"), r.PathValue("datasetName")), rows)
	if err != nil {
		return err
	}

	answer := api.Indexed{Indexed: stored.Rows}
	if stored.Snapshot != uuid.Nil {
		answer.SnapshotID = &stored.Snapshot
	}

	if stored.SetAsideCount > 0 {
		answer.RowsSetAside, answer.SetAside = &stored.SetAsideCount, new(leftOut(stored.SetAside))
	}

	if rows.DryRun {
		answer.DryRun, answer.Replaced = new(true), &stored.Replaced
	}

	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}

	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // fails only if the client disconnected

	return nil
}

func leftOut(aside []ingest.SetAside) []api.LeftOutRow {
	rows := make([]api.LeftOutRow, len(aside))
	for n, s := range aside {
		rows[n] = api.LeftOutRow{Row: s.Row, Reason: s.Reason}
	}

	return rows
}

// rowFormats returns the format of rows for each media type that a body may have.
func rowFormats() map[string]ingest.Format {
	return map[string]ingest.Format{
		"application/json": ingest.FormatRows, "text/csv": ingest.FormatText, ndjson: ingest.FormatJSON,
		"application/vnd.apache.parquet": ingest.FormatParquet,
	}
}

// mediaType returns the media type of the body: JSON without a Content-Type, "" for an invalid one.
func mediaType(r *http.Request) string {
	if r.Header.Get("Content-Type") == "" {
		return "application/json"
	}

	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}

	return media
}

// checkRows makes the checks of a body of rows that are possible before it is read.
func (s *Server) checkRows(r *http.Request) error {
	if _, ok := rowFormats()[mediaType(r)]; !ok {
		return fault.New(fault.UnsupportedMediaType, "The body must be application/json, text/csv, application/x-ndjson or application/vnd.apache.parquet. Set Content-Type to what the body is.")
	}

	if _, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		return fault.New(fault.UnsupportedMediaType, "The body must be in UTF-8.")
	}

	if r.ContentLength > s.config.MaxRows {
		return tooLarge(s.config.MaxRows)
	}

	return nil
}
