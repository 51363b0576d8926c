package benchmark

import (
	"context"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// Queue is the queue of benchmarks. Their questions are runs, in the queue of runs.
const Queue = "benchmark"

// attempts is the number of attempts at a benchmark. Each continues where the one before it ended.
const attempts = 25

func opts() *river.InsertOpts { return &river.InsertOpts{Queue: Queue, MaxAttempts: attempts} }

// Args is the job of a benchmark.
type Args struct {
	Account   uuid.UUID `json:"account"`
	Namespace uuid.UUID `json:"namespace"`
	Benchmark uuid.UUID `json:"benchmark"`
}

// Kind returns the name of the job.
func (Args) Kind() string { return "benchmark.run" }

// Worker is the worker for Args.
type Worker struct {
	river.WorkerDefaults[Args]

	Benchmarks *Benchmarks
}

// Work continues the benchmark, unless another worker does.
func (w *Worker) Work(ctx context.Context, j *river.Job[Args]) error {
	b := w.Benchmarks

	return job.Snooze(b.Jobs().Attempt(ctx, job.Attempt{
		Work: job.Work{Account: j.Args.Account, ID: j.Args.Benchmark, Job: j.Args, Queue: Queue},
		Last: j.Attempt >= j.MaxAttempts,
		Do:   func(ctx context.Context, lease job.Lease) error { return b.work(ctx, j.Args, lease) },
		Passing: func(err error) bool {
			return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) || fault.Is(err, fault.RateLimited)
		},
		Fail: func(ctx context.Context, lease job.Lease, reason error) error {
			failed := fault.From(reason)

			err := lease.Conclude(ctx, func(ctx context.Context, tx postgres.Tx) (bool, error) {
				return endBenchmark(ctx, tx, j.Args, Failed, failed, b.now())
			})
			if err == nil && failed.Code == fault.Internal {
				err = reason // for the log
			}

			return err
		},
	}))
}
