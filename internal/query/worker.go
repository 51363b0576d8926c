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

// longOpts returns the options of the job of a long statement. It has the queue and the attempts of an export.
func longOpts() *river.InsertOpts { return exportOpts() }

// LongArgs is the job that runs a long statement.
type LongArgs struct {
	Account   uuid.UUID `json:"account"`
	Statement uuid.UUID `json:"statement"`
}

// Kind returns the name of the job.
func (LongArgs) Kind() string { return "query.statement" }

func (a LongArgs) work() job.Work {
	return job.Work{Account: a.Account, ID: a.Statement, Job: a, Queue: ExportQueue}
}

// LongRunner is the worker for LongArgs.
type LongRunner struct {
	river.WorkerDefaults[LongArgs]

	Query *Query
}

// Work runs the long statement, unless another worker does.
func (l *LongRunner) Work(ctx context.Context, j *river.Job[LongArgs]) error {
	return job.Snooze(l.Query.process(ctx, j.Args, j.Attempt >= j.MaxAttempts))
}

// EraseArgs is the job that deletes the long statements that read a permanently deleted dataset.
type EraseArgs struct {
	Account uuid.UUID `json:"account"`
	Dataset uuid.UUID `json:"dataset"`
}

// Kind returns the name of the job.
func (EraseArgs) Kind() string { return "query.erase" }

// eraseAttempts is the number of attempts. They continue for weeks, because the data must be erased.
const eraseAttempts = 100

func eraseOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: job.CleanupQueue, MaxAttempts: eraseAttempts}
}

// Eraser is the worker for EraseArgs.
type Eraser struct {
	river.WorkerDefaults[EraseArgs]

	Query *Query
}

// Work deletes the statements. Two workers may do so at the same time.
func (e *Eraser) Work(ctx context.Context, j *river.Job[EraseArgs]) error {
	return e.Query.erase(ctx, j.Args)
}

// CleanArgs is the job that removes expired exports and results.
type CleanArgs struct{}

// Kind returns the name of the job.
func (CleanArgs) Kind() string { return "query.clean" }

const cleanEvery = time.Minute

// Cleaner is the worker for CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Query *Query
}

// Work removes expired exports and results, unless another worker does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return c.Query.Exports.Jobs().Alone(ctx, j.Args, c.Query.clean)
}

// Periodic returns the periodic job that inserts CleanArgs.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(cleanEvery, CleanArgs{})}
}
