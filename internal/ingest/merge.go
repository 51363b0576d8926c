package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// drainMerges merges all staged ingestions of a table.
func (g *Ingest) drainMerges(ctx context.Context, table lake.Table, lease job.Lease) error {
	for {
		var ready []Ingestion

		err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
			ready, err = selectReadyMerges(ctx, q, table, commitTogether)

			return err
		})
		if err != nil || len(ready) == 0 {
			return err
		}

		if err := g.mergeReady(ctx, table, sameKey(ready), lease); err != nil {
			return err
		}
	}
}

// sameKey returns the first ingestions that have the same key, or the first ones of different origins.
func sameKey(ready []Ingestion) []Ingestion {
	for n, i := range ready {
		again := i.Origin != uuid.Nil && slices.ContainsFunc(ready[:n], func(other Ingestion) bool { return other.Origin == i.Origin })
		if again || i.replacesOrigin() != ready[0].replacesOrigin() || !slices.EqualFunc(i.Key, ready[0].Key, strings.EqualFold) {
			return ready[:n]
		}
	}

	return ready
}

// mergeReady merges ingestions of sameKey in one snapshot, or in several if they have rows with the same key.
func (g *Ingest) mergeReady(ctx context.Context, table lake.Table, ready []Ingestion, lease job.Lease) error {
	dataset, draft, err := g.target(ctx, table)
	if err != nil {
		return err
	}

	var group []Ingestion

	for _, i := range ready {
		reason := cleared()

		if dataset != nil && i.Epoch == dataset.Epoch {
			if i.replacesOrigin() || !dataset.Key.Declared() || dataset.Key.Has(i.Key) {
				group = append(group, i)

				continue
			}

			reason = fault.New(fault.Conflict, fmt.Sprintf("The dataset got the key %s meanwhile, and is merged by no other. Merge the rows again.", dataset.Key))
		}

		if err := g.refuse(ctx, i, reason, lease); err != nil {
			return err
		}
	}

	if len(group) == 0 {
		return nil
	}

	if !group[0].replacesOrigin() { // otherwise prepare does it, because it depends on the rows that are replaced
		if group, err = g.unique(ctx, keyed{dataset: *dataset, group: group, lease: lease}); err != nil || len(group) == 0 {
			return err
		}
	}

	m := &merging{Ingest: g, table: table, lease: lease, group: group, dataset: *dataset, draft: draft}
	err = g.changeRows(ctx, rowChange{table: table, lease: lease, prepare: m.prepare, commit: m.commit})

	switch {
	case err == nil, errors.Is(err, errMoved): // drainMerges continues with what is left
		return nil
	case ctx.Err() != nil, passing(err), job.Over(err):
		return err
	case draft != nil && fault.Is(err, fault.Conflict):
		return g.taken(ctx, table, group, err, lease)
	case len(group) > 1:
		for _, i := range group {
			if err := g.mergeReady(ctx, table, []Ingestion{i}, lease); err != nil {
				return err
			}
		}

		return nil
	case errors.Is(err, lake.ErrStale):
		return g.replan(ctx, group, lease)
	default:
		return errors.Join(g.refuse(ctx, group[0], err, lease), unlessFault(err))
	}
}

// merging is a merge of staged ingestions whose lease this process holds.
type merging struct {
	*Ingest

	table   lake.Table
	lease   job.Lease
	group   []Ingestion // no two have rows with the same key after prepare
	dataset catalog.Dataset
	draft   *catalog.Draft
	before  []uuid.UUID // the ingestions whose rows are replaced, if all of them are
	counts  []int64     // of the rows that each ingestion of the group replaces, if they have origins
}

func (m *merging) ids() []uuid.UUID {
	ids := make([]uuid.UUID, len(m.group))
	for n, i := range m.group {
		ids[n] = i.ID
	}

	return ids
}

