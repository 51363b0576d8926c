package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// unique returns the longest prefix of the staged ingestions that satisfies the key of the dataset. If the first ingestion violates the key, unique
// sets its violating rows aside or refuses it, and returns none. The caller then reads the staged ingestions again. The outcome is the same as if
// they were loaded one after the other, because only the holder of the lease commits.
func (g *Ingest) unique(ctx context.Context, k keyed) ([]Ingestion, error) {
	group := k.group
	if !k.dataset.Key.Declared() || len(group) == 0 {
		return group, nil
	}

	k.Ingest, k.table = g, group[0].table()
	clean, err := k.check(ctx)

	switch {
	case err == nil:
		return clean, nil
	case errors.Is(err, lake.ErrDropped): // cancelled meanwhile
		return nil, nil
	case ctx.Err() != nil, passing(err), job.Over(err):
		return nil, err
	case len(group) > 1:
		k.group = group[:1]

		return g.unique(ctx, k)
	default:
		return nil, errors.Join(g.refuse(ctx, group[0], err, k.lease), unlessFault(err))
	}
}

// keyed is a check of staged ingestions against the key of their dataset.
type keyed struct {
	*Ingest

	table   lake.Table
	lease   job.Lease
	dataset catalog.Dataset
	group   []Ingestion
	key     []lake.Column
	fresh   []lake.File // the staged files, in the order of the ingestions
	columns [][]lake.Column
	paths   []string  // local copies of the staged files
	on      *base     // on which the group replaces the rows of its origins; nil for other groups
	pages   [][]int64 // of the staged files
}

// turn returns the index in the group of the ingestion that staged a file.
func (k *keyed) turn(file int) int {
	return slices.IndexFunc(k.group, func(i Ingestion) bool { return i.ID == k.fresh[file].Ingestion })
}

// violation is a row of a staged file that the key does not permit.
type violation struct {
	at    position
	why   why
	first position // of a repeated row
}

// why is the reason of a violation, as the sealed process numbers it.
type why int

const (
	isRepeated why = iota
	isNull
	isPresent
)

// text returns the reason as people read it. row is the first row with the key, of another file if it is named.
func (w why) text(row int64, of string) string {
	switch {
	case w == isNull:
		return "the key is null"
	case w == isPresent:
		return "the key exists already"
	case of != "":
		return fmt.Sprintf("the key occurs in row %d already of %s", row, of)
	default:
		return fmt.Sprintf("the key occurs in row %d already", row)
	}
}

// violation returns a row of the result of violationSQL.
func (f foundRow) violation() violation {
	v := violation{at: position{int(f.A), f.B}, why: why(max(-f.C, 0))}
	if v.why == isRepeated {
		v.first = position{int(f.C), f.D}
	}

	return v
}

func (k *keyed) check(ctx context.Context) (clean []Ingestion, err error) {
	if err := k.load(ctx); err != nil || len(k.fresh) == 0 {
		return k.group, err
	}

	snapshot, old, err := k.present(ctx)
	if err != nil {
		return nil, err
	}

	k.paths = make([]string, len(k.fresh))

	release, err := k.Lake.FetchAll(ctx, k.fresh, func(path string, n int) error {
		k.paths[n] = path

		return nil
	})
	defer release()

	if err != nil {
		return nil, err
	}

	first, found, err := k.violations(ctx, snapshot, old)
	if err != nil || first > 0 {
		return k.group[:first], err
	}

	return nil, k.settle(ctx, found)
}

// load reads what is staged. It shortens the group to ingestions that give the columns of the key the same types.
func (k *keyed) load(ctx context.Context) error {
	ids := make([]uuid.UUID, len(k.group))
	for n, i := range k.group {
		ids[n] = i.ID
	}

	err := k.DB.Do(ctx, func(q postgres.Querier) (err error) {
		k.fresh, k.columns, err = k.Lake.StagedFiles(ctx, q, k.table, ids)

		return err
	})
	if err != nil || len(k.fresh) == 0 {
		return err
	}

	order := make([]int, len(k.fresh))
	for n := range order {
		order[n] = n
	}

	slices.SortStableFunc(order, func(a, b int) int { return k.turn(a) - k.turn(b) })

	fresh, columns := make([]lake.File, len(order)), make([][]lake.Column, len(order))
	for n, at := range order {
		fresh[n], columns[n] = k.fresh[at], k.columns[at]
	}

	k.fresh, k.columns = fresh, columns

	if k.key, err = keyOf(k.columns[0], k.dataset.Key.Columns, "key"); err != nil {
		return lacking(err, k.dataset.Key)
	}

	for n := range k.fresh {
		if key, err := keyOf(k.columns[n], k.dataset.Key.Columns, "key"); err != nil || !slices.Equal(key, k.key) {
			turn := k.turn(n)
			if turn == 0 {
				return keyFault(errors.New("files of one ingestion have different columns"))
			}

			k.group, k.fresh, k.columns = k.group[:turn], k.fresh[:n], k.columns[:n]

			break
		}
	}

	return nil
}

