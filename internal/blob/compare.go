package blob

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
)

const (
	compareBatch = 200
	comparers    = 8
)

// Rows describes what should be in the store, according to the database.
type Rows struct {
	Prefix string
	// Known returns those of the keys that have a row. The value is the id of the one upload that may be open for the
	// key; an empty value allows any upload.
	Known func(ctx context.Context, keys []string) (map[string]string, error)
	// Next returns the sizes of objects that must exist, by key: the first limit keys after the given one.
	Next func(ctx context.Context, after string, limit int) (map[string]int64, error)
}

// Orphan is an object or an open upload in the store without a row.
type Orphan struct {
	Key      string
	UploadID string // id of the open multipart upload; empty for an object
	Size     int64
}

// Inspection is the result of comparing the rows with the store.
type Inspection struct {
	Orphans []Orphan
	Lost    []string // keys of objects that do not exist or have another size
}

// Inspect compares the rows with the store. It changes nothing.
func (s *Store) Inspect(ctx context.Context, rows Rows) (result Inspection, err error) {
	for orphan, err := range s.Orphans(ctx, rows) {
		if err != nil {
			return result, err
		}

		result.Orphans = append(result.Orphans, orphan)
	}

	for after := ""; ; {
		sizes, err := rows.Next(ctx, after, compareBatch)
		if err != nil || len(sizes) == 0 {
			return result, err
		}

		after = slices.Max(slices.Collect(maps.Keys(sizes)))

		lost, err := s.missing(ctx, sizes)
		if err != nil {
			return result, err
		}

		result.Lost = append(result.Lost, lost...)
	}
}

// Orphans yields objects and open uploads without a row. It stops after the first error.
func (s *Store) Orphans(ctx context.Context, rows Rows) iter.Seq2[Orphan, error] {
	return func(yield func(Orphan, error) bool) {
		var batch []Orphan

		flush := func() bool {
			unknown, err := rows.unknown(ctx, batch)
			batch = batch[:0]

			for _, orphan := range unknown {
				if !yield(orphan, nil) {
					return false
				}
			}

			return err == nil || yield(Orphan{}, err)
		}

		for found, err := range s.everything(ctx, rows.Prefix) {
			if err != nil {
				yield(Orphan{}, err)

				return
			}

			if batch = append(batch, found); len(batch) == compareBatch && !flush() {
				return
			}
		}

		flush()
	}
}

// everything yields the objects and the open uploads below a prefix.
func (s *Store) everything(ctx context.Context, prefix string) iter.Seq2[Orphan, error] {
	return func(yield func(Orphan, error) bool) {
		for object, err := range s.List(ctx, prefix) {
			if !yield(Orphan{Key: object.Key, Size: object.Size}, err) {
				return
			}
		}

		for upload, err := range s.Uploads(ctx, prefix) {
			if !yield(Orphan{Key: upload.Key, UploadID: upload.ID}, err) {
				return
			}
		}
	}
}

func (r Rows) unknown(ctx context.Context, batch []Orphan) (unknown []Orphan, err error) {
	keys := make([]string, len(batch))
	for i, found := range batch {
		keys[i] = found.Key
	}

	known, err := r.Known(ctx, keys)
	if err != nil {
		return nil, err
	}

	for _, found := range batch {
		upload, isKnown := known[found.Key]
		if !isKnown || (found.UploadID != "" && upload != "" && upload != found.UploadID) {
			unknown = append(unknown, found)
		}
	}

	return unknown, nil
}

func (s *Store) missing(ctx context.Context, sizes map[string]int64) (keys []string, err error) {
	var mu sync.Mutex

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(comparers)

	for key, size := range sizes {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			there, err := s.Head(ctx, key)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}

			if err != nil || there.Size != size {
				mu.Lock()
				defer mu.Unlock()

				keys = append(keys, key)
			}

			return nil
		})
	}

	err = group.Wait()

	return keys, err
}

// RemoveOrphan removes an object or upload that Orphans returned.
func (s *Store) RemoveOrphan(ctx context.Context, orphan Orphan) error {
	if orphan.UploadID != "" {
		return s.AbortUpload(ctx, orphan.Key, orphan.UploadID)
	}

	return s.Delete(ctx, orphan.Key)
}