// prepare finds the rows that the new ones replace, and rewrites their files.
func (m *merging) prepare(ctx context.Context) (change lake.Change, err error) {
	snapshot, files, err := m.inForce(ctx, m.table)
	if err != nil {
		return change, err
	}

	if snapshot == nil {
		snapshot = &lake.Snapshot{}
	}

	find := m.superseded
	if m.group[0].replacesOrigin() {
		find = m.ofOrigins
	}

	found, err := find(ctx, *snapshot, files)
	if err != nil {
		return change, err
	}

	if m.group[0].replacesOrigin() {
		if m.counts, err = m.countReplaced(ctx, files, found); err != nil {
			return change, err
		}

		if err := m.checkReloads(ctx); err != nil {
			return change, err
		}
	}

	m.before = found.by
	change = lake.Change{
		Table: m.table, Mode: lake.Merged, Base: snapshot.ID, Files: found.files, Rewritten: rewriting(m.table),
		Ingestions: append(m.ids(), rewriting(m.table)),
	}
	change.Removed, err = m.rewrite(ctx, m.table, m.lease, *snapshot, found.files, found.gone)

	return change, err
}

func (m *merging) commit(ctx context.Context, tx postgres.Tx, made lake.Snapshot) error {
	if m.draft != nil {
		namespace, err := m.Catalog.CreateDraftTx(ctx, tx, *m.draft)
		if err != nil {
			return err
		}

		m.dataset.NamespaceID = namespace
	}

	if err := m.commitTx(ctx, tx, m.dataset, m.ids(), made, m.lease); err != nil {
		return err
	}

	if err := forgetThese(ctx, tx, m.table, m.before); err != nil {
		return err
	}

	if m.counts != nil {
		if err := updateReplaced(ctx, tx, m.table, m.ids(), m.counts); err != nil {
			return err
		}
	}

	return m.tellLoadedTx(ctx, tx, m.dataset, m.group, made)
}

// replaced are rows that are removed or that new rows replace, by file.
type replaced struct {
	files []lake.File
	gone  []*lake.RowSet // may be shorter; nil for a file that stays as it is
	by    []uuid.UUID    // the ingestions that loaded them, if they are all rows of these
}

// superseded returns the rows of the table that have the key of a new row. If two ingestions of the group have rows with the
// same key, it shortens the group: a later snapshot replaces the rows of an earlier one.
func (m *merging) superseded(ctx context.Context, snapshot lake.Snapshot, files []lake.File) (found replaced, err error) {
	var (
		fresh   []lake.File
		columns [][]lake.Column
	)

	err = m.DB.Do(ctx, func(q postgres.Querier) error {
		fresh, columns, err = m.Lake.StagedFiles(ctx, q, m.table, m.ids())

		return err
	})
	if err != nil || len(fresh) == 0 {
		return found, err
	}

	key, err := keyOf(columns[0], m.group[0].Key, "key")
	if err != nil {
		return found, err
	}

	candidates, err := m.candidates(ctx, m.table, snapshot, files, fresh, key)
	if err != nil || (len(candidates) == 0 && len(m.group) == 1) {
		return found, err
	}

	// The order of files is that of the ingestions.
	slices.SortStableFunc(fresh, func(a, b lake.File) int { return m.turn(a) - m.turn(b) })

	gone := make([]*lake.RowSet, len(candidates))
	first := len(m.group)
	paths := make([]string, len(fresh))

	release, err := m.Lake.FetchAll(ctx, fresh, func(path string, n int) error {
		paths[n] = path

		return nil
	})
	defer release()

	if err != nil {
		return found, err
	}

	err = m.match(ctx, snapshot, candidates, paths, key, func(isNew bool, at position) error {
		if isNew {
			if at.file >= len(fresh) {
				return keyFault(errors.New("a file that is not there"))
			}

			first = min(first, m.turn(fresh[at.file]))

			return nil
		}

		if at.file < 0 || at.file >= len(candidates) {
			return keyFault(errors.New("a file that is not there"))
		}

		if gone[at.file] == nil {
			gone[at.file] = lake.NewRowSet(candidates[at.file].Rows)
		}

		if !gone[at.file].Add(at.row) {
			return keyFault(errors.New("a row that is not there"))
		}

		return nil
	})
	if err != nil {
		return found, err
	}

	if first < len(m.group)-1 {
		m.group = m.group[:first+1]

		return m.superseded(ctx, snapshot, files)
	}

	for n, set := range gone {
		if set != nil {
			found.files, found.gone = append(found.files, candidates[n]), append(found.gone, set)
		}
	}

	return found, nil
}

