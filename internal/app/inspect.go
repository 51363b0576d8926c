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
}

// NewInspector reads the settings that these commands need from an environment as os.Environ gives it.
func NewInspector(environ []string, out io.Writer) (Inspector, error) {
	c, err := config.Read[config.Inspect](lookup(environ))
	if err != nil {
		return Inspector{}, err
	}

	store, err := openStore(c.S3)

	return Inspector{operator: Operator{config: c.Operate, out: out}, store: store}, err
}

// FsckAge is how long ago the day of a key must be for Fsck to judge it while the service runs.
const FsckAge = upload.SafeAge

// Fsck compares the rows with the object store and says what does not fit. Told to, it removes what no row
// knows, of that age; files that are lost it can only name.
func (i Inspector) Fsck(ctx context.Context, age time.Duration, remove bool) error {
	return i.operator.withDatabase(ctx, func(db *postgres.DB) error {
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

// AllowOrigins lets pages of these origins upload to the bucket and read from it.
func (i Inspector) AllowOrigins(ctx context.Context, origins []string) error {
	return i.operator.said(i.store.AllowOrigins(ctx, origins), "pages of %v may use the bucket", origins)
}
