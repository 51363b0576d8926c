package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/postgres"
)

// submit creates the ingestion of a file, if it does not exist yet. If the content has expired meanwhile, the file is forgotten and new again.
func (w *working) submit(ctx context.Context, f file) (isForgotten bool, err error) {
	mode := ingest.Append
	if f.replaces {
		mode = ingest.Merge
	}

	_, err = w.Ingest.Create(ctx, w.who, w.source.At, ingest.Request{
		ID: f.ingestion, Session: f.session, Mode: mode, Origin: f.origin, Source: w.source.ID, Options: w.source.Options, Accept: w.source.Accept,
	})

	switch {
	case fault.Is(err, fault.InvalidState):
		return true, w.forget(ctx, f)
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Forbidden):
		return false, stop(StopDataset, "The dataset is gone, or you may no longer change it.")
	default:
		return false, err
	}
}

// settleAll waits for all ingestions that are in progress.
func (w *working) settleAll(ctx context.Context) (err error) {
	for len(w.loading) > 0 {
		settled := w.settleOldest(ctx)
		if !errors.As(settled, new(stopError)) && settled != nil {
			return settled
		}

		if err == nil { // the first reason to stop is told
			err = settled
		}
	}

	return err
}

func (w *working) settleOldest(ctx context.Context) error {
	f := w.loading[0]
	w.loading = w.loading[1:]

	if err := w.wait(ctx, f); err != nil {
		return err
	}

	w.window = maxLoading // the first file has made the dataset and has shown that files can be read

	return nil
}

// stopFor returns why this file stops the source. It does not repeat the message of the ingestion: whoever reads it may have lost the right on the dataset.
func (w *working) stopFor(f file, code StopCode, of ingest.Ingestion) error {
	stopped := stopError{Stop: Stop{Code: code, Ingestion: f.ingestion}, path: f.path, isOutdated: !of.HasOptions(w.source.Options)}
	stopped.Reason = reasonFor([]stopError{stopped})
	w.stops = append(w.stops, stopped)

	return stopped
}

// isOfFile reports whether an error is that somebody must decide about a file.
func isOfFile(err error) bool {
	stopped, isStop := errors.AsType[stopError](err)

	return isStop && stopped.path != ""
}

// reasonFor returns why these files stop the source.
func reasonFor(stops []stopError) string {
	var reasons []string

	for _, one := range []struct {
		code      StopCode
		file      string
		files     string
		hint, all string
	}{
		{
			StopDoubt, "The file %s waits for somebody to decide about a doubt.", "%d files wait for somebody to decide about a doubt: %s.",
			"Retry its ingestion and accept the doubt, or cancel it to leave the file out.", "Retry their ingestions and accept the doubts, or cancel them to leave the files out.",
		},
		{
			StopFile, "The file %s could not be loaded.", "%d files could not be loaded: %s.",
			"Its ingestion has the reason. Retry the ingestion, or resume the source to leave the file out.",
			"Their ingestions have the reasons. Retry the ingestions, or resume the source to leave the files out.",
		},
	} {
		var paths []string

		for _, stopped := range stops {
			if stopped.Code == one.code {
				paths = append(paths, strconv.Quote(stopped.path))
			}
		}

		switch count := len(paths); {
		case count == 1:
			reasons = append(reasons, fmt.Sprintf(one.file, paths[0]), one.hint)
		case count > 1:
			named := strings.Join(paths[:min(count, namedFiles)], ", ")
			if count > namedFiles {
				named += fmt.Sprintf(" and %d more", count-namedFiles)
			}

			reasons = append(reasons, fmt.Sprintf(one.files, count, named), one.all)
		}
	}

	return strings.Join(reasons, " ")
}

// namedFiles is how many files of a kind the reason of a source names.
const namedFiles = 3

// together returns why the run has ended: also the other files, if it is because of one.
func (w *working) together(why stopError) stopError {
	if why.path == "" || len(w.stops) < 2 {
		return why
	}

	why.Reason = reasonFor(w.stops)

	// A doubt must be decided about, and files that could not be loaded are left out by resuming.
	if at := slices.IndexFunc(w.stops, func(s stopError) bool { return s.Code == StopDoubt }); at >= 0 {
		why.Code, why.Ingestion = StopDoubt, w.stops[at].Ingestion
	}

	return why
}

