package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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

		lost, orphans, err := i.compare(ctx, db, age)
		if err != nil {
			return err
		}

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

// compare returns the keys of objects that are lost, and objects that no row lists.
func (i Inspector) compare(ctx context.Context, db *postgres.DB, age time.Duration) (lost []string, orphans []blob.Orphan, err error) {
	tables, err := lake.New(lake.Config{DB: db, Store: i.store, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}

	exports := query.New(query.Config{DB: db, Exports: query.Exports{Store: i.store}})
	uploads := upload.Uploads{DB: db, Store: i.store, Now: time.Now}
	asked := run.New(run.Config{DB: db, Store: i.store})

	for _, inspect := range []func(context.Context) (blob.Inspection, error){
		func(ctx context.Context) (blob.Inspection, error) { return uploads.Inspect(ctx, age) }, tables.Inspect, exports.Inspect, asked.Inspect,
	} {
		found, err := inspect(ctx)
		if err != nil {
			return nil, nil, err
		}

		lost, orphans = append(lost, found.Lost...), append(orphans, found.Orphans...)
	}

	return lost, orphans, nil
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
