package lake

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	cleanBatch = 200
	cleaners   = 8

	// everything is where all objects are.
	everything = "lake/"
)

// RemoveTableTx marks the table of a dataset that is deleted. From then on nobody commits to it; its objects go
// after the grace.
func RemoveTableTx(ctx context.Context, tx postgres.Tx, t Table, at time.Time) error {
	return removeTable(ctx, tx, t, at)
}

// KeepTableTx undoes RemoveTableTx. NotFound: it is too late.
func KeepTableTx(ctx context.Context, tx postgres.Tx, t Table) error {
	tooLate, err := keepTable(ctx, tx, t)
	if err == nil && tooLate {
		err = fault.Absent()
	}

	return err
}

// MoveTableTx hands a table over to another dataset, also of another account. No object moves: keys tell nothing
// of who owns them.
func MoveTableTx(ctx context.Context, tx postgres.Tx, from, to Table) error {
	return moveTable(ctx, tx, from, to)
}

// Clean removes the objects whose time has come, and tables whose grace is over, by rows. Several may do so at
// once, and it can be cut off anywhere: a row goes after its object. What is given as gone runs in the transaction
// in which the last row of a removed table goes, also for one that never had a snapshot.
func (l *Lake) Clean(ctx context.Context, gone func(tx postgres.Tx, t Table) error) error {
	for {
		ended, err := l.cleanTables(ctx, gone)
		if err != nil || ended == 0 {
			return err
		}
	}
}

// cleanTables removes some tables whose grace is over, and every object whose time has come. It returns how many
// tables are gone.
func (l *Lake) cleanTables(ctx context.Context, gone func(tx postgres.Tx, t Table) error) (ended int, err error) {
	var (
		tables []Table
		before = l.now().Add(-l.grace)
	)

	err = l.db.Do(ctx, func(q querier) error {
		tables, err = selectRemoved(ctx, q, before, cleanBatch)

		return err
	})
	if err != nil {
		return 0, err
	}

	for _, t := range tables {
		if err := l.db.InTx(ctx, func(tx postgres.Tx) error { return beginRemoval(ctx, tx, t, before, l.now()) }); err != nil {
			return 0, err
		}
	}

	if err := l.cleanFiles(ctx); err != nil {
		return 0, err
	}

	for _, t := range tables {
		var isGone bool

		err := l.db.InTx(ctx, func(tx postgres.Tx) (err error) {
			if isGone, err = endRemoval(ctx, tx, t); err != nil || !isGone {
				return err
			}

			return gone(tx, t)
		})
		if err != nil {
			return ended, err
		}

		if isGone {
			ended++
		}
	}

	return ended, nil
}

// cleanFiles claims rows first: a commit that still wants one of them finds it claimed, and fails.
func (l *Lake) cleanFiles(ctx context.Context) error {
	for {
		var due []removable

		err := l.db.Do(ctx, func(q querier) (err error) {
			due, err = claimRemovable(ctx, q, l.now(), cleanBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(cleaners)

		for _, file := range due {
			group.Go(func() error { return l.removeFile(ctx, file) })
		}

		if err := group.Wait(); err != nil {
			return err
		}
	}
}

func (l *Lake) removeFile(ctx context.Context, file removable) error {
	if file.incomplete {
		for upload, err := range l.store.Uploads(ctx, file.key) {
			if err != nil {
				return err
			}

			if err := l.store.AbortUpload(ctx, upload.Key, upload.ID); err != nil {
				return err
			}
		}
	}

	if err := l.store.Delete(ctx, file.key); err != nil {
		return err
	}

	return l.db.Do(ctx, func(q querier) error { return deleteFile(ctx, q, file) })
}

// Orphan is something in the store that no row knows.
type Orphan struct {
	Key      string
	UploadID string // of a multipart upload that was begun
	Size     int64
}

// Inspection is what a comparison of rows and store found.
type Inspection struct {
	Orphans []Orphan
	Lost    []string // keys of committed files whose object is not there, or not of its size
}

// Inspect compares all rows with all of the store, and changes nothing.
func (l *Lake) Inspect(ctx context.Context) (result Inspection, err error) {
	if result.Orphans, err = l.orphans(ctx); err != nil {
		return result, err
	}

	result.Lost, err = l.lost(ctx)

	return result, err
}

// RemoveOrphan removes what Inspect found.
func (l *Lake) RemoveOrphan(ctx context.Context, orphan Orphan) error {
	if orphan.UploadID != "" {
		return l.store.AbortUpload(ctx, orphan.Key, orphan.UploadID)
	}

	return l.store.Delete(ctx, orphan.Key)
}

func (l *Lake) orphans(ctx context.Context) (orphans []Orphan, err error) {
	var batch []Orphan

	flush := func() error {
		found, err := l.unknown(ctx, batch)
		orphans = append(orphans, found...)
		batch = batch[:0]

		return err
	}

	add := func(o Orphan, err error) error {
		if err != nil {
			return err
		}

		if batch = append(batch, o); len(batch) < cleanBatch {
			return nil
		}

		return flush()
	}

	for o, err := range l.store.List(ctx, everything) {
		if err := add(Orphan{Key: o.Key, Size: o.Size}, err); err != nil {
			return nil, err
		}
	}

	for u, err := range l.store.Uploads(ctx, everything) {
		if err := add(Orphan{Key: u.Key, UploadID: u.ID}, err); err != nil {
			return nil, err
		}
	}

	return orphans, flush()
}

func (l *Lake) unknown(ctx context.Context, batch []Orphan) (orphans []Orphan, err error) {
	keys := make([]string, len(batch))
	for i, o := range batch {
		keys[i] = o.Key
	}

	err = l.db.Do(ctx, func(q querier) error {
		known, err := selectKnown(ctx, q, keys)

		for _, o := range batch {
			if !known[o.Key] {
				orphans = append(orphans, o)
			}
		}

		return err
	})

	return orphans, err
}

func (l *Lake) lost(ctx context.Context) (lost []string, err error) {
	var mu sync.Mutex

	for after := ""; ; {
		var files []File

		err := l.db.Do(ctx, func(q querier) (err error) {
			files, err = selectCommitted(ctx, q, after, cleanBatch)

			return err
		})
		if err != nil || len(files) == 0 {
			return lost, err
		}

		after = files[len(files)-1].Key

		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(cleaners)

		for _, file := range files {
			group.Go(func() error {
				object, err := l.store.Head(ctx, file.Key)
				if err != nil && !fault.Is(err, fault.NotFound) {
					return err
				}

				if err != nil || object.Size != file.Size {
					mu.Lock()
					defer mu.Unlock()

					lost = append(lost, file.Key)
				}

				return nil
			})
		}

		if err := group.Wait(); err != nil {
			return lost, err
		}
	}
}
