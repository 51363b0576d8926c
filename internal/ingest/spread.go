package ingest

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// step is a step of an ingestion that is spread. In each step, every file is a job.
type step string

const (
	stepInspect step = "inspect"
	stepConvert step = "convert"
)

// partsAtOnce is how many files of an ingestion have a job at the same time. A file that is done inserts the job of the next one, behind the jobs of other
// ingestions, so that ingestions take turns.
const partsAtOnce = 8

// spreadAtOnce is how many ingestions of an account are spread at the same time. Others of the account wait.
const spreadAtOnce = 2

// spreads reports whether each file of an ingestion is a job of its own. A merge by a key compares all rows of all files on one machine. A dry run and the
// reading of documents by a model are one job too.
func (g *Ingest) spreads(i Ingestion) bool {
	return i.kind == kindFiles && len(i.Files) > 1 && i.BytesTotal > g.SpreadAbove && i.Mode != lake.Merged && !i.DryRun && !i.isExtracted()
}

// addedUp returns an ingestion with the progress of its files, if it is spread.
func (i Ingestion) addedUp() Ingestion {
	if i.step == "" || i.ready {
		return i
	}

	i.BytesDone, i.RowsDone = 0, 0

	for _, f := range i.Files {
		i.BytesDone += f.bytesDone
		i.RowsDone += f.rowsDone
	}

	return i
}

// advance does what is between the steps of an ingestion that is spread. The last file of each step delivers its job again.
func (w *working) advance(ctx context.Context, lease job.Lease) error {
	w.lease = lease

	// Another worker may have advanced the ingestion before this one had the lease.
	now, err := w.Find(ctx, w.i.Account, w.i.Dataset, w.i.ID)
	if err != nil {
		return err
	}

	if now == nil || now.ended() {
		return job.ErrStopped
	}

	w.i = *now

	switch {
	case w.i.ready:
	case w.i.Status == Queued || w.i.step == "":
		return w.begin(ctx)
	case w.i.partsLeft > 0:
		return nil
	case w.i.step == stepInspect:
		return w.join(ctx)
	default:
		if err := w.gather(ctx); err != nil {
			return err
		}
	}

	_, err = w.committed(ctx, w.i)

	return err
}

var errBusy = errors.New("other ingestions of the account are spread over the workers")

// begin lets all files be inspected, unless enough other ingestions of the account are spread now.
func (w *working) begin(ctx context.Context) error {
	var others int

	err := w.DB.Do(ctx, func(q postgres.Querier) (err error) {
		others, err = countSpread(ctx, q, w.i)

		return err
	})
	if err != nil {
		return err
	}

	if others >= spreadAtOnce {
		return job.Wait(errBusy)
	}

	return w.enter(ctx, stepInspect, func(tx postgres.Tx) (bool, error) {
		begun, err := beginSpread(ctx, tx, w.i, w.Now())
		if err != nil || !begun {
			return begun, err
		}

		return true, w.Lake.DropTx(ctx, tx, w.i.table(), w.i.ID) // files of an earlier attempt
	})
}

// enter inserts the first jobs of a step in the transaction that begins it.
func (w *working) enter(ctx context.Context, to step, begin func(tx postgres.Tx) (bool, error)) error {
	err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		begun, err := begin(tx)
		if err != nil || !begun {
			return begun, err
		}

		round := w.i.round
		if to == stepInspect {
			round++
		}

		for n := range min(len(w.i.Files), partsAtOnce) {
			if err := w.Jobs().InsertTx(ctx, tx, w.i.partArgs(round, to, n), partOpts()); err != nil {
				return false, err
			}
		}

		return true, nil
	})
	if err == nil {
		w.Jobs().Wake(PartQueue)
	}

	return err
}

// join decides the columns of all files together, and lets the files be converted to them.
func (w *working) join(ctx context.Context) error {
	parts, err := w.parts(ctx)
	if err != nil {
		return err
	}

	var found engine.Inspection

	for _, p := range parts {
		found.Columns = engine.Join(found.Columns, p.Columns)
		found.Doubts = append(found.Doubts, p.Doubts...)
	}

	if len(found.Columns) > w.Bounds.Columns {
		return &engine.FileError{Code: engine.TooManyColumns, Message: engine.TooManyInTotal(len(found.Columns), w.Bounds)}
	}

	for n := range found.Columns {
		found.Columns[n].Type = cmp.Or(found.Columns[n].Type, engine.Varchar)
	}

	doubts, err := w.compare(ctx, found)
	if err != nil {
		return err
	}

	w.i.Doubts = fewest(slices.Concat(doubts, found.Doubts))
	if err := w.settled(ctx); err != nil {
		return err
	}

	columns, err := w.plan(ctx, found)
	if err != nil {
		return err
	}

	return w.enter(ctx, stepConvert, func(tx postgres.Tx) (bool, error) { return planSpread(ctx, tx, w.i, columns) })
}

// mostDoubts is how many doubts an ingestion that is spread has at most.
const mostDoubts = 1000

// fewest shortens a list of doubts. It keeps those that stop the ingestion.
func fewest(doubts []engine.Doubt) []engine.Doubt {
	if len(doubts) <= mostDoubts {
		return doubts
	}

	slices.SortStableFunc(doubts, func(a, b engine.Doubt) int { return cmp.Compare(min(len(b.Code), 1), min(len(a.Code), 1)) })

	return doubts[:mostDoubts]
}

// gather marks the ingestion as staged. Its data files are stored already.
func (w *working) gather(ctx context.Context) error {
	if err := w.judge(); err != nil {
		return err
	}

	if _, err := w.parts(ctx); err != nil {
		return err
	}

	if w.i.Mode != lake.Replace {
		if _, err := w.loadedBefore(ctx); err != nil { // the doubts are known, and so are the files then
			return err
		}
	}

	present, err := w.rowsPresent(ctx)
	if err != nil {
		return err
	}

	w.i.Doubts = append(w.i.Doubts, present...)
	if err := w.settled(ctx); err != nil {
		return err
	}

	err = w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		if err := updateContent(ctx, tx, w.i, w.contents); err != nil {
			return false, err
		}

		if err := forgetFound(ctx, tx, w.i); err != nil {
			return false, err
		}

		return updateReady(ctx, tx, w.i, w.Now())
	})
	w.i.ready = err == nil

	return err
}

// parts returns what the step has found in each file, and keeps the contents of the files.
func (w *working) parts(ctx context.Context) (parts []partFound, err error) {
	err = w.DB.Do(ctx, func(q postgres.Querier) (err error) {
		parts, err = selectParts(ctx, q, w.i)

		return err
	})
	if err != nil {
		return nil, err
	}

	w.contents = make([]fileContent, len(parts))
	for n, p := range parts {
		w.contents[n] = fileContent{digest: p.Digest, sketch: readSketch(p.Sketch)}
		w.contents[n].sketch.distinct = p.IsDistinct
	}

	return parts, nil
}
