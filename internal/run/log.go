package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// errEnded reports that the run has already ended: it was cancelled, or its deadline passed.
var errEnded = errors.New("the run has ended")

const (
	wireRows   = 1000
	wireBytes  = 1 << 20
	keptBytes  = 64 << 10 // largest size of a step's rows in the database; if there are more, all rows are stored as an object
	objectTime = time.Hour

	objectPrefix = "runs/"
)

// record is the log of a run whose lease this worker holds.
type record struct {
	*Runs

	lease  job.Lease
	run    Run
	before []agent.Event
	noting sync.Mutex // serialises BeforeRead
	mu     sync.Mutex
	pinned map[uuid.UUID]uuid.UUID // snapshots by dataset
}

// Pinned returns the snapshots that the run has read, by dataset.
func (l *record) Pinned() map[uuid.UUID]uuid.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()

	return maps.Clone(l.pinned)
}

func (l *record) pin(reads []query.Read) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, read := range reads {
		if _, isPinned := l.pinned[read.ID]; !isPinned {
			l.pinned[read.ID] = read.Snapshot
		}
	}
}

// BeforeRead records snapshots before they are read, because the error of a failed statement may quote data. It returns
// agent.ErrMoved if the run has read another snapshot of a dataset before.
func (l *record) BeforeRead(ctx context.Context, reads []query.Read) error {
	l.noting.Lock()
	defer l.noting.Unlock()

	noted, fresh := l.Pinned(), []query.Read{}

	for _, read := range reads {
		switch snapshot, isNoted := noted[read.ID]; {
		case !isNoted:
			fresh = append(fresh, read)
		case snapshot != read.Snapshot:
			return agent.ErrMoved
		}
	}

	if len(fresh) == 0 {
		return nil
	}

	err := l.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := l.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		running, err := holdRunning(ctx, tx, l.run)
		if err == nil && !running {
			err = errEnded
		}

		if err == nil {
			err = insertReads(ctx, tx, l.run, fresh)
		}

		return err
	})
	if err == nil {
		l.pin(fresh)
	}

	return err
}

// Before returns the events that earlier workers wrote.
func (l *record) Before() []agent.Event { return l.before }

// Write appends events, all or none.
func (l *record) Write(ctx context.Context, events ...agent.Event) error {
	return l.write(ctx, nil, events...)
}

func (l *record) write(ctx context.Context, also func(tx postgres.Tx) error, events ...agent.Event) error {
	written := make([]Event, len(events))

	err := l.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		if err := l.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		for i, e := range events {
			if written[i], err = appendEvent(ctx, tx, l.run.Account, l.run.ID, e, l.now()); err != nil {
				return err
			}
		}

		if also != nil {
			err = also(tx)
		}

		return err
	})
	if err != nil {
		return err
	}

	for _, e := range written {
		l.tail.tell(l.run.key(), l.run.BeganAt, e)
	}

	return nil
}

