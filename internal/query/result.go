package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
)

// Read is a snapshot that was read.
type Read struct {
	Account     uuid.UUID // of its owner
	ID          uuid.UUID
	Dataset     string // owner/namespace/name
	Snapshot    uuid.UUID
	CommittedAt time.Time
}

// Result is a statement that runs. The caller closes it.
type Result struct {
	Columns []Column
	Reads   []Read

	result *engine.Result
	source *sources
	end    engine.Ran
	began  time.Time
	given  *atomic.Int64
	close  func()
	held   func() error // whether the caller may still have rows; asked before the first of them, then nil

	ahead   []json.RawMessage // rows that were looked at and are still to be given
	aheadBy error             // what came after them
}

// Next gives the next row as a JSON object, with __metadata; io.EOF after the last one. It is valid until the next
// call.
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

// Look gives the first rows, which Next gives again. It is called before Next, and all says whether there are no more.
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

// hold checks the credential of the caller once, before anything of the result goes out.
func (r *Result) hold() error {
	if r.held == nil {
		return nil
	}

	held := r.held
	r.held = nil

	return held()
}

// End is how the result ended: how many rows it has, and by which limit it was cut if it was. It is known after
// the last row.
func (r *Result) End() (rows int64, truncated string) { return r.end.Rows, r.end.Truncated }

// Bare is Next without __metadata.
func (r *Result) Bare() (json.RawMessage, error) {
	r.source = nil

	row, err := r.next()

	return row.JSON, err
}

// Elapsed is the time since the statement came.
func (r *Result) Elapsed(now time.Time) time.Duration { return now.Sub(r.began) }

// File waits for a result in the form of a file and moves it to a new place.
func (r *Result) File(to string) (size int64, err error) {
	if r.end, err = r.result.Finish(); err != nil {
		return 0, refused(err, nil)
	}

	if err := r.hold(); err != nil {
		return 0, err
	}

	return r.result.Take(to)
}

// Close ends the statement, also one that still runs.
func (r *Result) Close() { r.close() }
