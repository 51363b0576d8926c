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

// remove claims the rows of a batch before it removes their objects: a binding that still wants one of them finds it
// aborted. One object that cannot be removed does not keep the others; the next run tries it again.
func (u Uploads) remove(ctx context.Context, lease job.Lease) error {
	var (
		last   removable
		failed []error
	)

	for {
		var due []removable

		err := u.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
			if err := lease.FenceTx(ctx, tx); err != nil {
				return err
			}

			due, err = claimRemovable(ctx, tx, u.now(), last, cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return errors.Join(append(failed, err)...)
		}

		for _, last = range due {
			err := u.removeFile(ctx, lease, last)
			if ctx.Err() != nil || fault.Is(err, fault.Unavailable) { // the others would fail as well
				return errors.Join(append(failed, err)...)
			}

			if err != nil {
				failed = append(failed, fmt.Errorf("removing %s: %w", last.key, err))
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

// Sweep removes what was begun at the store and died before its row knew: only on days on which nothing can
// be under way any more, and only so far back that what was missed once is found later.
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
	sweepFrom = 3  // days ago: a session lives for one
	sweepTo   = 14 // days ago

	// SafeAge is that of keys whose uploads nobody can be about to write down any more.
	SafeAge = sweepFrom * 24 * time.Hour

	// allPrefix is where all uploads are; each day has a folder.
	allPrefix = "uploads/"
)

func dayPrefix(day time.Time) string { return allPrefix + day.UTC().Format(time.DateOnly) + "/" }

// Inspect compares all rows with all of the store, except for what is on a day less than age ago. It changes
// nothing. An upload that is being prepared looks like an orphan until its id is written down: ages below
// SafeAge are right only while nobody prepares.
func (u Uploads) Inspect(ctx context.Context, age time.Duration) (blob.Inspection, error) {
	younger := dayPrefix(u.now().Add(-age).AddDate(0, 0, 1))

	found, err := u.Store.Inspect(ctx, stored(u.DB, allPrefix))
	found.Orphans = slices.DeleteFunc(found.Orphans, func(orphan blob.Orphan) bool { return orphan.Key >= younger })

	return found, err
}
