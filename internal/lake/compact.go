package lake

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"

	"quern.dev/quern/internal/postgres"
)

const (
	// compactFrom is how many files there must be before some of them become one.
	compactFrom = 4
	compactMost = 500
	// compactTo is about how large a file gets. One of half the size stays as it is.
	compactTo = 128 << 20
	// fileCost is what a file costs besides its bytes, in bytes.
	fileCost = 64 << 10
	// compactStep is how much larger the files are that are looked at next.
	compactStep = 4
)

// Compactable returns neighbours among the files of a snapshot that are worth to become one; none if there are no such.
// Small ones come first, and a file goes together only with as much as itself, so that a row is written again about as
// often as its file doubles.
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

// together returns the first of the small files that can be one.
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

// TakeOverTx is ReadyTx for a file that has the rows of others, in their order. If nobody commits it, it goes like one
// that nobody finished.
func (l *Lake) TakeOverTx(ctx context.Context, tx postgres.Tx, s Staged, files []File) error {
	if err := l.ReadyTx(ctx, tx, []Staged{s}); err != nil {
		return err
	}

	return takeOver(ctx, tx, s, files, l.now().Add(staleAfter+l.grace))
}

// Part is where some rows of a file come from that was made of others.
type Part struct {
	First int64 // of its rows in the file, from 0
	Rows  int64
	Source
}

// Parts returns the part of a file that a row is in, and some before and after it, in order.
func (l *Lake) Parts(ctx context.Context, q postgres.Querier, t Table, key string, row int64) ([]Part, error) {
	return selectParts(ctx, q, t, key, row)
}

// compact takes the files out whose rows the new one has. Of Iceberg's manifests only those that have one of them are
// written again.
func (l *Lake) compact(ctx context.Context, change Change, d *draft, manifests *[]iceberg.ManifestFile) error {
	current := d.base.current

	switch {
	case current == nil:
		return ErrReplaced
	case len(d.staged) != 1:
		return ErrDropped
	}

	d.made.Columns, d.made.Rows, d.made.Bytes, d.made.Files = current.Columns, current.Rows, current.Bytes, current.Files

	if err := d.mergeColumns(nil); err != nil {
		return err
	}

	all, err := l.recallList(ctx, current.list)
	if err != nil {
		return err
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

	return d.checkTakenOut(change)
}

// takeOut moves the entries of a manifest that has one of the files. It returns how many are left in it.
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

// checkTakenOut: the new file must have exactly what those had that it replaces.
func (d *draft) checkTakenOut(change Change) error {
	if d.out.Files != len(change.Files) {
		return ErrReplaced
	}

	if d.out.Rows != d.staged[0].Rows {
		return fmt.Errorf("files of %d rows became one of %d", d.out.Rows, d.staged[0].Rows)
	}

	d.made.Rows -= d.out.Rows
	d.made.Bytes -= d.out.Bytes
	d.made.Files -= d.out.Files
	d.left = slices.Clip(d.left)

	return nil
}
