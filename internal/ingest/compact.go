package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// compactRounds is how many times one chore compacts files of a table before other chores run.
const compactRounds = 10

// compact merges small files until nothing more can be gained. Other commits can continue while rows are read and
// written; only the exchange of the files is a commit.
func (g *Ingest) compact(ctx context.Context, c chore) error {
	for range compactRounds {
		files := lake.Compactable(c.files)
		if files == nil {
			return c.lease.InTx(ctx, func(tx postgres.Tx) error { return g.Lake.DoneTx(ctx, tx, c.due) })
		}

		// If files were replaced in the meantime, the next round starts from the new files.
		if err := g.compactFiles(ctx, c, files); err != nil && !errors.Is(err, lake.ErrReplaced) && !errors.Is(err, lake.ErrConflict) {
			return err
		}

		snapshot, files, err := g.inForce(ctx, c.due.Table)
		if err != nil || snapshot == nil {
			return err
		}

		c.due.Snapshot, c.snapshot, c.files = snapshot.ID, *snapshot, files
	}

	return g.putOff(ctx, c.due, c.lease, 0)
}

// compaction returns the id under which files of a compaction are staged, instead of the id of an ingestion.
func compaction(t lake.Table) uuid.UUID { return uuid.NewSHA1(t.Dataset, []byte("compaction")) }

func (g *Ingest) compactFiles(ctx context.Context, c chore, files []lake.File) (err error) {
	dir, err := os.MkdirTemp(g.Dir, "compaction-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	path := filepath.Join(dir, "merged.parquet")

	if err := g.merge(ctx, c, files, path); err != nil {
		return err
	}

	table := c.due.Table
	drop := func(tx postgres.Tx) error { return g.Lake.DropTx(ctx, tx, table, compaction(table)) }

	defer func() {
		if err != nil {
			err = errors.Join(err, c.lease.InTx(ctx, drop))
		}
	}()

	var staged lake.Staged

	// Drop files that a dead worker left.
	if err := c.lease.InTx(ctx, func(tx postgres.Tx) (err error) {
		if err = drop(tx); err == nil {
			staged, err = g.Lake.StageTx(ctx, tx, table, compaction(table), lake.Source{})
		}

		return err
	}); err != nil {
		return err
	}

	if staged, err = g.Lake.Write(ctx, staged, path, c.snapshot.Columns); err != nil {
		return err
	}

	if err := c.lease.InTx(ctx, func(tx postgres.Tx) error { return g.Lake.TakeOverTx(ctx, tx, staged, files) }); err != nil {
		return err
	}

	return g.exchange(ctx, c, files)
}

// merge writes the rows of the files to one file, in a sealed process.
func (g *Ingest) merge(ctx context.Context, c chore, files []lake.File, path string) error {
	view := engine.View{Columns: engineColumns(c.snapshot.Columns), Mapped: !lake.Uniform(c.snapshot, files)}
	want := int64(0)

	for n, file := range files {
		view.Files, want = append(view.Files, strconv.Itoa(n)+outputSuffix), want+file.Rows
	}

	session, err := g.Maintenance.Engine.Open(ctx, g.Maintenance.Timeout)
	if err != nil {
		return err
	}

	release, err := g.Lake.FetchAll(ctx, files, func(path string, n int) error { return session.Mount(path, view.Files[n]) })
	defer release()
	defer session.Close() // before the files are released

	if err != nil {
		return err
	}

	rows, err := session.Merge(view, filepath.Base(path))
	if err != nil {
		return err
	}

	if rows != want {
		return fault.Wrap(fmt.Errorf("a sealed process wrote %d rows instead of %d", rows, want), fault.Internal, "The files could not be read.")
	}

	_, err = session.Take(filepath.Base(path), path)

	return err
}

// exchange commits the new file in place of the others, if all of them are still in the current snapshot. The rows of
// the dataset do not change. Every worker stages under the same id, so a worker that has lost the lease of the chore
// must not commit: it would put the file of its successor in place of its own files.
func (g *Ingest) exchange(ctx context.Context, c chore, files []lake.File) error {
	table := c.due.Table
	change := lake.Change{Table: table, Mode: lake.Compacted, Ingestions: []uuid.UUID{compaction(table)}, Files: files}

	return g.alone(ctx, table, func(ctx context.Context, lease job.Lease) error {
		_, err := g.Lake.Commit(ctx, change, func(tx postgres.Tx, made lake.Snapshot) error {
			if err := c.lease.FenceTx(ctx, tx); errors.Is(err, job.ErrLost) {
				return job.ErrStopped // alone repeats after ErrLost, which means its own lease
			} else if err != nil {
				return err
			}

			if err := lease.FenceTx(ctx, tx); err != nil {
				return err
			}

			return g.Catalog.SetSnapshotTx(ctx, tx, table.Account, table.Dataset, made.ID)
		})

		return err
	})
}
