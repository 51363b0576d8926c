package server

import (
	"errors"
	"io"
	"net/http"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// runQuery handles POST /query.
func (s *Server) runQuery(w http.ResponseWriter, r *http.Request) error {
	media, form, err := negotiate(r.Header.Values("Accept"))
	if err != nil {
		return err
	}

	var body api.QueryRequest
	if err := decode(r, &body); err != nil {
		return err
	}

	want, err := statement(body, form)
	if err != nil {
		return err
	}

	result, err := s.config.Query.Run(r.Context(), callOf(r.Context()).who, want)
	if err != nil {
		return err
	}
	defer result.Close()

	if form == query.Rows {
		return writeRows(w, result, want)
	}

	return s.writeFile(w, result, media, value(body.Truncate))
}

// statement returns the statement of a request, with its rows in the form that the client accepts.
func statement(body api.QueryRequest, form query.Form) (query.Statement, error) {
	given, err := query.ParametersOf(body.Parameters)
	if err != nil {
		return query.Statement{}, err
	}

	want := query.Statement{
		Username: value(body.Username), Namespace: value(body.Namespace), Dataset: value(body.Dataset), Text: body.Query, Parameters: given, Form: form,
		Explain: value(body.Explain), AsOf: value(body.AsOf),
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
	metadata.ExecutedQuery, metadata.Engine = want.Text, engineName

	out.json(`],"metadata":`, metadata)
	out.text("}\n")
	out.begin()

	return nil
}

const engineName = "duckdb"

func queryMetadata(result *query.Result) api.QueryMetadata {
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
