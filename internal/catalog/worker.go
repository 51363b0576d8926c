package catalog

import (
	"context"
	"time"

	"github.com/riverqueue/river"
)

// IndexArgs is the job that makes what is searched of datasets that nobody made it for.
type IndexArgs struct{}

// Kind names the job.
func (IndexArgs) Kind() string { return "catalog.index" }

const (
	indexQueue = "housekeeping"
	indexEvery = time.Minute
	indexFor   = 50 * time.Second
)

// Indexer works IndexArgs.
type Indexer struct {
	river.WorkerDefaults[IndexArgs]

	Catalog Catalog
}

// Work goes on until nothing is left, or the next job is due. Several at once do no harm.
func (i *Indexer) Work(ctx context.Context, _ *river.Job[IndexArgs]) error {
	for began := time.Now(); time.Since(began) < indexFor; {
		if made, err := i.Catalog.indexStale(ctx); err != nil || made == 0 {
			return err
		}
	}

	return nil
}

// Periodic inserts the job again and again.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(indexEvery), func() (river.JobArgs, *river.InsertOpts) {
		return IndexArgs{}, &river.InsertOpts{Queue: indexQueue, UniqueOpts: river.UniqueOpts{ByPeriod: indexEvery}}
	}, &river.PeriodicJobOpts{RunOnStart: true})}
}
