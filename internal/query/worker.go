package query

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"quern.dev/quern/internal/job"
)

// ExportQueue is where exports wait, so that they hold back nothing else.
const ExportQueue = "export"

// exportAttempts end within minutes: whoever still wants the file asks again.
const exportAttempts = 5

func exportOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: ExportQueue, MaxAttempts: exportAttempts}
}

// ExportArgs is the job that writes an export.
type ExportArgs struct {
	Account uuid.UUID `json:"account"`
	Dataset uuid.UUID `json:"dataset"`
	Export  uuid.UUID `json:"export"`
}

// Kind names the job.
func (ExportArgs) Kind() string { return "query.export" }

func (a ExportArgs) work() job.Work {
	return job.Work{Account: a.Account, ID: a.Export, Job: a, Queue: ExportQueue}
}

// Exporter works ExportArgs.
type Exporter struct {
	river.WorkerDefaults[ExportArgs]

	Query *Query
}

// Work writes the export, unless another does.
func (e *Exporter) Work(ctx context.Context, j *river.Job[ExportArgs]) error {
	return job.Snooze(e.Query.write(ctx, j.Args, j.Attempt >= j.MaxAttempts))
}

// CleanArgs is the job that removes exports whose time is over.
type CleanArgs struct{}

// Kind names the job.
func (CleanArgs) Kind() string { return "query.clean" }

const (
	cleanQueue = "housekeeping"
	cleanEvery = time.Minute
)

// cleanWork is the one lease of all cleaners.
var cleanWork = uuid.NewSHA1(uuid.NameSpaceOID, []byte("query.clean")) //nolint:gochecknoglobals // a constant

// Cleaner works CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Query *Query
}

// Work cleans, unless another does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	work := job.Work{ID: cleanWork, Job: j.Args, Queue: cleanQueue}

	return job.Snooze(c.Query.Exports.Jobs().Hold(ctx, work, c.Query.clean))
}

// Periodic inserts the cleaning again and again.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(cleanEvery), func() (river.JobArgs, *river.InsertOpts) {
		return CleanArgs{}, &river.InsertOpts{Queue: cleanQueue, UniqueOpts: river.UniqueOpts{ByPeriod: cleanEvery}}
	}, &river.PeriodicJobOpts{RunOnStart: true})}
}
