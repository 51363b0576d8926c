package main

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
)

const (
	coldFiles    = 20
	coldDelay    = 30 * time.Millisecond
	coldParallel = 8 // fetches at once, of both sides
)

// runQueryCold counts the requests to a slow store for the first statement of a service that has just started and
// has no copies of files, and the time. Its twin fetches the files, as many at once, and runs a new DuckDB on them.
func runQueryCold(ctx context.Context, b *bench) ([]result, error) {
	store, vacate, err := newPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer vacate()

	seen, err := startCounter(store.endpoint)
	if err != nil {
		return nil, err
	}
	defer seen.Close()

	loader, stop, err := b.startService(ctx, "QUERN_S3_ENDPOINT="+seen.URL)
	if err != nil {
		return nil, err
	}
	defer stop()

	if err := b.fillTable(ctx, loader, "sales", salesRows(b.rows/coldFiles), coldFiles); err != nil {
		return nil, err
	}

	keys := dataFiles(seen.take())
	if len(keys) != coldFiles {
		return nil, fmt.Errorf("%d data files were stored and not %d", len(keys), coldFiles)
	}

	seen.delay.Store(int64(coldDelay))

	var ourRequests []request

	ours, bare, err := alternate(ctx, b.colds,
		side{"ours", func(ctx context.Context) (float64, string, error) {
			took, requests, err := b.coldQuery(ctx, loader, seen)
			ourRequests = requests

			return float64(took), fmt.Sprintf("%v, %s", took, list(requests)), err
		}},
		side{"bare", func(ctx context.Context) (float64, string, error) {
			took, err := b.coldTwin(ctx, loader.place.through(seen.URL), keys)
			requests := seen.take()

			return float64(took), fmt.Sprintf("%v, %s", took, list(requests)), err
		}})
	if err != nil {
		return nil, err
	}

	return []result{{
		name: "query-cold", ours: fmt.Sprintf("%drequests/%s", len(ourRequests), milliseconds(ours)), bare: fmt.Sprintf("%drequests/%s", len(keys), milliseconds(bare)),
		ratio: float64(len(keys)) / float64(len(ourRequests)),
	}}, nil
}

// dataFiles are the keys of the data files that requests stored, below the bucket.
func dataFiles(requests []request) (keys []string) {
	for _, r := range requests {
		if r.method == http.MethodPut && strings.Contains(r.path, "/lake/") && path.Ext(r.path) == ".parquet" {
			_, key, _ := strings.Cut(strings.TrimPrefix(r.path, "/"), "/")
			keys = append(keys, key)
		}
	}

	return keys
}

// list is how often each kind of file was asked for, and how.
func list(requests []request) string {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.method+" *"+path.Ext(r.path)]++
	}

	return strings.TrimPrefix(fmt.Sprint(counts), "map")
}

// coldQuery starts one more service on the same database and objects, and asks it for the first time.
func (b *bench) coldQuery(ctx context.Context, loader *service, seen *counter) (took time.Duration, requests []request, err error) {
	started, err := b.startQuernd(ctx, loader.database, fmt.Sprintf("QUERN_SANDBOX_READY=%d", queryReady), "QUERN_S3_ENDPOINT="+seen.URL,
		"QUERN_S3_PREFIX="+loader.place.prefix, "QUERN_JOB_WORKERS=0", "QUERN_INGEST_WORKERS=0", fmt.Sprintf("QUERN_QUERY_MEMORY=%dMiB", queryMemory>>20))
	if err != nil {
		return 0, nil, err
	}
	defer started.stop()

	cold := &queries{service: &service{quernd: started, tokens: loader.tokens}, ready: queryReady}

	if err := cold.rest(ctx); err != nil {
		return 0, nil, err
	}

	seen.take()

	got, err := cold.run(ctx, groupBy50)

	return got.took, seen.take(), err
}

// coldTwin knows which files there are.
func (b *bench) coldTwin(ctx context.Context, p *place, keys []string) (time.Duration, error) {
	dir, err := os.MkdirTemp(b.dir, "cold-")
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

		fetches.Go(func() error { return p.fetch(fetching, strings.TrimPrefix(key, p.prefix), to) })
	}

	if err := fetches.Wait(); err != nil {
		return 0, err
	}

	fetched := time.Since(begin)
	ran, err := coldBare(dir, groupBy50, view)

	return fetched + ran.took, err
}
