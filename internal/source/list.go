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

// object is a file as the other system has it now.
type object struct {
	blob.Object

	validator connection.Validator // of an address
}

// list returns the files that the source wants, in the order of their paths, also those without any bytes.
func (w *working) list(ctx context.Context) (listed []object, err error) {
	last := ""

	for found, err := range w.bucket.List(ctx, w.source.Prefix) {
		switch {
		case err != nil:
			return nil, connection.Failed(connection.Problem(err))
		case len(listed) == maxListed:
			return nil, fault.New(fault.LimitExceeded, fmt.Sprintf("There are more than %d files. Use a longer prefix, and several sources.", maxListed))
		case found.Key <= last: // a lying store may repeat itself
			continue
		case !w.source.wants(found.Key) || !utf8.ValidString(found.Key) || strings.ContainsRune(found.Key, 0):
			continue
		case found.ETag == "":
			return nil, stop(StopFile, fmt.Sprintf(
				"The store gives no ETag for the file %q, so nobody can tell whether its content is another one. Nothing was loaded. Use a store that gives ETags, or leave the file out with prefix and pattern; then resume the source.", found.Key))
		}

		last = found.Key
		listed = append(listed, object{Object: found})
	}

	return listed, nil
}

// compared is what a run does about the files that were listed.
type compared struct {
	fresh      []object // to load
	gone       []file   // whose rows are to be removed
	isNoneLeft bool     // no file with any bytes was listed
}

// findings are what a run tells for the first time.
type findings struct {
	files            []file // with what was seen of them
	changed, deleted int64
	empty, leftOut   int64 // of all listed files
	notes            []Note
}

func (n *findings) tell(f file, found object, event Event, isActedUpon bool) {
	f.seen, f.validator = found.ETag, found.validator
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
func (w *working) compare(ctx context.Context, known map[string]file, listed []object) (c compared, err error) {
	var (
		now     findings
		missing = maps.Clone(known)
	)

	c.isNoneLeft = true

	for _, found := range listed {
		delete(missing, found.Key)

		if found.Size > 0 {
			c.isNoneLeft = false
		}

		if w.look(&now, known[found.Key], found) {
			c.fresh = append(c.fresh, found)
		}
	}

	if c.gone, err = w.gone(ctx, &now, missing); err != nil {
		return c, err
	}

	return c, w.record(ctx, func(tx postgres.Tx) error { return tellFiles(ctx, tx, w.run, now) })
}

// isFresh reports whether a content of a file must be loaded. f is what is known of the file.
func (w *working) isFresh(f file, etag string) bool {
	hasNoRows := f.state == fileFailed || f.state == fileSkipped // of its last content

	return f.isNew() || f.etag != etag && (w.mayReplace(f) && hasNoRows || w.source.Changed == Replace)
}

// isNew reports whether the content of the file must be loaded, whatever it is.
func (f file) isNew() bool {
	return f.state == "" || f.state == fileClaimed || f.state == fileStale || f.state == fileRemoved
}

// look compares a file that is there with what is known of it, and reports whether it is to be loaded.
func (w *working) look(now *findings, f file, found object) bool {
	if found.Size == 0 {
		now.empty++

		if hasRows := f.state != "" && f.state != fileClaimed && f.state != fileRemoved; hasRows && f.seen != found.ETag {
			now.tell(f, found, Emptied, false)
		}

		return false
	}

	isFresh := w.isFresh(f, found.ETag)
	if !isFresh && f.state == fileFailed {
		now.leftOut++
	}

	switch {
	case f.isNew():
	case f.seen != found.ETag && found.ETag != f.etag:
		now.tell(f, found, Changed, isFresh)
	case f.seen != found.ETag || f.validator != found.validator: // it is again what was loaded, or the server says in another way that it is
		f.seen, f.validator = found.ETag, found.validator
		now.files = append(now.files, f)
	}

	return isFresh
}

// gone returns the files whose rows are to be removed, of those that are known and were not found.
func (w *working) gone(ctx context.Context, now *findings, missing map[string]file) (gone []file, err error) {
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		f := missing[key]

		switch {
		case f.state == fileRemoved || !w.source.wants(key): // after a change of what the source loads, the file is none of it
			continue
		case f.state == fileClaimed && !f.replaces:
			if err := w.forget(ctx, f); err != nil {
				return nil, err
			}

			continue
		case w.source.Deleted == Remove:
			gone = append(gone, f)
		}

		if f.seen != "" {
			now.tell(f, object{}, Deleted, w.source.Deleted == Remove)
		}
	}

	return gone, nil
}
