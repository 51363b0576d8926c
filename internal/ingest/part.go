package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

func (a PartArgs) work() job.Work {
	name := fmt.Sprintf("%d %s %d", a.Round, a.Step, a.Position)

	return job.Work{Account: a.Account, ID: uuid.NewSHA1(a.Ingestion, []byte(name)), Job: a, Queue: PartQueue}
}

func (i Ingestion) partArgs(round int, s step, position int) PartArgs {
	return PartArgs{Account: i.Account, Dataset: i.Dataset, Ingestion: i.ID, Round: round, Step: s, Position: position}
}

// part is the file that a worker reads.
type part struct {
	PartArgs

	of          Ingestion // with all its files
	bytes, rows int64     // progress in this step
}

// partFound is what a step has found in a file.
type partFound struct {
	Columns    []engine.Column `json:"columns,omitempty"`
	Doubts     []engine.Doubt  `json:"doubts,omitempty"`
	Digest     []byte          `json:"digest"`
	Sketch     []byte          `json:"sketch,omitempty"`
	IsDistinct bool            `json:"isDistinct,omitempty"`
}

// needs reports whether the ingestion still needs this job.
func (i Ingestion) needs(a PartArgs) bool {
	return i.Status == Running && !i.ready && i.round == a.Round && i.step == a.Step && a.Position < len(i.Files) && i.Files[a.Position].done != a.Step
}

// runPart continues one file of an ingestion. If last is set, there is no further attempt after a failure.
func (g *Ingest) runPart(ctx context.Context, args PartArgs, last bool) error {
	var (
		found   *Ingestion
		planned []lake.Column
	)

	err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if found, err = selectIngestion(ctx, q, args.Account, args.Dataset, args.Ingestion); err == nil && found != nil {
			planned, err = selectPlanned(ctx, q, *found)
		}

		return err
	})
	if err != nil {
		return err
	}

	if found == nil || !found.needs(args) {
		return g.Jobs().GiveBack(ctx, args.work())
	}

	one := *found
	one.Files, one.BytesTotal = found.Files[args.Position:args.Position+1], found.Files[args.Position].Size
	one.BytesDone, one.RowsDone, one.RowsSetAside, one.Phase = 0, 0, 0, ""

	w := &working{Ingest: g, i: one, columns: planned, part: &part{PartArgs: args, of: *found}}

	return g.Jobs().Attempt(ctx, job.Attempt{
		Work: args.work(), Last: last, Room: g.room, Do: w.doPart, Passing: passing,
		Fail: func(ctx context.Context, _ job.Lease, reason error) error {
			return errors.Join(w.failPart(ctx, reason), unlessFault(reason))
		},
	})
}

// failPart ends the whole ingestion because of this file.
func (w *working) failPart(ctx context.Context, reason error) error {
	return w.lease.Conclude(ctx, func(ctx context.Context, tx postgres.Tx) (bool, error) {
		now, err := lockIngestion(ctx, tx, w.i.Account, w.i.Dataset, w.i.ID)
		if err != nil || now == nil || !now.needs(w.part.PartArgs) {
			return false, err
		}

		if err := w.failTx(ctx, tx, *now, reason); err != nil {
			return false, err
		}

		return true, w.Lake.DropTx(ctx, tx, w.i.table(), w.i.ID)
	})
}

func (w *working) doPart(ctx context.Context, lease job.Lease) error {
	w.lease = lease

	if err := w.claimPart(ctx); err != nil {
		return err
	}

	return w.within(ctx, func(ctx context.Context) error {
		if w.part.Step == stepInspect {
			return w.inspectPart(ctx)
		}

		return w.convertPart(ctx)
	})
}

// claimPart checks that the job is still needed, and drops the data file of a worker that died.
func (w *working) claimPart(ctx context.Context) error {
	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		now, err := lockIngestion(ctx, tx, w.i.Account, w.i.Dataset, w.i.ID)
		if err != nil || now == nil || !now.needs(w.part.PartArgs) {
			return false, err
		}

		return true, w.Lake.DropFromTx(ctx, tx, w.i.table(), w.i.ID, w.i.Files[0].ID)
	})
}

