package webhook

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// CleanArgs is the job that removes old deliveries and old push notifications.
type CleanArgs struct{}

// Kind returns the name of the job.
func (CleanArgs) Kind() string { return "webhook.clean" }

const (
	cleanEvery = 10 * time.Minute
	cleanBatch = 1000
)

// Cleaner is the worker for CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Webhooks *Webhooks
	Jobs     func() *job.Client
}

// Work removes what is old, unless another worker does.
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

		return c.Webhooks.cleanPushes(ctx)
	})
}

// cleanPushes removes push notifications that are old. Their tasks have ended, or will not be told about.
func (w *Webhooks) cleanPushes(ctx context.Context) error {
	for removed := cleanBatch; removed == cleanBatch; {
		err := w.DB.InTx(ctx, func(tx postgres.Tx) error {
			old, err := lockOldPushes(ctx, tx, w.Now().Add(-event.Kept), cleanBatch)
			if err != nil {
				return err
			}

			removed = len(old)

			return deleteAll(ctx, tx, old)
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// Periodic returns the periodic jobs.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(cleanEvery, CleanArgs{})}
}
