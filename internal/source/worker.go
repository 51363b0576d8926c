package source

import (
	"context"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"quern.dev/quern/internal/job"
)

// Queue is the queue of runs. It is separate from that of ingestions, for which runs wait.
const Queue = "source"

// maxAttempts is small, because the next run loads what this one could not.
const maxAttempts = 3

func insertOpts() *river.InsertOpts { return &river.InsertOpts{Queue: Queue} }

// RunArgs is the job of a run.
type RunArgs struct {
	Account uuid.UUID `json:"account"`
	Source  uuid.UUID `json:"source"`
	Run     uuid.UUID `json:"run"`
}

// Kind returns the name of the job.
func (RunArgs) Kind() string { return "source.run" }

// Runner works on RunArgs jobs.
type Runner struct {
	river.WorkerDefaults[RunArgs]

	Sources *Sources
}

// Work continues the run, unless another worker does.
func (r *Runner) Work(ctx context.Context, j *river.Job[RunArgs]) error {
	return job.Snooze(r.Sources.work(ctx, j.Args, j.Attempt >= maxAttempts))
}