// inspectPart finds the columns of the file and its doubts.
func (w *working) inspectPart(ctx context.Context) error {
	var found engine.Inspection

	err := w.readPart(ctx, func(_ *engine.Session, _ engine.Source, inspected engine.Inspection) error {
		found = inspected

		return nil
	})
	if err != nil {
		return err
	}

	for _, c := range found.Columns {
		if c.Type != "" && !lake.Type(c.Type).Valid() {
			return fault.Wrap(fmt.Errorf("a sealed process reported the type %q", c.Type), fault.Internal, "The file could not be read.")
		}
	}

	return w.finishPart(ctx, partFound{Columns: found.Columns, Doubts: found.Doubts, Digest: w.contents[0].digest}, nil)
}

// readPart opens the file in a session and calls do when it is inspected. Storing needs no session, and must not hold the slot of one.
func (w *working) readPart(ctx context.Context, do func(*engine.Session, engine.Source, engine.Inspection) error) error {
	session, err := w.Engine.Open(ctx, w.Timeout)
	if err != nil {
		return err
	}
	defer session.Close()

	session.IsPart = true

	sources, err := w.mount(session, nil)
	defer w.closeArriving()

	if err != nil {
		return err
	}

	found, err := w.inspect(ctx, session, sources)
	if err != nil {
		return err
	}

	return do(session, sources[0], found)
}

// convertPart converts the file to the columns of all files, and stores the data file.
func (w *working) convertPart(ctx context.Context) error {
	w.prepare(1)

	err := w.readPart(ctx, func(session *engine.Session, source engine.Source, _ engine.Inspection) error {
		w.i.RowsDone, w.i.BytesDone = 0, 0

		rows, err := w.convertOne(ctx, session, 0, source)
		if err != nil {
			return err
		}

		return w.take(session, []engine.Source{source}, []int64{rows})
	})
	if err != nil {
		return err
	}

	if w.i.RowsSetAside > maxAside { // fewer are judged together with those of the other files
		return TooManySetAside(w.i.RowsDone, w.i.RowsSetAside)
	}

	staged, err := w.storeOne(ctx, 0, w.outputs[0])
	if err != nil {
		return err
	}

	content := w.contents[0]

	return w.finishPart(ctx, partFound{Digest: content.digest, Sketch: content.sketch.bytes(), IsDistinct: content.sketch.distinct}, func(tx postgres.Tx) error {
		if err := addSetAsideAt(ctx, tx, w.i, w.part.Position, w.aside[0]); err != nil {
			return err
		}

		return w.Lake.ReadyTx(ctx, tx, []lake.Staged{staged})
	})
}

// finishPart records that the step is done for the file, and what it has found. The same transaction inserts the job of the next file, and after the last one
// that of the ingestion.
func (w *working) finishPart(ctx context.Context, found partFound, also func(tx postgres.Tx) error) error {
	err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		left, next, err := updateDone(ctx, tx, w.part.PartArgs, w.i.RowsSetAside)
		if err != nil || left < 0 {
			return false, err
		}

		if done, err := updatePartDone(ctx, tx, w.part.PartArgs, w.i, found); err != nil || !done {
			return false, err
		}

		if also != nil {
			if err := also(tx); err != nil {
				return false, err
			}
		}

		switch {
		case left == 0:
			return true, w.Jobs().InsertTx(ctx, tx, w.part.of.work().Job, insertOpts(PartQueue))
		case next < len(w.part.of.Files):
			return true, w.Jobs().InsertTx(ctx, tx, w.part.of.partArgs(w.part.Round, w.part.Step, next), partOpts())
		default:
			return true, nil
		}
	})
	if err == nil {
		w.Jobs().Wake(PartQueue)
	}

	return err
}

// partProgress is the progress of a file in a step.
type partProgress struct {
	PartArgs

	bytes, rows int64
}

// progress returns the progress of the file: what is fetched of it, or converted. It never decreases, so that the sum over all files does not either.
func (p *part) progress(now Ingestion) partProgress {
	counted := phaseFetching
	if p.Step == stepConvert {
		counted = phaseConverting
	}

	if now.Phase == counted {
		p.bytes, p.rows = max(p.bytes, min(now.BytesDone, now.BytesTotal)), max(p.rows, now.RowsDone)
	}

	return partProgress{p.PartArgs, p.bytes, p.rows}
}

// outputID returns the id of the data file. The ids of the data files of an ingestion are in the order of its files, whichever is written first.
func (p *part) outputID() uuid.UUID {
	const timeBytes = 6

	var moment [8]byte

	id := uuid.Must(uuid.NewV7())
	binary.BigEndian.PutUint64(moment[:], uint64(p.of.StartedAt.Add(time.Duration(p.Position)*time.Millisecond).UnixMilli()))
	copy(id[:timeBytes], moment[len(moment)-timeBytes:])

	return id
}
