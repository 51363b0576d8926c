package job

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/span"
)

// Outcome is the result of one attempt at a job.
type Outcome string

const (
	Done    Outcome = "done"    // the job needs no further attempt; work that failed for good and says so to its user is done, too
	Errored Outcome = "errored" // the job is repeated after a delay
	Waited  Outcome = "waited"  // another worker has the work, or this process has no room for it
)

// observing reports the duration and the outcome of each attempt, and records it as a span.
func observing(c Config) river.WorkerMiddlewareFunc {
	return func(ctx context.Context, row *rivertype.JobRow, work func(context.Context) error) error {
		begin := time.Now()
		ctx, attempt := c.Spans.Job(ctx, row.Kind, cause(row), span.Text("quern.job.queue", row.Queue), span.Number("quern.job.attempt", int64(row.Attempt)))
		err := work(ctx)
		outcome := Done

		if _, snoozed := errors.AsType[*river.JobSnoozeError](err); snoozed {
			outcome = Waited
		} else if err != nil {
			outcome = Errored
		}

		attempt.Set(span.Text("quern.job.outcome", string(outcome)))

		if outcome == Errored {
			attempt.End(err)
		} else {
			attempt.End(nil)
		}

		if c.Observe != nil {
			c.Observe(ctx, row.Kind, outcome, time.Since(begin))
		}

		return err
	}
}

// LeasesLost returns how many leases this process lost while it worked under them.
func (c *Client) LeasesLost() int64 { return c.lost.Load() }

// Backlog is the jobs of a queue that could run now, but that no worker has taken yet.
type Backlog struct {
	Queue  string
	Jobs   int64
	Oldest time.Duration // how long the oldest of them has waited
}

// Backlogs returns the backlog of every queue that has one, for all replicas together.
func (c *Client) Backlogs(ctx context.Context) (list []Backlog, err error) {
	err = c.db.Do(ctx, func(q postgres.Querier) error {
		rows, err := q.Query(ctx, sqlBacklogs)
		if err != nil {
			return err
		}

		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Backlog, err error) {
			err = row.Scan(&b.Queue, &b.Jobs, &b.Oldest)

			return b, err
		})

		return err
	})

	return list, err
}
