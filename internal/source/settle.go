package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

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
		ID: f.ingestion, Session: f.session, Mode: mode, Origin: f.origin, Options: w.source.Options, Accept: w.source.Accept,
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
		f.state = fileSkipped

		return w.settled(ctx, func(tx postgres.Tx) error { return updateState(ctx, tx, w.source, f) })
	case ingest.Failed:
		f.state = fileFailed
		if err := w.settled(ctx, func(tx postgres.Tx) error { return updateState(ctx, tx, w.source, f) }); err != nil {
			return err
		}

		return f.stops(StopFile, "The file %q could not be loaded. Retry the ingestion, which says why, or resume the source to leave the file out.")
	default:
		return f.stops(StopDoubt, "The file %q waits for somebody to decide about a doubt. Retry its ingestion and accept the doubt, or cancel it to leave the file out.")
	}
}

// giveUp makes sure that nobody retries an ingestion that did not load an earlier content of a file. If somebody has done so already, it waits for the end.
func (w *working) giveUp(ctx context.Context, f file) error {
	if f.state != fileFailed && f.state != fileSkipped || f.ingestion == uuid.Nil {
		return nil
	}

	isOver, err := w.Ingest.Supersede(ctx, f.owner, f.dataset, f.ingestion)
	if err != nil || isOver {
		return err
	}

	return w.wait(ctx, f)
}
