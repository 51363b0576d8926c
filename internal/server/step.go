package server

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"quern.dev/quern/internal/fault"
)

// listStepRows is GET /query/runs/{runId}/steps/{n}/rows.
func (s *Server) listStepRows(w http.ResponseWriter, r *http.Request) {
	step, err := stepIndex(r)
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	place, limit, err := stepPlace(r.URL.Query())
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	found, err := s.config.Runs.StepRows(r.Context(), callOf(r.Context()).who, pathID(r, "runId"), step, place, limit)
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	var next *string
	if found.Next > 0 {
		next = encodeCursor(binary.BigEndian.AppendUint64(nil, uint64(found.Next)))
	}

	writePage(w, found.Columns, found.Rows, next)
}

// stepIndex: a number that no step can have names nothing, and one that is written otherwise is another address.
func stepIndex(r *http.Request) (int, error) {
	index, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || strconv.Itoa(index) != r.PathValue("n") {
		return 0, fault.Absent()
	}

	return index, nil
}

// stepPlace reads what the guard has checked: the byte where a page begins, and how many rows it has.
func stepPlace(values url.Values) (place int64, limit int, err error) {
	if limit, err = limitOf(values); err != nil || !values.Has("cursor") {
		return 0, limit, err
	}

	given, err := decodeCursor(new(values.Get("cursor")), offsetBytes)
	if err != nil {
		return 0, 0, err
	}

	return int64(binary.BigEndian.Uint64(given)), limit, nil //nolint:gosec // what is no place is refused
}

// exportStep is GET /query/runs/{runId}/steps/{n}/export.
func (s *Server) exportStep(w http.ResponseWriter, r *http.Request) {
	step, err := stepIndex(r)
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	who, wanted := callOf(r.Context()).who, exportForm(r)

	rows, err := s.config.Runs.StepLines(r.Context(), who, pathID(r, "runId"), step)
	if err != nil {
		s.Fail(w, r, err)

		return
	}
	defer rows.Close()

	name := fmt.Sprintf("step-%d.%s", step, wanted.ending)

	if wanted.media == ndjson {
		attach(w, name)
		s.writeLines(w, r, rows.Next, wanted.media)

		return
	}

	result, err := s.config.Query.Again(r.Context(), who, rows.Columns, rows.Next, wanted.form)
	if err != nil {
		s.Fail(w, r, err)

		return
	}
	defer result.Close()

	s.sendFile(w, r, result, wanted.media, func() { attach(w, name) })
}
