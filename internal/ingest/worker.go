package ingest

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
)

// The queues, so that large files never hold back small ones, and neither holds back housekeeping.
const (
	Queue      = "ingest"
	LargeQueue = "ingest-large"
	cleanQueue = "housekeeping"
)

func insertOpts(queue string) *river.InsertOpts { return &river.InsertOpts{Queue: queue} }

// RunArgs is the job of an ingestion.
type RunArgs struct {
	Account   uuid.UUID `json:"account"`
	Dataset   uuid.UUID `json:"dataset"`
	Ingestion uuid.UUID `json:"ingestion"`
}

// Kind names the job.
func (RunArgs) Kind() string { return "ingest.run" }

// Runner works RunArgs.
type Runner struct {
	river.WorkerDefaults[RunArgs]

	Ingest *Ingest
}

// Work runs the ingestion, unless another does.
func (r *Runner) Work(ctx context.Context, j *river.Job[RunArgs]) error {
	return job.Snooze(r.Ingest.run(ctx, j.Args, j.Attempt >= j.MaxAttempts))
}

// CommitArgs is the job that commits what a dead committer left ready.
type CommitArgs struct {
	Account uuid.UUID `json:"account"`
	Dataset uuid.UUID `json:"dataset"`
}

// Kind names the job.
func (CommitArgs) Kind() string { return "ingest.commit" }

// Committer works CommitArgs.
type Committer struct {
	river.WorkerDefaults[CommitArgs]

	Ingest *Ingest
}

// Work commits, unless another does.
func (c *Committer) Work(ctx context.Context, j *river.Job[CommitArgs]) error {
	table := lake.Table{Account: j.Args.Account, Dataset: j.Args.Dataset}

	return job.Snooze(c.Ingest.Jobs().Hold(ctx, commitWork(table), func(ctx context.Context, lease job.Lease) error {
		return c.Ingest.drain(ctx, table, lease)
	}))
}

// CleanArgs is the job that removes what nobody needs any more.
type CleanArgs struct{}

// Kind names the job.
func (CleanArgs) Kind() string { return "ingest.clean" }

const cleanEvery = time.Minute

// cleanWork is the one lease of all cleaners.
var cleanWork = uuid.NewSHA1(uuid.NameSpaceOID, []byte("ingest.clean")) //nolint:gochecknoglobals // a constant

// Cleaner works CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Ingest *Ingest
}

// Work cleans, unless another does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return job.Snooze(c.Ingest.Jobs().Hold(ctx, job.Work{ID: cleanWork, Job: j.Args, Queue: cleanQueue}, c.Ingest.clean))
}

// Periodic inserts the cleaning again and again.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(cleanEvery), func() (river.JobArgs, *river.InsertOpts) {
		return CleanArgs{}, &river.InsertOpts{Queue: cleanQueue, UniqueOpts: river.UniqueOpts{ByPeriod: cleanEvery}}
	}, &river.PeriodicJobOpts{RunOnStart: true})}
}
