package ingest

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// run continues an ingestion. If last is set, there is no further attempt after a failure.
func (g *Ingest) run(ctx context.Context, args RunArgs, last bool) error {
	var found *Ingestion

	err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		found, err = selectIngestion(ctx, q, args.Account, args.Dataset, args.Ingestion)

		return err
	})
	if err != nil {
		return err
	}

	if found == nil || found.ended() {
		return g.Jobs().GiveBack(ctx, job.Work{Account: args.Account, ID: args.Ingestion, Job: args, Queue: Queue})
	}

	w := &working{Ingest: g, i: *found}
	attempt := job.Attempt{
		Work: found.work(), Last: last, Do: w.do, Passing: passing,
		Fail: func(ctx context.Context, _ job.Lease, reason error) error {
			return errors.Join(w.fail(ctx, reason), unlessFault(reason))
		},
	}

	if found.spread {
		attempt.Do = w.advance
	} else if !found.ready { // a commit needs no space
		attempt.Room = g.room
	}

	return g.Jobs().Attempt(ctx, attempt)
}

// room returns an error while the work folder is full.
func (g *Ingest) room() error { return g.Folder.Room(0) }

func (i Ingestion) ended() bool { return i.Status != Queued && i.Status != Running }

// passing reports whether a later attempt may succeed.
func passing(err error) bool {
	if _, ok := errors.AsType[*engine.FileError](err); ok {
		return false
	}

	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) || errors.Is(err, lake.ErrConflict)
}

// unlessFault returns nil for a failure that the caller sees, and other errors for the log.
func unlessFault(err error) error {
	_, isFailure := errors.AsType[*engine.FileError](err)
	if e, isFault := errors.AsType[*fault.Error](err); isFailure || (isFault && e.Code != fault.Internal) {
		return nil
	}

	return err
}

// working is an ingestion whose lease this worker holds.
type working struct {
	*Ingest

	lease job.Lease
	i     Ingestion
	dir   string // temporary files; removed at the end
	aside [][]engine.SetAside
	pages [][]int64 // of the files

	papers   []*paper                // the files, if a model reads them
	sampled  []engine.Doubt          // what is told about a sample
	kinds    map[string]string       // of the fields of papers, as far as they are known
	contents []fileContent           // content of the files
	columns  []lake.Column           // of the outputs
	outputs  []output                // the converted files, nil if there are none
	isTried  bool                    // only count the rows that a merge would replace
	replaces int64                   // their number
	stop     context.CancelCauseFunc // ends the sealed process

	part *part // the file, if the ingestion is spread and this worker reads one of its files

	arriving  []*os.File  // the files that are fetched
	isFetched atomic.Bool // all of them
	storings  []*storing  // of the outputs; nil for one that is stored after it was made

	mu   sync.Mutex
	told time.Time
}

// output is a Parquet file that a sealed process wrote.
type output struct {
	path string
	rows int64
}

func (w *working) fail(ctx context.Context, reason error) error {
	return w.lease.Conclude(ctx, func(ctx context.Context, tx postgres.Tx) (bool, error) {
		// Store the progress and the rows set aside, so that people can correct the file.
		if _, err := updateProgress(ctx, tx, w.i); err != nil {
			return false, err
		}

		if !w.i.spread { // the files have stored theirs
			if err := insertSetAside(ctx, tx, w.i, w.aside); err != nil {
				return false, err
			}
		}

		if err := w.failTx(ctx, tx, w.i, reason); err != nil {
			return false, err
		}

		return true, w.Lake.DropTx(ctx, tx, w.i.table(), w.i.ID)
	})
}

const (
	tellEvery    = time.Second
	outputSuffix = ".parquet"
)

func (w *working) do(ctx context.Context, lease job.Lease) (err error) {
	w.lease = lease

	if err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return start(ctx, tx, w.i, w.Now()) }); err != nil {
		return err
	}

	if !w.i.ready {
		if w.i.kind == kindRows {
			// The process that had the body or the condition has ended.
			return fault.New(fault.InvalidState, "The service stopped before the rows were changed. Send the request again.")
		}

		if err := w.stage(ctx, nil); err != nil {
			return err
		}

		if w.i.DryRun {
			return nil
		}
	}

	_, err = w.committed(ctx, w.i)

	return err
}

// watchEvery is how often the worker checks whether somebody cancelled the ingestion.
const watchEvery = 2 * time.Second

// watch stops the work if somebody cancelled the ingestion. Recording progress also finds that out, but there is no progress while the store
// does not answer.
func (w *working) watch(ctx context.Context, i Ingestion) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}

		var now outcome

		err := w.DB.Do(ctx, func(q postgres.Querier) (err error) {
			now, err = selectOutcome(ctx, q, i)

			return err
		})
		if err == nil && now.status != Running { // continue if the database does not answer now
			w.stop(job.ErrStopped)

			return nil
		}
	}
}

// tell records the progress, at most once per tellEvery in each phase. It returns job.ErrStopped if the ingestion
// was ended.
func (w *working) tell(ctx context.Context, phase string) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.i.kind == kindRows || (phase == w.i.Phase && time.Since(w.told) < tellEvery) {
		return nil
	}

	w.i.Phase, w.told = phase, time.Now()

	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		if w.part != nil {
			return updatePart(ctx, tx, w.part.progress(w.i))
		}

		return updateProgress(ctx, tx, w.i)
	})
}

// hear records the progress that the sealed process reports for files of this size, in addition to the rows and bytes of the previous files.
func (w *working) hear(ctx context.Context, phase string, p engine.Progress, rows, bytes, size int64) {
	w.i.RowsDone, w.i.BytesDone = rows+p.Rows, bytes+int64(p.Part*float64(size))

	// Continue if the database does not answer now.
	if err := w.tell(ctx, phase); job.Over(err) {
		w.stop(err)
	}
}
