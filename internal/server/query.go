package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// runQuery handles POST /query.
func (s *Server) runQuery(w http.ResponseWriter, r *http.Request) error {
	var body api.QueryRequest
	if err := decode(r, &body); err != nil {
		return err
	}

	if isAsync(r.Header.Get("Prefer")) {
		return s.startStatement(w, r, body)
	}

	media, form, err := negotiate(r.Header.Values("Accept"))
	if err != nil {
		return err
	}

	want, err := statement(body, form)
	if err != nil {
		return err
	}

	mayContinue := body.Overflow != nil && !want.Explain

	isCut, err := s.answerQuery(w, r, want, media, answerLimits{isWhole: mayContinue, mayCut: value(body.Truncate)})
	if err != nil && isCut && mayContinue {
		return s.startStatement(w, r, body)
	}

	return err
}

// answerLimits is what a client allows of a result that is too large.
type answerLimits struct {
	isWhole bool // no rows at all, in any format
	mayCut  bool // a file with the first rows
}

// answerQuery runs a statement and writes its result. It reports whether the result is cut.
func (s *Server) answerQuery(w http.ResponseWriter, r *http.Request, want query.Statement, media string, limits answerLimits) (isCut bool, err error) {
	result, err := s.config.Query.Run(r.Context(), callOf(r.Context()).who, want)
	if err != nil {
		return false, err
	}
	defer result.Close()

	switch {
	case want.Form == query.Rows && limits.isWhole:
		err = s.writeAllRows(w, result, want)
	case want.Form == query.Rows:
		err = writeRows(w, result, want)
	default:
		err = s.writeFile(w, result, media, limits.mayCut && !limits.isWhole)
	}

	_, truncated := result.End()

	return truncated != "", err
}

// writeAllRows writes a result only if it is complete. It is kept on disk until then, because it can be large.
func (s *Server) writeAllRows(w http.ResponseWriter, result *query.Result, want query.Statement) error {
	file, err := os.CreateTemp(s.config.Dir, "result-*")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }()

	held := &heldResponse{header: w.Header(), to: s.config.Query.Folder.Writer(file)}
	if err := writeRows(held, result, want); err != nil {
		return err
	}

	if err := result.Complete(); err != nil {
		return err
	}

	if _, err := file.Seek(0, io.SeekStart); err != nil || held.err != nil {
		return errors.Join(err, held.err)
	}

	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, file) // fails only if the client disconnected

	return nil
}

// heldResponse is a response that is not sent yet.
type heldResponse struct {
	header http.Header
	to     io.Writer
	err    error
}

func (h *heldResponse) Header() http.Header { return h.header }
func (h *heldResponse) WriteHeader(int)     {}

func (h *heldResponse) Write(p []byte) (int, error) {
	n, err := h.to.Write(p)
	h.err = errors.Join(h.err, err)

	return n, err
}

// statement returns the statement of a request, with its rows in the form that the client accepts.
func statement(body api.QueryRequest, form query.Form) (query.Statement, error) {
	given, err := query.ParametersOf(body.Parameters)
	if err != nil {
		return query.Statement{}, err
	}

	want := query.Statement{
		Username: value(body.Username), Namespace: value(body.Namespace), Dataset: value(body.Dataset), Text: body.Query, Parameters: given, Form: form,
		Explain: value(body.Explain), AsOf: value(body.AsOf), ParquetVersion: int(value(body.ParquetVersion)),
	}

	if want.Explain && form != query.Rows {
		return want, fault.New(fault.NotAcceptable, "A plan is returned as JSON only, which Accept does not allow.")
	}

	if form == query.CSV && value(body.EscapeFormulas) {
		want.Form = query.EscapedCSV
	}

	return want, nil
}

// writeRows writes a result while it is computed.
func writeRows(w http.ResponseWriter, result *query.Result, want query.Statement) error {
	out := &bufferedResponse{w: w, media: "application/json"}

	out.json(`{"columns":`, shownColumns(result.Columns))
	out.text(`,"data":[`)

	separator := ""

	for {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return err
		}

		out.text(separator)
		out.bytes(row)

		separator = ","
	}

	metadata := queryMetadata(result)
	metadata.ExecutedQuery, metadata.Engine = want.Text, string(result.Engine)

	out.json(`],"metadata":`, metadata)
	out.text("}\n")
	out.begin()

	return nil
}

func queryMetadata(result *query.Result) api.QueryMetadata {
	rows, truncated := result.End()
	shown := api.QueryMetadata{
		Count: rows, Truncated: truncated != "", ElapsedMs: result.Elapsed(time.Now()).Milliseconds(), Snapshots: shownSnapshots(result.Reads),
	}

	if truncated != "" {
		shown.TruncatedBy = new(api.QueryMetadataTruncatedBy(truncated))
	}

	return shown
}

func shownSnapshots(reads []query.Read) []api.ReadSnapshot {
	list := make([]api.ReadSnapshot, len(reads))
	for i, read := range reads {
		list[i] = api.ReadSnapshot{Dataset: read.Dataset, SnapshotID: read.Snapshot}
	}

	return list
}
