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

// compactRounds is how often the files of one table become fewer before others have their turn.
const compactRounds = 10

// compact makes one file of many small ones until there is nothing to gain. Rows are read and written while others
// commit; only the exchange of the files is a commit of its own.
func (g *Ingest) compact(ctx context.Context, c chore) error {
	for range compactRounds {
		files := lake.Compactable(c.files)
		if files == nil {
			return g.DB.InTx(ctx, func(tx postgres.Tx) error {
				if err := c.lease.FenceTx(ctx, tx); err != nil {
					return err
				}

				return g.Lake.DoneTx(ctx, tx, c.due)
			})
		}

		// What was replaced meanwhile is looked at anew.
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

// compaction is what the files that compacting stages for a table belong to, in the place of an ingestion.
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
	drop := func(tx postgres.Tx) error {
		if err := c.lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		return g.Lake.DropTx(ctx, tx, table, compaction(table))
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, g.DB.InTx(ctx, drop))
		}
	}()

	var staged lake.Staged

	// What somebody who died left is no part of this one.
	if err := g.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
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

	if err := g.DB.InTx(ctx, func(tx postgres.Tx) error { return g.Lake.TakeOverTx(ctx, tx, staged, files) }); err != nil {
		return err
	}

	return g.exchange(ctx, table, files)
}

// merge lets a child write the rows of the files as one.
func (g *Ingest) merge(ctx context.Context, c chore, files []lake.File, path string) error {
	view := engine.View{Columns: engineColumns(c.snapshot.Columns), Mapped: !lake.Uniform(c.snapshot, files)}
	want := int64(0)

	for n, file := range files {
		view.Files, want = append(view.Files, strconv.Itoa(n)+outputSuffix), want+file.Rows
	}

	session, err := g.Upkeep.Engine.Open(ctx, g.Upkeep.Time)
	if err != nil {
		return err
	}

	release, err := g.Lake.FetchAll(ctx, files, func(path string, n int) error { return session.Link(path, view.Files[n]) })
	defer release()
	defer session.Close() // before the files are let go

	if err != nil {
		return err
	}

	rows, err := session.Merge(view, filepath.Base(path))
	if err != nil {
		return err
	}

	if rows != want {
		return fault.Wrap(fmt.Errorf("a child made %d rows of %d", rows, want), fault.Internal, "The files could not be read.")
	}

	_, err = session.Take(filepath.Base(path), path)

	return err
}

// exchange commits the one file in the place of the others, if all of them are still in force. The dataset is the same
// before and after.
func (g *Ingest) exchange(ctx context.Context, table lake.Table, files []lake.File) error {
	change := lake.Change{Table: table, Mode: lake.Compacted, Ingestions: []uuid.UUID{compaction(table)}, Files: files}

	return g.alone(ctx, table, func(ctx context.Context, lease job.Lease) error {
		_, err := g.Lake.Commit(ctx, change, func(tx postgres.Tx, made lake.Snapshot) error {
			if err := lease.FenceTx(ctx, tx); err != nil {
				return err
			}

			return g.Catalog.SetSnapshotTx(ctx, tx, table.Account, table.Dataset, made.ID)
		})

		return err
	})
}