// mayReplace reports whether another content of a file that is not loaded may take its place: no rows of an earlier content are in the dataset, or they may be replaced.
func (w *working) mayReplace(f file) bool { return w.source.Changed == Replace || !f.replaces }

// corrected gives up the ingestions that somebody must decide about if the file has another content now, or the source other options. The file is then loaded as it is now. It
// returns the files after this, and the reason to stop if others are left.
func (w *working) corrected(ctx context.Context, known map[string]file, listed []object) (map[string]file, error) {
	stops := w.stops
	w.stops = nil

	for _, stopped := range stops {
		f := known[stopped.path]

		at, isListed := slices.BinarySearchFunc(listed, f.path, func(o object, path string) int { return strings.Compare(o.Key, path) })
		if !isListed || listed[at].Size == 0 || listed[at].ETag == f.etag && !stopped.isOutdated || !w.mayReplace(f) {
			w.stops = append(w.stops, stopped)

			continue
		}

		if err := w.supersede(ctx, f); err != nil && !isOfFile(err) {
			return nil, err
		}
	}

	if len(w.stops) > 0 {
		return nil, w.stops[0]
	}

	if len(stops) == 0 {
		return known, nil
	}

	return w.known(ctx)
}

// supersede gives up the ingestion of a file. It is recorded as a failed one, whose file is loaded again.
func (w *working) supersede(ctx context.Context, f file) error {
	isOver, err := w.Ingest.Supersede(ctx, f.owner, f.dataset, f.ingestion)
	if err != nil {
		return err
	}

	if !isOver { // somebody has accepted the doubt meanwhile
		return w.wait(ctx, f)
	}

	return w.record(ctx, func(tx postgres.Tx) error {
		entry := w.who.Audit(f.owner, w.now(), "ingestion.cancel", w.dataset.Audit())
		entry.Detail = f.ingestion.String()

		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}

		return forgetContent(ctx, tx, w.source, f)
	})
}

// ended waits for the end of an ingestion, or until it waits for somebody.
func (w *working) ended(ctx context.Context, owner, dataset, id uuid.UUID) (ingest.Ingestion, error) {
	for {
		found, err := w.Ingest.Find(ctx, owner, dataset, id)

		switch {
		case err != nil:
			return ingest.Ingestion{}, err
		case found == nil:
			return ingest.Ingestion{}, stop(StopDataset, "The dataset was deleted.")
		case found.Status != ingest.Queued && found.Status != ingest.Running:
			return *found, nil
		}

		select {
		case <-ctx.Done():
			return ingest.Ingestion{}, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// wait waits for the end of the ingestion of a file, and records it.
func (w *working) wait(ctx context.Context, f file) error {
	found, err := w.ended(ctx, f.owner, f.dataset, f.ingestion)
	if err != nil {
		return err
	}

	switch found.Status {
	case ingest.Completed:
		f.state = fileLoaded

		return w.settled(ctx, func(tx postgres.Tx) error { return loadedFile(ctx, tx, w.run, f, found) })
	case ingest.Cancelled:
		if found.IsSuperseded() { // an attempt ended before this was recorded
			return w.settled(ctx, func(tx postgres.Tx) error { return forgetContent(ctx, tx, w.source, f) })
		}

		f.state = fileSkipped

		return w.settled(ctx, func(tx postgres.Tx) error { return updateState(ctx, tx, w.source, f) })
	case ingest.Failed:
		f.state = fileFailed
		if err := w.settled(ctx, func(tx postgres.Tx) error { return updateState(ctx, tx, w.source, f) }); err != nil {
			return err
		}

		return w.stopFor(f, StopFile, found)
	default:
		return w.stopFor(f, StopDoubt, found)
	}
}

// giveUp makes sure that nobody retries an ingestion that did not load an earlier content of a file, and reports whether nobody will. If somebody has done so already, it waits for
// the end.
func (w *working) giveUp(ctx context.Context, f file) (isOver bool, err error) {
	if f.state != fileFailed && f.state != fileSkipped || f.ingestion == uuid.Nil {
		return false, nil
	}

	isOver, err = w.Ingest.Supersede(ctx, f.owner, f.dataset, f.ingestion)
	if err != nil || isOver {
		return isOver, err
	}

	return false, w.wait(ctx, f)
}
