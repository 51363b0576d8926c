package query

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/bench/rig"
)

const (
	coldFiles    = 20
	coldDelay    = 30 * time.Millisecond
	coldParallel = 8 // simultaneous fetches, on both sides
)

// Cold counts the requests to a slow store for the first statement of a service that has just started and has
// no cached files, and measures the time. Its twin fetches the files, as many at once, and runs a new DuckDB on them.
func Cold(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	store, vacate, err := rig.NewLocation(ctx)
	if err != nil {
		return nil, err
	}
	defer vacate()

	seen, err := rig.StartCounter(store.Endpoint)
	if err != nil {
		return nil, err
	}
	defer seen.Close()

	loader, stop, err := b.StartService(ctx, "QUERN_S3_ENDPOINT="+seen.URL)
	if err != nil {
		return nil, err
	}
	defer stop()

	if err := b.FillTable(ctx, loader, "sales", SalesRows(b.Rows/coldFiles), coldFiles); err != nil {
		return nil, err
	}

	keys := dataFiles(seen.Take())
	if len(keys) != coldFiles {
		return nil, fmt.Errorf("%d data files were stored and not %d", len(keys), coldFiles)
	}

	seen.Delay.Store(int64(coldDelay))

	var ourRequests []rig.Request

	ours, bare, err := rig.Alternate(ctx, b.Colds,
		rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
			took, requests, err := coldQuery(ctx, b, loader, seen)
			ourRequests = requests

			return float64(took), fmt.Sprintf("%v, %s", took, list(requests)), err
		}},
		rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
			took, err := coldTwin(ctx, b, loader.Location.Through(seen.URL), keys)
			requests := seen.Take()

			return float64(took), fmt.Sprintf("%v, %s", took, list(requests)), err
		}})
	if err != nil {
		return nil, err
	}

	return []rig.Result{{
		Name: "query-cold", Ours: fmt.Sprintf("%drequests/%s", len(ourRequests), rig.Milliseconds(ours)), Bare: fmt.Sprintf("%drequests/%s", len(keys), rig.Milliseconds(bare)),
		Ratio: float64(len(keys)) / float64(len(ourRequests)),
	}}, nil
}

// dataFiles returns the keys, in the bucket, of the data files that the requests stored.
func dataFiles(requests []rig.Request) (keys []string) {
	for _, r := range requests {
		if r.Method == http.MethodPut && strings.Contains(r.Path, "/lake/") && path.Ext(r.Path) == ".parquet" {
			_, key, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/")
			keys = append(keys, key)
		}
	}

	return keys
}

// list returns the number of requests for each method and file extension.
func list(requests []rig.Request) string {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Method+" *"+path.Ext(r.Path)]++
	}

	return strings.TrimPrefix(fmt.Sprint(counts), "map")
}

// coldQuery starts another service on the same database and objects, and runs its first statement.
func coldQuery(ctx context.Context, b *rig.Bench, loader *rig.Service, seen *rig.Counter) (took time.Duration, requests []rig.Request, err error) {
	started, err := b.StartQuernd(ctx, loader.Database, fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", Ready), "QUERN_S3_ENDPOINT="+seen.URL,
		"QUERN_S3_PREFIX="+loader.Location.Prefix, "QUERN_JOB_WORKERS=0", "QUERN_INGEST_WORKERS=0", fmt.Sprintf("QUERN_QUERY_MEMORY=%dMiB", queryMemory>>20))
	if err != nil {
		return 0, nil, err
	}
	defer started.Stop()

	cold := &Queries{Service: &rig.Service{Quernd: started, Tokens: loader.Tokens}, ready: Ready}

	if err := cold.Rest(ctx); err != nil {
		return 0, nil, err
	}

	seen.Take()

	got, err := cold.Run(ctx, groupBy50)

	return got.Took, seen.Take(), err
}

// coldTwin fetches the files, whose keys it is given, and runs the statement.
func coldTwin(ctx context.Context, b *rig.Bench, p *rig.Location, keys []string) (time.Duration, error) {
	dir, err := os.MkdirTemp(b.Dir, "cold-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)

	begin := time.Now()
	view := bareView{name: "sales"}

	fetches, fetching := errgroup.WithContext(ctx)
	fetches.SetLimit(coldParallel)

	for i, key := range keys {
		to := filepath.Join(dir, fmt.Sprintf("%d.parquet", i))
		view.files = append(view.files, to)

		fetches.Go(func() error { return p.Fetch(fetching, strings.TrimPrefix(key, p.Prefix), to) })
	}

	if err := fetches.Wait(); err != nil {
		return 0, err
	}

	fetched := time.Since(begin)
	ran, err := coldBare(dir, groupBy50, view)

	return fetched + ran.Took, err
}
