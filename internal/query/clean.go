package query

import (
	"context"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

const (
	cleanBatch = 200
	// stillUsed is how long after its time somebody may have the address of a file, or write it.
	stillUsed = 2 * addressTime
)

// clean removes exports whose time is over, by rows. It can be cut off anywhere: a row goes after its object.
func (q *Query) clean(ctx context.Context, _ job.Lease) error {
	for {
		var due []removable

		err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
			due, err = claimExpired(ctx, db, q.Now().Add(-stillUsed), cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		for _, one := range due {
			if err := q.remove(ctx, one); err != nil {
				return err
			}
		}
	}
}

func (q *Query) remove(ctx context.Context, one removable) error {
	if one.incomplete {
		for upload, err := range q.Exports.Store.Uploads(ctx, one.key) {
			if err != nil {
				return err
			}

			if err := q.Exports.Store.AbortUpload(ctx, upload.Key, upload.ID); err != nil {
				return err
			}
		}
	}

	if err := q.Exports.Store.Delete(ctx, one.key); err != nil {
		return err
	}

	return q.DB.Do(ctx, func(db postgres.Querier) error { return deleteExport(ctx, db, one) })
}

// Orphan is something in the store that no row knows.
type Orphan struct {
	Key      string
	UploadID string // of a multipart upload that was begun
}

// Inspection is what a comparison of rows and store found.
type Inspection struct {
	Orphans []Orphan
	Lost    []string // keys of files that people are given whose object is not there, or not of its size
}

// Inspect compares all exports with all of the store, and changes nothing.
func (q *Query) Inspect(ctx context.Context) (result Inspection, err error) {
	if result.Orphans, err = q.orphans(ctx); err != nil {
		return result, err
	}

	result.Lost, err = q.lost(ctx)

	return result, err
}

// RemoveOrphan removes what Inspect found.
func (q *Query) RemoveOrphan(ctx context.Context, orphan Orphan) error {
	if orphan.UploadID != "" {
		return q.Exports.Store.AbortUpload(ctx, orphan.Key, orphan.UploadID)
	}

	return q.Exports.Store.Delete(ctx, orphan.Key)
}

func (q *Query) orphans(ctx context.Context) (orphans []Orphan, err error) {
	var batch []Orphan

	flush := func() error {
		found, err := q.unknown(ctx, batch)
		orphans = append(orphans, found...)
		batch = batch[:0]

		return err
	}

	add := func(o Orphan, err error) error {
		if err != nil {
			return err
		}

		if batch = append(batch, o); len(batch) < cleanBatch {
			return nil
		}

		return flush()
	}

	for object, err := range q.Exports.Store.List(ctx, exportPrefix) {
		if err := add(Orphan{Key: object.Key}, err); err != nil {
			return nil, err
		}
	}

	for upload, err := range q.Exports.Store.Uploads(ctx, exportPrefix) {
		if err := add(Orphan{Key: upload.Key, UploadID: upload.ID}, err); err != nil {
			return nil, err
		}
	}

	return orphans, flush()
}

func (q *Query) unknown(ctx context.Context, batch []Orphan) (orphans []Orphan, err error) {
	keys := make([]string, len(batch))
	for i, o := range batch {
		keys[i] = o.Key
	}

	err = q.DB.Do(ctx, func(db postgres.Querier) error {
		known, err := knownExports(ctx, db, keys)

		for _, o := range batch {
			if !known[o.Key] {
				orphans = append(orphans, o)
			}
		}

		return err
	})

	return orphans, err
}

func (q *Query) lost(ctx context.Context) (lost []string, err error) {
	for after := ""; ; {
		var files []written

		err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
			files, err = readyExports(ctx, db, after, cleanBatch)

			return err
		})
		if err != nil || len(files) == 0 {
			return lost, err
		}

		for _, file := range files {
			after = file.key

			object, err := q.Exports.Store.Head(ctx, file.key)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return lost, err
			}

			if err != nil || object.Size != file.size {
				lost = append(lost, file.key)
			}
		}
	}
}
