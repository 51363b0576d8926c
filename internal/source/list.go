package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// list returns the files that the source wants, in the order of their paths.
func (w *working) list(ctx context.Context) (listed []blob.Object, err error) {
	last := ""

	for object, err := range w.store.List(ctx, w.source.Prefix) {
		switch {
		case err != nil:
			return nil, connection.Failed(connection.Problem(err))
		case len(listed) == maxListed:
			return nil, fault.New(fault.LimitExceeded, fmt.Sprintf("There are more than %d files. Use a longer prefix, and several sources.", maxListed))
		case object.Key <= last: // a lying store may repeat itself
			continue
		case object.Size == 0 || object.ETag == "" || !w.source.wants(object.Key) || !utf8.ValidString(object.Key) || strings.ContainsRune(object.Key, 0):
			continue
		}

		last = object.Key
		listed = append(listed, object)
	}

	return listed, nil
}

// compare returns the files to load, and those that are gone and whose rows are to be removed. It tells about files that were loaded and are no longer the same.
func (w *working) compare(ctx context.Context, known map[string]file, listed []blob.Object) (fresh []blob.Object, gone []file, err error) {
	var (
		told    []file
		missing = maps.Clone(known)
		run     = w.run
	)

	tell := func(f file, seen string, event Event) {
		f.seen = seen
		told = append(told, f)

		if event == Changed {
			run.Changed++
		} else {
			run.Deleted++
		}

		if len(run.Notes) < maxNotes {
			run.Notes = append(run.Notes, Note{f.path, event})
		}
	}

	for _, object := range listed {
		f, isKnown := known[object.Key]
		delete(missing, object.Key)

		isNew := !isKnown || f.state == fileClaimed || f.state == fileStale || f.state == fileRemoved
		if isNew || f.etag != object.ETag && w.source.Changed == Replace {
			fresh = append(fresh, object)
		}

		switch {
		case isNew:
		case f.seen == "" && object.ETag == f.etag:
			f.seen = f.etag // it is back
			told = append(told, f)
		case f.seen != object.ETag:
			tell(f, object.ETag, Changed)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(missing)) {
		f := missing[key]

		switch {
		case f.state == fileRemoved || !w.source.wants(key): // after a change of the prefix or the pattern, the file is none of the source
			continue
		case f.state == fileClaimed && !f.replaces:
			if err := w.forget(ctx, f); err != nil {
				return nil, nil, err
			}

			continue
		case w.source.Deleted == Remove:
			gone = append(gone, f)
		}

		if f.seen != "" {
			tell(f, "", Deleted)
		}
	}

	if len(told) == 0 {
		return fresh, gone, nil
	}

	w.run = run

	return fresh, gone, w.record(ctx, func(tx postgres.Tx) error { return tellFiles(ctx, tx, run, told) })
}
