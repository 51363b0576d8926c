package query

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// errStopped says that nobody wants the export any more.
var errStopped = errors.New("the export was dropped")

const (
	failTime = 10 * time.Second
	spare    = time.Minute // so that our own clock ends an export and not the child's
)

// write does what is left to do of an export. With last set nobody will try again after a failure.
func (q *Query) write(ctx context.Context, args ExportArgs, last bool) error {
	var found *export

	err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
		found, err = selectExport(ctx, db, args)

		return err
	})
	if err != nil {
		return err
	}

	if found == nil || (found.state != exportQueued && found.state != exportRunning) {
		return q.giveBack(ctx, args)
	}

	tooLong := fault.New(fault.Timeout, fmt.Sprintf("It took longer than %s to write the export.", q.Exports.Time))

	return q.Exports.Jobs().Hold(ctx, args.work(), func(ctx context.Context, lease job.Lease) error {
		ctx, cancel := context.WithTimeoutCause(ctx, q.Exports.Time, tooLong)
		defer cancel()

		w := &writing{Query: q, lease: lease, export: *found}

		err := w.do(ctx)

		switch {
		case err == nil, errors.Is(err, errStopped):
			return nil
		case errors.Is(context.Cause(ctx), tooLong):
			err = tooLong
		case !last && (ctx.Err() != nil || passing(err)):
			return err
		case fault.Is(err, fault.QueryInvalid):
			err = fault.Wrap(err, fault.Internal, "The export could not be written. Ask for it again.")
		}

		return errors.Join(w.fail(ctx, err), unlessFault(err))
	})
}

// giveBack removes the lease of a worker that died after its export had ended: otherwise it would be delivered for
// ever.
func (q *Query) giveBack(ctx context.Context, args ExportArgs) error {
	err := q.Exports.Jobs().Hold(ctx, args.work(), func(context.Context, job.Lease) error { return nil })
	if errors.Is(err, job.ErrLost) {
		return nil // whoever holds it gives it back
	}

	return err
}

// passing tells whether a later try may succeed. The statement is ours: that a child cannot run it only says that
// something happened to the child.
func passing(err error) bool {
	return !fault.Is(err, fault.LimitExceeded) && !fault.Is(err, fault.NotFound)
}

// unlessFault keeps what is no answer to the caller for the log.
func unlessFault(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code != fault.Internal {
		return nil
	}

	return err
}

// writing is an export in the hands of the one who holds its lease.
type writing struct {
	*Query

	lease  job.Lease
	export export
}

// record runs a transaction that only the holder of the lease may make, and only while the export is wanted.
func (w *writing) record(ctx context.Context, do func(tx postgres.Tx) (wanted bool, err error)) error {
	return w.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := w.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		wanted, err := do(tx)
		if err == nil && !wanted {
			err = errStopped
		}

		return err
	})
}

func (w *writing) fail(ctx context.Context, reason error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), failTime)
	defer cancel()

	err := w.record(ctx, func(tx postgres.Tx) (bool, error) {
		return failExport(ctx, tx, w.export, reason, w.Now().Add(w.Exports.Keep))
	})
	if errors.Is(err, job.ErrLost) || errors.Is(err, errStopped) {
		return nil
	}

	return err
}

// do makes the file and puts it into the store.
func (w *writing) do(ctx context.Context) error {
	if err := w.record(ctx, func(tx postgres.Tx) (bool, error) { return w.startTx(ctx, tx) }); err != nil {
		return err
	}

	path := filepath.Join(w.Exports.Dir, "export-"+uuid.NewString())
	defer os.Remove(path)

	if err := w.makeFile(ctx, path); err != nil {
		return err
	}

	size, err := w.store(ctx, path)
	if err != nil {
		return err
	}

	return w.record(ctx, func(tx postgres.Tx) (bool, error) {
		return readyExport(ctx, tx, w.export, size, w.Now().Add(w.Exports.Keep))
	})
}

// startTx begins an attempt. An earlier one may have left something under its key, or may still write there.
func (w *writing) startTx(ctx context.Context, tx postgres.Tx) (wanted bool, err error) {
	found, err := lockExport(ctx, tx, w.export)
	if err != nil || found == nil || (found.state != exportQueued && found.state != exportRunning) {
		return false, err
	}

	w.export, w.export.expiresAt = *found, w.Now().Add(w.Exports.Time)

	if found.state == exportQueued {
		return startExport(ctx, tx, w.export)
	}

	w.export.key = exportKey()

	if wanted, err = startExport(ctx, tx, w.export); err != nil {
		return false, err
	}

	found.id, found.state = uuid.Must(uuid.NewV7()), exportDropped
	_, err = insertExport(ctx, tx, *found)

	return wanted, err
}

// source is the snapshot that the export is of, whatever the dataset is by now.
func (w *writing) source(ctx context.Context) (reading, error) {
	table := lake.Table{Account: w.export.account, Dataset: w.export.dataset}
	one := reading{name: "dataset"}
	one.Account, one.ID = table.Account, table.Dataset

	err := w.DB.Do(ctx, func(db postgres.Querier) error {
		current, files, err := w.Lake.Current(ctx, db, table)
		if err == nil && current != nil && current.ID == w.export.snapshot {
			one.snapshot, one.files = *current, files
		}

		return err
	})
	if err != nil || one.snapshot.ID != uuid.Nil {
		return one, err
	}

	if err := w.DB.Do(ctx, func(db postgres.Querier) (err error) {
		one.snapshot, err = w.Lake.Snapshot(ctx, db, table, w.export.snapshot)

		return err
	}); err != nil {
		return one, err
	}

	one.files, err = w.Lake.Files(ctx, table, w.export.snapshot)

	return one, err
}

// makeFile runs the statement in a child that is none of those for people's.
func (w *writing) makeFile(ctx context.Context, path string) error {
	one, err := w.source(ctx)
	if err != nil {
		return err
	}

	session, err := w.Exports.Engine.Open(ctx, w.Exports.Time+spare)
	if err != nil {
		return err
	}

	r := &running{Query: w.Query, session: session, leave: func() {}, began: w.Now()}
	defer r.close()

	numbers, err := r.link(ctx, []reading{one})
	if err != nil {
		return err
	}

	query := engine.Query{Statement: one.everything(), Views: []engine.View{one.view(func(file lake.File) string { return numbers[file.Key] })}}

	for form, format := range formats() {
		if format == w.export.format {
			query.Form = form
		}
	}

	began, err := session.Run(query)
	if err != nil {
		return refused(err, nil)
	}

	result := &Result{result: began, given: &w.given}

	if query.Form == Rows {
		return writeLines(result.Bare, path)
	}

	_, err = result.File(path)

	return err
}

// writeLines writes rows as one object a line.
func writeLines(next func() (json.RawMessage, error), path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()

	lines := bufio.NewWriterSize(file, 1<<18)

	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return err
		}

		_, _ = lines.Write(row) // its error stays, and Flush tells
		_ = lines.WriteByte('\n')
	}

	return errors.Join(lines.Flush(), file.Close())
}

func (w *writing) store(ctx context.Context, path string) (size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return 0, err
	}

	return info.Size(), w.Exports.Store.WriteFile(ctx, w.export.key, file, info.Size())
}
