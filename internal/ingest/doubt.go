package ingest

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// The codes of doubts about files and the dataset that they are for, beside those of engine.
const (
	LoadedBefore = "loadedBefore"
	RowsPresent  = "rowsPresent"
	OtherColumns = "otherColumns"

	acceptAll = "all"
)

// unsettled are the codes of the doubts that nobody has accepted.
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

// settled goes on unless a doubt has to be accepted first. Then the ingestion waits, nothing of it is kept, and the
// error says that this worker has nothing more to do.
func (w *working) settled(ctx context.Context) error {
	if len(w.i.unsettled()) == 0 {
		return nil
	}

	err := w.write(ctx, func(tx postgres.Tx) (bool, error) {
		running, err := updateWaiting(ctx, tx, w.i)
		if err != nil || !running {
			return running, err
		}

		return true, w.Lake.DropTx(ctx, tx, w.i.table(), w.i.ID)
	})
	if err != nil {
		return err
	}

	return errStopped
}

// compare finds doubts about files that were inspected and the dataset that they are added to. A replacement has none.
func (w *working) compare(ctx context.Context, found engine.Inspection) ([]engine.Doubt, error) {
	if w.i.Mode == lake.Replace {
		return w.sameFiles(nil), nil
	}

	dataset, err := w.current(ctx, w.i.table())
	if err != nil {
		return nil, err
	}

	var loaded []loadedFile

	err = w.DB.Do(ctx, func(q postgres.Querier) (err error) {
		loaded, err = selectSameBytes(ctx, q, w.i, w.digests())

		return err
	})
	if err != nil {
		return nil, err
	}

	doubts := w.sameFiles(loaded)
	if dataset != nil && dataset.RowCount > 0 {
		doubts = append(doubts, otherColumns(found.Columns, dataset.Columns)...)
	}

	return doubts, nil
}

// digests are those of the ingestion's files.
func (w *working) digests() [][]byte {
	list := make([][]byte, len(w.contents))
	for n, c := range w.contents {
		list[n] = c.digest
	}

	return list
}

// sameFiles tells of files whose bytes were loaded before, or come twice.
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
				"The file %q was loaded into this dataset on %s as %q. Its rows would be there twice.", f.Name, loaded[at].At.UTC().Format("2006-01-02 15:04:05Z"), loaded[at].Name)})
		case again:
			doubts = append(doubts, engine.Doubt{Code: LoadedBefore, Message: fmt.Sprintf(
				"The files %q and %q have the same bytes. Their rows would be there twice.", twin, f.Name)})
		}

		seen[key] = f.Name
		w.contents[n].known = at >= 0
	}

	return doubts
}

const fewColumns = 3 // fewer than one of so many

// otherColumns tells whether files have other columns than the dataset that they are added to: fewer than a third of the
// columns of either side are on the other.
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
		"The files have the columns %s; %s of them is in the dataset, which has %s. Is it the right dataset?", listed(theirs), how, listed(ours))}}
}

const listedNames = 5

// listed is the first of some names.
func listed(names []string) string {
	if len(names) > listedNames {
		return strings.Join(names[:listedNames], ", ") + ", …"
	}

	return strings.Join(names, ", ")
}
