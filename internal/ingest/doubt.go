package ingest

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Codes of doubts about files in relation to their dataset. Package engine defines the others.
const (
	LoadedBefore   = "loadedBefore"
	RowsPresent    = "rowsPresent"
	OtherColumns   = "otherColumns"
	MissingColumns = "missingColumns"
	NoRows         = "noRows"

	acceptAll = "all"
)

// unsettled returns the codes of the doubts that are not accepted.
func (i Ingestion) unsettled() (codes []string) {
	if slices.Contains(i.Accepted, acceptAll) {
		return nil
	}

	for _, d := range i.Doubts {
		if d.Code != "" && !slices.Contains(i.Accepted, d.Code) && !slices.Contains(codes, d.Code) {
			codes = append(codes, d.Code)
		}
	}

	return codes
}

// settled returns nil if all doubts are accepted. Otherwise it makes the ingestion wait, drops its staged files, and
// returns job.ErrStopped, because this worker has nothing more to do.
func (w *working) settled(ctx context.Context) error {
	if len(w.i.unsettled()) == 0 {
		return nil
	}

	err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		running, err := updateWaiting(ctx, tx, w.i)
		if err != nil || !running {
			return running, err
		}

		if err := w.tellTx(ctx, tx, w.i, event.LoadWaiting, func(d *event.Data) { d.Doubts = w.i.unsettled() }); err != nil {
			return false, err
		}

		return true, w.Lake.DropTx(ctx, tx, w.i.table(), w.i.ID)
	})
	if err != nil {
		return err
	}

	return job.ErrStopped
}

// compare returns doubts about inspected files in relation to their dataset. A file that was loaded before is a doubt only if its rows are
// appended: merging the same rows changes nothing, and a replacement removes the earlier ones. In a replacement, a file that occurs twice is a
// doubt.
func (w *working) compare(ctx context.Context, found engine.Inspection) (doubts []engine.Doubt, err error) {
	switch w.i.Mode {
	case lake.Replace:
		doubts = w.sameFiles(nil)
	case lake.Merged:
	default:
		doubts, err = w.loadedBefore(ctx)
	}

	if err != nil {
		return nil, err
	}

	dataset, err := w.current(ctx, w.i.table())
	if err != nil {
		return nil, err
	}

	if dataset != nil && dataset.RowCount > 0 && w.i.Mode != lake.Replace {
		doubts = append(doubts, otherColumns(found.Columns, dataset.Columns)...)
	}

	missing, err := w.missingColumns(ctx, found.Columns)

	return append(doubts, missing...), err
}

// loadedBefore returns doubts about files whose bytes are in the dataset, or occur twice.
func (w *working) loadedBefore(ctx context.Context) (doubts []engine.Doubt, err error) {
	var loaded []loadedFile

	err = w.DB.Do(ctx, func(q postgres.Querier) (err error) {
		loaded, err = selectSameBytes(ctx, q, w.i, w.digests())

		return err
	})
	if err != nil {
		return nil, err
	}

	return w.sameFiles(loaded), nil
}

// digests returns the digests of the ingestion's files.
func (w *working) digests() [][]byte {
	list := make([][]byte, len(w.contents))
	for n, c := range w.contents {
		list[n] = c.digest
	}

	return list
}

// sameFiles returns doubts about files whose bytes were loaded before or occur twice.
func (w *working) sameFiles(loaded []loadedFile) (doubts []engine.Doubt) {
	seen := map[string]string{}

	for n, f := range w.i.Files {
		digest := w.contents[n].digest
		key := hex.EncodeToString(digest)

		at := slices.IndexFunc(loaded, func(l loadedFile) bool { return bytes.Equal(l.Digest, digest) })
		twin, again := seen[key]

		switch {
		case at >= 0:
			doubts = append(doubts, engine.Doubt{Code: LoadedBefore, Message: fmt.Sprintf(
				"The file %q was loaded into this dataset on %s as %q. Loading it again duplicates its rows.", f.Name, loaded[at].At.UTC().Format("2006-01-02 15:04:05Z"), loaded[at].Name)})
		case again:
			doubts = append(doubts, engine.Doubt{Code: LoadedBefore, Message: fmt.Sprintf(
				"The files %q and %q have the same bytes. Loading both duplicates their rows.", twin, f.Name)})
		}

		seen[key] = f.Name
		w.contents[n].known = at >= 0
	}

	return doubts
}

const fewColumns = 3 // see otherColumns

// otherColumns returns a doubt if fewer than 1/fewColumns of the columns of either side exist on the other side.
func otherColumns(files []engine.Column, table []catalog.Column) []engine.Doubt {
	var ours, theirs []string

	for _, c := range table {
		ours = append(ours, c.Name)
	}

	shared := 0

	for _, c := range files {
		theirs = append(theirs, c.Name)

		if slices.ContainsFunc(ours, func(name string) bool { return strings.EqualFold(name, c.Name) }) {
			shared++
		}
	}

	how := fmt.Sprintf("only %d", shared)
	if shared == 0 {
		how = "none"
	}

	if fewColumns*shared >= min(len(ours), len(theirs)) {
		return nil
	}

	return []engine.Doubt{{Code: OtherColumns, Message: fmt.Sprintf(
		"The files have the columns %s, and the dataset has %s. Columns in both: %s. Is it the right dataset?", listed(theirs), listed(ours), how)}}
}

// missingColumns returns a doubt if a load of a source lacks columns that its last load had. A column may have been renamed: the dataset would
// get it beside the old one, and questions would count only a part of the rows. missingColumns records the columns for the next load.
func (w *working) missingColumns(ctx context.Context, found []engine.Column) ([]engine.Doubt, error) {
	if w.i.Source == uuid.Nil {
		return nil, nil
	}

	names := make([]string, len(found))
	for n, c := range found {
		names[n] = c.Name
	}

	err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return updateSourceNames(ctx, tx, w.i, names) })
	if err != nil {
		return nil, err
	}

	var last []string

	err = w.DB.Do(ctx, func(q postgres.Querier) (err error) {
		last, err = selectLastNames(ctx, q, w.i)

		return err
	})
	if err != nil {
		return nil, err
	}

	missing := without(last, names)
	if len(missing) == 0 {
		return nil, nil
	}

	message := fmt.Sprintf("The last load of the source had the columns %s, and this one has not.", listed(missing))
	if added := without(names, last); len(added) > 0 {
		message += fmt.Sprintf(" It has the new columns %s.", listed(added))
	}

	return []engine.Doubt{{Code: MissingColumns, Message: message + " If a column was renamed, give it the old name. If the columns are gone for good, accept the doubt."}}, nil
}

// without returns the names that others lacks, whatever their case.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(others, func(other string) bool { return strings.EqualFold(name, other) })
	})
}

const listedNames = 5

// listed returns the first names as text.
func listed(names []string) string {
	if len(names) > listedNames {
		return strings.Join(names[:listedNames], ", ") + ", …"
	}

	return strings.Join(names, ", ")
}
