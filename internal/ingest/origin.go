package ingest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// base is a snapshot of which the rows of some origins are replaced.
type base struct {
	snapshot lake.Snapshot
	files    []lake.File
	found    replaced
}

// left returns the files of which a row stays.
func (b base) left() (files []lake.File) {
	for _, f := range b.files {
		if gone := b.goneOf(f); gone == nil || gone.Count() < f.Rows {
			files = append(files, f)
		}
	}

	return files
}

func (b base) goneOf(f lake.File) *lake.RowSet {
	if at := slices.IndexFunc(b.found.files, func(other lake.File) bool { return other.Key == f.Key }); at >= 0 {
		return b.found.gone[at]
	}

	return nil
}

// goneIn returns the rows that are replaced of each of the files, and nil for a file that stays as it is.
func (b base) goneIn(files []lake.File) []*lake.RowSet {
	gone := make([]*lake.RowSet, len(files))
	for n, f := range files {
		gone[n] = b.goneOf(f)
	}

	return gone
}

// withoutGone replaces the local copies of files of which rows are gone with files without these rows. The caller must call remove.
func (g *Ingest) withoutGone(ctx context.Context, snapshot lake.Snapshot, old replaced, paths []string) (remove func(), err error) {
	if !slices.ContainsFunc(old.gone, func(gone *lake.RowSet) bool { return gone != nil }) {
		return func() {}, nil
	}

	dir, err := os.MkdirTemp(g.Dir, "without-")
	if err != nil {
		return func() {}, err
	}

	for n, gone := range old.gone {
		if gone == nil {
			continue
		}

		view := engine.View{Columns: engineColumns(snapshot.Columns), Files: []string{"0" + outputSuffix}, Mapped: !lake.Uniform(snapshot, old.files[n:n+1])}
		path := filepath.Join(dir, fmt.Sprintf("%d%s", n, outputSuffix))

		if err := g.leaveOut(ctx, paths[n], view, gone, old.files[n].Rows, path); err != nil {
			return func() { _ = os.RemoveAll(dir) }, err
		}

		paths[n] = path
	}

	return func() { _ = os.RemoveAll(dir) }, nil
}

// loadedFrom returns the rows of the files that come from the origins.
func (g *Ingest) loadedFrom(ctx context.Context, table lake.Table, files []lake.File, origins []uuid.UUID) (found replaced, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if found.by, err = selectCompletedFrom(ctx, q, table, origins); err == nil {
			found.files, found.gone, err = g.Lake.LoadedBy(ctx, q, table, files, found.by)
		}

		return err
	})

	return found, err
}

// ofOrigins returns the rows of the snapshot that come from the origins of the group. It shortens the group to ingestions without rows that the key of the dataset does not
// permit beside the rows that stay.
func (m *merging) ofOrigins(ctx context.Context, snapshot lake.Snapshot, files []lake.File) (found replaced, err error) {
	origins := make([]uuid.UUID, len(m.group))
	for n, i := range m.group {
		origins[n] = i.Origin
	}

	if found, err = m.loadedFrom(ctx, m.table, files, origins); err != nil || !m.dataset.Key.Declared() {
		return found, err
	}

	clean, err := m.unique(ctx, keyed{dataset: m.dataset, group: m.group, lease: m.lease, on: &base{snapshot, files, found}})

	switch {
	case err != nil:
		return found, err
	case len(clean) == 0:
		return found, errMoved
	case len(clean) < len(m.group):
		// The rows of the others stay for now, so the shorter group is checked again.
		m.group = clean

		return m.ofOrigins(ctx, snapshot, files)
	default:
		return found, nil
	}
}

// noRows returns a doubt about a new content without rows that would replace rows, such as a file that another system had only begun to write.
func (w *working) noRows(ctx context.Context) ([]engine.Doubt, error) {
	if !w.i.replacesOrigin() || w.i.RowsDone > 0 {
		return nil, nil
	}

	_, files, err := w.inForce(ctx, w.i.table())
	if err != nil {
		return nil, err
	}

	found, err := w.loadedFrom(ctx, w.i.table(), files, []uuid.UUID{w.i.Origin})
	if err != nil || found.rows() == 0 {
		return nil, err
	}

	return []engine.Doubt{{Code: NoRows, Message: fmt.Sprintf(
		"The new content of the file has no rows. Loading it removes the rows of the earlier content, of which the dataset has %d.", found.rows())}}, nil
}

// countReplaced returns how many of the found rows each ingestion of the group replaces.
func (m *merging) countReplaced(ctx context.Context, files []lake.File, found replaced) (counts []int64, err error) {
	if len(m.group) == 1 {
		return []int64{found.rows()}, nil
	}

	for _, i := range m.group {
		one, err := m.loadedFrom(ctx, m.table, files, []uuid.UUID{i.Origin})
		if err != nil {
			return nil, err
		}

		counts = append(counts, one.rows())
	}

	return counts, nil
}

// DeleteOrigins removes all rows that come from the origins, in one snapshot, and returns their number. It is recorded under the given id: a repetition with the same id has no effect once the rows are
// removed.
//
// Faults: NotFound, Forbidden, Conflict and Unavailable; InvalidState if an attempt with this id has failed, so that another id is needed.
func (g *Ingest) DeleteOrigins(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, origins []uuid.UUID) (removed int64, err error) {
	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return 0, err
	}

	made := Ingestion{
		Account: dataset.Account, Dataset: dataset.ID, ID: id, Caller: who.Account, Status: Running, Mode: lake.Deleted, Epoch: dataset.Epoch, Phase: phaseQueued,
		CreatedAt: g.Now(), StartedAt: g.Now(), kind: kindRows,
	}

	_, err = g.claim(ctx, who, dataset, made, auth.Once{})
	if _, exists := postgres.ViolatesUnique(err); exists {
		now, err := g.outcome(ctx, made)

		switch {
		case err != nil:
			return 0, err
		case now.status == Completed:
			return now.stored.Rows, nil
		case now.status != Running:
			return 0, fault.New(fault.InvalidState, "The rows could not be removed.")
		}
	} else if err != nil {
		return 0, err
	}

	stored, err := g.deleteClaimed(ctx, made, deletion{who: who, at: at, dataset: dataset, find: func(ctx context.Context) (lake.Snapshot, replaced, error) {
		snapshot, files, err := g.inForce(ctx, made.table())
		if err != nil || snapshot == nil {
			return lake.Snapshot{}, replaced{}, err
		}

		found, err := g.loadedFrom(ctx, made.table(), files, origins)

		return *snapshot, found, err
	}})

	return stored.Rows, err
}

// rows returns the number of rows.
func (r replaced) rows() (count int64) {
	for _, gone := range r.gone {
		count += gone.Count()
	}

	return count
}
