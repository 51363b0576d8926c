package webhook

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// CleanArgs is the job that removes old deliveries.
type CleanArgs struct{}

// Kind returns the name of the job.
func (CleanArgs) Kind() string { return "webhook.clean" }

const (
	cleanEvery = 10 * time.Minute
	cleanBatch = 5000
)

// Cleaner is the worker for CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Webhooks *Webhooks
	Jobs     func() *job.Client
}

// Work removes old deliveries, unless another worker does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return c.Jobs().Alone(ctx, j.Args, func(ctx context.Context, _ job.Lease) error {
		for removed := int64(cleanBatch); removed == cleanBatch; {
			err := c.Webhooks.DB.Do(ctx, func(q postgres.Querier) (err error) {
				removed, err = cleanDeliveries(ctx, q, c.Webhooks.Now().Add(-event.Kept), cleanBatch)

				return err
			})
			if err != nil {
				return err
			}
		}

		return nil
	})
}

// Periodic returns the periodic jobs.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(cleanEvery, CleanArgs{})}
}
