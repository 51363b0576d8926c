package feed

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/job"
)

// CleanArgs is the job that drops old events.
type CleanArgs struct{}

// Kind returns the name of the job.
func (CleanArgs) Kind() string { return "event.clean" }

const cleanEvery = 10 * time.Minute

// Cleaner is the worker for CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Feed *Feed
	Jobs func() *job.Client
}

// Work drops old events, unless another worker does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return c.Jobs().Alone(ctx, j.Args, func(ctx context.Context, _ job.Lease) error { return event.Drop(ctx, c.Feed.DB, c.Feed.Now()) })
}

// Periodic returns the periodic jobs.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(cleanEvery, CleanArgs{})}
}
