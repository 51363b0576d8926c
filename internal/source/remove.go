package source

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// removal is the removal of the rows of files that are gone. Its id is recorded before the rows are removed. From then on only this removal, or one that takes its place
// after a failure, removes the rows of these files. So a worker that lost its lease cannot remove rows of a file that has come back since.
type removal struct {
	id, owner, dataset uuid.UUID
	files              []file
}

// removeGone removes the rows of files that are gone, if the store confirms that they are. If it lists no file at all, the source stops instead: a wrong prefix or a bucket that
// is not there for a moment must not empty a dataset.
func (w *working) removeGone(ctx context.Context, gone []file, isNoneLeft bool) error {
	if len(gone) == 0 {
		return nil
	}

	if isNoneLeft {
		return stop(StopGone, fmt.Sprintf("There is no file any more, and %d were loaded. Nothing was removed. Resume the source when the files are back. "+
			"If they are gone for good, let the source keep the rows of deleted files, or delete the source; and clear the dataset if its rows are to go too.", len(gone)))
	}

	var confirmed []file

	for _, f := range gone {
		_, err := w.files.Head(ctx, f.path)

		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return w.failed(err)
		default:
			continue // the list was not complete
		}

		if _, err := w.giveUp(ctx, f); err != nil {
			return err
		}

		confirmed = append(confirmed, f)
	}

	if len(confirmed) == 0 {
		return nil
	}

	return w.remove(ctx, confirmed)
}

// continueRemovals finishes the removals that an earlier run or attempt has named.
func (w *working) continueRemovals(ctx context.Context, known map[string]file) (isChanged bool, err error) {
	begun := map[uuid.UUID]*removal{}

	for _, key := range slices.Sorted(maps.Keys(known)) {
		f := known[key]
		if f.state != fileRemoving {
			continue
		}

		if begun[f.ingestion] == nil {
			begun[f.ingestion] = &removal{id: f.ingestion, owner: f.owner, dataset: f.dataset}
		}

		begun[f.ingestion].files = append(begun[f.ingestion].files, f)
	}

	for _, r := range begun {
		if err := w.finish(ctx, *r); err != nil {
			return false, err
		}
	}

	return len(begun) > 0, nil
}

func (w *working) remove(ctx context.Context, files []file) error {
	r := removal{id: uuid.Must(uuid.NewV7()), owner: w.dataset.Account, dataset: w.dataset.ID, files: files}
	if err := w.record(ctx, func(tx postgres.Tx) error { return nameRemoval(ctx, tx, w.source, r) }); err != nil {
		return err
	}

	return w.finish(ctx, r)
}

// finish removes the rows of a named removal, and records it.
func (w *working) finish(ctx context.Context, r removal) error {
	origins := make([]uuid.UUID, len(r.files))
	for n, f := range r.files {
		origins[n] = f.origin
	}

	removed, err := w.Ingest.DeleteOrigins(ctx, w.who, w.source.At, r.id, origins)

	switch {
	case fault.Is(err, fault.InvalidState): // an earlier attempt with this id has failed
		return w.remove(ctx, r.files)
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Forbidden):
		return stop(StopDataset, "The dataset is gone, or you may no longer change it.")
	case err != nil:
		return err
	}

	return w.settled(ctx, func(tx postgres.Tx) error { return settleRemoval(ctx, tx, w.run, r, removed) })
}
