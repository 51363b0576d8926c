package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const maxPaths = 100 // of one source

// checkPaths returns ValidationFailed for addresses that a source cannot load.
func checkPaths(paths []string) error {
	if len(paths) == 0 || len(paths) > maxPaths {
		return fault.Invalid("paths", fmt.Sprintf("must have 1 to %d addresses of files, relative to that of the connection", maxPaths))
	}

	for i, one := range paths {
		field := fmt.Sprintf("paths.%d", i)

		if wrong := connection.CheckPath(one); wrong != "" {
			return fault.Invalid(field, wrong)
		}

		if slices.Contains(paths[:i], one) {
			return fault.Invalid(field, "is in the list twice")
		}
	}

	return nil
}

// scratch is a file without a name, so nothing is left of it if this process dies.
type scratch struct {
	io.Writer // fails when the work folder is full

	file *os.File
}

func (w *working) newScratch() (scratch, error) {
	made, err := os.CreateTemp(w.Ingest.Dir, "source")
	if err != nil {
		return scratch{}, err
	}

	if err := os.Remove(made.Name()); err != nil {
		_ = made.Close()

		return scratch{}, err
	}

	return scratch{w.Ingest.Folder.Writer(made), made}, nil
}

func (s scratch) close() { _ = s.file.Close() }

func (s scratch) rewind() error {
	_, err := s.file.Seek(0, io.SeekStart)

	return err
}

// Empty removes the content.
func (s scratch) Empty() error {
	return cmp.Or(s.file.Truncate(0), s.rewind())
}

// loadPaths asks for each address, one after the other, and receives what is new. Ingestions begin when all were asked, because rows of files that are gone are removed first.
func (w *working) loadPaths(ctx context.Context, known map[string]file) error {
	known, err := w.correctedPaths(ctx, known)
	if err != nil {
		return err
	}

	var (
		received []file
		broken   error
		now      findings
		isNone   = true
		missing  = maps.Clone(known)
	)

	for _, one := range w.source.Paths {
		f, size, err := w.receivePath(ctx, &now, one, known[one])

		switch stopped, isStop := errors.AsType[stopError](err); {
		case errors.Is(err, errAbsent):
			continue
		case isStop && (stopped.Code == StopFile || isOfFile(err)):
			if broken == nil { // the others are loaded nevertheless
				broken = err
			}

			isNone = false
		case err != nil:
			return err
		}

		isNone = isNone && size == 0

		delete(missing, one)

		if f.state == fileClaimed {
			received = append(received, f)
		}
	}

	gone, err := w.gone(ctx, &now, missing)
	if err != nil {
		return err
	}

	if err := w.tell(ctx, &now); err != nil {
		return err
	}

	if err := w.removeGone(ctx, gone, isNone); err != nil {
		return err
	}

	for _, f := range received {
		if err := w.room(ctx); err != nil {
			return err
		}

		if err := w.begin(ctx, f); err != nil {
			return err
		}
	}

	if err := w.settleAll(ctx); err != nil {
		return err
	}

	return broken
}

// correctedPaths is corrected for the files that somebody must decide about. Their addresses are asked first.
func (w *working) correctedPaths(ctx context.Context, known map[string]file) (map[string]file, error) {
	var listed []object

	for _, stopped := range w.stops {
		if !w.source.wants(stopped.path) {
			continue
		}

		found, content, err := w.fetch(ctx, stopped.path, known[stopped.path])
		content.close()

		switch _, isStop := errors.AsType[stopError](err); {
		case errors.Is(err, errAbsent), isStop:
			continue
		case err != nil:
			return nil, err
		}

		listed = append(listed, found)
	}

	slices.SortFunc(listed, func(a, b object) int { return strings.Compare(a.Key, b.Key) })

	return w.corrected(ctx, known, listed)
}

// tell records what was found since the last call. The numbers of files that are not loaded are of all files until now.
func (w *working) tell(ctx context.Context, now *findings) error {
	err := w.record(ctx, func(tx postgres.Tx) error { return tellFiles(ctx, tx, w.run, *now) })
	*now = findings{empty: now.empty, leftOut: now.leftOut}

	return err
}

// errAbsent means that there is no file at an address. It is no fault, so that nothing else that is not found can be taken for it.
var errAbsent = errors.New("there is no such file")

// receivePath asks for one file. If its content is to be loaded, it returns the file claimed and its content received.
func (w *working) receivePath(ctx context.Context, now *findings, one string, known file) (f file, size int64, err error) {
	// Also ends a run that was paused or has another worker, before its next request.
	if err := w.tell(ctx, now); err != nil {
		return file{}, 0, err
	}

	if err := w.stillUsable(ctx); err != nil {
		return file{}, 0, err
	}

	found, content, err := w.fetch(ctx, one, known)
	defer content.close()

	if err != nil {
		return file{}, 0, err
	}

	isFresh := w.look(now, known, found)
	if !isFresh {
		return file{}, found.Size, nil
	}

	// What is told of the file must not be overwritten by what is claimed from now on.
	if err := w.tell(ctx, now); err != nil {
		return file{}, 0, err
	}

	if f, err = w.claimOnce(ctx, found, known); err != nil {
		return file{}, 0, err
	}

	if err := content.rewind(); err != nil {
		return file{}, 0, err
	}

	if isThere, err := w.store(ctx, f, content.file); err != nil || !isThere {
		return file{}, found.Size, err
	}

	return f, found.Size, nil
}

// fetch returns a file as it is now. If its content is not needed, the server need not send it.
func (w *working) fetch(ctx context.Context, one string, known file) (found object, content scratch, err error) {
	if content, err = w.newScratch(); err != nil {
		return object{}, content, err
	}

	var told connection.Validator
	if known.seen != "" && !w.isFresh(known, known.seen) {
		told = known.validator
	}

	answer, err := w.web.Fetch(ctx, one, told, w.Uploads.MaxFile, content)

	switch {
	case err != nil:
		return object{}, content, w.unfetched(ctx, one, err)
	case answer.Same:
		found = object{Object: blob.Object{Key: one, Size: known.size, ETag: known.seen}, validator: known.validator}
		if known.seen == connection.NoBytes {
			found.Size = 0
		}

		return found, content, nil
	default:
		return object{Object: blob.Object{Key: one, Size: answer.Size, ETag: answer.SHA256}, validator: answer.Validator}, content, nil
	}
}

// unfetched returns the error for a file that could not be read: that of this side, or of the connection, or a reason to stop.
func (w *working) unfetched(ctx context.Context, one string, err error) error {
	if fault.Is(err, fault.NotFound) {
		return errAbsent
	}

	if unfit, isUnfit := errors.AsType[*connection.UnfitError](err); isUnfit {
		return stop(StopFile, fmt.Sprintf("The file %q was not loaded: %s. Its rows stay as they were. Correct the server, or take the file out of the source; then resume the source.", one, unfit))
	}

	_, isFault := errors.AsType[*fault.Error](err)
	_, isDisk := errors.AsType[*fs.PathError](err)

	if isFault || isDisk || ctx.Err() != nil {
		return err
	}

	return w.failed(err)
}