// lacking returns the failure of an ingestion whose columns do not fit the key. The subs of a fault are not stored.
func lacking(err error, key catalog.Key) error {
	message := "The rows do not have the columns of the key."
	if f, ok := errors.AsType[*fault.Error](err); ok && len(f.Subs) > 0 {
		message = f.Subs[0].Message
	}

	return fault.New(fault.Conflict, fmt.Sprintf("%s The dataset has the key %s. Load rows with these columns, or remove the key.", message, key))
}

// present returns the files whose rows the new rows must differ from, and the rows of these that are replaced. A replacement has none, and the rows of a merge by a key
// replace those that have their key.
func (k *keyed) present(ctx context.Context) (snapshot lake.Snapshot, old replaced, err error) {
	if k.on != nil {
		left := k.on.left()
		old.files, err = k.candidates(ctx, k.table, k.on.snapshot, left, k.fresh, k.key)
		old.gone = k.on.goneIn(old.files)

		return k.on.snapshot, old, err
	}

	if k.group[0].Mode != lake.Append {
		return snapshot, old, nil
	}

	now, files, err := k.inForce(ctx, k.table)
	if err != nil || now == nil {
		return snapshot, old, err
	}

	old.files, err = k.candidates(ctx, k.table, *now, files, k.fresh, k.key)

	return *now, old, err
}

// violations returns the index of the first ingestion with rows that violate the key, and these rows in order. The index is the
// number of ingestions if there are none.
func (k *keyed) violations(ctx context.Context, snapshot lake.Snapshot, old replaced) (first int, found []violation, err error) {
	first = len(k.group)
	statement := violationSQL(k.key, len(old.files) > 0, k.on != nil || k.group[0].Mode != lake.Merged, k.Bounds.SetAside+1)

	err = k.compareKeys(ctx, snapshot, old, k.paths, k.key, statement, func(f foundRow) error {
		v := f.violation()
		if !k.has(v.at) || !k.has(v.first) {
			return keyFault(errors.New("a row that is not there"))
		}

		if turn := k.turn(v.at.file); turn < first {
			first, found = turn, nil
		} else if turn > first {
			return nil
		}

		found = append(found, v)

		return nil
	})

	return first, found, err
}

func (k *keyed) has(at position) bool {
	return at.file >= 0 && at.file < len(k.fresh) && at.row >= 0 && at.row < k.fresh[at.file].Rows
}

// settle handles the rows of the first ingestion that violate the key: it sets them aside, or refuses the ingestion.
func (k *keyed) settle(ctx context.Context, found []violation) error {
	i := k.group[0]
	last := 0

	for last < len(k.fresh) && k.turn(last) == 0 {
		last++
	}

	skipped, err := k.skipped(ctx, last)
	if err != nil {
		return err
	}

	gone, aside := make([]*lake.RowSet, last), make([][]engine.SetAside, max(len(i.Files), 1))

	for _, v := range found {
		if gone[v.at.file] == nil {
			gone[v.at.file] = lake.NewRowSet(k.fresh[v.at.file].Rows)
		}

		if !gone[v.at.file].Add(v.at.row) {
			return keyFault(errors.New("a row twice"))
		}

		place := k.place(v.at.file)
		aside[place] = append(aside[place], engine.SetAside{Row: numberWithout(skipped[v.at.file], v.at.row), Reason: k.reason(v, skipped)})
	}

	count := int64(len(found))

	switch {
	case k.dataset.Key.Duplicates == catalog.Refuse:
		return k.fail(ctx, aside, count, fault.New(fault.Conflict, fmt.Sprintf(
			"%s would violate the key %s of the dataset, so no row was stored. %s. Correct the rows, or merge them.", atLeast(count, k.Bounds.SetAside), k.dataset.Key, firstReason(aside))))
	case count > int64(k.Bounds.SetAside):
		return k.fail(ctx, nil, 0, fault.New(fault.Conflict, fmt.Sprintf(
			"More than %d rows would violate the key %s of the dataset, so no row was stored. Leave them out, or merge the rows.", k.Bounds.SetAside, k.dataset.Key)))
	}

	staged, err := k.restage(ctx, k.fresh[:last], gone, skipped)
	if err != nil {
		return err
	}

	return k.lease.InTx(ctx, func(tx postgres.Tx) error {
		if err := insertMoreAside(ctx, tx, i, aside, count); err != nil {
			return err
		}

		return k.Lake.RestageTx(ctx, tx, k.table, k.fresh[:last], staged)
	})
}

