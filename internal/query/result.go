package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

// Read is a snapshot that was read.
type Read struct {
	Account     uuid.UUID // account of its owner
	ID          uuid.UUID
	Dataset     string // owner/namespace/name
	Snapshot    uuid.UUID
	CommittedAt time.Time
}

// Result is the result of a statement that is running. The caller closes it.
type Result struct {
	Columns []Column
	Reads   []Read
	Engine  catalog.Engine  // what ran the statement
	Needs   []Need          // only of a lasting statement
	Ordered bool            // the statement has an ORDER BY
	Tree    json.RawMessage // DuckDB's syntax tree of a statement of a run, else nil

	result stream
	files  *engine.Result // nil if the result has no file
	source *sources
	end    engine.Ran
	began  time.Time
	given  *atomic.Int64
	close  func()

	maxRows int64 // most rows that a LIMIT allows

	held func() error // checks whether the caller may still read rows; called before the first row, then nil

	ahead   []json.RawMessage // rows that Look read and Next has not returned yet
	aheadBy error             // the error or io.EOF that followed them
}

// Next returns the next row as a JSON object, with __metadata, and io.EOF after the last row. The row is valid until the
// next call.
func (r *Result) Next() (json.RawMessage, error) {
	if len(r.ahead) > 0 {
		row := r.ahead[0]
		r.ahead = r.ahead[1:]

		return row, nil
	}

	if r.aheadBy != nil {
		return nil, r.aheadBy
	}

	return r.fresh()
}

func (r *Result) fresh() (json.RawMessage, error) {
	row, err := r.next()
	if err != nil {
		return nil, err
	}

	return r.source.mark(row)
}

// Look returns the first rows without consuming them: Next returns them again. It must be called before Next. all is true
// if the result has no more rows.
func (r *Result) Look(rows int) (first []json.RawMessage, all bool, err error) {
	for len(r.ahead) < rows && r.aheadBy == nil {
		row, err := r.fresh()
		if err != nil {
			r.aheadBy = err

			break
		}

		r.ahead = append(r.ahead, bytes.Clone(row))
	}

	if r.aheadBy != nil && !errors.Is(r.aheadBy, io.EOF) {
		return nil, false, r.aheadBy
	}

	return r.ahead, r.aheadBy != nil, nil
}

func (r *Result) next() (engine.Row, error) {
	row, err := r.result.Next()
	if errors.Is(err, io.EOF) {
		r.end, _ = r.result.Finish()
		r.given.Add(r.end.Rows)

		return row, io.EOF
	}

	if err == nil {
		err = r.hold()
	}

	return row, refused(err, nil)
}

// hold checks the credential of the caller once, before any part of the result is returned.
func (r *Result) hold() error {
	if r.held == nil {
		return nil
	}

	held := r.held
	r.held = nil

	return held()
}

// End returns the number of rows, and the limit by which the result was truncated, if any. Both are known after the last
// row.
func (r *Result) End() (rows int64, truncated string) { return r.end.Rows, r.end.Truncated }

// Complete returns LimitExceeded if the result was truncated. It is known after the last row.
func (r *Result) Complete() error {
	switch r.end.Truncated {
	case "":
		return nil
	case engine.ByRows:
		return fault.New(fault.LimitExceeded, fmt.Sprintf("The result has more than %d rows, and a file would not show that rows are missing. "+
			"Add a LIMIT of up to %d rows, or set truncate to true to get the first rows.", r.end.Rows, r.maxRows))
	default:
		return fault.New(fault.LimitExceeded, "The result has more bytes than this server returns at once, and a file would not show that rows are missing. "+
			"Select fewer columns or rows, or set truncate to true to get the first rows.")
	}
}

// Bare is Next without __metadata.
func (r *Result) Bare() (json.RawMessage, error) {
	r.source = nil

	row, err := r.next()

	return row.JSON, err
}

// Elapsed returns the time since the statement arrived.
func (r *Result) Elapsed(now time.Time) time.Duration { return now.Sub(r.began) }

// File waits for a result in the form of a file and moves the file to the given path. It returns the size in bytes.
func (r *Result) File(to string) (size int64, err error) {
	if r.end, err = r.result.Finish(); err != nil {
		return 0, refused(err, nil)
	}

	if err := r.hold(); err != nil {
		return 0, err
	}

	return r.files.Take(to)
}

// cut waits for a result in pieces and moves its file, and the heads and tails of its pieces, to the given paths.
func (r *Result) cut(to, ends string) (ran engine.Ran, err error) {
	if r.end, err = r.result.Finish(); err != nil {
		return ran, refused(err, nil)
	}

	if err := r.hold(); err != nil {
		return ran, err
	}

	r.given.Add(r.end.Rows)

	return r.files.TakePieces(to, ends)
}

// Close ends the statement, even if it is still running.
func (r *Result) Close() { r.close() }