// storedStep is a step as stored in the database: with its first rows, and with the key of the object that has all rows if
// they are larger than keptBytes.
type storedStep struct {
	agent.Step

	Object string `json:"object,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

// storedResult is a result as stored in the database.
type storedResult struct {
	agent.Result

	Steps []storedStep `json:"steps"`
}

// Step reads the rows of a statement, stores them, and appends the event of the step. It closes the result.
func (l *record) Step(ctx context.Context, step agent.Step, result *query.Result) (agent.Step, error) {
	defer result.Close()

	if err := l.BeforeRead(ctx, result.Reads); err != nil {
		return step, err
	}

	rows, err := l.collect(&step, result)
	if err != nil {
		return step, err
	}

	kept := storedStep{Step: step}

	// The event has the first rows only. All rows are stored if they are too large for the event, or more than it may have.
	if rows.Len() > keptBytes || bytes.Count(rows.Bytes(), []byte{'\n'}) > len(step.Data) {
		if kept.Object, err = l.storeRows(ctx, step.Index, rows.Bytes()); err != nil {
			return step, err
		}

		kept.Size, kept.Data = int64(rows.Len()), within(step.Data, keptBytes)
	}

	body, err := encode(kept)
	if err != nil {
		return step, err
	}

	return step, l.write(ctx, func(tx postgres.Tx) error {
		if kept.Object == "" {
			return nil
		}

		return keepObject(ctx, tx, l.run, step.Index, kept.Object, kept.Size)
	}, agent.Event{Kind: EventStep, Index: step.Index, Body: body})
}

// collect returns all rows as lines, and sets in step the rows that are sent to clients: at most wireRows and wireBytes.
func (l *record) collect(step *agent.Step, result *query.Result) (*bytes.Buffer, error) {
	var rows bytes.Buffer

	step.Columns, step.Data = result.Columns, []json.RawMessage{}

	for size := 0; ; {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return nil, err
		}

		rows.Write(row)
		rows.WriteByte('\n')

		if size += len(row); size <= wireBytes && len(step.Data) < wireRows {
			step.Data = append(step.Data, bytes.Clone(row))
		}
	}

	count, cut := result.End()
	step.RowCount = count
	step.Truncated = cut != "" || int64(len(step.Data)) < step.RowCount

	return &rows, nil
}

// within returns the first rows whose total size is at most room bytes.
func within(rows []json.RawMessage, room int) []json.RawMessage {
	for i, row := range rows {
		if room -= len(row); room < 0 {
			return rows[:i]
		}
	}

	return rows
}

// storeRows stores all rows of a step as an object and returns its key. The row of the object is inserted before the
// object is written.
func (l *record) storeRows(ctx context.Context, step int, rows []byte) (string, error) {
	key := objectPrefix + l.run.CreatedAt.Format(time.DateOnly) + "/" + uuid.NewString() + ".ndjson"

	err := l.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := l.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		return insertObject(ctx, tx, l.run, step, key, l.now().Add(objectTime))
	})
	if err != nil {
		return "", err
	}

	_, err = l.Store.Write(ctx, key, bytes.NewReader(rows))

	return key, err
}

// end writes how the run ended and its last event in one transaction. A run whose result asks for a choice does not end but
// waits.
func (l *record) end(ctx context.Context, result agent.Result, reason error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()

	e := ending{status: Completed, kind: EventCompleted, at: l.now()}

	switch {
	case reason != nil:
		e.status, e.kind, e.failure = Failed, EventFailed, asFailure(reason)
	case result.Asks():
		e.status, e.kind = Waiting, EventWaiting
	}

	var last Event

	err := l.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		if err := l.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		var kept storedResult

		if reason == nil {
			if kept, err = l.fill(ctx, tx, &result, &e); err != nil {
				return err
			}
		}

		if e.status == Waiting {
			last, err = l.suspend(ctx, tx, kept, e)
		} else {
			last, err = endRun(ctx, tx, l.run.Account, l.run.ID, e)
		}

		return err
	})
	if err == nil {
		l.tail.tell(l.run.key(), l.run.BeganAt, last)

		if l.Ended != nil {
			l.Ended(l.run.Agent, e.status, e.at.Sub(l.run.BeganAt))
		}
	}

	return err
}

const endTime = 10 * time.Second

// suspend makes the run wait for a choice.
func (l *record) suspend(ctx context.Context, tx postgres.Tx, kept storedResult, e ending) (Event, error) {
	body, err := waitingBody(kept)
	if err != nil {
		return Event{}, err
	}

	return suspendRun(ctx, tx, l.run.Account, l.run.ID, e, body, e.at.Add(choiceTime))
}

// fill sets the stored result in e: the result with the stored steps and the snapshots that were read.
func (l *record) fill(ctx context.Context, tx postgres.Tx, result *agent.Result, e *ending) (kept storedResult, err error) {
	kept = storedResult{Result: *result, Steps: []storedStep{}}

	reads, err := selectPinned(ctx, tx, l.run.Account, l.run.ID)
	if err != nil {
		return kept, err
	}

	for _, read := range reads {
		kept.AsOf = append(kept.AsOf, agent.Moment{Dataset: read.Dataset, SnapshotID: read.Snapshot.String(), CommittedAt: read.CommittedAt})
	}

	steps, err := selectSteps(ctx, tx, l.run.Account, l.run.ID)
	if err != nil {
		return kept, err
	}

	for _, body := range steps {
		var step storedStep
		if err := json.Unmarshal(body, &step); err != nil {
			return kept, err
		}

		kept.Steps = append(kept.Steps, step)
	}

	if len(kept.Steps) == 1 {
		kept.Basis, kept.Explained, kept.Verified = kept.Steps[0].Basis, kept.Steps[0].Explained, kept.Steps[0].Verified
	}

	for _, step := range kept.Steps {
		kept.Doubts = append(kept.Doubts, step.Doubts...)
	}

	e.result, err = json.Marshal(kept)

	return kept, err
}

// asFailure returns the failure that is shown to the caller. The text of an internal error is never shown.
func asFailure(err error) Failure {
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Code != fault.Internal {
		return Failure{Code: known.Code, Message: known.Message}
	}

	return Failure{Code: fault.Internal, Message: "The service failed to answer the question. Ask again."}
}
