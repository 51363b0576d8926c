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

// errEnded says that the run was ended by somebody else: cancelled, or too late.
var errEnded = errors.New("the run has ended")

const (
	wireRows   = 1000
	wireBytes  = 1 << 20
	keptBytes  = 64 << 10 // of a step's rows in the database; all of them are an object if there are more
	objectTime = time.Hour

	objectPrefix = "runs/"
)

// record is the log of a run in the hands of the one who holds its lease.
type record struct {
	*Runs

	lease  job.Lease
	run    Run
	before []agent.Event
	noting sync.Mutex // what is read is noted by one after the other
	mu     sync.Mutex
	pinned map[uuid.UUID]uuid.UUID // snapshots by dataset
}

// Pinned gives the snapshots that were read.
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

// Reading notes snapshots before anything of them is read: a statement that fails may say why in words of the data.
func (l *record) Reading(ctx context.Context, reads []query.Read) error {
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

// Before gives what was written by those who had the run before.
func (l *record) Before() []agent.Event { return l.before }

// Write adds an event.
func (l *record) Write(ctx context.Context, event agent.Event) error {
	return l.write(ctx, event, nil)
}

func (l *record) write(ctx context.Context, event agent.Event, also func(tx postgres.Tx) error) error {
	var written Event

	err := l.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		if err := l.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		written, err = appendEvent(ctx, tx, l.run.Account, l.run.ID, event, l.now())
		if err == nil && also != nil {
			err = also(tx)
		}

		return err
	})
	if err == nil {
		l.tail.tell(l.run.key(), written)
	}

	return err
}

// storedStep is a step as the database has it: with its first rows, and the name of the object that has all of them
// if those are not all that go out.
type storedStep struct {
	agent.Step

	Object string `json:"object,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

// storedResult is a result with such steps.
type storedResult struct {
	agent.Result

	Steps []storedStep `json:"steps"`
}

// Step reads the rows of a statement, keeps them, and adds the event of the step.
func (l *record) Step(ctx context.Context, step agent.Step, result *query.Result) (agent.Step, error) {
	defer result.Close()

	if err := l.Reading(ctx, result.Reads); err != nil {
		return step, err
	}

	rows, err := l.collect(&step, result)
	if err != nil {
		return step, err
	}

	kept := storedStep{Step: step}

	if rows.Len() > keptBytes {
		if kept.Object, err = l.keep(ctx, step.Index, rows.Bytes()); err != nil {
			return step, err
		}

		kept.Size, kept.Data = int64(rows.Len()), within(step.Data, keptBytes)
	}

	body, err := encode(kept)
	if err != nil {
		return step, err
	}

	return step, l.write(ctx, agent.Event{Kind: agent.StepDone, Index: step.Index, Body: body}, func(tx postgres.Tx) error {
		if kept.Object == "" {
			return nil
		}

		return keepObject(ctx, tx, l.run, step.Index, kept.Object, kept.Size)
	})
}

// collect reads all rows as lines, and sets what goes out of them.
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

// within are the first rows that have so many bytes.
func within(rows []json.RawMessage, room int) []json.RawMessage {
	for i, row := range rows {
		if room -= len(row); room < 0 {
			return rows[:i]
		}
	}

	return rows
}

// keep stores all rows of a step. The row stands before the object.
func (l *record) keep(ctx context.Context, step int, rows []byte) (string, error) {
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

// end writes how the run ended, and its last event, as one.
func (l *record) end(ctx context.Context, result agent.Result, reason error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()

	e := ending{status: Completed, kind: kindCompleted, at: l.now()}

	if reason != nil {
		e.status, e.kind, e.failure = Failed, kindFailed, asFailure(reason)
	}

	var last Event

	err := l.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		if err := l.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		if reason == nil {
			if err := l.fill(ctx, tx, &result, &e); err != nil {
				return err
			}
		}

		last, err = endRun(ctx, tx, l.run.Account, l.run.ID, e)

		return err
	})
	if err == nil {
		l.tail.tell(l.run.key(), last)
	}

	return err
}

const endTime = 10 * time.Second

// fill completes a result with what the log knows: the steps as they are kept, and the snapshots that were read.
func (l *record) fill(ctx context.Context, tx postgres.Tx, result *agent.Result, e *ending) (err error) {
	kept := storedResult{Result: *result, Steps: []storedStep{}}

	reads, err := selectReads(ctx, tx, l.run.Account, l.run.ID)
	if err != nil {
		return err
	}

	for _, read := range reads {
		kept.AsOf = append(kept.AsOf, agent.Moment{Dataset: read.Dataset, SnapshotID: read.Snapshot.String(), CommittedAt: read.CommittedAt})
	}

	steps, err := selectSteps(ctx, tx, l.run.Account, l.run.ID)
	if err != nil {
		return err
	}

	for _, body := range steps {
		var step storedStep
		if err := json.Unmarshal(body, &step); err != nil {
			return err
		}

		kept.Steps = append(kept.Steps, step)
	}

	e.result, err = json.Marshal(kept)

	return err
}

// asFailure is what the asker is told. What is no fault is ours, and its words are nobody's business.
func asFailure(err error) failed {
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Code != fault.Internal {
		return failed{Code: known.Code, Message: known.Message}
	}

	return failed{Code: fault.Internal, Message: "The question could not be answered because of an error of the service. Ask again."}
}
