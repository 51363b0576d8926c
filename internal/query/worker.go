package query

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"quern.dev/quern/internal/job"
)

// ExportQueue is the queue of exports. It is separate so that exports do not delay other jobs.
const ExportQueue = "export"

// exportAttempts is the number of attempts to write an export. They end within minutes; after that, a new request starts
// another export.
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

// Kind returns the name of the job.
func (ExportArgs) Kind() string { return "query.export" }

func (a ExportArgs) work() job.Work {
	return job.Work{Account: a.Account, ID: a.Export, Job: a, Queue: ExportQueue}
}

// Exporter is the worker for ExportArgs.
type Exporter struct {
	river.WorkerDefaults[ExportArgs]

	Query *Query
}

// Work writes the export, unless another worker does.
func (e *Exporter) Work(ctx context.Context, j *river.Job[ExportArgs]) error {
	return job.Snooze(e.Query.write(ctx, j.Args, j.Attempt >= j.MaxAttempts))
}

// CleanArgs is the job that removes expired exports.
type CleanArgs struct{}

// Kind returns the name of the job.
func (CleanArgs) Kind() string { return "query.clean" }

const cleanEvery = time.Minute

// Cleaner is the worker for CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Query *Query
}

// Work removes expired exports, unless another worker does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return c.Query.Exports.Jobs().Alone(ctx, j.Args, c.Query.clean)
}

// Periodic returns the periodic job that inserts CleanArgs.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(cleanEvery, CleanArgs{})}
}
