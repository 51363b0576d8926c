package ingest

import (
	"context"
	"log/slog"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/upload"
)

// Config is what ingestions need.
type Config struct {
	DB      *postgres.DB
	Store   *blob.Store
	Lake    *lake.Lake
	Engine  *engine.Engine
	Catalog catalog.Catalog
	Uploads upload.Uploads
	Jobs    func() *job.Client // there only when everything is wired
	Log     *slog.Logger
	Now     func() time.Time

	Dir     string        // for files on their way, on the file system of the sandbox
	Bounds  engine.Bounds // of a file
	Time    time.Duration // that an ingestion may take
	MaxBody int64         // bytes of posted rows
	Bodies  int           // of posted rows that one user may have under way in this process; 0: any number
	Upkeep  Upkeep

	SnapshotAge time.Duration // that snapshots are kept which are no longer in force
	// Gone runs in the transaction in which the last of a deleted dataset goes.
	Gone func(ctx context.Context, tx postgres.Tx, t lake.Table) error
}

// Ingest loads files and rows into datasets.
type Ingest struct {
	Config

	commits *turns
	bodies  *auth.AtOnce
}

// New returns an Ingest.
func New(c Config) *Ingest {
	g := &Ingest{Config: c, commits: newTurns()}
	if c.Bodies > 0 {
		g.bodies = auth.NewAtOnce(c.Bodies, "bodies of rows under way")
	}

	return g
}

// The words of the packages below that callers need.
type (
	Doubt      = engine.Doubt
	Format     = engine.Format
	Inspection = engine.Inspection
	Mode       = lake.Mode
	Options    = engine.Options
	Snapshot   = lake.Snapshot
)

// The formats that a body can have, and the two ways to add rows.
const (
	FormatText    = engine.FormatText
	FormatJSON    = engine.FormatJSON
	FormatParquet = engine.FormatParquet
	FormatRows    = engine.FormatRows

	Append  = lake.Append
	Replace = lake.Replace
)