func atLeast(count int64, most int) string {
	if count > int64(most) {
		return fmt.Sprintf("More than %d rows", most)
	}

	return countedRows(count)
}

// firstReason names the first row set aside.
func firstReason(aside [][]engine.SetAside) string {
	for _, list := range aside {
		if len(list) > 0 {
			return fmt.Sprintf("Row %d: %s", list[0].Row, list[0].Reason)
		}
	}

	return ""
}

// skipped returns the numbers of the rows that staged files lack, by file. It also keeps the pages of the files.
func (k *keyed) skipped(ctx context.Context, files int) (skipped [][]int64, err error) {
	keys := make([]string, files)
	for n := range keys {
		keys[n] = k.fresh[n].Key
	}

	err = k.DB.Do(ctx, func(q postgres.Querier) error {
		found, err := k.Lake.Places(ctx, q, k.table, keys)

		skipped, k.pages = make([][]int64, files), make([][]int64, files)
		for n, key := range keys {
			skipped[n], k.pages[n] = found[key].Skipped, found[key].Pages
		}

		return err
	})

	return skipped, err
}

// place returns the position in its ingestion of the uploaded file of a staged file.
func (k *keyed) place(file int) int {
	f := k.fresh[file]

	return max(slices.IndexFunc(k.group[0].Files, func(of File) bool { return of.ID == f.Source }), 0)
}

// numberWithout returns the number in the uploaded file of a row of a staged file that lacks the skipped ones.
func numberWithout(skipped []int64, row int64) int64 {
	number := row + 1

	for _, s := range skipped { // in order
		if s > number {
			break
		}

		number++
	}

	return number
}

func (k *keyed) reason(v violation, skipped [][]int64) string {
	of := ""
	if v.first.file != v.at.file {
		of = k.fresh[v.first.file].Name
	}

	return v.why.text(numberWithout(skipped[v.first.file], v.first.row), of)
}

// fail ends the first ingestion with a failure. The rows that are the reason are stored, so that people can correct them.
func (k *keyed) fail(ctx context.Context, aside [][]engine.SetAside, count int64, reason error) error {
	return k.lease.InTx(ctx, func(tx postgres.Tx) error {
		if count <= int64(k.Bounds.SetAside) {
			if err := insertMoreAside(ctx, tx, k.group[0], aside, count); err != nil {
				return err
			}
		}

		if err := k.failTx(ctx, tx, k.group[0], reason); err != nil {
			return err
		}

		return k.Lake.DropTx(ctx, tx, k.table, k.group[0].ID)
	})
}

// restage writes staged files again without the rows that are gone. All files of an ingestion are written again, because the
// order in which they are staged is that of their rows. A file of which no row is left gets none.
func (k *keyed) restage(ctx context.Context, files []lake.File, gone []*lake.RowSet, skipped [][]int64) (staged []lake.Staged, err error) {
	dir, err := os.MkdirTemp(k.Dir, "unique-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	for n, file := range files {
		if gone[n] != nil && gone[n].Count() == file.Rows {
			continue
		}

		path := k.paths[n]

		if gone[n] != nil {
			path = filepath.Join(dir, fmt.Sprintf("%d%s", n, outputSuffix))
			view := engine.View{Columns: engineColumns(k.columns[n]), Files: []string{"0" + outputSuffix}}

			if err := k.leaveOut(ctx, k.paths[n], view, gone[n], file.Rows, path); err != nil {
				return nil, err
			}
		}

		one, err := k.stageAgain(ctx, file, path, k.columns[n], lake.Places{Skipped: withGone(skipped[n], gone[n], file.Rows), Pages: k.pages[n]})
		if err != nil {
			return nil, err
		}

		staged = append(staged, one)
	}

	return staged, nil
}

// withGone returns the numbers of the rows that a staged file lacks without the rows that are gone.
func withGone(skipped []int64, gone *lake.RowSet, rows int64) []int64 {
	if gone == nil {
		return skipped
	}

	all := slices.Clone(skipped)

	for row := range rows {
		if gone.Has(row) {
			all = append(all, numberWithout(skipped, row))
		}
	}

	slices.SortFunc(all, cmp.Compare)

	return all
}

func (k *keyed) stageAgain(ctx context.Context, file lake.File, path string, columns []lake.Column, places lake.Places) (staged lake.Staged, err error) {
	source := lake.Source{File: file.Source, Name: file.Name, FirstRow: file.FirstRow, Places: places}

	err = k.lease.InTx(ctx, func(tx postgres.Tx) error {
		staged, err = k.Lake.StageTx(ctx, tx, k.table, file.Ingestion, source)

		return err
	})
	if err != nil {
		return staged, err
	}

	return k.Lake.Write(ctx, staged, path, columns)
}
