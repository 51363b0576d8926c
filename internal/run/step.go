package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// StepPage is some rows of a step, in their order.
type StepPage struct {
	Columns []query.Column
	Rows    []json.RawMessage
	Next    int64 // position of the next page, in bytes; 0 if there is none
}

// StepRows returns a page of the rows of a step, starting at a position in bytes. A page has at most limit rows. It ends
// early after about wireBytes, but has at least one row.
//
// Faults: NotFound, also for rows that the caller may no longer see; ValidationFailed for a position where no row begins.
func (r *Runs) StepRows(ctx context.Context, who auth.Principal, id uuid.UUID, index int, place int64, limit int) (StepPage, error) {
	step, note, err := r.step(ctx, who, id, index)
	if err != nil {
		return StepPage{}, err
	}

	page := StepPage{Columns: step.Columns}

	page.Rows, page.Next, err = r.rowsOf(step).page(ctx, place, limit)
	if err == nil {
		err = note(ctx, "step.read")
	}

	return page, err
}

// StepLines reads all rows of a step, without __metadata. The caller closes it.
type StepLines struct {
	Columns []query.Column

	content io.ReadCloser
	lines   *bufio.Reader
}

// StepLines returns a reader of all rows of a step.
//
// Faults: NotFound, also for rows that the caller may no longer see.
func (r *Runs) StepLines(ctx context.Context, who auth.Principal, id uuid.UUID, index int) (*StepLines, error) {
	step, note, err := r.step(ctx, who, id, index)
	if err != nil {
		return nil, err
	}

	if err := note(ctx, "step.export"); err != nil {
		return nil, err
	}

	rows := r.rowsOf(step)

	content, err := rows.read(ctx, 0, rows.size)
	if err != nil {
		return nil, err
	}

	return &StepLines{Columns: step.Columns, content: content, lines: bufio.NewReaderSize(content, keptBytes)}, nil
}

// Next returns the next row, and io.EOF after the last one.
func (l *StepLines) Next() (json.RawMessage, error) {
	line, err := l.lines.ReadBytes('\n')

	switch {
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}

	return query.Unmark(line[:len(line)-1]), nil
}

// Close releases the reader.
func (l *StepLines) Close() { _ = l.content.Close() } // nothing was written

// step returns a step of one of the caller's runs. A step exists as soon as its rows are stored. The function note records
// the read in the audit of each owner of a dataset that the run read, or in the caller's audit if the run read none.
func (r *Runs) step(ctx context.Context, who auth.Principal, id uuid.UUID, index int) (found storedStep, note func(ctx context.Context, action string) error, err error) {
	run, err := r.own(ctx, who, id)
	if err != nil {
		return found, nil, err
	}

	reads, paths, err := r.read(ctx, who, id)
	if err == nil && len(paths) != len(reads) {
		err = fault.Absent()
	}

	if err == nil {
		found, err = r.storedStep(ctx, run, index)
	}

	return found, func(ctx context.Context, action string) error {
		if len(reads) == 0 {
			return r.writeAudit(ctx, who.Audit(who.Account, r.now(), action, run.audit()))
		}

		return r.note(ctx, who, action, pair(reads, paths))
	}, err
}

// storedStep returns a step from the stored result or, while there is no result, from the log.
func (r *Runs) storedStep(ctx context.Context, run Run, index int) (found storedStep, err error) {
	if run.stored != nil {
		for _, step := range run.stored.Steps {
			if step.Index == index {
				return step, nil
			}
		}

		return found, fault.Absent()
	}

	var body json.RawMessage

	err = r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		body, err = selectStep(ctx, q, run.Account, run.ID, index)

		return err
	})
	if err == nil && body == nil {
		err = fault.Absent()
	}

	if err != nil {
		return found, err
	}

	return found, json.Unmarshal(body, &found)
}

// stepRows reads the rows of a step as lines.
type stepRows struct {
	size int64
	read func(ctx context.Context, from, length int64) (io.ReadCloser, error)
}

func (r *Runs) rowsOf(step storedStep) stepRows {
	if step.Object != "" {
		return stepRows{step.Size, func(ctx context.Context, from, length int64) (io.ReadCloser, error) {
			return r.Store.Read(ctx, step.Object, from, length)
		}}
	}

	var lines bytes.Buffer

	for _, row := range step.Data {
		lines.Write(row)
		lines.WriteByte('\n')
	}

	return stepRows{int64(lines.Len()), func(_ context.Context, from, length int64) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(bytes.NewReader(lines.Bytes()), from, length)), nil
	}}
}

const (
	firstRoom = 64 << 10 // bytes that are read first for a page
	roomGrows = 4
)

// page reads rows from a position, which must be the beginning of a line. Positions come from clients and are not trusted:
// a position is refused unless a line ends just before it.
func (s stepRows) page(ctx context.Context, place int64, limit int) (rows []json.RawMessage, next int64, err error) {
	if place < 0 || (place >= s.size && place > 0) {
		return nil, 0, badCursor()
	}

	for room := int64(firstRoom); ; room *= roomGrows {
		text, err := s.text(ctx, place, room)
		if err != nil {
			return nil, 0, err
		}

		rows, next = split(text, limit)
		if next += place; next >= s.size {
			return rows, 0, nil
		}

		if len(rows) == limit || place+room >= s.size || (room >= wireBytes && len(rows) > 0) {
			return rows, next, nil
		}
	}
}

// text reads up to room bytes from a position. It also reads the byte before, to check that a line ends there.
func (s stepRows) text(ctx context.Context, place, room int64) ([]byte, error) {
	before := min(place, 1)

	content, err := s.read(ctx, place-before, before+room)
	if err != nil {
		return nil, err
	}
	defer content.Close()

	text, err := io.ReadAll(content)

	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) < min(before+room, s.size-place+before):
		return nil, io.ErrUnexpectedEOF
	case before > 0 && text[0] != '\n':
		return nil, badCursor()
	}

	return text[before:], nil
}

// split returns up to limit complete rows from the beginning of a text, and their total length in bytes.
func split(text []byte, limit int) (rows []json.RawMessage, length int64) {
	for len(rows) < limit {
		row, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole {
			break
		}

		rows, text, length = append(rows, row), rest, length+int64(len(row))+1
	}

	return rows, length
}

func badCursor() error {
	return fault.Invalid("cursor", "is not a cursor of this list; set it to the nextCursor of the page before, or leave it out for the first page")
}
