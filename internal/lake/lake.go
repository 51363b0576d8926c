package lake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sort"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/disk"
	"quern.dev/quern/internal/postgres"
)

var (
	// ErrConflict reports that other commits came first in every attempt. Nothing was changed; a later attempt may
	// succeed.
	ErrConflict = errors.New("the table was changed by other commits")
	// ErrStale reports that the columns of a file no longer fit the table. The caller must plan and convert again.
	ErrStale = errors.New("the columns of the table changed")
	// ErrDropped reports that a staged file or object was dropped before its writer finished.
	ErrDropped = errors.New("the staged file was dropped")
	// ErrReplaced reports that files to be compacted are no longer in the current snapshot.
	ErrReplaced = errors.New("the files of the table changed")
	// ErrExpired reports that a moment is earlier than every snapshot that is kept.
	ErrExpired = errors.New("the snapshot of that time is no longer kept")
	// ErrChanged reports that a cached file differs from the file that was fetched.
	ErrChanged = errors.New("a cached file was changed")
	// ErrAttached reports that a table shows an Iceberg table of another catalog, so that its rows can be changed only there.
	ErrAttached = errors.New("the table is attached")
	// ErrOwnRows reports that a table that has, or had, rows of its own, or that shows another table, cannot show this one.
	ErrOwnRows = errors.New("the table cannot be attached")
	// ErrMissing: the store does not have an object that a row lists.
	ErrMissing = errors.New("the object store does not have an object that the database lists; run quernd fsck")
)

// Table identifies a table by its dataset and the account that owns the dataset.
type Table struct {
	Account uuid.UUID
	Dataset uuid.UUID
}

// Mode is what a commit does with the existing rows.
type Mode string

const (
	Append    Mode = "append"
	Replace   Mode = "replace"
	Clear     Mode = "clear"
	Restore   Mode = "restore"
	Compacted Mode = "compact" // rewrites files, changes no row
	Deleted   Mode = "delete"  // removes some rows
	Merged    Mode = "merge"   // replaces rows with new ones that have the same key or come from the same file, and adds the others
	Attached  Mode = "attach"  // shows the files of an Iceberg table of another catalog
)

// takesAway reports whether a commit of this mode may remove existing rows, so that an earlier profile must no longer be
// shown. After a merge most rows are the same, and the profile is shown until there is a newer one.
func (m Mode) takesAway() bool { return m == Replace || m == Clear || m == Restore || m == Deleted }

// exchanges reports whether a commit of this mode adds or exchanges single files, and keeps the others.
func (m Mode) exchanges() bool {
	return m == Append || m == Compacted || m == Deleted || m == Merged || m == Attached
}

// iceberg returns Iceberg's name for what a commit of this mode does.
func (m Mode) iceberg() string {
	switch m {
	case Replace, Restore, Deleted, Merged, Attached:
		return "overwrite"
	case Clear:
		return "delete"
	case Compacted:
		return "replace"
	case Append:
	}

	return "append"
}

// Config configures a Lake.
type Config struct {
	DB    *postgres.DB
	Store *blob.Store
	Now   func() time.Time
	Log   *slog.Logger
	// DeleteGrace is the grace period: how long an object is kept after it is no longer needed.
	DeleteGrace time.Duration
	// QuietPeriod is how long a table must have no commits before it is profiled.
	QuietPeriod time.Duration
	// KeepSnapshots is how many snapshots Iceberg's metadata lists; earlier ones are still readable through this
	// package. 0 or less means 100.
	KeepSnapshots int
	// Observe is called after each commit. lost is how often another commit came first. nil means that nobody observes.
	Observe func(mode Mode, err error, lost int, took time.Duration)
	// CacheDir holds local copies of data files and belongs to this process alone. If it is empty, Fetch fails.
	CacheDir   string
	CacheBytes int64
	Folder     *disk.Watch // watches the file system of CacheDir
	// Foreign returns a reader for the files of an attached table, if reading is still permitted. Without it, no attached table can be read.
	Foreign func(ctx context.Context, at Attachment) (ReadForeignFile, error)
}

// ReadForeignFile opens a data file of an attached table. The messages of its faults tell the reader what to do.
type ReadForeignFile func(ctx context.Context, address string) (io.ReadCloser, error)

const defaultKeepSnapshots = 100

