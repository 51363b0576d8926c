package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/query"
)

// listRows handles GET …/rows.
func (s *Server) listRows(w http.ResponseWriter, r *http.Request) error {
	page, err := readPage(r)
	if err != nil {
		return err
	}

	at := datasetPath(r.PathValue("username"), r.PathValue("namespace"), r.PathValue("datasetName"))

	out := &pageWriter{out: &bufferedResponse{w: w, media: "application/json"}}

	found, err := s.config.Query.Browse(r.Context(), callOf(r.Context()).who, at, page, func(columns []query.Column, row json.RawMessage) bool {
		out.row(columns, row)

		return true
	})
	if err != nil {
		return err
	}

	out.end(found.Columns, nextRow(r.Context(), found))

	return nil
}

// pageWriter writes a page of rows while they are read.
type pageWriter struct {
	out   *bufferedResponse
	begun bool
}

func (p *pageWriter) row(columns []query.Column, row json.RawMessage) {
	if p.begun {
		p.out.text(",")
	} else {
		p.begin(columns)
	}

	p.out.bytes(row)
}

func (p *pageWriter) begin(columns []query.Column) {
	p.begun = true
	p.out.json(`{"columns":`, shownColumns(columns))
	p.out.text(`,"data":[`)
}

// end writes the end of the page, with the cursor of the next one if there is one.
func (p *pageWriter) end(columns []query.Column, next *string) {
	if !p.begun {
		p.begin(columns)
	}

	p.out.text("]")

	if next != nil {
		p.out.json(`,"nextCursor":`, *next)
	}

	p.out.text("}\n")
	p.out.begin()
}

// writePage writes a page of rows that are already JSON.
func writePage(w http.ResponseWriter, columns []query.Column, rows []json.RawMessage, next *string) {
	out := &pageWriter{out: &bufferedResponse{w: w, media: "application/json"}}
	for _, row := range rows {
		out.row(columns, row)
	}

	out.end(columns, next)
}

func shownColumns(columns []query.Column) []api.ResultColumn {
	shown := make([]api.ResultColumn, len(columns))
	for i, c := range columns {
		shown[i] = api.ResultColumn{Name: c.Name, Type: c.Type}
	}

	return shown
}

// readPage parses the query parameters, which the guard has checked.
func readPage(r *http.Request) (page query.Page, err error) {
	values := r.URL.Query()

	if page.Limit, err = limitOf(values); err != nil {
		return page, err
	}

	if values.Has("columns") {
		page.Columns = strings.Split(values.Get("columns"), ",")
	}

	if !values.Has("cursor") {
		return page, nil
	}

	position, err := decodeCursor(r.Context(), new(values.Get("cursor")), idBytes+offsetBytes)
	if err != nil {
		return page, err
	}

	page.Snapshot = uuid.UUID(position[:idBytes])
	page.Offset = int64(binary.BigEndian.Uint64(position[idBytes:]) >> 1)

	return page, nil
}

func limitOf(values url.Values) (int, error) {
	if !values.Has("limit") {
		return defaultPage, nil
	}

	limit, err := strconv.Atoi(values.Get("limit"))
	if err != nil {
		return 0, fault.Invalid("limit", "is not a whole number")
	}

	return limit, nil
}

const offsetBytes = 8

func nextRow(ctx context.Context, found query.Browsed) *string {
	if found.Next == 0 {
		return nil
	}

	return encodeCursor(ctx, binary.BigEndian.AppendUint64(found.Snapshot[:], uint64(found.Next)<<1)) //nolint:gosec // positive
}

// DeleteRows handles POST …/rows/delete.
func (h handlers) DeleteRows(ctx context.Context, request api.DeleteRowsRequestObject) (api.DeleteRowsResponseObject, error) {
	parameters, err := query.ParametersOf(request.Body.Parameters)
	if err != nil {
		return nil, err
	}

	var (
		at        = datasetPath(request.Username, request.Namespace, request.DatasetName)
		condition = query.Condition{Text: request.Body.Condition, Parameters: parameters}
	)

	if value(request.Body.DryRun) {
		found, err := h.ingest.SelectRows(ctx, callOf(ctx).who, at, condition)
		if err != nil {
			return nil, err
		}

		return showSelected(found)
	}

	removed, err := h.ingest.DeleteRows(ctx, callOf(ctx).who, at, condition, once(ctx, request.Params.IdempotencyKey))
	if err != nil {
		return nil, err
	}

	answer := api.DeleteRows200JSONResponse{RowCount: removed.Rows}
	if removed.Snapshot != uuid.Nil {
		answer.SnapshotID = &removed.Snapshot
	}

	return answer, nil
}

func showSelected(found ingest.Selected) (api.DeleteRowsResponseObject, error) {
	rows := make([]api.Row, len(found.First))
	for n, text := range found.First {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()

		if err := decoder.Decode(&rows[n]); err != nil {
			return nil, err
		}
	}

	return api.DeleteRows200JSONResponse{DryRun: true, RowCount: found.Count, Columns: new(shownColumns(found.Columns)), Data: &rows}, nil
}
