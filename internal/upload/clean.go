package upload

import (
	"context"
	"errors"
	"time"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

const cleanBatch = 200

// Clean aborts sessions that expired and removes bytes whose time has come, by rows. The lease keeps a
// second cleaner away and fences a late one.
func (u Uploads) Clean(ctx context.Context, lease job.Lease) error {
	return errors.Join(u.expire(ctx, lease), u.remove(ctx, lease))
}

func (u Uploads) expire(ctx context.Context, lease job.Lease) error {
	for {
		var expired []Session

		err := u.DB.Do(ctx, func(q postgres.Querier) (err error) {
			expired, err = selectExpired(ctx, q, u.now(), cleanBatch)

			return err
		})
		if err != nil || len(expired) == 0 {
			return err
		}

		for _, session := range expired {
			if err := u.DB.InTx(ctx, func(tx postgres.Tx) error { return u.expireTx(ctx, tx, lease, session) }); err != nil {
				return err
			}
		}
	}
}

func (u Uploads) expireTx(ctx context.Context, tx postgres.Tx, lease job.Lease, session Session) error {
	if err := lease.FenceTx(ctx, tx); err != nil {
		return err
	}

	if err := lockSession(ctx, tx, session); err != nil {
		return err
	}

	current, err := selectSession(ctx, tx, session.Account, session.ID)
	if err != nil || current == nil || current.Status != Preparing {
		return err // finished meanwhile
	}

	if err := u.abandonTx(ctx, tx, *current); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, audit.Entry{
		Account: session.Account, At: u.now(), Actor: "service", Action: "upload.expire", Target: session.audit(),
	})
}

func (u Uploads) remove(ctx context.Context, lease job.Lease) error {
	for {
		var due []removable

		err := u.DB.Do(ctx, func(q postgres.Querier) (err error) {
			due, err = selectRemovable(ctx, q, u.now(), cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		for _, file := range due {
			if err := u.removeFile(ctx, lease, file); err != nil {
				return err
			}
		}
	}
}

// removeFile removes first and records then: a repeat finds nothing to remove, and that is fine.
func (u Uploads) removeFile(ctx context.Context, lease job.Lease, file removable) error {
	if file.uploadID != "" {
		if err := u.Store.AbortUpload(ctx, file.key, file.uploadID); err != nil {
			return err
		}
	}

	if err := u.Store.Delete(ctx, file.key); err != nil {
		return err
	}

	return u.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		return updateRemoved(ctx, tx, file, u.now())
	})
}

// Orphan is something in the store that no row knows.
type Orphan struct {
	Key      string
	UploadID string // of a multipart upload that was begun
	Size     int64
}

// Sweep removes what was begun at the store and died before its row knew: only on days on which nothing can
// be under way any more, and only so far back that what was missed once is found later.
func (u Uploads) Sweep(ctx context.Context) error {
	for day := sweepFrom; day <= sweepTo; day++ {
		prefix := dayPrefix(u.now().AddDate(0, 0, -day))
		if err := u.Orphans(ctx, prefix, func(orphan Orphan) error { return u.RemoveOrphan(ctx, orphan) }); err != nil {
			return err
		}
	}

	return nil
}

const (
	sweepFrom = 3  // days ago: a session lives for one
	sweepTo   = 14 // days ago

	// SafeAge is that of keys whose uploads nobody can be about to write down any more.
	SafeAge = sweepFrom * 24 * time.Hour

	// allPrefix is where all uploads are; each day has a folder.
	allPrefix = "uploads/"
)

func dayPrefix(day time.Time) string { return allPrefix + day.UTC().Format(time.DateOnly) + "/" }

// Orphans looks through everything below a prefix, and calls found for what no row knows.
func (u Uploads) Orphans(ctx context.Context, prefix string, found func(Orphan) error) error {
	var batch []Orphan

	flush := func() error {
		err := u.unknown(ctx, batch, found)
		batch = batch[:0]

		return err
	}

	for object, err := range u.Store.List(ctx, prefix) {
		if err != nil {
			return err
		}

		if batch = append(batch, Orphan{Key: object.Key, Size: object.Size}); len(batch) == cleanBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}

	for begun, err := range u.Store.Uploads(ctx, prefix) {
		if err != nil {
			return err
		}

		if batch = append(batch, Orphan{Key: begun.Key, UploadID: begun.ID}); len(batch) == cleanBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}

	return flush()
}

func (u Uploads) unknown(ctx context.Context, batch []Orphan, found func(Orphan) error) error {
	keys := make([]string, 0, len(batch))
	for _, orphan := range batch {
		keys = append(keys, orphan.Key)
	}

	var known map[string]string

	err := u.DB.Do(ctx, func(q postgres.Querier) (err error) {
		known, err = selectKnown(ctx, q, keys)

		return err
	})
	if err != nil {
		return err
	}

	for _, orphan := range batch {
		// A repeat of a prepare that died begins another upload of the same key: the first is nobody's.
		id, isKnown := known[orphan.Key]
		if !isKnown || (orphan.UploadID != "" && orphan.UploadID != id) {
			if err := found(orphan); err != nil {
				return err
			}
		}
	}

	return nil
}

// Lost calls found with the key of each completed file whose object is not in the store, or not of its size.
func (u Uploads) Lost(ctx context.Context, found func(key string) error) error {
	for after := ""; ; {
		var files []File

		err := u.DB.Do(ctx, func(q postgres.Querier) (err error) {
			files, err = selectCompleted(ctx, q, after, cleanBatch)

			return err
		})
		if err != nil || len(files) == 0 {
			return err
		}

		for _, file := range files {
			after = file.Key

			object, err := u.Store.Head(ctx, file.Key)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}

			if err != nil || object.Size != file.Size {
				if err := found(file.Key); err != nil {
					return err
				}
			}
		}
	}
}

// Inspection is what `quernd fsck` found.
type Inspection struct {
	Orphans []Orphan // in the store, and no row knows them
	Lost    []string // rows of completed files without their object
}

// Inspect compares all rows with all of the store, except for what is on a day less than age ago. It changes
// nothing. An upload that is being prepared looks like an orphan until its id is written down: ages below
// SafeAge are right only while nobody prepares.
func (u Uploads) Inspect(ctx context.Context, age time.Duration) (result Inspection, err error) {
	younger := dayPrefix(u.now().Add(-age).AddDate(0, 0, 1))

	err = u.Orphans(ctx, allPrefix, func(orphan Orphan) error {
		if orphan.Key < younger {
			result.Orphans = append(result.Orphans, orphan)
		}

		return nil
	})
	if err != nil {
		return result, err
	}

	err = u.Lost(ctx, func(key string) error {
		result.Lost = append(result.Lost, key)

		return nil
	})

	return result, err
}

// RemoveOrphan removes what Orphans found.
func (u Uploads) RemoveOrphan(ctx context.Context, orphan Orphan) error {
	if orphan.UploadID != "" {
		return u.Store.AbortUpload(ctx, orphan.Key, orphan.UploadID)
	}

	return u.Store.Delete(ctx, orphan.Key)
}