// Lake gives access to all tables of a deployment. The caller must call Close.
type Lake struct {
	db          *postgres.DB
	store       *blob.Store
	now         func() time.Time
	log         *slog.Logger
	deleteGrace time.Duration
	quietPeriod time.Duration
	keep        int
	base        string // prefix of the addresses of all objects
	known       *memory
	cache       *cache
	observe     func(mode Mode, err error, lost int, took time.Duration)
	foreign     func(ctx context.Context, at Attachment) (ReadForeignFile, error)

	patience time.Duration
}

// New creates a Lake and removes incomplete files of an earlier process from CacheDir.
func New(c Config) (*Lake, error) {
	if c.KeepSnapshots <= 0 {
		c.KeepSnapshots = defaultKeepSnapshots
	}

	l := &Lake{
		db: c.DB, store: c.Store, now: c.Now, log: c.Log, deleteGrace: c.DeleteGrace, quietPeriod: c.QuietPeriod, keep: c.KeepSnapshots, base: c.Store.URI(""),
		known: newMemory(memoryBytes), patience: patience, observe: c.Observe, foreign: c.Foreign,
	}

	if c.CacheDir != "" {
		var err error
		if l.cache, err = newCache(c); err != nil {
			return nil, fmt.Errorf("the cache of data files: %w", err)
		}
	}

	return l, nil
}

// Close releases the folder of the cache. The cached files stay for the next process.
func (l *Lake) Close() error {
	if l.cache == nil {
		return nil
	}

	return l.cache.close()
}

// Source is the provenance of the rows of a data file. Row n of the data file, counted from 0, is row FirstRow + n of
// the uploaded file, plus one for each skipped row before it.
type Source struct {
	ID       uuid.UUID // of the data file, which decides its place among the files of a snapshot; uuid.Nil for the next place
	File     uuid.UUID // uuid.Nil for rows that were posted
	Name     string    // name of the uploaded file
	FirstRow int64
	Places
}

// Places says which rows of the uploaded file are in a data file, and on which pages they are.
type Places struct {
	Skipped []int64 // numbers of the rows of the uploaded file that are not in the data file, in order
	Pages   []int64 // of a document: the number of the first row of each page, in order
}

// Page returns the page of a row of the uploaded file; 0 if it has no pages.
func (p Places) Page(row int64) int {
	return sort.Search(len(p.Pages), func(i int) bool { return p.Pages[i] > row })
}

// Staged is a staged data file.
type Staged struct {
	Table     Table
	ID        uuid.UUID
	Ingestion uuid.UUID
	Source    Source
	Key       string
	Rows      int64    // set by Write
	Size      int64    // set by Write
	Columns   []Column // set by Write
	entry     []byte   // encoded as in a manifest
	bounds    map[int]bound
}

// File is a data file of a snapshot. A compacted file has no provenance here: Parts returns it.
type File struct {
	Key       string
	Size      int64
	Rows      int64
	Ingestion uuid.UUID
	Source    uuid.UUID // uuid.Nil for rows that were posted
	Name      string    // name of the uploaded file
	FirstRow  int64
	Shape     string // hash of the columns; empty if not known
	Compacted bool   // made from other files
	// Address and At are those of a file of an attached table, which is not in our store. Key is only the name of its copy.
	Address string
	At      Attachment
}

// Snapshot is one version of a table. It never changes.
type Snapshot struct {
	ID          uuid.UUID
	Sequence    int64 // number of the snapshot within its table, from 1
	Number      int64 // Iceberg's id of the snapshot
	Operation   Mode
	Columns     []Column
	Rows        int64
	Bytes       int64
	BytesBefore int64 // of the snapshot before; known only while this one is committed
	Files       int
	CommittedAt time.Time
	Current     bool
}

// Change describes a commit.
type Change struct {
	Table Table
	Mode  Mode
	// Ingestions are the ingestions whose staged files are committed, all or none.
	Ingestions []uuid.UUID
	// Columns are columns that the table gets in addition to those of the files and, when appending, its own.
	Columns []Column
	// Snapshot is the snapshot to restore.
	Snapshot uuid.UUID
	// Files are the files that staged files replace, when compacting and when rows are removed or merged.
	Files []File
	// Base is the snapshot for which Files was determined, when rows are removed or merged. ErrReplaced if another
	// one is current. uuid.Nil stands for a table without a snapshot.
	Base uuid.UUID
	// Rewritten is the id under which the rewritten files are staged, and Removed the number of rows that Files have
	// and the rewritten files lack.
	Rewritten uuid.UUID
	Removed   int64
	// Attach is the table that the mode Attached shows. In this mode, Columns are all its columns, and Files are the files that have left it.
	Attach Attachment
}
