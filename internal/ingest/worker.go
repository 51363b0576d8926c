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

// The queues. Large files do not delay small ones, and neither delays cleanup.
const (
	Queue      = "ingest"
	LargeQueue = "ingest-large"
	// PartQueue is the queue of the files of ingestions that are spread.
	PartQueue = "ingest-part"
	// MaintenanceQueue is the queue of chores.
	MaintenanceQueue = "maintenance"
)

func insertOpts(queue string) *river.InsertOpts { return &river.InsertOpts{Queue: queue} }

// RunArgs is the job of an ingestion.
type RunArgs struct {
	Account   uuid.UUID `json:"account"`
	Dataset   uuid.UUID `json:"dataset"`
	Ingestion uuid.UUID `json:"ingestion"`
}

// Kind returns the name of the job.
func (RunArgs) Kind() string { return "ingest.run" }

// Runner works on RunArgs jobs.
type Runner struct {
	river.WorkerDefaults[RunArgs]

	Ingest *Ingest
}

// Work runs the ingestion, unless another worker does.
func (r *Runner) Work(ctx context.Context, j *river.Job[RunArgs]) error {
	return job.Snooze(r.Ingest.run(ctx, j.Args, j.Attempt >= j.MaxAttempts))
}

// PartArgs is the job of one file of an ingestion that is spread, in one of its steps.
type PartArgs struct {
	Account   uuid.UUID `json:"account"`
	Dataset   uuid.UUID `json:"dataset"`
	Ingestion uuid.UUID `json:"ingestion"`
	Round     int       `json:"round"`
	Step      step      `json:"step"`
	Position  int       `json:"position"`
}

// Kind returns the name of the job.
func (PartArgs) Kind() string { return "ingest.part" }

// PartRunner works on PartArgs jobs.
type PartRunner struct {
	river.WorkerDefaults[PartArgs]

	Ingest *Ingest
}

// Work reads the file, unless another worker does.
func (r *PartRunner) Work(ctx context.Context, j *river.Job[PartArgs]) error {
	return job.Snooze(r.Ingest.runPart(ctx, j.Args, j.Attempt >= j.MaxAttempts))
}

const (
	// partPriority is lower than the priority of the jobs between the steps, because those are quick.
	partPriority = 2
	// lastPriority is the priority of ingestions of an account with very many unfinished ones.
	lastPriority = 4
)

func partOpts() *river.InsertOpts { return &river.InsertOpts{Queue: PartQueue, Priority: partPriority} }

// behind returns the options of the job of an ingestion whose account has so many others that have not ended. The jobs of accounts that have few go first.
func behind(queue string, others int) *river.InsertOpts {
	const few, several, many = 4, 20, 100

	priority := lastPriority

	switch {
	case others < few:
		priority = 1
	case others < several:
		priority = 2
	case others < many:
		priority = 3
	}

	return &river.InsertOpts{Queue: queue, Priority: priority}
}

// CommitArgs is the job that commits ingestions that a dead committer left staged.
type CommitArgs struct {
	Account uuid.UUID `json:"account"`
	Dataset uuid.UUID `json:"dataset"`
}

// Kind returns the name of the job.
func (CommitArgs) Kind() string { return "ingest.commit" }

// Committer works on CommitArgs jobs.
type Committer struct {
	river.WorkerDefaults[CommitArgs]

	Ingest *Ingest
}

// Work commits staged ingestions, unless another worker does.
func (c *Committer) Work(ctx context.Context, j *river.Job[CommitArgs]) error {
	table := lake.Table{Account: j.Args.Account, Dataset: j.Args.Dataset}

	return job.Snooze(c.Ingest.Jobs().Hold(ctx, commitWork(table), func(ctx context.Context, lease job.Lease) error {
		return c.Ingest.drain(ctx, table, lease)
	}))
}

// RowsArgs is the job that continues changes of rows that a dead worker left staged.
type RowsArgs struct {
	Account uuid.UUID `json:"account"`
	Dataset uuid.UUID `json:"dataset"`
}

// Kind returns the name of the job.
func (RowsArgs) Kind() string { return "ingest.rows" }

// Changer works on RowsArgs jobs.
type Changer struct {
	river.WorkerDefaults[RowsArgs]

	Ingest *Ingest
}

// Work merges staged rows, unless another worker does.
func (c *Changer) Work(ctx context.Context, j *river.Job[RowsArgs]) error {
	table := lake.Table{Account: j.Args.Account, Dataset: j.Args.Dataset}

	return job.Snooze(c.Ingest.Jobs().Hold(ctx, rowsWork(table), func(ctx context.Context, lease job.Lease) error {
		return c.Ingest.drainMerges(ctx, table, lease)
	}))
}

// CleanArgs is the job of cleanup.
type CleanArgs struct{}

// Kind returns the name of the job.
func (CleanArgs) Kind() string { return "ingest.clean" }

const cleanEvery = time.Minute

// Cleaner works on CleanArgs jobs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Ingest *Ingest
}

// Work cleans up, unless another worker does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return c.Ingest.Jobs().Alone(ctx, j.Args, c.Ingest.clean)
}

// MaintenanceArgs is the job that enqueues due chores.
type MaintenanceArgs struct{}

// Kind returns the name of the job.
func (MaintenanceArgs) Kind() string { return "ingest.maintenance" }

// Overseer works on MaintenanceArgs jobs.
type Overseer struct {
	river.WorkerDefaults[MaintenanceArgs]

	Ingest *Ingest
}

// Work enqueues due chores, unless another worker does.
func (o *Overseer) Work(ctx context.Context, j *river.Job[MaintenanceArgs]) error {
	return o.Ingest.Jobs().Alone(ctx, j.Args, o.Ingest.findChores)
}

// ChoreArgs is the job of one chore.
type ChoreArgs struct {
	Account uuid.UUID  `json:"account"`
	Dataset uuid.UUID  `json:"dataset"`
	Chore   lake.Chore `json:"chore"`
}

// Kind returns the name of the job.
func (ChoreArgs) Kind() string { return "ingest.chore" }

func choreOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: MaintenanceQueue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}}
}

// Maintainer works on ChoreArgs jobs.
type Maintainer struct {
	river.WorkerDefaults[ChoreArgs]

	Ingest *Ingest
}

// Work does the chore, unless another worker does.
func (k *Maintainer) Work(ctx context.Context, j *river.Job[ChoreArgs]) error {
	return job.Snooze(k.Ingest.doChore(ctx, j.Args))
}

// Periodic returns the periodic jobs of cleanup and maintenance.
func (g *Ingest) Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(cleanEvery, CleanArgs{}), job.Every(g.Maintenance.Interval, MaintenanceArgs{})}
}
