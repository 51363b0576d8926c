package mcp

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

const (
	defaultRows = 100
	maxRows     = 1000
)

type queryResult struct {
	*table

	Truncated   bool   `json:"truncated"`
	TruncatedBy string `json:"truncatedBy,omitempty"`
	AsOf        string `json:"asOf,omitempty"`
	Hint        string `json:"hint,omitempty"`
}

const readOn = "The result was cut, so figures about it are wrong. Aggregate in SQL, or read on with ORDER BY a key, LIMIT, OFFSET and this asOf."

// query runs a statement as it is written, and reads only as much of its result as is shown.
func (s *Server) query(call *invocation) (any, error) {
	in := call.args.namespace()
	want := query.Statement{
		Username: in.Username, Namespace: in.Namespace, Text: call.args.text("sql", maxStatement), AsOf: call.args.moment("asOf"), Form: query.Rows,
	}
	limit, parameters := call.args.integer("limit", defaultRows, 1, maxRows), call.args.value("parameters")

	if err := call.args.check(); err != nil {
		return nil, err
	}

	var err error
	if want.Parameters, err = query.ParametersOf(parameters); err != nil {
		return nil, err
	}

	found, err := s.Query.Run(call, call.who, want)
	if err != nil {
		return nil, absent(err, "There is no such namespace that you can see. Call list_datasets.")
	}
	defer found.Close()

	shown := queryResult{table: newTable(found.Columns, newBudget()), AsOf: asOf(want.AsOf, found.Reads)}
	if shown.TruncatedBy, err = shown.read(found.Bare, limit); err != nil {
		return nil, err
	}

	if _, by := found.End(); shown.TruncatedBy == "" {
		shown.TruncatedBy = by
	}

	if shown.Truncated = shown.TruncatedBy != ""; shown.Truncated {
		shown.Hint = readOn + " "
	}

	shown.Hint = strings.TrimSpace(shown.Hint + shown.hint())

	return shown, nil
}

// read adds rows until the last one, and returns what ended it before: rows or bytes.
func (t *table) read(next func() (json.RawMessage, error), limit int) (by string, err error) {
	for {
		row, err := next()

		switch {
		case errors.Is(err, io.EOF):
			return "", nil
		case err != nil:
			return "", err
		case len(t.Rows) == limit:
			return "rows", nil
		}

		if added, err := t.add(row); err != nil || !added {
			return "bytes", err
		}
	}
}

// asOf returns the time at which the same statement reads the same data: the requested one, or that of the newest snapshot.
func asOf(requested time.Time, reads []query.Read) string {
	for _, read := range reads {
		if requested.IsZero() || read.CommittedAt.After(requested) {
			requested = read.CommittedAt
		}
	}

	if requested.IsZero() {
		return ""
	}

	return requested.UTC().Format(time.RFC3339Nano)
}

type rowsPage struct {
	*table

	NextCursor string `json:"nextCursor,omitempty"`
	Hint       string `json:"hint,omitempty"`
}

// rowsPosition is a position among rows: of a dataset in rows of a snapshot, of a step in bytes.
type rowsPosition struct {
	Snapshot uuid.UUID `json:"s,omitzero"`
	Offset   int64     `json:"o"`
}

func (s *Server) readRows(call *invocation) (any, error) {
	switch isDataset, isRun := call.args.has("dataset"), call.args.has("runId"); {
	case isDataset == isRun:
		return nil, fault.Invalid("dataset", "or runId is required, and not both")
	case isRun:
		return s.readStep(call)
	default:
		return s.readDataset(call)
	}
}

func (s *Server) readDataset(call *invocation) (any, error) {
	at, columns := call.args.dataset("dataset"), call.args.list("columns")

	var place rowsPosition
	if err := call.position(&place); err != nil {
		return nil, err
	}

	if place.Offset < 0 {
		return nil, fault.Invalid("cursor", "is not a position")
	}

	found, err := s.Catalog.Describe(call, call.who, at)
	if err != nil {
		return nil, absent(err, "There is no such dataset that you can see. Call list_datasets to see the names.")
	}

	page := query.Page{Columns: columns, Snapshot: place.Snapshot, Offset: place.Offset, Limit: defaultRows}

	if len(columns) == 0 && len(found.Columns) > maxColumns {
		for _, c := range found.Columns[:maxColumns] {
			page.Columns = append(page.Columns, c.Name)
		}
	}

	read, next, err := s.browse(call, at, page, newBudget())
	if err != nil {
		return nil, absent(err, "There is no such dataset that you can see. Call list_datasets to see the names.")
	}

	if len(columns) == 0 {
		read.all = max(read.all, len(found.Columns))
	}

	shown := rowsPage{table: read, Hint: read.hint()}
	if next != (rowsPosition{}) {
		shown.NextCursor, err = call.cursor(next)
	}

	return shown, err
}

// browse reads a page of a dataset, as far as it fits.
func (s *Server) browse(call *invocation, at catalog.Path, page query.Page, left *budget) (shown *table, next rowsPosition, err error) {
	var failed error

	found, err := s.Query.Browse(call, call.who, at, page, func(columns []query.Column, row json.RawMessage) bool {
		if shown == nil {
			shown = newTable(columns, left)
		}

		var added bool
		added, failed = shown.add(row)

		return added
	})
	if err == nil {
		err = failed
	}

	if shown == nil {
		shown = newTable(found.Columns, left)
	}

	if found.Next > 0 {
		next = rowsPosition{Snapshot: found.Snapshot, Offset: found.Next}
	}

	return shown, next, err
}

func (s *Server) readStep(call *invocation) (any, error) {
	id, step := call.args.id("runId"), call.args.integer("step", 0, 0, math.MaxInt32)
	if call.args.has("columns") {
		call.args.refuse("columns", "is only for the rows of a dataset")
	}

	var place rowsPosition
	if err := call.position(&place); err != nil {
		return nil, err
	}

	limit := defaultRows

	for {
		found, err := s.Runs.StepRows(call, call.who, id, step, place.Offset, limit)
		if err != nil {
			return nil, absent(err, "You have no run with such a step. get_run shows the steps of a run.")
		}

		shown := rowsPage{table: newTable(found.Columns, newBudget())}

		for _, row := range found.Rows {
			if added, err := shown.add(row); err != nil {
				return nil, err
			} else if !added {
				break
			}
		}

		// Positions are only known for whole pages, so a page that does not fit is read again with fewer rows.
		if limit = len(shown.Rows); limit > 0 && limit < len(found.Rows) {
			continue
		}

		if shown.Hint = shown.hint(); found.Next > 0 {
			shown.NextCursor, err = call.cursor(rowsPosition{Offset: found.Next})
		}

		return shown, err
	}
}
