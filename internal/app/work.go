package app

import (
	"context"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/upload"
)

// newJobs wires the workers. They reach the client, which is made with them, when they work.
func (a *App) newJobs(uploads upload.Uploads, loading *ingest.Ingest, asking *query.Query) (*job.Client, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &catalog.Indexer{Catalog: loading.Catalog})
	river.AddWorker(workers, &ingest.Runner{Ingest: loading})
	river.AddWorker(workers, &ingest.Committer{Ingest: loading})
	river.AddWorker(workers, &ingest.Cleaner{Ingest: loading})
	river.AddWorker(workers, &ingest.Overseer{Ingest: loading})
	river.AddWorker(workers, &ingest.Keeper{Ingest: loading})
	river.AddWorker(workers, &run.Worker{Runs: a.runs})
	river.AddWorker(workers, &run.Expirer{Runs: a.runs})
	river.AddWorker(workers, &run.Cleaner{Runs: a.runs})
	river.AddWorker(workers, &run.Eraser{Runs: a.runs})
	river.AddWorker(workers, &run.Repairer{Runs: a.runs})
	river.AddWorker(workers, &query.Exporter{Query: asking})
	river.AddWorker(workers, &query.Cleaner{Query: asking})
	river.AddWorker(workers, &upload.Cleaner{Uploads: uploads, Jobs: func() *job.Client { return a.jobs }})
	river.AddWorker(workers, &upload.Sweeper{Uploads: uploads})

	config := job.Config{
		DB: a.db, Log: a.log, Notify: a.config.Job.Notify, Workers: workers, Queues: map[string]int{},
		Periodic: slices.Concat(catalog.Periodic(), upload.Periodic(), loading.Periodic(), query.Periodic(), run.Periodic()),
	}
	if a.config.Job.Workers > 0 {
		config.Queues[upload.CleanQueue] = a.config.Job.Workers
	}

	if a.config.Ingest.Workers > 0 {
		config.Queues[ingest.Queue], config.Queues[ingest.LargeQueue] = a.config.Ingest.Workers, 1
	}

	if a.config.Run.Workers > 0 {
		config.Queues[run.Queue] = a.config.Run.Workers
	}

	if a.config.Upkeep.Workers > 0 {
		config.Queues[ingest.UpkeepQueue] = a.config.Upkeep.Workers
	}

	if a.config.Export.Workers > 0 {
		config.Queues[query.ExportQueue] = a.config.Export.Workers
	}

	return job.New(config)
}

// work runs jobs until ctx ends. A database that does not answer is no reason to give up.
func (a *App) work(ctx context.Context) {
	if a.config.Job.Workers+a.config.Ingest.Workers+a.config.Upkeep.Workers+a.config.Export.Workers+a.config.Run.Workers == 0 {
		return
	}

	for ctx.Err() == nil {
		err := a.jobs.Run(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}

		a.log.WarnContext(ctx, "jobs could not be started", "error", err)

		select {
		case <-ctx.Done():
		case <-time.After(workRetry):
		}
	}
}

// claimStore makes sure that the place in the object store is ours: two deployments in one place would
// remove each other's objects. Conflict is final; anything else only says that it cannot be known yet.
func (a *App) claimStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.config.S3.Timeout)
	defer cancel()

	id, err := a.db.DeploymentID(ctx)
	if err == nil {
		err = a.store.ClaimDeployment(ctx, id)
	}

	a.storeAnswers.Store(err == nil)

	return err
}

// watchStore asks again and again whether the store is there and ours.
func (a *App) watchStore(ctx context.Context, failed chan<- error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(storeEvery):
		}

		if err := a.claimStore(ctx); fault.Is(err, fault.Conflict) {
			failed <- err

			return
		}
	}
}
