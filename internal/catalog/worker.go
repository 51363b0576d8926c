package catalog

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"quern.dev/quern/internal/job"
)

// IndexArgs is the job that writes stale search documents.
type IndexArgs struct{}

// Kind returns the name of the job.
func (IndexArgs) Kind() string { return "catalog.index" }

const (
	indexEvery = time.Minute
	indexFor   = 50 * time.Second
)

// Indexer works on IndexArgs.
type Indexer struct {
	river.WorkerDefaults[IndexArgs]

	Catalog Catalog
}

// Work continues until no stale documents and no new grants are left, or the next job is nearly due. Several workers may run at once.
func (i *Indexer) Work(ctx context.Context, _ *river.Job[IndexArgs]) error {
	for began := time.Now(); time.Since(began) < indexFor; {
		made, err := i.Catalog.indexStale(ctx)
		if err == nil && made == 0 {
			made, err = i.Catalog.indexShares(ctx)
		}

		if err != nil || made == 0 {
			return err
		}
	}

	return nil
}

// Periodic returns the periodic job that writes stale search documents.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(indexEvery, IndexArgs{})}
}
