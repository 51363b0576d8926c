package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/backup"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/upload"
)

// restoring is the comment of a database while a backup is restored into it.
type restoring struct {
	Deployment string `json:"quernd restore"` // the new id of the installation, which also claims the location
	Backup     string `json:"backup"`
	Location   string `json:"location"`
	Adopted    bool   `json:"adopted"` // the rows are those of the new installation
}

// Restore restores the backup in a folder into an empty database and an empty location, or continues a restore.
func (i Inspector) Restore(ctx context.Context, path string) (err error) {
	folder, err := backup.Open(path, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()

	if !folder.Complete() {
		return fault.New(fault.Conflict, path+" has no complete backup: run `quernd backup` with this folder again, with the settings of the installation that it is from.")
	}

	db, err := i.operator.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()

	r := restorer{Inspector: i, db: db, folder: folder, to: i.store.URI("")}
	if err := r.run(ctx); err != nil {
		if r.note.Deployment != "" {
			_ = i.operator.said(nil, "the restore is not complete: run the command again to continue it")
		}

		return err
	}

	return r.check(ctx, path)
}

type restorer struct {
	Inspector

	db     *postgres.DB
	folder *backup.Folder
	to     string // prefix of the new addresses
	note   restoring
}

func (r *restorer) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}

	if err := r.reserve(ctx); err != nil {
		return err
	}

	if err := r.rows(ctx); err != nil {
		return err
	}

	if err := r.objects(ctx); err != nil {
		return err
	}

	if _, err := r.place(r.db).claim(ctx); err != nil {
		return err
	}

	return r.db.InTx(ctx, func(tx postgres.Tx) error { return postgres.SetNoteTx(ctx, tx, "") })
}

// begin marks an empty database, or reads the mark of an earlier process. A database without the mark is never changed, because it may be
// in use.
func (r *restorer) begin(ctx context.Context) error {
	note, err := r.db.Note(ctx)
	if err != nil {
		return err
	}

	about := r.folder.About()

	if json.Unmarshal([]byte(note), &r.note) == nil && r.note.Deployment != "" {
		if r.note.Backup != about.ID || r.note.Location != r.to {
			return fault.New(fault.Conflict, "A restore of another backup, or into another bucket or prefix, has begun in this database: continue that one, or create a new database.")
		}

		return nil
	}

	empty, err := r.db.IsEmpty(ctx)
	if err != nil {
		return err
	}

	if !empty {
		return fault.New(fault.Conflict, "The database is not empty: create a new one for the restore.")
	}

	if err := r.requireEmpty(ctx); err != nil {
		return err
	}

	r.note = restoring{Deployment: uuid.NewString(), Backup: about.ID, Location: r.to}

	return r.db.InTx(ctx, func(tx postgres.Tx) error { return r.mark(ctx, tx) })
}

func (r *restorer) mark(ctx context.Context, tx postgres.Tx) error {
	note, err := json.Marshal(r.note)
	if err != nil {
		return err
	}

	return postgres.SetNoteTx(ctx, tx, string(note))
}

func (r *restorer) requireEmpty(ctx context.Context) error {
	for _, err := range r.store.List(ctx, "") {
		if err != nil {
			return err
		}

		return fault.New(fault.Conflict, fmt.Sprintf("There are objects below %s: use another bucket or prefix for the restore.", r.to))
	}

	return nil
}

// reserve claims the location for this restore, so that no other restore and no other installation can use it.
func (r *restorer) reserve(ctx context.Context) error {
	holder, err := r.store.Deployment(ctx)
	if fault.Is(err, fault.NotFound) {
		err = r.requireEmpty(ctx)
	}

	if err != nil || holder == r.note.Deployment {
		return err
	}

	return r.store.ClaimDeployment(ctx, r.note.Deployment)
}

// rows restores the database and makes its rows those of a new installation.
func (r *restorer) rows(ctx context.Context) error {
	empty, err := r.db.IsEmpty(ctx)
	if err != nil {
		return err
	}

	if empty {
		if err := r.folder.CheckDump(); err != nil {
			return err
		}

		if err := postgres.Undump(ctx, directURL(r.operator.config.Database), r.folder.Dump()); err != nil {
			return err
		}

		_ = r.operator.said(nil, "the database is restored, as of %s", r.folder.About().TakenAt.Format(time.RFC3339))
	}

	if r.note.Adopted {
		return nil
	}

	// The backup may be from an older release.
	if err := r.operator.Migrate(ctx, ""); err != nil {
		return err
	}

	r.note.Adopted = true
	move := r.move()

	return r.db.InTx(ctx, func(tx postgres.Tx) error {
		if err := postgres.RenameTx(ctx, tx, r.note.Deployment); err != nil {
			return err
		}

		if err := move.RowsTx(ctx, tx); err != nil {
			return err
		}

		if err := upload.EndBegunTx(ctx, tx, time.Now()); err != nil {
			return err
		}

		return r.mark(ctx, tx)
	})
}

func (r *restorer) move() lake.Move {
	return lake.Move{
		From: r.folder.About().Location, To: r.to,
		Read: func(_ context.Context, key string) ([]byte, error) { return r.folder.Read(key) },
		Write: func(ctx context.Context, key string, content []byte) error {
			_, err := r.store.Write(ctx, key, bytes.NewReader(content))

			return err
		},
	}
}

// objects writes the objects that are not in the location yet. Only an earlier process of this restore can have written there.
func (r *restorer) objects(ctx context.Context) error {
	for begun, err := range r.store.Uploads(ctx, "") {
		if err != nil {
			return err
		}

		if err := r.store.AbortUpload(ctx, begun.Key, begun.ID); err != nil {
			return err
		}
	}

	about := r.folder.About()
	moves := about.Location != r.to
	progress := &backup.Progress{Out: r.operator.out, All: about, Verb: "restored"}

	if err := r.folder.Each(ctx, func(ctx context.Context, o backup.Object) error {
		defer progress.Add(o)

		return r.object(ctx, o, moves && lake.IsMetadata(o.Key))
	}); err != nil || !moves {
		return err
	}

	_ = r.operator.said(nil, "changing the addresses in tables from %s to %s", about.Location, r.to)

	return r.move().Objects(ctx, r.db)
}

// object writes an object. It only checks one whose addresses change, because it is written afterwards.
func (r *restorer) object(ctx context.Context, o backup.Object, changes bool) error {
	if !changes {
		there, err := r.store.Head(ctx, o.Key)
		if err == nil && there.Size == o.Size {
			return nil
		}

		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}

	content, err := r.folder.Open(o)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()

	if changes {
		_, err = io.Copy(io.Discard, content)
	} else {
		_, err = r.store.Write(ctx, o.Key, content)
	}

	return err
}

// check compares the restored database with the restored objects.
func (r *restorer) check(ctx context.Context, path string) error {
	lost, orphans, err := r.compare(ctx, r.db, 0)
	if err != nil {
		return err
	}

	about := r.folder.About()

	_ = r.operator.said(nil, "%s is restored into %s, as of %s", path, r.to, about.TakenAt.Format(time.RFC3339))
	_ = r.operator.said(nil, "what was erased after that time must be erased again: see docs/backup.md")

	if missing := int64(len(lost)) - about.Lost - about.Removed; missing > 0 || len(orphans) > 0 {
		return fmt.Errorf("%d objects are missing and %d are unknown: see `quernd fsck`", len(lost), len(orphans))
	}

	return r.operator.said(nil, "%d lost, %d orphans", len(lost), len(orphans))
}
