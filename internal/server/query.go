package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// form is what a result can be asked for as.
type form struct {
	media, ending string
	form          query.Form
}

// forms are all of them, the preferred first.
var forms = []form{ //nolint:gochecknoglobals // read only
	{"application/json", "json", query.Rows},
	{"application/vnd.apache.arrow.stream", "arrows", query.Arrow},
	{"text/csv", "csv", query.CSV},
	{"application/vnd.apache.parquet", "parquet", query.Parquet},
	{ndjson, "ndjson", query.Rows},
}

const ndjson = "application/x-ndjson"

// runQuery is POST /query.
func (s *Server) runQuery(w http.ResponseWriter, r *http.Request) {
	media, form, err := negotiate(r.Header.Values("Accept"))
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	var body api.QueryRequest
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.failDecode(w, r, err)

		return
	}

	want := query.Statement{Username: body.Username, Namespace: body.Namespace, Text: body.Query, Form: form}
	if form == query.CSV && body.EscapeFormulas != nil && *body.EscapeFormulas {
		want.Form = query.EscapedCSV
	}

	if body.Dataset != nil {
		want.Dataset = *body.Dataset
	}

	if body.Explain != nil && *body.Explain {
		if form != query.Rows {
			s.Fail(w, r, fault.New(fault.NotAcceptable, "A plan is JSON, which is not in Accept."))

			return
		}

		want.Explain = true
	}

	if body.AsOf != nil {
		want.AsOf = *body.AsOf
	}

	result, err := s.config.Query.Run(r.Context(), callOf(r.Context()).who, want)
	if err != nil {
		s.Fail(w, r, err)

		return
	}
	defer result.Close()

	if form == query.Rows {
		s.writeRows(w, r, result, want)
	} else {
		s.writeFile(w, r, result, media)
	}
}

// negotiate picks the form of a result: what the client likes best, and of several the first of ours.
func negotiate(accept []string) (media string, form query.Form, err error) {
	const answers = 4 // of forms, those that a statement can have

	best := 0.0

	for _, offered := range forms[:answers] {
		if liked := quality(accept, offered.media); liked > best {
			best, media, form = liked, offered.media, offered.form
		}
	}

	if best == 0 {
		return "", "", fault.New(fault.NotAcceptable, "The answer is JSON, an Arrow stream, CSV or Parquet: none of these is in Accept.")
	}

	return media, form, nil
}

// quality is how much a client likes a media type: what is named exactly counts before a pattern.
func quality(accept []string, media string) float64 {
	if len(accept) == 0 {
		accept = []string{"application/json, */*;q=0.1"}
	}

	kind, _, _ := strings.Cut(media, "/")
	liked, exact := 0.0, -1

	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}

		rank := map[string]int{"*/*": 0, kind + "/*": 1, media: 2}

		how, fits := rank[name]
		if !fits || how < exact {
			continue
		}

		q := 1.0
		if given, ok := parameters["q"]; ok {
			if q, err = strconv.ParseFloat(given, 64); err != nil {
				q = 0
			}
		}

		liked, exact = q, how
	}

	return liked
}

// heldBack is how much of an answer is kept until it begins: an error before is still an error.
const heldBack = 1 << 20

// writeRows writes a result as it comes. If it fails after it began only a broken connection can tell.
func (s *Server) writeRows(w http.ResponseWriter, r *http.Request, result *query.Result, want query.Statement) {
	out := &holding{w: w, media: "application/json"}

	columns := make([]api.ResultColumn, len(result.Columns))
	for i, c := range result.Columns {
		columns[i] = api.ResultColumn{Name: c.Name, Type: c.Type}
	}

	out.json(`{"columns":`, columns)
	out.text(`,"data":[`)

	separator := ""

	for {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			s.breakOff(w, r, out, err)

			return
		}

		out.text(separator)
		out.bytes(row)

		separator = ","
	}

	metadata := s.metadata(result)
	metadata.ExecutedQuery, metadata.Engine = want.Text, engineName

	out.json(`],"metadata":`, metadata)
	out.text("}\n")
	out.begin()
}

const engineName = "duckdb"

func (s *Server) metadata(result *query.Result) api.QueryMetadata {
	rows, truncated := result.End()
	shown := api.QueryMetadata{
		Count: rows, Truncated: truncated != "", ElapsedMs: result.Elapsed(time.Now()).Milliseconds(), Snapshots: []api.ReadSnapshot{},
	}

	if truncated != "" {
		shown.TruncatedBy = new(api.QueryMetadataTruncatedBy(truncated))
	}

	for _, read := range result.Reads {
		shown.Snapshots = append(shown.Snapshots, api.ReadSnapshot{Dataset: read.Dataset, SnapshotID: read.Snapshot})
	}

	return shown
}

// breakOff ends an answer that cannot be completed.
func (s *Server) breakOff(w http.ResponseWriter, r *http.Request, out *holding, err error) {
	if !out.begun {
		s.Fail(w, r, err)

		return
	}

	callOf(r.Context()).err = err

	panic(http.ErrAbortHandler)
}

// holding keeps the beginning of an answer back.
type holding struct {
	w     http.ResponseWriter
	media string
	held  bytes.Buffer
	begun bool
}

func (h *holding) text(text string) { h.bytes([]byte(text)) }

func (h *holding) json(before string, value any) {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // our own types
	}

	h.text(before)
	h.bytes(encoded)
}

