package erase

import (
	"context"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"quern.dev/quern/internal/job"
)

// Args is the job of an erasure.
type Args struct {
	Account uuid.UUID `json:"account"`
	Erasure uuid.UUID `json:"erasure"`
}

// Kind returns the name of the job.
func (Args) Kind() string { return "erase.erase" }

// eraseAttempts is the number of attempts. They continue for weeks, because the data must be erased.
const eraseAttempts = 100

func eraseOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: job.CleanupQueue, MaxAttempts: eraseAttempts, Priority: 1}
}

// Worker is the worker for Args.
type Worker struct {
	river.WorkerDefaults[Args]

	Eraser *Eraser
}

// Work continues the erasure, unless another worker does.
func (w *Worker) Work(ctx context.Context, j *river.Job[Args]) error {
	return job.Snooze(w.Eraser.Jobs().Attempt(ctx, job.Attempt{
		Work: job.Work{Account: j.Args.Account, ID: j.Args.Erasure, Job: j.Args, Queue: job.CleanupQueue},
		Do:   func(ctx context.Context, lease job.Lease) error { return w.Eraser.work(ctx, j.Args, lease) },
	}))
}
