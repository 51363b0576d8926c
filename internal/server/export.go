package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"quern.dev/quern/internal/query"
)

// exportDataset handles GET …/export.
func (s *Server) exportDataset(w http.ResponseWriter, r *http.Request) error {
	at := datasetPath(r.PathValue("username"), r.PathValue("namespace"), r.PathValue("datasetName"))
	wanted := exportFormat(r)

	exported, err := s.config.Query.Export(r.Context(), callOf(r.Context()).who, at, wanted.form)
	if err != nil {
		return err
	}

	return s.writeExport(w, exported, wanted.media)
}

// exportFormat returns the format that the request names, or CSV. The guard has checked the name.
func exportFormat(r *http.Request) format {
	wanted := r.URL.Query().Get("format")

	i := slices.IndexFunc(formats, func(f format) bool { return f.name == wanted })
	if i < 0 {
		i = slices.IndexFunc(formats, func(f format) bool { return f.form == query.CSV })
	}

	found := formats[i]
	if found.form == query.CSV && r.URL.Query().Get("escapeFormulas") == "true" {
		found.form = query.EscapedCSV
	}

	return found
}

// exportRetry is the number of seconds after which a client that waits for an export should retry.
const exportRetry = "2"

// writeExport writes the file, a redirect to its address, or 202 if the export is not finished.
func (s *Server) writeExport(w http.ResponseWriter, exported query.Exported, media string) error {
	switch {
	case exported.Result == nil && exported.Address == "":
		w.Header().Set("Retry-After", exportRetry)
		w.WriteHeader(http.StatusAccepted)

		return nil
	case exported.Result == nil:
		w.Header().Set("Location", exported.Address)
		w.WriteHeader(http.StatusSeeOther)

		return nil
	}

	defer exported.Result.Close()

	attach(w, exported.Name)

	if media == ndjson {
		return writeLines(w, exported.Result.Bare)
	}

	return s.writeFile(w, exported.Result, media, true)
}

// attach marks the response as a file to download.
func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
}

// writeLines writes each row as a JSON object on its own line.
func writeLines(w http.ResponseWriter, next func() (json.RawMessage, error)) error {
	out := &bufferedResponse{w: w, media: ndjson}

	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return err
		}

		out.bytes(row)
		out.text("\n")
	}

	out.begin()

	return nil
}

// writeFile writes a result that is a file, with the metadata of the result in a header. The file is complete before
// the first byte is sent.
func (s *Server) writeFile(w http.ResponseWriter, result *query.Result, media string, truncate bool) error {
	return s.sendFile(w, result, media, func() error {
		if !truncate {
			if err := result.Complete(); err != nil {
				return err
			}
		}

		info, _ := json.Marshal(queryMetadata(result)) // our own type, which cannot fail

		w.Header().Set("X-Quern-Result", string(info))

		return nil
	})
}

// sendFile writes the file of a result. It calls prepare, which can set headers, when the file is complete.
func (s *Server) sendFile(w http.ResponseWriter, result *query.Result, media string, prepare func() error) error {
	path := filepath.Join(s.config.Dir, "result-"+uuid.NewString())
	defer os.Remove(path)

	size, err := result.File(path)
	if err != nil {
		return err
	}

	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	if err := prepare(); err != nil {
		return err
	}

	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)

	_, _ = io.Copy(w, file) // fails only if the client disconnected

	return nil
}
