package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/upload"
)

// Inspector runs the operators' commands on the object store.
type Inspector struct {
	operator Operator
	store    *blob.Store
	bucket   string
}

// NewInspector reads the settings of these commands from an environment in the format of os.Environ.
func NewInspector(environ []string, out io.Writer) (Inspector, error) {
	c, err := config.Read[config.Inspect](lookup(environ))
	if err != nil {
		return Inspector{}, err
	}

	store, err := openStore(c.S3, nil, nil)

	return Inspector{operator: Operator{config: c.Operate, out: out}, store: store, bucket: c.S3.Bucket}, err
}

// FsckAge is how long ago the day in a key must be for Fsck to check the object while the service runs.
const FsckAge = upload.SafeAge

// Fsck compares the rows in the database with the object store and prints the differences. If remove is set, it removes
// the objects without a row that have the given age. It can only report objects that are lost.
func (i Inspector) Fsck(ctx context.Context, age time.Duration, remove bool) error {
	return i.operator.withDatabase(ctx, func(db *postgres.DB) error {
		if remove {
			if err := i.place(db).check(ctx); err != nil {
				return err
			}
		}

		uploads := upload.Uploads{DB: db, Store: i.store, Now: time.Now}

		found, err := uploads.Inspect(ctx, age)
		if err != nil {
			return err
		}

		tables, err := lake.New(lake.Config{DB: db, Store: i.store, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}

		inTables, err := tables.Inspect(ctx)
		if err != nil {
			return err
		}

		exports := query.New(query.Config{DB: db, Exports: query.Exports{Store: i.store}})

		exported, err := exports.Inspect(ctx)
		if err != nil {
			return err
		}

		asked, err := run.New(run.Config{DB: db, Store: i.store}).Inspect(ctx)
		if err != nil {
			return err
		}

		lost := slices.Concat(found.Lost, inTables.Lost, exported.Lost, asked.Lost)
		orphans := slices.Concat(found.Orphans, inTables.Orphans, exported.Orphans, asked.Orphans)

		for _, key := range lost {
			_, _ = fmt.Fprintln(i.operator.out, "lost", key)
		}

		for _, orphan := range orphans {
			_, _ = fmt.Fprintln(i.operator.out, "orphan", orphan.Key, orphan.UploadID)

			if remove {
				if err := i.store.RemoveOrphan(ctx, orphan); err != nil {
					return err
				}
			}
		}

		return i.operator.said(nil, "%d lost, %d orphans%s", len(lost), len(orphans), map[bool]string{true: ", removed"}[remove])
	})
}

func (i Inspector) place(db *postgres.DB) *location {
	return &location{db: db, store: i.store, started: time.Now()}
}

// ClaimStore binds the location in the object store to this copy of the database. Processes that use another copy stop.
func (i Inspector) ClaimStore(ctx context.Context) error {
	return i.operator.withDatabase(ctx, func(db *postgres.DB) error {
		taken, err := i.place(db).claim(ctx)

		return i.operator.said(err, "the bucket %s now belongs to this database, epoch %d; any other quernd that uses the bucket stops within a minute",
			i.bucket, taken.Number)
	})
}

// AllowOrigins allows pages of these origins to upload to the bucket and to read from it.
func (i Inspector) AllowOrigins(ctx context.Context, origins []string) error {
	return i.operator.said(i.store.AllowOrigins(ctx, origins), "pages of %v can use the bucket", origins)
}
