package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/postgres"
)

// submit creates the ingestion of a file, if it does not exist yet. If the content has expired meanwhile, the file is forgotten and new again.
func (w *working) submit(ctx context.Context, f file) (isForgotten bool, err error) {
	_, err = w.Ingest.Create(ctx, w.who, w.source.At, ingest.Request{
		ID: f.ingestion, Session: f.session, Mode: ingest.Append, Options: w.source.Options, Accept: w.source.Accept,
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

// stops returns why this file stops the source. It does not repeat the message of the ingestion: whoever reads it may have lost the right on the dataset.
func (f file) stops(code StopCode, format string) error {
	return stopError{Stop{code, fmt.Sprintf(format, f.path), f.ingestion}}
}

// wait waits for the end of an ingestion, and records it.
func (w *working) wait(ctx context.Context, f file) error {
	for {
		found, err := w.Ingest.Find(ctx, f.owner, f.dataset, f.ingestion)
		if err != nil {
			return err
		}

		if found == nil {
			return stop(StopDataset, "The dataset was deleted.")
		}

		switch found.Status {
		case ingest.Completed:
			f.state = fileLoaded

			return w.settled(ctx, func(tx postgres.Tx) error { return loadedFile(ctx, tx, w.run, f, found.RowsDone) })
		case ingest.Cancelled:
			f.state = fileSkipped

			return w.settled(ctx, func(tx postgres.Tx) error { return updateState(ctx, tx, w.source, f) })
		case ingest.Failed:
			f.state = fileFailed
			if err := w.settled(ctx, func(tx postgres.Tx) error { return updateState(ctx, tx, w.source, f) }); err != nil {
				return err
			}

			return f.stops(StopFile, "The file %q could not be loaded. Retry the ingestion, which says why, or resume the source to leave the file out.")
		case ingest.Waiting:
			return f.stops(StopDoubt, "The file %q waits for somebody to decide about a doubt. Retry its ingestion and accept the doubt, or cancel it to leave the file out.")
		case ingest.Queued, ingest.Running:
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}
