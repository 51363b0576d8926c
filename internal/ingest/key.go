package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
)

// maxKey is the largest number of columns of a key.
const maxKey = 16

// checkKey checks the key of a request.
func checkKey(mode lake.Mode, key []string) error {
	switch {
	case mode != lake.Merged && len(key) > 0:
		return fault.Invalid("key", "is only for the mode merge")
	case len(key) > maxKey:
		return fault.Invalid("key", fmt.Sprintf("has more than %d columns", maxKey))
	default:
		return nil
	}
}

// mergeKey returns the key by which rows are merged: that of the request, or else that of the dataset. A dataset that has a key is
// merged by no other, because rows could then have the same key.
func mergeKey(mode lake.Mode, key []string, dataset catalog.Dataset) ([]string, error) {
	switch declared := dataset.Key; {
	case mode != lake.Merged:
		return nil, nil
	case len(key) == 0 && !declared.Declared():
		return nil, fault.Invalid("key", "must name the columns by which rows are merged, because the dataset has no key")
	case len(key) == 0:
		return declared.Columns, nil
	case declared.Declared() && !declared.Has(key):
		return nil, fault.Invalid("key", fmt.Sprintf("The dataset has the key %s. Leave the key out, or name these columns.", declared))
	default:
		return key, nil
	}
}

// keyOf returns the columns of a key, which the request has in the given field.
func keyOf(columns []lake.Column, key []string, field string) (found []lake.Column, err error) {
	for _, name := range key {
		at := slices.IndexFunc(columns, func(c lake.Column) bool { return strings.EqualFold(c.Name, name) })

		switch {
		case at < 0:
			return nil, fault.Invalid(field, fmt.Sprintf("The rows have no column %q.", name))
		case columns[at].Type == lake.Double || columns[at].Type == lake.JSON:
			return nil, fault.Invalid(field, fmt.Sprintf("The column %q is %s. A key has columns whose values can be compared exactly.", columns[at].Name, columns[at].Type))
		case slices.Contains(found, columns[at]):
			return nil, fault.Invalid(field, fmt.Sprintf("names the column %q twice", columns[at].Name))
		}

		found = append(found, columns[at])
	}

	return found, nil
}

// unrepeat sets aside rows whose key occurs in an earlier row of the same ingestion. Rows without a complete key are never equal.
func (w *working) unrepeat(ctx context.Context) error {
	if len(w.i.Key) == 0 {
		return nil
	}

	key, err := keyOf(w.columns, w.i.Key, "key")
	if err != nil {
		return err
	}

	gone, misfits := make([]*lake.RowSet, len(w.outputs)), slices.Clone(w.aside)

	if err := w.repeated(ctx, key, func(row, first position) error { return w.setAside(gone, misfits, row, first) }); err != nil {
		return err
	}

	for n, set := range gone {
		if set == nil {
			continue
		}

		slices.SortFunc(w.aside[n], func(a, b engine.SetAside) int { return cmp.Compare(a.Row, b.Row) })
	}

	if err := w.judge(); err != nil {
		return err
	}

	for n, set := range gone {
		if set == nil {
			continue
		}

		made := &w.outputs[n]
		view := engine.View{Columns: engineColumns(w.columns), Files: []string{"0" + outputSuffix}}

		if err := w.leaveOut(ctx, made.path, view, set, made.rows, made.path+".unique"); err != nil {
			return err
		}

		made.path, made.rows = made.path+".unique", made.rows-set.Count()
	}

	return nil
}

// setAside sets a row of an output aside. misfits are the rows that were set aside before, from which its number is computed.
func (w *working) setAside(gone []*lake.RowSet, misfits [][]engine.SetAside, row, first position) error {
	if !row.isIn(w.outputs) || !first.isIn(w.outputs) {
		return fault.New(fault.Internal, "The keys of the rows could not be compared.")
	}

	if gone[row.file] == nil {
		gone[row.file] = lake.NewRowSet(w.outputs[row.file].rows)
	}

	if !gone[row.file].Add(row.row) {
		return fault.New(fault.Internal, "The keys of the rows could not be compared.")
	}

	of := ""
	if first.file != row.file && first.file < len(w.i.Files) {
		of = w.i.Files[first.file].Name
	}

	reason := isRepeated.text(number(misfits[first.file], first), of)
	w.aside[row.file] = append(w.aside[row.file], engine.SetAside{Row: number(misfits[row.file], row), Reason: reason})
	w.i.RowsSetAside++
	w.i.RowsDone--

	return nil
}

// number returns the number in its file of a row of an output.
func number(misfits []engine.SetAside, at position) int64 {
	number := at.row + 1

	for _, s := range misfits {
		if s.Row <= number {
			number++
		}
	}

	return number
}

// position is a row of a file of a view.
type position struct {
	file int
	row  int64
}

func (p position) isIn(files []output) bool {
	return p.file >= 0 && p.file < len(files) && p.row >= 0 && p.row < files[p.file].rows
}

// repeated calls each for every row of the outputs whose key occurs before, and for the first row with that key, in order.
func (w *working) repeated(ctx context.Context, key []lake.Column, each func(row, first position) error) error {
	view := engine.View{Name: newRows, Columns: engineColumns(key), Positions: true}
	mounts := map[string]string{}

	for n, made := range w.outputs {
		view.Files = append(view.Files, fmt.Sprintf("%d%s", n, outputSuffix))
		mounts[view.Files[n]] = made.path
	}

	return w.positions(ctx, mounts, engine.Query{Statement: repeatedSQL(key, w.Bounds.SetAside+1), Views: []engine.View{view}, Form: engine.Rows}, func(f foundRow) error {
		return each(position{int(f.A), f.B}, position{int(f.C), f.D})
	})
}

// foundRow is a row of the result of a statement about keys.
type foundRow struct {
	A    int64   `json:"a"`
	B    int64   `json:"b"`
	C    int64   `json:"c"`
	D    int64   `json:"d"`
	Rows []int64 `json:"rows"`
}

// positions runs one of our own statements in a sealed process and calls each with every row of the result.
func (g *Ingest) positions(ctx context.Context, mounts map[string]string, q engine.Query, each func(foundRow) error) error {
	session, err := g.Engine.Open(ctx, g.Timeout)
	if err != nil {
		return err
	}
	defer session.Close()

	for name, path := range mounts {
		if err := session.Mount(path, name); err != nil {
			return err
		}
	}

	result, err := session.Run(q)
	if err != nil {
		return keyFault(err)
	}

	for {
		text, err := result.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return keyFault(err)
		}

		var row foundRow
		if err := json.Unmarshal(text.JSON, &row); err != nil {
			return keyFault(err)
		}

		if err := each(row); err != nil {
			return err
		}
	}
}

// keyFault keeps faults, and hides what a sealed process says about one of our own statements.
func keyFault(err error) error {
	if _, isFault := errors.AsType[*fault.Error](err); isFault {
		return err
	}

	return fault.Wrap(err, fault.Internal, "The keys of the rows could not be compared.")
}
