package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// errStopped says that the ingestion was ended by somebody else.
var errStopped = errors.New("the ingestion was ended")

// run does what is left to do of an ingestion. With last set nobody will try again after a failure.
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
		return g.giveBack(ctx, args)
	}

	return g.Jobs().Hold(ctx, found.work(), func(ctx context.Context, lease job.Lease) error {
		w := &working{Ingest: g, lease: lease, i: *found}

		err := w.do(ctx)
		if errors.Is(err, errStopped) || err == nil {
			return nil
		}

		// What may pass by itself is tried again, by River; the rest is the answer.
		if !last && (ctx.Err() != nil || passing(err)) {
			return err
		}

		return errors.Join(w.fail(ctx, err), unlessFault(err))
	})
}

// giveBack removes the lease of a worker that died after its ingestion had ended: otherwise it would be delivered
// for ever.
func (g *Ingest) giveBack(ctx context.Context, args RunArgs) error {
	work := job.Work{Account: args.Account, ID: args.Ingestion, Job: args, Queue: Queue}

	err := g.Jobs().Hold(ctx, work, func(context.Context, job.Lease) error { return nil })
	if errors.Is(err, job.ErrLost) {
		return nil // whoever holds it gives it back
	}

	return err
}

func (i Ingestion) ended() bool { return i.Status != Queued && i.Status != Running }

// passing tells whether a later try may succeed.
func passing(err error) bool {
	if _, ok := errors.AsType[*engine.FileError](err); ok {
		return false
	}

	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) || errors.Is(err, lake.ErrConflict)
}

// unlessFault keeps what is no answer to the caller for the log.
func unlessFault(err error) error {
	_, isFailure := errors.AsType[*engine.FileError](err)
	if e, isFault := errors.AsType[*fault.Error](err); isFailure || (isFault && e.Code != fault.Internal) {
		return nil
	}

	return err
}

// working is an ingestion in the hands of the one who holds its lease.
type working struct {
	*Ingest

	lease job.Lease
	i     Ingestion
	dir   string // the files on their way; removed at the end
	aside [][]engine.SetAside

	contents []fileContent           // of the files
	stop     context.CancelCauseFunc // ends what the child does

	mu   sync.Mutex
	told time.Time
}

// write runs a transaction that only the holder of the lease may make, and only while the ingestion runs.
func (w *working) write(ctx context.Context, do func(tx postgres.Tx) (running bool, err error)) error {
	return w.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := w.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		running, err := do(tx)
		if err == nil && !running {
			err = errStopped
		}

		return err
	})
}

func (w *working) fail(ctx context.Context, reason error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), failTime)
	defer cancel()

	err := w.write(ctx, func(tx postgres.Tx) (bool, error) {
		// How far it came, and which rows did not fit, is what people need to mend it.
		if _, err := updateProgress(ctx, tx, w.i); err != nil {
			return false, err
		}

		if err := insertSetAside(ctx, tx, w.i, w.aside); err != nil {
			return false, err
		}

		if err := finish(ctx, tx, w.i, Failed, reason, w.Now()); err != nil {
			return false, err
		}

		return true, w.Lake.DropTx(ctx, tx, w.i.table(), w.i.ID)
	})
	if errors.Is(err, job.ErrLost) || errors.Is(err, errStopped) {
		return nil
	}

	return err
}

const (
	failTime     = 10 * time.Second
	tellEvery    = time.Second
	outputSuffix = ".parquet"
)

func (w *working) do(ctx context.Context) (err error) {
	if err := w.write(ctx, func(tx postgres.Tx) (bool, error) { return start(ctx, tx, w.i, w.Now()) }); err != nil {
		return err
	}

	if !w.i.ready {
		if w.i.kind == kindRows {
			// The body was in the memory of a process that is gone.
			return fault.New(fault.InvalidState, "The service stopped before the rows were stored. Send them again.")
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

// tell records progress, at most once in a while, and learns whether the ingestion was ended.
func (w *working) tell(ctx context.Context, phase string) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.i.kind == kindRows || (phase == w.i.Phase && time.Since(w.told) < tellEvery) {
		return nil
	}

	w.i.Phase, w.told = phase, time.Now()

	return w.write(ctx, func(tx postgres.Tx) (bool, error) { return updateProgress(ctx, tx, w.i) })
}

// hear takes the child's word for how far it is, beyond the rows and bytes of the files before.
func (w *working) hear(ctx context.Context, phase string, p engine.Progress, rows, bytes int64) {
	w.i.RowsDone, w.i.BytesDone = rows+p.Rows, bytes+int64(p.Part*float64(w.size(p.Source)))

	// A database that does not answer now is no reason to stop.
	if err := w.tell(ctx, phase); errors.Is(err, errStopped) || errors.Is(err, job.ErrLost) {
		w.stop(err)
	}
}
