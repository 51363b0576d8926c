package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/backup"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/upload"
)

// listedAtOnce is how many rows of objects are read at once.
const listedAtOnce = 5000

// Backup writes a backup of the installation to a folder, or continues one. The service may run meanwhile.
func (i Inspector) Backup(ctx context.Context, path string) (err error) {
	folder, err := backup.Open(path, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()

	if folder.Complete() {
		return i.operator.said(nil, "%s has a complete backup, taken at %s; name a new folder for the next one", path, folder.About().TakenAt.Format(time.RFC3339))
	}

	return i.operator.withDatabase(ctx, func(db *postgres.DB) error {
		if err := i.place(db).check(ctx); err != nil {
			return err
		}

		if err := i.record(ctx, db, folder); err != nil {
			return err
		}

		about := folder.About()
		_ = i.operator.said(nil, "the database was dumped at %s; copying its %d objects", about.TakenAt.Format(time.RFC3339), about.Objects)

		from := backup.Source{Store: i.store, Now: time.Now, Listed: func(ctx context.Context, key string) (bool, error) { return listed(ctx, db, key) }}
		if err := folder.Fetch(ctx, from, &backup.Progress{Out: i.operator.out, All: about, Verb: "copied"}); err != nil {
			_ = i.operator.said(nil, "the backup is not complete: run the command again with the same folder to continue it")

			return err
		}

		return i.reportBackup(path, folder.About())
	})
}

// record dumps the database and lists its objects, unless an earlier process did.
func (i Inspector) record(ctx context.Context, db *postgres.DB, folder *backup.Folder) error {
	mine, err := db.Epoch(ctx)
	if err != nil {
		return err
	}

	begun := folder.About()
	if begun.ID != "" {
		if begun.Deployment != mine.Deployment || begun.Location != i.store.URI("") {
			return fault.New(fault.Conflict, "The folder has an unfinished backup of another installation: name a new folder.")
		}

		return nil
	}

	return db.Frozen(ctx, func(frozen *postgres.DB, state string) error {
		about := backup.About{ID: uuid.NewString(), Deployment: mine.Deployment, Location: i.store.URI(""), TakenAt: time.Now().UTC().Truncate(time.Millisecond)}

		return folder.Record(about,
			func(add func(key string, size int64) error) error { return eachObject(ctx, frozen, add) },
			func(to io.Writer) error { return postgres.Dump(ctx, directURL(i.operator.config.Database), state, to) })
	})
}

func (i Inspector) reportBackup(path string, about backup.About) error {
	_ = i.operator.said(nil, "%s has a complete backup, taken at %s: %d objects, %d MiB", path, about.TakenAt.Format(time.RFC3339), about.Objects, about.Bytes>>20)

	if about.Removed > 0 {
		_ = i.operator.said(nil, "%d objects of the dump were removed by the installation while the backup was taken: they had expired, or were erased", about.Removed)
	}

	if about.Lost > 0 {
		return fmt.Errorf("%d objects were missing in the store: `quernd fsck` names them. The backup can be restored without them", about.Lost)
	}

	return nil
}

// storedRows describes all objects of an installation.
func storedRows(db *postgres.DB) []blob.Rows {
	return append(query.Stored(db), upload.Stored(db), lake.Stored(db), run.Stored(db))
}

// eachObject calls do with all objects that the database lists.
func eachObject(ctx context.Context, db *postgres.DB, do func(key string, size int64) error) error {
	for _, rows := range storedRows(db) {
		for after := ""; ; {
			sizes, err := rows.Next(ctx, after, listedAtOnce)
			if err != nil {
				return err
			}

			keys := slices.Sorted(maps.Keys(sizes))
			for _, key := range keys {
				if err := do(key, sizes[key]); err != nil {
					return err
				}
			}

			if len(keys) == 0 {
				break
			}

			after = keys[len(keys)-1]
		}
	}

	return nil
}

// listed reports whether the database still lists an object.
func listed(ctx context.Context, db *postgres.DB, key string) (bool, error) {
	for _, rows := range storedRows(db) {
		if strings.HasPrefix(key, rows.Prefix) {
			known, err := rows.Known(ctx, []string{key})
			_, is := known[key]

			return is, err
		}
	}

	return false, nil
}
