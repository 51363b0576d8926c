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
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/trino"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/icebergrest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const spare = time.Minute // so that the timeout of the export ends it, and not the limit of the sealed process

// write does the remaining work of an export. If last is true, no attempt follows a failure.
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
		return q.Exports.Jobs().GiveBack(ctx, args.work())
	}

	w := &writing{Query: q, export: *found, tooLong: fault.New(
		fault.Timeout, fmt.Sprintf("Writing the export took longer than %s, which is the maximum.", q.Exports.Timeout))}

	return q.Exports.Jobs().Attempt(ctx, job.Attempt{
		Work: args.work(), Last: last, Do: w.doInTime, Passing: w.passing,
		Room: func() error { return q.Folder.Room(0) },
		Fail: func(ctx context.Context, _ job.Lease, reason error) error {
			if fault.Is(reason, fault.QueryInvalid) {
				reason = fault.Wrap(reason, fault.Internal, "The export could not be written. Request it again.")
			}

			return errors.Join(w.fail(ctx, reason), unlessFault(reason))
		},
	})
}

// passing reports whether a later attempt may succeed. The statement is written by this package, so a failure to run it
// means only that the sealed process had a problem. A later attempt would take too long again.
func (w *writing) passing(err error) bool {
	return !fault.Is(err, fault.LimitExceeded) && !fault.Is(err, fault.NotFound) && !errors.Is(err, w.tooLong)
}

// unlessFault returns the error for the log, and nil for a fault that is reported to the caller.
func unlessFault(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code != fault.Internal {
		return nil
	}

	return err
}

// writing is an export whose lease this worker holds.
type writing struct {
	*Query

	lease   job.Lease
	export  export
	tooLong error // the failure of an export that exceeds the timeout
}

func (w *writing) fail(ctx context.Context, reason error) error {
	return w.lease.Conclude(ctx, func(ctx context.Context, tx postgres.Tx) (bool, error) {
		return failExport(ctx, tx, w.export, reason, w.Now().Add(w.Exports.Retention))
	})
}

// doInTime is do with the timeout of exports.
func (w *writing) doInTime(ctx context.Context, lease job.Lease) error {
	w.lease = lease

	ctx, cancel := context.WithTimeoutCause(ctx, w.Exports.Timeout, w.tooLong)
	defer cancel()

	err := w.do(ctx)
	if err != nil && !errors.Is(err, job.ErrStopped) && errors.Is(context.Cause(ctx), w.tooLong) {
		return w.tooLong
	}

	return err
}

// do makes the file and writes it to the store.
func (w *writing) do(ctx context.Context) error {
	if err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return w.startTx(ctx, tx) }); err != nil {
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

	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		return readyExport(ctx, tx, w.export, size, w.Now().Add(w.Exports.Retention))
	})
}

// startTx starts an attempt. An earlier attempt may have left an object under its key or may still be writing it, so a
// repeated attempt gets a new key, and the old key is kept in a dropped row.
func (w *writing) startTx(ctx context.Context, tx postgres.Tx) (wanted bool, err error) {
	found, err := lockExport(ctx, tx, w.export)
	if err != nil || found == nil || (found.state != exportQueued && found.state != exportRunning) {
		return false, err
	}

	w.export, w.export.expiresAt = *found, w.Now().Add(w.Exports.Timeout)

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

// source returns the dataset at the snapshot of the export, even if the dataset has changed since.
func (w *writing) source(ctx context.Context) (resolved, error) {
	table := lake.Table{Account: w.export.account, Dataset: w.export.dataset}
	one := resolved{name: "dataset"}
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

// makeFile runs the statement in a sealed process of the engine for exports, which is separate from that for requests.
func (w *writing) makeFile(ctx context.Context, path string) error {
	one, err := w.source(ctx)
	if err != nil {
		return err
	}

	r := &running{Query: w.Query, leave: func() {}, count: func() {}, began: w.Now()} // several callers share the file
	defer r.close()

	if one.size() > w.CacheBytes && w.Cluster != nil {
		return w.makeThere(ctx, r, one, path)
	}

	if r.session, err = w.Exports.Engine.Open(ctx, w.Exports.Timeout+spare); err != nil {
		return err
	}

	numbers, err := r.mount(ctx, []resolved{one})
	if err != nil {
		return err
	}

	query := engine.Query{Statement: one.everything(), Views: []engine.View{one.view(func(file lake.File) string { return numbers[file.Key] })}, Form: w.form()}

	began, err := r.session.Run(query)
	if err != nil {
		return refused(err, nil)
	}

	result := &Result{result: began, files: began, given: &w.given}

	if query.Form == Rows {
		return w.writeLines(result.Bare, path)
	}

	_, err = result.File(path)

	return err
}

// form returns the form of the file.
func (w *writing) form() Form {
	for form, format := range formats() {
		if format == w.export.format {
			return form
		}
	}

	return Rows
}

// makeThere makes the file of a dataset on Trino that this machine cannot hold. Export has checked that its engine is Trino.
func (w *writing) makeThere(ctx context.Context, r *running, one resolved, path string) error {
	var names []string

	schema, want := icebergrest.New(w.export.account), Statement{Form: w.form(), exported: true}
	view := one.view(func(lake.File) string { return "" })

	for _, c := range view.Columns {
		names = append(names, identifier(c.Name))
	}

	rows, err := r.open(ctx, auth.Principal{Account: w.export.account}, want, []resolved{one}, schema, trino.Statement{
		Text: "SELECT " + strings.Join(names, ", ") + " FROM " + schema.Name + ".t0", Columns: view.Columns,
	})
	if err != nil {
		return refused(err, nil)
	}

	result := &Result{Columns: view.Columns, result: rows, given: &w.given}

	if want.Form == Rows {
		return w.writeLines(result.Bare, path)
	}

	if err := r.spool(ctx, result, want); err != nil {
		return err
	}

	_, err = result.File(path)

	return err
}

// writeLines writes rows to a new file, one JSON object per line.
func (q *Query) writeLines(next func() (json.RawMessage, error), path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()

	lines := bufio.NewWriterSize(q.Folder.Writer(file), 1<<18)

	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return err
		}

		_, _ = lines.Write(row) // Flush returns the error
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
