package job

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
)

// Every returns a periodic job in the queue of cleanup. It is inserted when the service starts and then once in each
// interval, by one replica for all.
func Every(interval time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{Queue: CleanupQueue, UniqueOpts: river.UniqueOpts{ByPeriod: interval}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// Alone works on a periodic job, unless another worker works on a job of the same kind: all jobs of a kind share one
// lease. It returns the error that a worker returns to River.
func (c *Client) Alone(ctx context.Context, args river.JobArgs, do func(ctx context.Context, lease Lease) error) error {
	work := Work{ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(args.Kind())), Job: args, Queue: CleanupQueue}

	return Snooze(c.Hold(ctx, work, do))
}
