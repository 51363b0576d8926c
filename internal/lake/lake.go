package lake

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/postgres"
)

var (
	// ErrConflict says that others were quicker every time: nothing happened, and a later try may succeed.
	ErrConflict = errors.New("the table was changed by somebody else")
	// ErrStale says that a file's columns no longer fit the table: plan again, convert again.
	ErrStale = errors.New("the table has other columns now")
	// ErrDropped says that a staged file was dropped while somebody wrote it.
	ErrDropped = errors.New("the staged file was dropped")
	// ErrReplaced says that files that were to become one are no longer in force.
	ErrReplaced = errors.New("the table has other files now")
	// ErrExpired says that a moment is older than all snapshots that are kept.
	ErrExpired = errors.New("the snapshot of that moment is no longer kept")
	// ErrChanged says that a cached file is not what was fetched.
	ErrChanged = errors.New("a cached file was changed")
)

// Table names a table: the dataset, in the account that owns it.
type Table struct {
	Account uuid.UUID
	Dataset uuid.UUID
}

// Mode is what a commit does with the rows that are there.
type Mode string

const (
	Append    Mode = "append"
	Replace   Mode = "replace"
	Clear     Mode = "clear"
	Restore   Mode = "restore"
	Compacted Mode = "compact" // changes no row
)

// takesAway tells whether rows that were there may be gone afterwards.
func (m Mode) takesAway() bool { return m == Replace || m == Clear || m == Restore }

// Config is what the lake works with.
type Config struct {
	DB    *postgres.DB
	Store *blob.Store
	Now   func() time.Time
	Log   *slog.Logger
	// Grace is how long an object stays after nothing needs it any more.
	Grace time.Duration
	// Quiet is how long a table must have been without commits before it is profiled.
	Quiet time.Duration
	// KeepSnapshots is how many snapshots Iceberg's metadata names; older ones stay readable here.
	KeepSnapshots int
	// CacheDir holds local copies of data files and belongs to this process alone; empty: Fetch does not work.
	CacheDir   string
	CacheBytes int64
}

const defaultKeepSnapshots = 100

// Lake is all tables of a deployment. Close it.
type Lake struct {
	db    *postgres.DB
	store *blob.Store
	now   func() time.Time
	log   *slog.Logger
	grace time.Duration
	quiet time.Duration
	keep  int
	base  string // of all addresses of objects
	known *memory
	cache *cache

	patience time.Duration
}

// New prepares the lake, and removes from CacheDir what an earlier process left halfway.
func New(c Config) (*Lake, error) {
	if c.KeepSnapshots <= 0 {
		c.KeepSnapshots = defaultKeepSnapshots
	}

	l := &Lake{
		db: c.DB, store: c.Store, now: c.Now, log: c.Log, grace: c.Grace, quiet: c.Quiet, keep: c.KeepSnapshots, base: c.Store.URI(""),
		known: newMemory(memoryBytes), patience: patience,
	}

	if c.CacheDir != "" {
		var err error
		if l.cache, err = newCache(c.CacheDir, c.CacheBytes, c.Store, c.Log); err != nil {
			return nil, fmt.Errorf("the cache of data files: %w", err)
		}
	}

	return l, nil
}

// Close gives the cache's folder back. The files stay for the next process.
func (l *Lake) Close() error {
	if l.cache == nil {
		return nil
	}

	return l.cache.close()
}

// Source is where the rows of a data file come from: the row n of the data file, counted from 0, is the row
// FirstRow + n of the uploaded file, and one more for each row before it that was skipped.
type Source struct {
	File     uuid.UUID // uuid.Nil for rows that were posted
	Name     string    // of the uploaded file
	FirstRow int64
	Skipped  []int64 // numbers of the rows that are not in the data file
}

// Staged is a data file that is to be committed.
type Staged struct {
	Table     Table
	ID        uuid.UUID
	Ingestion uuid.UUID
	Source    Source
	Key       string
	Rows      int64    // after Write
	Size      int64    // after Write
	Columns   []Column // after Write
	entry     []byte   // as a manifest has it
	bounds    map[int]bound
}

// File is a data file of a snapshot. One that was made of others says nothing of where its rows come from: Parts does.
type File struct {
	Key       string
	Size      int64
	Rows      int64
	Ingestion uuid.UUID
	Source    uuid.UUID // uuid.Nil for rows that were posted
	Name      string    // of the uploaded file
	FirstRow  int64
	Shape     string // of its columns; empty if it is not known
	Compacted bool   // made of others
}

// Snapshot is a state of a table. It never changes.
type Snapshot struct {
	ID          uuid.UUID
	Sequence    int64 // of the table's snapshots, from 1
	Number      int64 // Iceberg's id of it
	Operation   Mode
	Columns     []Column
	Rows        int64
	Bytes       int64
	Files       int
	CommittedAt time.Time
	Current     bool
}

// Change is what a commit is to do.
type Change struct {
	Table Table
	Mode  Mode
	// Ingestions are those whose ready files go in, all or none.
	Ingestions []uuid.UUID
	// Columns the table has afterwards besides those of the files and, when appending, its own.
	Columns []Column
	// Snapshot to restore.
	Snapshot uuid.UUID
	// Files that the one of the ingestion takes the place of, when compacting.
	Files []File
}
