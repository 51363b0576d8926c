package app

import (
	"context"
	"errors"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/backup"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/takeout"
)

// ExportUser copies all that a user has into a new folder. The service may run meanwhile.
func (i Inspector) ExportUser(ctx context.Context, username, folder string) error {
	return i.operator.withDatabase(ctx, func(db *postgres.DB) (err error) {
		account, err := auth.Accounts{DB: db, Now: time.Now}.Export(ctx, username)
		if err != nil {
			return err
		}

		var all *takeout.Takeout

		err = db.Frozen(ctx, func(frozen *postgres.DB, _ string) (err error) {
			all, err = takeout.Begin(ctx, frozen, folder, takeout.About{Username: username, Account: account, TakenAt: time.Now().UTC().Truncate(time.Millisecond)})

			return err
		})
		if err != nil {
			return err
		}

		defer func() { err = errors.Join(err, all.Close()) }()

		progress := &backup.Progress{Out: i.operator.out, Verb: "copied"}
		for _, one := range all.Listed {
			progress.All.Objects++
			progress.All.Bytes += one.Size
		}

		if err := all.Copy(ctx, i.store, func(size int64) { progress.Add(backup.Object{Size: size}) }); err != nil {
			return err
		}

		for _, path := range all.Missing {
			_ = i.operator.said(nil, "%s was removed meanwhile", path)
		}

		var rows int64
		for _, count := range all.Tables {
			rows += count
		}

		return i.operator.said(all.Finish(), "%s has all of %s: %d rows of %d tables, and %d files with %d bytes", folder, username, rows, len(all.Tables), all.Files, all.Bytes)
	})
}
