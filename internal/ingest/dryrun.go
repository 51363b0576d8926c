package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// try converts the files of a dry run if a load would compare the rows by a key. A dataset that the load would create has no rows and no key, and
// a dry run must not write anything about it.
func (w *working) try(ctx context.Context, session *engine.Session, sources []engine.Source, found engine.Inspection) error {
	w.i.Preview = &Preview{Inspection: found}

	dataset, draft, err := w.target(ctx, w.i.table())
	if err != nil || dataset == nil || draft != nil || (!dataset.Key.Declared() && w.i.Mode != lake.Merged) {
		return err
	}

	columns, err := w.plan(ctx, found)
	if err != nil {
		return w.doubtFailure(err)
	}

	w.aside = make([][]engine.SetAside, len(sources))
	rows := make([]int64, len(sources))
	w.i.RowsDone, w.i.RowsSetAside, w.i.BytesDone = 0, 0, 0

	for n, source := range sources {
		done, before := w.i.RowsDone, w.i.BytesDone

		converted, err := session.Convert(engine.ConvertRequest{Source: n, Columns: engineColumns(columns), Output: source.Name + outputSuffix},
			func(p engine.Progress) { w.hear(ctx, phaseConverting, p, done, before, w.size(n)) })
		if err != nil {
			return err
		}

		rows[n], w.aside[n] = converted.Rows, converted.SetAside
		w.i.RowsDone, w.i.BytesDone = done+converted.Rows, before+w.size(n)
		w.i.RowsSetAside += converted.SetAsideCount
	}

	if err := w.judge(); err != nil {
		return w.doubtFailure(err)
	}

	w.columns = columns

	return w.take(session, sources, rows)
}

// doubtFailure adds the reason for which a load would fail to the preview. Other errors end the dry run.
func (w *working) doubtFailure(err error) error {
	f, isFault := errors.AsType[*fault.Error](err)
	if !isFault || f.Code == fault.Internal || passing(err) {
		return err
	}

	message := f.Message
	if len(f.Subs) > 0 {
		message = f.Subs[0].Message
	}

	w.i.Preview.Doubts = append(w.i.Preview.Doubts, engine.Doubt{Message: "The load would fail: " + message})

	return nil
}

// preview ends a dry run of files. If they were converted, it tells how many rows the key would set aside. The records of a sample are kept.
func (w *working) preview(ctx context.Context) error {
	if w.outputs != nil {
		if err := w.tryKey(ctx); err != nil {
			return err
		}
	}

	w.i.Preview.Doubts = append(w.i.Preview.Doubts, w.sampled...)

	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		if running, err := updateProgress(ctx, tx, w.i); err != nil || !running {
			return running, err
		}

		if w.i.Options.Sample > 0 {
			if err := insertPapers(ctx, tx, w.i, w.papers); err != nil {
				return false, err
			}
		}

		return finish(ctx, tx, w.i, Completed, nil, w.Now())
	})
}

// tryKey counts the rows that the key would set aside now, and adds them to the preview.
func (w *working) tryKey(ctx context.Context) error {
	dataset, err := w.current(ctx, w.i.table())
	if err != nil || dataset == nil {
		return err
	}

	declared := dataset.Key
	names := declared.Columns
	if !declared.Declared() {
		names = w.i.Key
	}

	key, err := keyOf(w.columns, names, "key")
	if err != nil {
		return w.doubtFailure(lacking(err, declared))
	}

	found, err := w.tried(ctx, key, declared.Declared())
	if err != nil || len(found) == 0 {
		return err
	}

	count := int64(len(found))
	w.i.RowsDone, w.i.RowsSetAside = w.i.RowsDone-count, w.i.RowsSetAside+count
	because := fmt.Sprintf("the key %s: %s", catalog.Key{Columns: names}, w.firstOf(found))

	switch {
	case count > int64(w.Bounds.SetAside):
		because = fmt.Sprintf("The load would fail, because more than %d rows violate %s", w.Bounds.SetAside, because)
	case declared.Duplicates == catalog.Refuse:
		because = fmt.Sprintf("The load would fail, because %s violate %s", countedRows(count), because)
	default:
		because = fmt.Sprintf("%s would be set aside because of %s", countedRows(count), because)
	}

	w.i.Preview.Doubts = append(w.i.Preview.Doubts, engine.Doubt{Message: because})

	if w.i.Mode != lake.Merged {
		return nil
	}

	if err := w.judge(); err != nil { // the rows that a merge sets aside are limited as those that do not fit
		return w.doubtFailure(err)
	}

	return nil
}

// tried returns the rows of the outputs that violate a key, in order. Rows of a merge violate it only among themselves, and their keys may be null
// unless the dataset has declared the key.
func (w *working) tried(ctx context.Context, key []lake.Column, isDeclared bool) (found []violation, err error) {
	if !isDeclared {
		err = w.repeated(ctx, key, func(row, first position) error {
			if !row.isIn(w.outputs) || !first.isIn(w.outputs) {
				return keyFault(errors.New("a row that is not there"))
			}

			found = append(found, violation{at: row, why: isRepeated, first: first})

			return nil
		})

		return found, err
	}

	var (
		snapshot lake.Snapshot
		files    []lake.File
		paths    = make([]string, len(w.outputs))
	)

	for n, made := range w.outputs {
		paths[n] = made.path
	}

	if w.i.Mode == lake.Append {
		now, all, err := w.inForce(ctx, w.i.table())
		if err != nil {
			return nil, err
		}

		if now != nil && hasKey(*now, key) {
			snapshot, files = *now, all
		}
	}

	err = w.compareKeys(ctx, snapshot, replaced{files: files}, paths, key, violationSQL(key, len(files) > 0, true, w.Bounds.SetAside+1), func(f foundRow) error {
		v := f.violation()
		if !v.at.isIn(w.outputs) || !v.first.isIn(w.outputs) {
			return keyFault(errors.New("a row that is not there"))
		}

		found = append(found, v)

		return nil
	})

	return found, err
}

// shownViolations is how many rows a preview names.
const shownViolations = 3

// firstOf names the first rows that violate a key.
func (w *working) firstOf(found []violation) string {
	var named []string

	for _, v := range found[:min(len(found), shownViolations)] {
		row := fmt.Sprintf("row %d", number(w.aside[v.at.file], v.at))
		if len(w.i.Files) > 1 {
			row += " of " + w.i.Files[v.at.file].Name
		}

		of := ""
		if v.first.file != v.at.file {
			of = w.i.Files[v.first.file].Name
		}

		named = append(named, row+": "+v.why.text(number(w.aside[v.first.file], v.first), of))
	}

	if len(found) > len(named) {
		named = append(named, "…")
	}

	return strings.Join(named, "; ")
}
