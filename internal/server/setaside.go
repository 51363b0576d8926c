package server

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/query"
)

func (h handlers) ListSetAsideRows(ctx context.Context, request api.ListSetAsideRowsRequestObject) (api.ListSetAsideRowsResponseObject, error) {
	after, err := cursorPlace(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	at, limit := datasetPath(request.Username, request.Namespace, request.DatasetName), pageLimit(request.Params.Limit)

	list, err := h.ingest.SetAsideRows(ctx, callOf(ctx).who, at, request.IngestionID, after, limit)
	if err != nil {
		return nil, err
	}

	page := api.ListSetAsideRows200JSONResponse{Data: make([]api.SetAsideRow, len(list))}
	for n, row := range list {
		page.Data[n] = showSetAside(row)
	}

	if len(list) == limit {
		page.NextCursor = nextPlace(ctx, list[limit-1].Place())
	}

	return page, nil
}

func showSetAside(row ingest.SetAside) api.SetAsideRow {
	return api.SetAsideRow{File: row.File, Row: row.Row, Reason: row.Reason}
}

const placeBytes = 12

func cursorPlace(ctx context.Context, cursor *string) (ingest.Place, error) {
	position, err := decodeCursor(ctx, cursor, placeBytes)
	if err != nil || position == nil {
		return ingest.Place{}, err
	}

	file, row := binary.BigEndian.Uint32(position), binary.BigEndian.Uint64(position[4:])
	if file > math.MaxInt32 || row > math.MaxInt64 {
		return ingest.Place{}, badCursor()
	}

	return ingest.Place{File: int32(file), Row: int64(row)}, nil
}

func nextPlace(ctx context.Context, last ingest.Place) *string {
	position := binary.BigEndian.AppendUint32(nil, uint32(last.File)) //nolint:gosec // counted from 0

	return encodeCursor(ctx, binary.BigEndian.AppendUint64(position, uint64(last.Row))) //nolint:gosec // counted from 1
}

// exportSetAsideRows handles GET …/setAside/export.
func (s *Server) exportSetAsideRows(w http.ResponseWriter, r *http.Request) error {
	at := datasetPath(r.PathValue("username"), r.PathValue("namespace"), r.PathValue("datasetName"))
	who, wanted := callOf(r.Context()).who, exportFormat(r)

	next, err := s.config.Ingest.SetAsideExport(r.Context(), who, at, pathID(r, "ingestionId"))
	if err != nil {
		return err
	}

	name := "set-aside." + query.Extension(wanted.form)
	lines := func() (json.RawMessage, error) {
		row, err := next()
		if err != nil {
			return nil, err
		}

		return json.Marshal(showSetAside(row))
	}

	if wanted.media == ndjson {
		attach(w, name)

		return writeLines(w, lines)
	}

	columns := []query.Column{{Name: "file", Type: "varchar"}, {Name: "row", Type: "bigint"}, {Name: "reason", Type: "varchar"}}

	result, err := s.config.Query.Again(r.Context(), who, columns, lines, wanted.form)
	if err != nil {
		return err
	}
	defer result.Close()

	return s.sendFile(w, result, wanted.media, func() error {
		attach(w, name)

		return nil
	})
}
