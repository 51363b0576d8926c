package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// rowsWork returns the work whose lease permits to change rows of a table. Two changes of rows would rewrite the same files,
// and one of them in vain. Appends and compaction need no such lease.
func rowsWork(t lake.Table) job.Work {
	return job.Work{
		Account: t.Account, ID: uuid.NewSHA1(t.Dataset, []byte("rows")), Job: RowsArgs{Account: t.Account, Dataset: t.Dataset}, Queue: Queue,
	}
}

// rewriting returns the id under which rewritten files are staged, instead of the id of an ingestion.
func rewriting(t lake.Table) uuid.UUID { return uuid.NewSHA1(t.Dataset, []byte("rewriting")) }

// rowChange is a change of rows that is prepared on a snapshot and then committed.
type rowChange struct {
	table lake.Table
	lease job.Lease // of rowsWork
	// prepare determines the change for the current snapshot and stages the files.
	prepare func(ctx context.Context) (lake.Change, error)
	// commit runs in the transaction of the commit.
	commit func(ctx context.Context, tx postgres.Tx, made lake.Snapshot) error
}

const (
	changeTries = 12
	// optimisticTries is how many times a change is prepared while others can commit. After that they wait, so that a
	// stream of appends cannot hold up a change for ever.
	optimisticTries = 2
)

// changeRows prepares and commits a change of rows. If the table has changed in between, it starts again from the new snapshot.
func (g *Ingest) changeRows(ctx context.Context, c rowChange) (err error) {
	for try := range changeTries {
		var change lake.Change

		if try < optimisticTries {
			if change, err = c.prepare(ctx); err != nil {
				return err
			}
		}

		err = g.alone(ctx, c.table, func(ctx context.Context, lease job.Lease) (err error) {
			if try >= optimisticTries {
				if change, err = c.prepare(ctx); err != nil {
					return err
				}
			}

			return g.commitRows(ctx, c, change, lease)
		})
		if !errors.Is(err, lake.ErrReplaced) && !errors.Is(err, lake.ErrConflict) {
			return err
		}
	}

	return err
}

func (g *Ingest) commitRows(ctx context.Context, c rowChange, change lake.Change, lease job.Lease) error {
	_, err := g.Lake.Commit(ctx, change, func(tx postgres.Tx, made lake.Snapshot) error {
		if err := fenceBoth(ctx, tx, c.lease, lease); err != nil {
			return err
		}

		return c.commit(ctx, tx, made)
	})

	return err
}

// fenceBoth fences the lease of the work, and then that of the commit. ErrLost is only for the latter: alone repeats after it.
func fenceBoth(ctx context.Context, tx postgres.Tx, work, commit job.Lease) error {
	if err := work.FenceTx(ctx, tx); errors.Is(err, job.ErrLost) {
		return job.ErrStopped
	} else if err != nil {
		return err
	}

	return commit.FenceTx(ctx, tx)
}

// rewrite stages a file in place of each of the given files, without the rows in gone. A file of which no row is left gets
// none. It returns the number of rows that are left out.
func (g *Ingest) rewrite(ctx context.Context, table lake.Table, lease job.Lease, snapshot lake.Snapshot, files []lake.File, gone []*lake.RowSet) (removed int64, err error) {
	// Drop files that a dead worker or an earlier attempt left.
	err = lease.InTx(ctx, func(tx postgres.Tx) error { return g.Lake.DropTx(ctx, tx, table, rewriting(table)) })
	if err != nil {
		return 0, err
	}

	dir, err := os.MkdirTemp(g.Dir, "rewriting-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)

	for n, file := range files {
		removed += gone[n].Count()

		if gone[n].Count() == file.Rows {
			continue
		}

		if err := g.rewriteFile(ctx, dir, table, lease, snapshot, file, gone[n]); err != nil {
			return 0, err
		}
	}

	return removed, nil
}

func (g *Ingest) rewriteFile(ctx context.Context, dir string, table lake.Table, lease job.Lease, snapshot lake.Snapshot, file lake.File, gone *lake.RowSet) error {
	path := filepath.Join(dir, "rewritten.parquet")
	defer os.Remove(path)

	view := engine.View{Columns: engineColumns(snapshot.Columns), Files: []string{"0" + outputSuffix}, Mapped: !lake.Uniform(snapshot, []lake.File{file})}

	local, release, err := g.Lake.Fetch(ctx, file)
	if err != nil {
		return err
	}

	err = g.leaveOut(ctx, local, view, gone, file.Rows, path)
	_ = g.Lake.Verify(local) // a changed copy is removed and logged

	release()

	if err != nil {
		return err
	}

	var staged lake.Staged

	if err := lease.InTx(ctx, func(tx postgres.Tx) (err error) {
		staged, err = g.Lake.StageTx(ctx, tx, table, rewriting(table), lake.Source{})

		return err
	}); err != nil {
		return err
	}

	if staged, err = g.Lake.Write(ctx, staged, path, snapshot.Columns); err != nil {
		return err
	}

	return lease.InTx(ctx, func(tx postgres.Tx) error { return g.Lake.RewrittenTx(ctx, tx, staged, file, gone) })
}

// leaveOut writes the rows of a local file, except some, to another file, in a sealed process.
func (g *Ingest) leaveOut(ctx context.Context, from string, view engine.View, gone *lake.RowSet, rows int64, to string) error {
	bits := to + ".gone"
	if err := os.WriteFile(bits, gone.Bytes(), 0o400); err != nil {
		return err
	}
	defer os.Remove(bits)

	session, err := g.Engine.Open(ctx, g.Timeout)
	if err != nil {
		return err
	}
	defer session.Close()

	if err := errors.Join(session.Mount(from, view.Files[0]), session.Mount(bits, "gone")); err != nil {
		return err
	}

	left, err := session.Rewrite(view, "gone", filepath.Base(to))
	if err != nil {
		return err
	}

	if left != rows-gone.Count() {
		return fault.Wrap(fmt.Errorf("a sealed process kept %d rows of %d without %d", left, rows, gone.Count()), fault.Internal, "The rows could not be changed.")
	}

	_, err = session.Take(filepath.Base(to), to)

	return err
}
