package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"quern.dev/quern/internal/benchmark"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/erase"
	"quern.dev/quern/internal/feed"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/source"
	"quern.dev/quern/internal/upload"
	"quern.dev/quern/internal/webhook"
)

// benchmarksAtOnce is the number of benchmarks that this process works on. They mostly wait for their questions, which are runs.
const benchmarksAtOnce = 2

// largeAtOnce is the number of ingestions of large files that this process works on.
const largeAtOnce = 1

// sourcesAtOnce is the number of runs of sources that this process works on. They copy files through little memory, and wait for ingestions.
const sourcesAtOnce = 4

// newJobs wires the workers. They read a.jobs when they work, because the client is created with them.
func (a *App) newJobs(uploads upload.Uploads, loading *ingest.Ingest, asking *query.Query, benchmarks *benchmark.Benchmarks) (*job.Client, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &catalog.Indexer{Catalog: loading.Catalog})
	river.AddWorker(workers, &ingest.Runner{Ingest: loading})
	river.AddWorker(workers, &ingest.PartRunner{Ingest: loading})
	river.AddWorker(workers, &ingest.Committer{Ingest: loading})
	river.AddWorker(workers, &ingest.Changer{Ingest: loading})
	river.AddWorker(workers, &ingest.Cleaner{Ingest: loading})
	river.AddWorker(workers, &ingest.Overseer{Ingest: loading})
	river.AddWorker(workers, &ingest.Maintainer{Ingest: loading})
	river.AddWorker(workers, &run.Worker{Runs: a.runs})
	river.AddWorker(workers, &run.Expirer{Runs: a.runs})
	river.AddWorker(workers, &run.Cleaner{Runs: a.runs})
	river.AddWorker(workers, &run.Eraser{Runs: a.runs})
	river.AddWorker(workers, &run.Repairer{Runs: a.runs})
	river.AddWorker(workers, &erase.Worker{Eraser: a.eraser})
	river.AddWorker(workers, &feed.Cleaner{Feed: a.feed, Jobs: func() *job.Client { return a.jobs }})
	river.AddWorker(workers, &webhook.Cleaner{Webhooks: a.webhooks, Jobs: func() *job.Client { return a.jobs }})
	river.AddWorker(workers, &benchmark.Worker{Benchmarks: benchmarks})
	river.AddWorker(workers, &source.Runner{Sources: a.sources})
	river.AddWorker(workers, &query.Exporter{Query: asking})
	river.AddWorker(workers, &query.LongRunner{Query: asking})
	river.AddWorker(workers, &query.Eraser{Query: asking})
	river.AddWorker(workers, &query.Cleaner{Query: asking})
	river.AddWorker(workers, &upload.Cleaner{Uploads: uploads, Jobs: func() *job.Client { return a.jobs }})
	river.AddWorker(workers, &upload.Sweeper{Uploads: uploads})

	config := job.Config{
		DB: a.db, Log: a.log, Notify: a.config.Job.Notify, Workers: workers, Queues: map[string]int{}, Observe: a.observed.job, Spans: a.spans,
		// An idle replica polls the database for jobs all the time, so it polls often only where people wait.
		Slow:     []string{job.CleanupQueue, ingest.LargeQueue, ingest.PartQueue, ingest.MaintenanceQueue, query.ExportQueue, benchmark.Queue, source.Queue},
		Periodic: slices.Concat(catalog.Periodic(), upload.Periodic(), loading.Periodic(), query.Periodic(), run.Periodic(), feed.Periodic(), webhook.Periodic()),
	}
	if a.config.Job.Workers > 0 {
		config.Queues[job.CleanupQueue] = a.config.Job.Workers
	}

	if a.config.Ingest.Workers > 0 {
		config.Queues[ingest.Queue], config.Queues[ingest.LargeQueue] = a.config.Ingest.Workers, largeAtOnce
		config.Queues[ingest.PartQueue] = a.config.Ingest.Workers
		config.Queues[source.Queue] = sourcesAtOnce
	}

	if a.config.Run.Workers > 0 {
		config.Queues[run.Queue], config.Queues[benchmark.Queue] = a.config.Run.Workers, benchmarksAtOnce
	}

	if a.config.Maintenance.Workers > 0 {
		config.Queues[ingest.MaintenanceQueue] = a.config.Maintenance.Workers
	}

	if a.config.Export.Workers > 0 {
		config.Queues[query.ExportQueue] = a.config.Export.Workers
	}

	if config.Notify && a.config.Database.Pooler {
		return nil, errors.New("QUERN_JOB_NOTIFY and QUERN_DATABASE_POOLER cannot both be true: a pooler in transaction mode does not deliver notifications")
	}

	return job.New(config)
}

// queues returns the names of all queues, also of those that this replica does not work on.
func queues() []string {
	return []string{job.CleanupQueue, ingest.Queue, ingest.LargeQueue, ingest.PartQueue, ingest.MaintenanceQueue, run.Queue, benchmark.Queue, query.ExportQueue, source.Queue}
}

// work runs jobs until ctx ends. It retries while the database does not answer.
func (a *App) work(ctx context.Context) {
	if a.config.Job.Workers+a.config.Ingest.Workers+a.config.Maintenance.Workers+a.config.Export.Workers+a.config.Run.Workers == 0 {
		return
	}

	for ctx.Err() == nil {
		err := a.jobs.Run(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}

		a.quiet.WarnContext(ctx, "jobs could not be started", "error", err)

		select {
		case <-ctx.Done():
		case <-time.After(workRetry):
		}
	}
}
