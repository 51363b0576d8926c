package lake

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"

	"quern.dev/quern/internal/postgres"
)

const (
	// compactFrom is the minimum number of files that are compacted into one.
	compactFrom = 4
	compactMost = 500
	// compactTo is the approximate maximum size of a compacted file, in bytes. A file of half the size is not
	// compacted again.
	compactTo = 128 << 20
	// fileCost is the overhead of a file, in bytes.
	fileCost = 64 << 10
	// compactStep is the factor by which the size limit of the considered files grows from one pass to the next.
	compactStep = 4
)

// Compactable returns adjacent files of a snapshot that are worth compacting into one, or nil if there are none.
// Small files are considered first. A file is compacted only with others that together are at least as large, so that
// a row is rewritten about once each time its file doubles.
func Compactable(files []File) []File {
	for limit := int64(2 * fileCost); ; limit = min(limit*compactStep, compactTo/2) {
		for from := 0; from < len(files); {
			to := from
			for to < len(files) && weight(files[to]) <= limit {
				to++
			}

			if found := together(files[from:to]); found != nil {
				return found
			}

			from = to + 1
		}

		if limit == compactTo/2 {
			return nil
		}
	}
}

func weight(f File) int64 { return f.Size + fileCost }

// together returns the first run of small files that can be compacted into one.
func together(small []File) []File {
	for from := range small {
		if len(small)-from < 2 {
			break
		}

		var (
			total, largest int64
			full           bool
			to             = from
		)

		for to < len(small) && to-from < compactMost && !full {
			if full = total+weight(small[to]) > compactTo; !full {
				total, largest = total+weight(small[to]), max(largest, weight(small[to]))
				to++
			}
		}

		if n := to - from; (n >= compactFrom || (full && n > 1)) && 2*largest <= total {
			return small[from:to]
		}
	}

	return nil
}

// TakeOverTx is ReadyTx for a file that contains the rows of other files, in their order. If the file is not
// committed, it is removed like a file that was never finished.
func (l *Lake) TakeOverTx(ctx context.Context, tx postgres.Tx, s Staged, files []File) error {
	if err := l.ReadyTx(ctx, tx, []Staged{s}); err != nil {
		return err
	}

	return takeOver(ctx, tx, s, files, l.now().Add(staleAfter+l.deleteGrace))
}

// Part is the provenance of consecutive rows of a compacted file.
type Part struct {
	First int64 // position of its first row in the file, from 0
	Rows  int64
	Source
}

// Parts returns the part that contains a row of a file, and some parts before and after it, in order.
func (l *Lake) Parts(ctx context.Context, q postgres.Querier, t Table, key string, row int64) ([]Part, error) {
	return selectParts(ctx, q, t, key, row)
}

// compact takes out the files whose rows the new file contains.
func (l *Lake) compact(ctx context.Context, change Change, d *draft, manifests *[]iceberg.ManifestFile) error {
	switch {
	case d.base.current == nil:
		return ErrReplaced
	case len(d.staged) != 1:
		return ErrDropped
	}

	return l.exchange(ctx, change, d, manifests, d.staged[0].Rows)
}

// exchange takes out the files of the change, which must have this number of rows. Only manifests that list one of these
// files are rewritten.
func (l *Lake) exchange(ctx context.Context, change Change, d *draft, manifests *[]iceberg.ManifestFile, rows int64) error {
	current := d.base.current
	d.made.Columns, d.made.Rows, d.made.Bytes, d.made.Files = current.Columns, current.Rows, current.Bytes, current.Files

	if err := d.mergeColumns(nil); err != nil {
		return err
	}

	all, err := l.recallList(ctx, current.list)
	if err != nil {
		return err
	}

	if len(change.Files) == 0 {
		*manifests = all

		return nil
	}

	lists, err := l.entryLists(ctx, all)
	if err != nil {
		return err
	}

	out := make(map[string]bool, len(change.Files))
	for _, file := range change.Files {
		out[file.Key] = true
	}

	for i, manifest := range all {
		left, err := l.takeOut(d, lists[i], out)
		if err != nil {
			return err
		}

		if left == len(lists[i]) {
			*manifests = append(*manifests, manifest)

			continue
		}

		key, err := l.keyOf(manifest.FilePath())
		if err != nil {
			return err
		}

		d.left = append(d.left, key)
	}

	return d.checkTakenOut(change, rows)
}

// takeOut takes the files out of the entries of one manifest. If it finds any, it moves the remaining entries to the
// new manifest. It returns the number of remaining entries.
func (l *Lake) takeOut(d *draft, entries []iceberg.ManifestEntry, out map[string]bool) (left int, err error) {
	var stay []iceberg.ManifestEntry

	for _, e := range entries {
		key, err := l.keyOf(e.DataFile().FilePath())
		if err != nil {
			return 0, err
		}

		if !out[key] {
			stay = append(stay, e)

			continue
		}

		d.left = append(d.left, key)
		d.out.Files++
		d.out.Rows += e.DataFile().Count()
		d.out.Bytes += e.DataFile().FileSizeBytes()
	}

	if len(stay) < len(entries) {
		d.moved = append(d.moved, stay...)
	}

	return len(stay), nil
}

// checkTakenOut checks that the files that were taken out have this number of rows, and updates the totals.
func (d *draft) checkTakenOut(change Change, rows int64) error {
	if d.out.Files != len(change.Files) {
		return ErrReplaced
	}

	if d.out.Rows != rows {
		return fmt.Errorf("%d rows were read and %d written or removed", d.out.Rows, rows)
	}

	d.made.Rows -= d.out.Rows
	d.made.Bytes -= d.out.Bytes
	d.made.Files -= d.out.Files
	d.left = slices.Clip(d.left)

	return nil
}