// turn returns the index in the group of the ingestion that staged a file.
func (m *merging) turn(f lake.File) int {
	return slices.IndexFunc(m.group, func(i Ingestion) bool { return i.ID == f.Ingestion })
}

// candidates returns the files of the snapshot that may have rows with the keys of new rows.
func (g *Ingest) candidates(ctx context.Context, table lake.Table, snapshot lake.Snapshot, files, fresh []lake.File, key []lake.Column) (found []lake.File, err error) {
	if !hasKey(snapshot, key) {
		return nil, nil
	}

	var ids []int
	for _, c := range key {
		ids = append(ids, c.ID)
	}

	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		found, err = g.Lake.Overlapping(ctx, q, table, files, snapshot.Columns, ids, fresh)

		return err
	})

	return found, err
}

// match calls each for every row of the candidates that has the key of a new row, and for every new row that has the key of a row
// of a later file. fresh are local files with new rows. Rows without a complete key match nothing.
func (g *Ingest) match(ctx context.Context, snapshot lake.Snapshot, candidates []lake.File, fresh []string, key []lake.Column, each func(isNew bool, at position) error) error {
	return g.compareKeys(ctx, snapshot, replaced{files: candidates}, fresh, key, matchSQL(key, len(candidates) > 0), func(f foundRow) error {
		for _, row := range f.Rows {
			if err := each(f.A == 1, position{int(f.B), row}); err != nil {
				return err
			}
		}

		return nil
	})
}

// compareKeys runs a statement about the keys of files of the snapshot without the rows that are gone, oldRows, and of local files, newRows.
func (g *Ingest) compareKeys(ctx context.Context, snapshot lake.Snapshot, old replaced, fresh []string, key []lake.Column, statement string, each func(foundRow) error) error {
	views := []engine.View{
		{Name: oldRows, Columns: engineColumns(keyIn(snapshot, key)), Mapped: !lake.Uniform(snapshot, old.files), Positions: true},
		{Name: newRows, Columns: engineColumns(key), Mapped: true, Positions: true},
	}

	paths := make([]string, len(old.files))

	release, err := g.Lake.FetchAll(ctx, old.files, func(path string, n int) error {
		paths[n] = path

		return nil
	})
	defer release()

	if err != nil {
		return err
	}

	remove, err := g.withoutGone(ctx, snapshot, old, paths)
	defer remove()

	if err != nil {
		return err
	}

	mounts := map[string]string{}

	for of, list := range [][]string{paths, fresh} {
		for n, path := range list {
			name := fmt.Sprintf("%d-%d%s", of, n, outputSuffix)
			views[of].Files, mounts[name] = append(views[of].Files, name), path
		}
	}

	return g.positions(ctx, mounts, engine.Query{Statement: statement, Views: slices.DeleteFunc(views, func(v engine.View) bool { return len(v.Files) == 0 }), Form: engine.Rows}, each)
}

// hasKey reports whether a snapshot has all columns of a key. Otherwise no row of it has a complete key.
func hasKey(snapshot lake.Snapshot, key []lake.Column) bool {
	return !slices.ContainsFunc(key, func(c lake.Column) bool {
		return !slices.ContainsFunc(snapshot.Columns, func(other lake.Column) bool { return other.ID == c.ID })
	})
}

// keyIn returns the columns of a key as a snapshot has them: a decimal may have become wider.
func keyIn(snapshot lake.Snapshot, key []lake.Column) []lake.Column {
	columns := slices.Clone(key)

	for n, c := range columns {
		if at := slices.IndexFunc(snapshot.Columns, func(other lake.Column) bool { return other.ID == c.ID }); at >= 0 {
			columns[n] = snapshot.Columns[at]
		}
	}

	return columns
}

// count counts the rows of the table that the outputs would replace now.
func (w *working) count(ctx context.Context) error {
	key, err := keyOf(w.columns, w.i.Key, "key")
	if err != nil {
		return err
	}

	snapshot, files, err := w.inForce(ctx, w.i.table())
	if err != nil || snapshot == nil || !hasKey(*snapshot, key) {
		return err
	}

	paths := make([]string, len(w.outputs))
	for n, made := range w.outputs {
		paths[n] = made.path
	}

	return w.match(ctx, *snapshot, files, paths, key, func(isNew bool, _ position) error {
		if !isNew {
			w.replaces++
		}

		return nil
	})
}
