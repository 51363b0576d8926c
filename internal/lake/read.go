package lake

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Current returns the current snapshot and its files. It returns nil before the first commit and for a table that was
// removed.
func (l *Lake) Current(ctx context.Context, q postgres.Querier, t Table) (*Snapshot, []File, error) {
	return selectCurrent(ctx, q, t)
}

// At returns the snapshot that was current at a moment. It returns nil if there was none, and for a table that was
// removed. It returns files only if the snapshot is still current: those of other snapshots are listed in the store,
// so call Files while holding no connection. ErrExpired if the snapshot was deleted.
func (l *Lake) At(ctx context.Context, q postgres.Querier, t Table, moment time.Time) (*Snapshot, []File, error) {
	current, files, err := selectCurrent(ctx, q, t)
	if err != nil || current == nil || !current.CommittedAt.After(moment) {
		return current, files, err
	}

	found, err := selectMoment(ctx, q, t, moment)
	if err != nil {
		return nil, nil, err
	}

	if found == nil {
		forgotten, err := hasForgotten(ctx, q, t)
		if err == nil && forgotten {
			err = ErrExpired
		}

		return nil, nil, err
	}

	return &found.Snapshot, nil, nil
}

// Places returns, by key, which rows of the uploaded file are in the data file, and on which pages they are. Files with all rows of a file
// without pages are not in the map.
func (l *Lake) Places(ctx context.Context, q postgres.Querier, t Table, keys []string) (map[string]Places, error) {
	return selectPlaces(ctx, q, t, keys)
}

// Uniform reports whether all files are known to have exactly the columns of the snapshot, with the same names and
// types, so that they can be read without regard to field ids.
func Uniform(s Snapshot, files []File) bool {
	shape := shapeOf(s.Columns)

	return len(files) > 0 && !slices.ContainsFunc(files, func(f File) bool { return f.Shape != shape })
}

// Snapshots returns snapshots of a table, newest first. before is the sequence of the last snapshot of the previous
// page, or 0.
func (l *Lake) Snapshots(ctx context.Context, q postgres.Querier, t Table, before int64, limit int) ([]Snapshot, error) {
	if before == 0 {
		before = math.MaxInt64
	}

	found, err := selectSnapshots(ctx, q, t, before, limit)
	list := make([]Snapshot, len(found))

	for i, e := range found {
		list[i] = e.Snapshot
	}

	return list, err
}

// Snapshot returns one snapshot. NotFound if it does not exist.
func (l *Lake) Snapshot(ctx context.Context, q postgres.Querier, t Table, id uuid.UUID) (Snapshot, error) {
	found, err := selectSnapshot(ctx, q, t, id)
	if err != nil {
		return Snapshot{}, err
	}

	if found == nil {
		return Snapshot{}, fault.Absent()
	}

	return found.Snapshot, nil
}

// Files returns the files of any snapshot, including one that Iceberg's metadata no longer lists. It reads manifests
// from the store and uses its own connections. NotFound if the snapshot does not exist.
func (l *Lake) Files(ctx context.Context, t Table, snapshot uuid.UUID) ([]File, error) {
	e, err := l.find(ctx, t, snapshot)
	if err != nil {
		return nil, err
	}

	manifests, err := l.recallList(ctx, e.list)
	if err != nil {
		return nil, err
	}

	return l.filesOf(ctx, t, manifests)
}

// filesOf reads the manifests from the store and the provenance of the files from the database.
func (l *Lake) filesOf(ctx context.Context, t Table, manifests []iceberg.ManifestFile) (files []File, err error) {
	keys, err := l.keysOf(ctx, manifests)
	if err != nil {
		return nil, err
	}

	err = l.db.Do(ctx, func(q querier) error {
		files, err = selectOrigins(ctx, q, t, keys)

		return err
	})
	if err == nil && len(files) != len(keys) {
		err = errors.New("the table has a file that no row lists")
	}

	return files, err
}

func (l *Lake) keysOf(ctx context.Context, manifests []iceberg.ManifestFile) ([]string, error) {
	entries, err := l.entries(ctx, manifests)
	if err != nil {
		return nil, err
	}

	keys := make([]string, len(entries))
	for i, e := range entries {
		if keys[i], err = l.keyOf(e.DataFile().FilePath()); err != nil {
			return nil, err
		}
	}

	return keys, nil
}

// find returns a snapshot, including one that Iceberg's metadata no longer lists.
func (l *Lake) find(ctx context.Context, t Table, id uuid.UUID) (*entry, error) {
	var found *entry

	err := l.db.Do(ctx, func(q querier) (err error) {
		found, err = selectSnapshot(ctx, q, t, id)

		return err
	})
	if err == nil && found == nil {
		err = fault.Absent()
	}

	return found, err
}
