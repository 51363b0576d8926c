package server

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// listStepRows handles GET /query/runs/{runId}/steps/{n}/rows.
func (s *Server) listStepRows(w http.ResponseWriter, r *http.Request) error {
	step, err := stepIndex(r)
	if err != nil {
		return err
	}

	offset, limit, err := stepPage(r)
	if err != nil {
		return err
	}

	found, err := s.config.Runs.StepRows(r.Context(), callOf(r.Context()).who, pathID(r, "runId"), step, offset, limit)
	if err != nil {
		return err
	}

	var next *string
	if found.Next > 0 {
		next = encodeCursor(r.Context(), binary.BigEndian.AppendUint64(nil, uint64(found.Next)))
	}

	writePage(w, found.Columns, found.Rows, next)

	return nil
}

// stepIndex returns the step number in the path. It returns NotFound for a number that no step can have, and for
// another notation, such as 01, because every step has one address.
func stepIndex(r *http.Request) (int, error) { return pathNumber(r, "n") }

// pathNumber returns a number in the path, as stepIndex does.
func pathNumber(r *http.Request, name string) (int, error) {
	number, err := strconv.Atoi(r.PathValue(name))
	if err != nil || strconv.Itoa(number) != r.PathValue(name) {
		return 0, fault.Absent()
	}

	return number, nil
}

// stepPage parses the query parameters, which the guard has checked: the byte offset of the page, and its number of rows.
func stepPage(r *http.Request) (offset int64, limit int, err error) {
	values := r.URL.Query()

	if limit, err = limitOf(values); err != nil || !values.Has("cursor") {
		return 0, limit, err
	}

	position, err := decodeCursor(r.Context(), new(values.Get("cursor")), offsetBytes)
	if err != nil {
		return 0, 0, err
	}

	return int64(binary.BigEndian.Uint64(position)), limit, nil //nolint:gosec // StepRows refuses an offset that is not the start of a row
}

// exportStep handles GET /query/runs/{runId}/steps/{n}/export.
func (s *Server) exportStep(w http.ResponseWriter, r *http.Request) error {
	step, err := stepIndex(r)
	if err != nil {
		return err
	}

	who, wanted := callOf(r.Context()).who, exportFormat(r)

	rows, err := s.config.Runs.StepLines(r.Context(), who, pathID(r, "runId"), step)
	if err != nil {
		return err
	}
	defer rows.Close()

	name := fmt.Sprintf("step-%d.%s", step, query.Extension(wanted.form))

	if wanted.media == ndjson {
		attach(w, name)

		return writeLines(w, rows.Next)
	}

	result, err := s.config.Query.Again(r.Context(), who, rows.Columns, rows.Next, wanted.form)
	if err != nil {
		return err
	}
	defer result.Close()

	return s.sendFile(w, result, wanted.media, func() error {
		attach(w, name)

		return nil
	})
}
