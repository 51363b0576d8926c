package ingest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// stage converts the ingestion's files, or a body, to data files and stores them.
func (w *working) stage(ctx context.Context, body *os.File) error {
	// Drop files of an earlier attempt. A body has only one attempt.
	if body == nil {
		if err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return true, w.Lake.DropTx(ctx, tx, w.i.table(), w.i.ID) }); err != nil {
			return err
		}
	}

	w.i.Preview = nil // of an earlier attempt

	return w.within(ctx, func(ctx context.Context) error { return w.produce(ctx, body) })
}

// within calls do with a folder for temporary files, and with a context that ends when the ingestion is cancelled.
func (w *working) within(ctx context.Context, do func(ctx context.Context) error) (err error) {
	if w.dir, err = os.MkdirTemp(w.Dir, "ingestion-"); err != nil {
		return err
	}
	defer os.RemoveAll(w.dir)

	// The sealed process ends with this context, so that a cancelled ingestion stops at once.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	w.stop = stop
	defer w.endStorings(stop)

	if w.i.kind == kindFiles {
		watched, begun := make(chan struct{}), w.i

		go func() {
			defer close(watched)

			_ = fault.Try(func() error { return w.watch(ctx, begun) }) // without it, a cancelled ingestion ends with its next progress
		}()

		defer func() {
			stop(nil)
			<-watched
		}()

		select {
		case w.reads <- struct{}{}:
			defer func() { <-w.reads }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}

	if err := do(ctx); err != nil {
		return cmp.Or(ended(ctx), err)
	}

	return nil
}

// produce reads the files, or a body, and stores the data files that they become.
func (w *working) produce(ctx context.Context, body *os.File) (err error) {
	switch {
	case body != nil:
	case w.i.Options.Extract == engine.ExtractDefinition:
		err = w.propose(ctx)
	case w.i.isExtracted():
		err = w.extract(ctx)
	}

	if err == nil && w.i.Preview == nil {
		err = w.open(ctx, body)
	}

	switch {
	case err != nil:
	case w.i.DryRun:
		err = w.preview(ctx)
	case w.outputs != nil:
		if err = w.unrepeat(ctx); err == nil {
			err = w.conclude(ctx)
		}
	}

	return err
}

// open reads the files in a session. Storing them needs no session, and must not hold the slot of one.
func (w *working) open(ctx context.Context, body *os.File) error {
	session, err := w.Engine.Open(ctx, w.Timeout)
	if err != nil {
		return err
	}
	defer session.Close()

	return w.read(ctx, session, body)
}

// ended returns the reason if the ingestion was stopped by w.stop, else nil.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); job.Over(cause) {
		return cause
	}

	return nil
}

// read inspects the files in a session and converts them.
func (w *working) read(ctx context.Context, session *engine.Session, body *os.File) error {
	sources, err := w.mount(session, body)
	defer w.closeArriving()

	if err != nil {
		return err
	}

	found, err := w.inspect(ctx, session, sources)
	if err != nil {
		return err
	}

	if w.i.kind == kindRows {
		return w.convert(ctx, session, sources, found)
	}

	doubts, err := w.compare(ctx, found)
	if err != nil {
		return err
	}

	found.Doubts = slices.Concat(doubts, w.paperDoubts(), w.flagged(), found.Doubts)

	if w.i.DryRun {
		return w.try(ctx, session, sources, found)
	}

	w.i.Doubts = found.Doubts
	if err := w.settled(ctx); err != nil {
		return err
	}

	return w.convert(ctx, session, sources, found)
}

// convert writes each file as Parquet with the columns of the table, and stores it.
func (w *working) convert(ctx context.Context, session *engine.Session, sources []engine.Source, found engine.Inspection) error {
	columns, err := w.plan(ctx, found)
	if err != nil {
		return err
	}

	w.columns = columns
	rows := make([]int64, len(sources))
	w.i.RowsDone, w.i.RowsSetAside, w.i.BytesDone = 0, 0, 0

	if err := w.tell(ctx, phaseConverting); err != nil {
		return err
	}

	w.prepare(len(sources))

	for n, source := range sources {
		if rows[n], err = w.convertOne(ctx, session, n, source); err != nil {
			return err
		}
	}

	if err := w.judge(); err != nil {
		return err
	}

	present, err := w.rowsPresent(ctx)
	if err != nil {
		return err
	}

	none, err := w.noRows(ctx)
	if err != nil {
		return err
	}

	w.i.Doubts = slices.Concat(w.i.Doubts, present, none)
	if err := w.settled(ctx); err != nil {
		return err
	}

	return w.take(session, sources, rows)
}

// prepare makes room for what the conversion of the files finds.
func (w *working) prepare(files int) {
	w.aside, w.pages, w.storings = make([][]engine.SetAside, files), make([][]int64, files), make([]*storing, files)
}

// convertOne writes the n-th file as Parquet, and begins to store it.
func (w *working) convertOne(ctx context.Context, session *engine.Session, n int, source engine.Source) (rows int64, err error) {
	done, before := w.i.RowsDone, w.i.BytesDone
	request := engine.ConvertRequest{Source: n, Columns: engineColumns(w.columns), Output: source.Name + outputSuffix}

	if w.i.kind == kindFiles {
		request.Sketch = sketchSize
	}

	if err := w.follow(ctx, session, n, request.Output); err != nil {
		return 0, err
	}

	converted, err := session.Convert(request, func(p engine.Progress) { w.hear(ctx, phaseConverting, p, done, before, w.size(n)) })
	if err != nil {
		return 0, err
	}

	w.followed(n)

	if w.i.kind == kindFiles {
		w.contents[n].sketch = newSketch(converted.Sketch)
	}

	w.aside[n], w.pages[n] = converted.SetAside, converted.Pages
	if w.papers != nil {
		w.pages[n] = w.papers[n].first
	}

	w.i.RowsDone, w.i.BytesDone = done+converted.Rows, before+w.size(n)
	w.i.RowsSetAside += converted.SetAsideCount

	return converted.Rows, w.tell(ctx, phaseConverting)
}

