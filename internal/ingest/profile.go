package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// profile computes the profile of a table and replaces the previous one. If it is interrupted, the old profile stays
// and the chore is still due. Objects that were written and not kept are removed because they have a row.
func (g *Ingest) profile(ctx context.Context, c chore) error {
	if len(c.snapshot.Columns) == 0 {
		return c.lease.InTx(ctx, func(tx postgres.Tx) error {
			if err := g.Catalog.SetValuesTx(ctx, tx, c.due.Table.Account, c.due.Table.Dataset, nil); err != nil {
				return err
			}

			return g.Lake.RemoveProfileTx(ctx, tx, c.due)
		})
	}

	dir, err := os.MkdirTemp(g.Dir, "profile-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	found, indexed, err := g.look(ctx, c, filepath.Join(dir, "values"))
	if fault.Is(err, fault.LimitExceeded) || fault.Is(err, fault.Timeout) || errors.Is(err, context.DeadlineExceeded) {
		// An early retry would fail again.
		g.Log.WarnContext(ctx, "a table is too large to profile", "dataset", c.due.Table.Dataset, "error", err)

		return g.putOff(ctx, c.due, c.lease, choreIdle)
	}

	if fault.Is(err, fault.InvalidState) {
		// Only a run of the source makes the files of an attached table readable again, and each run that succeeds asks for the profile.
		g.Log.InfoContext(ctx, "an attached table cannot be profiled", "dataset", c.due.Table.Dataset, "error", err)

		return c.lease.InTx(ctx, func(tx postgres.Tx) error { return g.Lake.GiveUpTx(ctx, tx, c.due, c.begun) })
	}

	if err != nil {
		return err
	}

	made := lake.Profiled{Snapshot: c.snapshot.ID, Sequence: c.snapshot.Sequence, Rows: c.snapshot.Rows, ComputedAt: g.Now()}
	own := summarize(found)

	if made.Summary, err = json.Marshal(own); err != nil {
		return err
	}

	if made.Profile, err = g.storeProfile(ctx, c, found, filepath.Join(dir, "profile.json")); err != nil {
		return err
	}

	if indexed {
		if made.Values, err = g.storeValues(ctx, c, filepath.Join(dir, "values")); err != nil {
			return err
		}
	}

	joins, err := g.findJoins(ctx, c.due.Table, own)
	if err != nil {
		return err
	}

	err = c.lease.InTx(ctx, func(tx postgres.Tx) error {
		// Before the rows of the lake, in the same order as a commit.
		if err := g.Catalog.SetValuesTx(ctx, tx, c.due.Table.Account, c.due.Table.Dataset, frequent(found)); err != nil {
			return err
		}

		return g.Lake.SaveProfileTx(ctx, tx, c.due, made, joins)
	})
	if fault.Is(err, fault.NotFound) {
		return nil // rows were removed meanwhile; a profile of the current rows is due
	}

	return err
}

const maxFrequent = 500

// frequent returns values by which the dataset can be found: the most frequent text of each column, then the second
// most frequent of each, and so on.
func frequent(p engine.Profile) (values []string) {
	for rank := range engine.ProfileTop {
		for _, c := range p.Columns {
			var text string

			if c.Type != engine.Varchar || rank >= len(c.TopValues) || json.Unmarshal(c.TopValues[rank].Value, &text) != nil || strings.TrimSpace(text) == "" {
				continue
			}

			if values = append(values, text); len(values) == maxFrequent {
				return values
			}
		}
	}

	return values
}

// look computes the profile in a sealed process, and writes the value index. If there are too many values, the table
// gets a profile without a value index.
func (g *Ingest) look(ctx context.Context, c chore, index string) (found engine.Profile, indexed bool, err error) {
	session, err := g.Maintenance.Engine.Open(ctx, g.Maintenance.Timeout)
	if err != nil {
		return found, false, err
	}

	view := engine.View{Name: "rows", Columns: engineColumns(c.snapshot.Columns), Mapped: !lake.Uniform(c.snapshot, c.files)}
	for n := range c.files {
		view.Files = append(view.Files, fmt.Sprintf("%d.parquet", n))
	}

	release, err := g.Lake.FetchAll(ctx, c.files, func(path string, n int) error { return session.Mount(path, view.Files[n]) })
	defer release()
	defer session.Close() // before the files are released

	if err != nil {
		return found, false, err
	}

	if found, err = session.Profile(view, c.snapshot.Rows); err != nil {
		return found, false, err
	}

	err = indexValues(session, view, index)
	if fault.Is(err, fault.LimitExceeded) {
		g.Log.WarnContext(ctx, "a table is too large for a value index", "dataset", c.due.Table.Dataset, "error", err)

		return found, false, nil
	}

	return found, err == nil, err
}

// storeProfile stores the profile as an object. The row of the object is inserted first.
func (g *Ingest) storeProfile(ctx context.Context, c chore, found engine.Profile, path string) (object lake.Object, err error) {
	content, err := json.Marshal(found)
	if err != nil {
		return object, err
	}

	if err := os.WriteFile(path, content, 0o600); err != nil {
		return object, err
	}

	if err := c.lease.InTx(ctx, func(tx postgres.Tx) error {
		object, err = g.Lake.StageObjectTx(ctx, tx, c.due.Table, ".json")

		return err
	}); err != nil {
		return object, err
	}

	return g.Lake.WriteObject(ctx, object, path)
}

const maxNeighbours = 200

// findJoins compares the columns with those of other datasets of the namespace.
func (g *Ingest) findJoins(ctx context.Context, t lake.Table, own summary) (joins []lake.Join, err error) {
	var (
		names  map[uuid.UUID]string
		others map[uuid.UUID]lake.Profiled
	)

	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		if names, err = g.Catalog.Neighbours(ctx, q, t.Account, t.Dataset, maxNeighbours); err != nil {
			return err
		}

		ids := make([]uuid.UUID, 0, len(names))

		for id := range names {
			if id != t.Dataset {
				ids = append(ids, id)
			}
		}

		others, err = g.Lake.Summaries(ctx, q, t.Account, ids)

		return err
	})
	if err != nil {
		return nil, err
	}

	for id, other := range others {
		var theirs summary
		if err := json.Unmarshal(other.Summary, &theirs); err != nil {
			return nil, err
		}

		for _, found := range compare(named{names[t.Dataset], own}, named{names[id], theirs}) {
			found.Other = id
			joins = append(joins, found)
		}
	}

	return joins, nil
}
