package server

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// isAsync reports whether the client prefers a long statement.
func isAsync(prefer string) bool {
	for part := range strings.SplitSeq(prefer, ",") {
		if strings.EqualFold(strings.TrimSpace(part), "respond-async") {
			return true
		}
	}

	return false
}

// startStatement makes the statement of a request a long statement.
func (s *Server) startStatement(w http.ResponseWriter, r *http.Request, body api.QueryRequest) error {
	if value(body.Explain) {
		return fault.Invalid("explain", "a plan is not computed by a worker; leave out Prefer: respond-async")
	}

	wanted := api.StatementFormatParquet
	if body.Format != nil {
		wanted = *body.Format
	}

	i := slices.IndexFunc(formats, func(f format) bool { return f.name == string(wanted) }) // the guard has checked it

	want, err := statement(body, formats[i].form)
	if err != nil {
		return err
	}

	var claim *string
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		claim = &key
	}

	made, err := s.config.Query.Start(r.Context(), callOf(r.Context()).who, want, once(r.Context(), claim))
	if err != nil {
		return err
	}

	w.Header().Set("Location", *address(s.config.PublicURL, "query", "statements", made.ID.String()))
	writeJSON(w, http.StatusAccepted, shownStatement(made))

	return nil
}

func shownStatement(l query.Long) api.Statement {
	name := query.Extension(l.Want.Form)
	if l.Want.Form == query.Arrow {
		name = string(api.StatementFormatArrow)
	}

	shown := api.Statement{
		ID: l.ID, Status: api.StatementStatus(l.Status), Username: optionalText(l.Want.Username), Namespace: optionalText(l.Want.Namespace),
		Dataset: optionalText(l.Want.Dataset), Query: l.Want.Text, AsOf: optionalTime(l.Want.AsOf), Format: api.StatementFormat(name),
		Progress:  api.StatementProgress{Part: l.Part, Rows: l.Rows, Bytes: l.Bytes},
		CreatedAt: l.CreatedAt, StartedAt: optionalTime(l.BeganAt), FinishedAt: optionalTime(l.FinishedAt), ExpiresAt: l.ExpiresAt,
	}

	if l.Status == query.Completed {
		shown.Columns = new(shownColumns(l.Columns))
	}

	if len(l.Reads) > 0 {
		shown.Snapshots = new(shownSnapshots(l.Reads))
	}

	if l.Error != nil {
		failure := api.StatementError{Code: string(l.Error.Code), Message: l.Error.Message, SubErrors: []api.SubError{}}
		for _, sub := range l.Error.Subs {
			failure.SubErrors = append(failure.SubErrors, api.SubError{Code: sub.Code, Message: sub.Message})
		}

		shown.Error = &failure
	}

	return shown
}

// GetStatement returns a long statement of the caller.
func (h handlers) GetStatement(ctx context.Context, request api.GetStatementRequestObject) (api.GetStatementResponseObject, error) {
	found, err := h.query.Long(ctx, callOf(ctx).who, request.StatementID)

	return api.GetStatement200JSONResponse(shownStatement(found)), err
}

// ListStatements lists the long statements of the caller.
func (h handlers) ListStatements(ctx context.Context, request api.ListStatementsRequestObject) (api.ListStatementsResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.query.LongPage(ctx, callOf(ctx).who, after, pageLimit(request.Params.Limit))
	page := api.ListStatements200JSONResponse{Data: make([]api.Statement, len(found)), NextCursor: nextCursor(ctx, next)}

	for i, l := range found {
		page.Data[i] = shownStatement(l)
	}

	return page, err
}

// CancelStatement cancels a long statement of the caller.
func (h handlers) CancelStatement(ctx context.Context, request api.CancelStatementRequestObject) (api.CancelStatementResponseObject, error) {
	found, err := h.query.CancelLong(ctx, callOf(ctx).who, request.StatementID)

	return api.CancelStatement200JSONResponse(shownStatement(found)), err
}

// DeleteStatement deletes a long statement of the caller.
func (h handlers) DeleteStatement(ctx context.Context, request api.DeleteStatementRequestObject) (api.DeleteStatementResponseObject, error) {
	return api.DeleteStatement204Response{}, h.query.DeleteLong(ctx, callOf(ctx).who, request.StatementID)
}

// ListPieces lists the pieces of a result.
func (h handlers) ListPieces(ctx context.Context, request api.ListPiecesRequestObject) (api.ListPiecesResponseObject, error) {
	_, pieces, err := h.query.Pieces(ctx, callOf(ctx).who, request.StatementID)
	shown := api.ListPieces200JSONResponse{Data: []api.Piece{}}

	for _, p := range pieces {
		number, sum := int32(p.Number), hex.EncodeToString(p.SHA256) //nolint:gosec // a result has few pieces
		if p.IsEnd {
			shown.End = &api.PieceEnd{Number: number, Bytes: p.Bytes, Sha256: sum}
		} else {
			shown.Data = append(shown.Data, api.Piece{Number: number, Rows: p.Rows, Bytes: p.Bytes, Sha256: sum, HeadBytes: p.Head, TailBytes: p.Tail})
		}
	}

	return shown, err
}

// getPiece handles GET /query/statements/{statementId}/pieces/{piece}.
func (s *Server) getPiece(w http.ResponseWriter, r *http.Request) error {
	number, err := pathNumber(r, "piece")
	if err != nil {
		return err
	}

	at, err := s.config.Query.PieceAddress(r.Context(), callOf(r.Context()).who, pathID(r, "statementId"), number)
	if err != nil {
		return err
	}

	w.Header().Set("Location", at)
	w.WriteHeader(http.StatusSeeOther)

	return nil
}

// listStatementRows handles GET /query/statements/{statementId}/rows.
func (s *Server) listStatementRows(w http.ResponseWriter, r *http.Request) error {
	offset, limit, err := stepPage(r)
	if err != nil {
		return err
	}

	if offset < 0 {
		return badCursor()
	}

	out := &pageWriter{out: &bufferedResponse{w: w, media: "application/json"}}

	found, err := s.config.Query.LongRows(r.Context(), callOf(r.Context()).who, pathID(r, "statementId"), query.Page{Offset: offset, Limit: limit},
		func(columns []query.Column, row json.RawMessage) { out.row(columns, row) })
	if err != nil {
		return err
	}

	var next *string
	if found.Next > 0 {
		next = encodeCursor(r.Context(), binary.BigEndian.AppendUint64(nil, uint64(found.Next)))
	}

	out.end(found.Columns, next)

	return nil
}