// take takes the Parquet files from the sealed process.
func (w *working) take(session *engine.Session, sources []engine.Source, rows []int64) error {
	w.outputs = make([]output, len(sources))

	for n, source := range sources {
		w.outputs[n] = output{path: filepath.Join(w.dir, source.Name+outputSuffix), rows: rows[n]}
		if _, err := session.Take(source.Name+outputSuffix, w.outputs[n].path); err != nil {
			return err
		}
	}

	return nil
}

func (w *working) size(n int) int64 {
	if n >= 0 && n < len(w.i.Files) { // n may come from the sealed process
		return w.i.Files[n].Size
	}

	return w.i.BytesTotal
}

// judge checks the rows set aside. The rows of a body are stored all or none.
func (w *working) judge() error {
	if w.i.kind == kindFiles {
		return TooManySetAside(w.i.RowsDone, w.i.RowsSetAside)
	}

	if w.i.RowsSetAside == 0 {
		return nil
	}

	var subs []fault.Sub
	for _, s := range w.aside[0][:min(len(w.aside[0]), shownSetAside)] {
		subs = append(subs, fault.Sub{Code: fmt.Sprintf("data.%d", s.Row-1), Message: s.Reason})
	}

	return fault.InvalidFields(subs...)
}

func (w *working) plan(ctx context.Context, found engine.Inspection) ([]lake.Column, error) {
	want := make([]lake.Column, len(found.Columns))
	for n, c := range found.Columns {
		want[n] = lake.Column{Name: c.Name, Type: lake.Type(c.Type)}
	}

	mode := w.i.Mode
	if mode == lake.Merged {
		mode = lake.Append
	}

	columns, err := w.Lake.Plan(ctx, w.i.table(), want, mode)
	if err == nil && len(w.i.Key) > 0 {
		_, err = keyOf(columns, w.i.Key, "key")
	}

	return columns, err
}

func engineColumns(columns []lake.Column) []engine.Column {
	list := make([]engine.Column, len(columns))
	for n, c := range columns {
		list[n] = engine.Column{ID: c.ID, Name: c.Name, Type: string(c.Type)}
	}

	return list
}

// conclude stores the outputs, or counts what they would replace.
func (w *working) conclude(ctx context.Context) error {
	if w.isTried {
		return w.count(ctx)
	}

	return w.store(ctx)
}

// store writes the Parquet files to the lake.
func (w *working) store(ctx context.Context) error {
	var staged []lake.Staged

	w.i.BytesDone = 0

	if err := w.tell(ctx, phaseStoring); err != nil {
		return err
	}

	for n, made := range w.outputs {
		before := w.i.BytesDone

		written, err := w.storeOne(ctx, n, made)
		if err != nil {
			return err
		}

		staged = append(staged, written)
		w.i.BytesDone = before + w.size(n)

		if err := w.tell(ctx, phaseStoring); err != nil {
			return err
		}
	}

	err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		if err := insertSetAside(ctx, tx, w.i, w.aside); err != nil {
			return false, err
		}

		if err := updateContent(ctx, tx, w.i, w.contents); err != nil {
			return false, err
		}

		if err := insertPapers(ctx, tx, w.i, w.papers); err != nil {
			return false, err
		}

		running, err := updateReady(ctx, tx, w.i, w.Now())
		if err != nil || !running {
			return running, err
		}

		return true, w.Lake.ReadyTx(ctx, tx, staged)
	})
	w.i.ready = err == nil

	return err
}

func (w *working) storeOne(ctx context.Context, n int, made output) (staged lake.Staged, err error) {
	if s := w.storings[n]; s != nil {
		staged = s.staged
	} else if staged, err = w.stageOne(ctx, n); err != nil {
		return staged, err
	}

	for _, s := range w.aside[n] {
		staged.Source.Skipped = append(staged.Source.Skipped, s.Row)
	}

	staged.Source.Pages = w.pages[n]

	same, err := w.finishStoring(ctx, n, made.path)

	switch {
	case err != nil:
		return staged, err
	case same:
		staged, err = w.Lake.Written(staged, made.path, w.columns)
	default:
		staged, err = w.writeOne(ctx, n, staged, made.path)
	}

	if err != nil {
		return staged, err
	}

	if staged.Rows != made.rows {
		return staged, fault.Wrap(fmt.Errorf("a sealed process reported %d rows and wrote %d", made.rows, staged.Rows), fault.Internal, "The file could not be read.")
	}

	return staged, nil
}

// stageOne inserts the row of the data file that the n-th file becomes.
func (w *working) stageOne(ctx context.Context, n int) (staged lake.Staged, err error) {
	source := lake.Source{File: uuid.Nil, FirstRow: 1}
	if n < len(w.i.Files) {
		source.File, source.Name = w.i.Files[n].ID, w.i.Files[n].Name
	}

	if w.part != nil {
		source.ID = w.part.outputID()
	}

	err = w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		staged, err = w.Lake.StageTx(ctx, tx, w.i.table(), w.i.ID, source)

		return true, err
	})

	return staged, err
}
