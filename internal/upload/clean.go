package upload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

const cleanBatch = 200

// Clean aborts expired sessions and removes the objects of files that are due, as the rows say. The lease prevents a
// second cleaner from running, and fences off a late one.
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
			if err := lease.InTx(ctx, func(tx postgres.Tx) error { return u.expireTx(ctx, tx, session) }); err != nil {
				return err
			}
		}
	}
}

func (u Uploads) expireTx(ctx context.Context, tx postgres.Tx, session Session) error {
	if err := lockSession(ctx, tx, session); err != nil {
		return err
	}

	current, err := selectSession(ctx, tx, session.Account, session.ID)
	if err != nil || current == nil || current.Status != Preparing {
		return err // finished in the meantime
	}

	if err := u.abandonTx(ctx, tx, *current); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, audit.Entry{
		Account: session.Account, At: u.now(), Actor: "service", Action: "upload.expire", Target: session.audit(),
	})
}

// remove claims the rows of a batch before it removes their objects, so that a binding that comes later finds the
// file aborted. An object that cannot be removed does not stop the others; the next run tries it again.
func (u Uploads) remove(ctx context.Context, lease job.Lease) error {
	var (
		last   removable
		failed []error
	)

	for {
		var due []removable

		err := lease.InTx(ctx, func(tx postgres.Tx) (err error) {
			due, err = claimRemovable(ctx, tx, u.now(), last, cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return errors.Join(append(failed, err)...)
		}

		for _, last = range due {
			err := u.removeFile(ctx, lease, last)
			if ctx.Err() != nil || fault.Is(err, fault.Unavailable) { // the others would fail too
				return errors.Join(append(failed, err)...)
			}

			if err != nil {
				failed = append(failed, fmt.Errorf("removing %s: %w", last.key, err))
			}
		}
	}
}

// removeFile removes the object first and then records it. Repeating it is safe, because removing an object that does
// not exist succeeds.
func (u Uploads) removeFile(ctx context.Context, lease job.Lease, file removable) error {
	if file.uploadID != "" {
		if err := u.Store.AbortUpload(ctx, file.key, file.uploadID); err != nil {
			return err
		}
	}

	if err := u.Store.Delete(ctx, file.key); err != nil {
		return err
	}

	return lease.InTx(ctx, func(tx postgres.Tx) error { return updateRemoved(ctx, tx, file, u.now()) })
}

// Sweep removes multipart uploads and objects that no row lists, because the process died before it stored their ids.
// It checks only days old enough that no upload can be in progress, and several of them, so that something missed
// once is found later.
func (u Uploads) Sweep(ctx context.Context) error {
	for day := sweepFrom; day <= sweepTo; day++ {
		for orphan, err := range u.Store.Orphans(ctx, stored(u.DB, dayPrefix(u.now().AddDate(0, 0, -day)))) {
			if err != nil {
				return err
			}

			if err := u.Store.RemoveOrphan(ctx, orphan); err != nil {
				return err
			}
		}
	}

	return nil
}

const (
	sweepFrom = 3  // days ago: a session lasts one day
	sweepTo   = 14 // days ago

	// SafeAge is the age from which no request can still be about to store the id of an upload.
	SafeAge = sweepFrom * 24 * time.Hour

	// allPrefix is the prefix of all uploads. Each day has its own folder.
	allPrefix = "uploads/"
)

func dayPrefix(day time.Time) string { return allPrefix + day.UTC().Format(time.DateOnly) + "/" }

// Stored describes the objects that the store should have for uploads.
func Stored(db *postgres.DB) blob.Rows { return stored(db, allPrefix) }

// EndBegunTx ends all sessions that are being prepared: their parts are not in a copy of the location.
func EndBegunTx(ctx context.Context, tx postgres.Tx, now time.Time) error {
	return endBegun(ctx, tx, now)
}

// Inspect compares all rows with all objects in the store, except those of days less than age ago. It changes
// nothing. An upload that is being prepared looks like an orphan until its id is stored, so results for an age below
// SafeAge are correct only while no session is being prepared.
func (u Uploads) Inspect(ctx context.Context, age time.Duration) (blob.Inspection, error) {
	younger := dayPrefix(u.now().Add(-age).AddDate(0, 0, 1))

	found, err := u.Store.Inspect(ctx, stored(u.DB, allPrefix))
	found.Orphans = slices.DeleteFunc(found.Orphans, func(orphan blob.Orphan) bool { return orphan.Key >= younger })

	return found, err
}
