package ingest

import (
	"context"
	"log/slog"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/disk"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/upload"
)

// Config configures an Ingest.
type Config struct {
	DB      *postgres.DB
	Store   *blob.Store
	Lake    *lake.Lake
	Engine  *engine.Engine
	Catalog catalog.Catalog
	Query   *query.Query // finds the rows that a condition selects
	Uploads upload.Uploads
	Models  *llm.Models        // read documents, if a request wants it
	Jobs    func() *job.Client // returns the client only after startup is complete
	Log     *slog.Logger
	Now     func() time.Time

	Dir         string        // folder for temporary files, on the file system of the sandbox
	Folder      *disk.Watch   // watches that file system
	Bounds      engine.Bounds // limits of a file
	Timeout     time.Duration // longest duration of an ingestion
	MaxBody     int64         // maximum size of posted rows, in bytes
	SpreadAbove int64         // bytes above which each file of an ingestion of several files is a job of its own
	AtOnce      int           // ingestions, and files of ingestions that are spread, that this process reads at once
	MaxPerUser  int           // maximum number of concurrent posts of one user in this process; 0 means no limit
	Maintenance Maintenance

	// Observe is called when an ingestion is completed or failed, with the time since it was requested. nil means that nobody observes.
	Observe func(kind string, status Status, took time.Duration)

	SnapshotRetention time.Duration // how long snapshots are kept after they were replaced
	// Gone runs in the transaction that deletes the last row of a deleted dataset.
	Gone func(ctx context.Context, tx postgres.Tx, t lake.Table) error
}

// Ingest loads files and rows into datasets.
type Ingest struct {
	Config

	turns *turns
	posts *auth.Concurrency
	reads chan struct{} // has an element for each ingestion or file that is read
}

// New returns an Ingest.
func New(c Config) *Ingest {
	g := &Ingest{Config: c, turns: newTurns(), reads: make(chan struct{}, max(c.AtOnce, 1))}
	if c.MaxPerUser > 0 {
		g.posts = auth.NewConcurrency(c.MaxPerUser, "posts of rows in progress")
	}

	return g
}

// Types of other packages that callers need.
type (
	Doubt    = engine.Doubt
	Format   = engine.Format
	Mode     = lake.Mode
	Options  = engine.Options
	Snapshot = lake.Snapshot
)

// The formats of a body, and the modes to add rows.
const (
	FormatText    = engine.FormatText
	FormatJSON    = engine.FormatJSON
	FormatParquet = engine.FormatParquet
	FormatRows    = engine.FormatRows

	Append  = lake.Append
	Replace = lake.Replace
	Merge   = lake.Merged
)
