package ingest

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
)

// The queues, so that large files never hold back small ones, and neither holds back housekeeping.
const (
	Queue      = "ingest"
	LargeQueue = "ingest-large"
	// UpkeepQueue is what tables need besides their commits.
	UpkeepQueue = "upkeep"
	cleanQueue  = "housekeeping"
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

// UpkeepArgs is the job that looks which chores are due.
type UpkeepArgs struct{}

// Kind names the job.
func (UpkeepArgs) Kind() string { return "ingest.upkeep" }

// upkeepWork is the one lease of all that look.
var upkeepWork = uuid.NewSHA1(uuid.NameSpaceOID, []byte("ingest.upkeep")) //nolint:gochecknoglobals // a constant

// Overseer works UpkeepArgs.
type Overseer struct {
	river.WorkerDefaults[UpkeepArgs]

	Ingest *Ingest
}

// Work looks what is due, unless another does.
func (o *Overseer) Work(ctx context.Context, j *river.Job[UpkeepArgs]) error {
	return job.Snooze(o.Ingest.Jobs().Hold(ctx, job.Work{ID: upkeepWork, Job: j.Args, Queue: cleanQueue}, o.Ingest.findChores))
}

// ChoreArgs is the job of one chore.
type ChoreArgs struct {
	Account uuid.UUID  `json:"account"`
	Dataset uuid.UUID  `json:"dataset"`
	Chore   lake.Chore `json:"chore"`
}

// Kind names the job.
func (ChoreArgs) Kind() string { return "ingest.chore" }

func choreOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: UpkeepQueue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}}
}

// Keeper works ChoreArgs.
type Keeper struct {
	river.WorkerDefaults[ChoreArgs]

	Ingest *Ingest
}

// Work does the chore, unless another does.
func (k *Keeper) Work(ctx context.Context, j *river.Job[ChoreArgs]) error {
	return job.Snooze(k.Ingest.doChore(ctx, j.Args))
}

// Periodic inserts again and again what looks for work.
func (g *Ingest) Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{
		periodic(CleanArgs{}, cleanQueue, cleanEvery),
		periodic(UpkeepArgs{}, cleanQueue, g.Upkeep.Every),
	}
}

func periodic(args river.JobArgs, queue string, every time.Duration) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(every), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{Queue: queue, UniqueOpts: river.UniqueOpts{ByPeriod: every}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}