func (h *holding) bytes(data []byte) {
	if h.begun {
		_, _ = h.w.Write(data) // a client that left is seen by the context

		return
	}

	h.held.Write(data)

	if h.held.Len() > heldBack {
		h.begin()
	}
}

func (h *holding) begin() {
	if h.begun {
		return
	}

	h.begun = true
	h.w.Header().Set("Content-Type", h.media)
	h.w.WriteHeader(http.StatusOK)
	_, _ = h.w.Write(h.held.Bytes())
	h.held = bytes.Buffer{}
}

// writeFile writes a result that is a file, which is whole before the first byte goes out, and says what it is a result
// of.
func (s *Server) writeFile(w http.ResponseWriter, r *http.Request, result *query.Result, media string) {
	s.sendFile(w, r, result, media, func() {
		info, _ := json.Marshal(s.metadata(result)) // our own type

		w.Header().Set("X-Quern-Result", string(info))
	})
}

func (s *Server) sendFile(w http.ResponseWriter, r *http.Request, result *query.Result, media string, written func()) {
	path := filepath.Join(s.config.Dir, "result-"+uuid.NewString())
	defer os.Remove(path)

	size, err := result.File(path)
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	file, err := os.Open(path)
	if err != nil {
		s.Fail(w, r, err)

		return
	}
	defer file.Close()

	written()
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)

	_, _ = io.Copy(w, file) // a client that left
}

// listRows is GET …/rows.
func (s *Server) listRows(w http.ResponseWriter, r *http.Request) {
	page, err := readPage(r)
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	at := datasetPath(r.PathValue("username"), r.PathValue("namespace"), r.PathValue("datasetName"))

	found, err := s.config.Query.Preview(r.Context(), callOf(r.Context()).who, at, page)
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	writePage(w, found.Columns, found.Rows, nextRow(found))
}

// writePage writes a page of rows, which are JSON already.
func writePage(w http.ResponseWriter, columns []query.Column, rows []json.RawMessage, next *string) {
	shown := struct {
		Columns    []api.ResultColumn `json:"columns"`
		Data       []json.RawMessage  `json:"data"`
		NextCursor *string            `json:"nextCursor,omitempty"`
	}{[]api.ResultColumn{}, rows, next}

	for _, c := range columns {
		shown.Columns = append(shown.Columns, api.ResultColumn{Name: c.Name, Type: c.Type})
	}

	if shown.Data == nil {
		shown.Data = []json.RawMessage{}
	}

	writeJSON(w, http.StatusOK, shown)
}

// readPage reads what the guard has checked.
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

	place, err := decodeCursor(new(values.Get("cursor")), idBytes+offsetBytes)
	if err != nil {
		return page, err
	}

	page.Snapshot = uuid.UUID(place[:idBytes])
	page.Offset = int64(binary.BigEndian.Uint64(place[idBytes:]) >> 1)

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

func nextRow(found query.Preview) *string {
	if found.Next == 0 {
		return nil
	}

	return encodeCursor(binary.BigEndian.AppendUint64(found.Snapshot[:], uint64(found.Next)<<1)) //nolint:gosec // positive
}

// exportDataset is GET …/export.
func (s *Server) exportDataset(w http.ResponseWriter, r *http.Request) {
	at := datasetPath(r.PathValue("username"), r.PathValue("namespace"), r.PathValue("datasetName"))
	wanted := exportForm(r)

	exported, err := s.config.Query.Export(r.Context(), callOf(r.Context()).who, at, wanted.form)
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	s.writeExport(w, r, exported, wanted.media)
}

// exportForm is the one that the request names, which was checked to be one.
func exportForm(r *http.Request) form {
	wanted := r.URL.Query().Get("format")

	i := slices.IndexFunc(forms, func(f form) bool { return f.ending == wanted })
	if i < 0 {
		i = slices.IndexFunc(forms, func(f form) bool { return f.form == query.CSV })
	}

	form := forms[i]
	if form.form == query.CSV && r.URL.Query().Get("escapeFormulas") == "true" {
		form.form = query.EscapedCSV
	}

	return form
}

// exportRetry is when a client that waits for an export should ask again, in seconds.
const exportRetry = "2"

// writeExport writes the file, or where it is, or that it is not there yet.
func (s *Server) writeExport(w http.ResponseWriter, r *http.Request, exported query.Exported, media string) {
	switch {
	case exported.Result == nil && exported.Address == "":
		w.Header().Set("Retry-After", exportRetry)
		w.WriteHeader(http.StatusAccepted)

		return
	case exported.Result == nil:
		w.Header().Set("Location", exported.Address)
		w.WriteHeader(http.StatusSeeOther)

		return
	}

	defer exported.Result.Close()

	attach(w, exported.Name)

	if media == ndjson {
		s.writeLines(w, r, exported.Result.Bare, media)
	} else {
		s.writeFile(w, r, exported.Result, media)
	}
}

// attach says that the answer is a file.
func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
}

// writeLines writes rows as one object a line.
func (s *Server) writeLines(w http.ResponseWriter, r *http.Request, next func() (json.RawMessage, error), media string) {
	out := &holding{w: w, media: media}

	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			s.breakOff(w, r, out, err)

			return
		}

		out.bytes(row)
		out.text("\n")
	}

	out.begin()
}
