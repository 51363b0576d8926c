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

// list returns the files that the source wants, in the order of their paths, also those without any bytes.
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
		case object.ETag == "" || !w.source.wants(object.Key) || !utf8.ValidString(object.Key) || strings.ContainsRune(object.Key, 0):
			continue
		}

		last = object.Key
		listed = append(listed, object)
	}

	return listed, nil
}

// compared is what a run does about the files that were listed.
type compared struct {
	fresh      []blob.Object // to load
	gone       []file        // whose rows are to be removed
	isNoneLeft bool          // no file with any bytes was listed
}

// findings are what a run tells for the first time.
type findings struct {
	files            []file // with what was seen of them
	changed, deleted int64
	empty, leftOut   int64 // of all listed files
	notes            []Note
}

func (n *findings) tell(f file, seen string, event Event, isActedUpon bool) {
	f.seen = seen
	n.files = append(n.files, f)

	switch event {
	case Changed:
		n.changed++
	case Deleted:
		n.deleted++
	default:
	}

	// What is acted upon is told when it is done.
	if !isActedUpon && len(n.notes) < maxNotes {
		n.notes = append(n.notes, Note{f.path, event})
	}
}

// compare returns what to do about the listed files. It tells about files that were loaded and are no longer the same.
func (w *working) compare(ctx context.Context, known map[string]file, listed []blob.Object) (c compared, err error) {
	var (
		now     findings
		missing = maps.Clone(known)
	)

	c.isNoneLeft = true

	for _, object := range listed {
		f, isKnown := known[object.Key]
		delete(missing, object.Key)

		if object.Size == 0 {
			now.empty++

			if hasRows := isKnown && f.state != fileClaimed && f.state != fileRemoved; hasRows && f.seen != object.ETag {
				now.tell(f, object.ETag, Emptied, false)
			}

			continue
		}

		c.isNoneLeft = false
		isNew := !isKnown || f.state == fileClaimed || f.state == fileStale || f.state == fileRemoved
		isFresh := isNew || f.etag != object.ETag && (w.mayReplace(f) && f.state == fileFailed || w.source.Changed == Replace)

		if isFresh {
			c.fresh = append(c.fresh, object)
		} else if f.state == fileFailed {
			now.leftOut++
		}

		switch {
		case isNew:
		case f.seen != object.ETag && object.ETag == f.etag:
			f.seen = f.etag // it is again what was loaded
			now.files = append(now.files, f)
		case f.seen != object.ETag:
			now.tell(f, object.ETag, Changed, isFresh)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(missing)) {
		f := missing[key]

		switch {
		case f.state == fileRemoved || !w.source.wants(key): // after a change of the prefix or the pattern, the file is none of the source
			continue
		case f.state == fileClaimed && !f.replaces:
			if err := w.forget(ctx, f); err != nil {
				return c, err
			}

			continue
		case w.source.Deleted == Remove:
			c.gone = append(c.gone, f)
		}

		if f.seen != "" {
			now.tell(f, "", Deleted, w.source.Deleted == Remove)
		}
	}

	return c, w.record(ctx, func(tx postgres.Tx) error { return tellFiles(ctx, tx, w.run, now) })
}
