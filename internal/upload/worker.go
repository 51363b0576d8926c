package upload

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"quern.dev/quern/internal/job"
)

// CleanArgs is the job that aborts expired sessions and removes files that are due.
type CleanArgs struct{}

// Kind returns the name of the job.
func (CleanArgs) Kind() string { return "upload.clean" }

const cleanEvery = time.Minute

// Cleaner works on CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Uploads Uploads
	Jobs    func() *job.Client // a function because the client is created after the workers
}

// Work cleans, unless another worker does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return c.Jobs().Alone(ctx, j.Args, c.Uploads.Clean)
}

// SweepArgs is the job that removes what no row lists.
type SweepArgs struct{}

// Kind returns the name of the job.
func (SweepArgs) Kind() string { return "upload.sweep" }

const sweepEvery = 24 * time.Hour

// Sweeper works on SweepArgs.
type Sweeper struct {
	river.WorkerDefaults[SweepArgs]

	Uploads Uploads
}

// Work sweeps. Several workers may do it at once.
func (s *Sweeper) Work(ctx context.Context, _ *river.Job[SweepArgs]) error {
	return s.Uploads.Sweep(ctx)
}

// Periodic returns the periodic cleanup jobs.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(cleanEvery, CleanArgs{}), job.Every(sweepEvery, SweepArgs{})}
}
