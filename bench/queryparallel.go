package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	queryClients = 8

	// The parameters of the twin.
	queryTwinFiles = "BENCH_FILES"
	queryTwinDir   = "BENCH_DIR"
)

// runQueryParallel measures how many statements get done for clients that ask all the time, beside as many
// processes that have DuckDB open and run the same statement all the time.
func runQueryParallel(ctx context.Context, b *bench) ([]result, error) {
	q, stop, err := b.startQueries(ctx, b.rows, queryClients, fmt.Sprintf("QUERN_QUERY_RUNNING=%d", 2*queryClients)) // one user has half of the places
	if err != nil {
		return nil, err
	}
	defer stop()

	var ours, bare [queryClients]client

	for i := range queryClients {
		ours[i] = func(ctx context.Context) error {
			_, err := q.run(ctx, groupBy50)

			return err
		}

		twin, err := b.startTwin(ctx, "query-parallel", queryTwinFiles+"="+strings.Join(q.views[0].files, "\n"), queryTwinDir+"="+b.dir)
		if err != nil {
			return nil, err
		}
		defer twin.stop()

		if bare[i], err = askQueryTwin(ctx, twin); err != nil {
			return nil, err
		}
	}

	round := func(clients []client) func(ctx context.Context) (float64, string, error) {
		return func(ctx context.Context) (float64, string, error) {
			if err := q.rest(ctx); err != nil {
				return 0, "", err
			}

			rate, err := hammer(ctx, clients, 2*b.round)

			return rate, fmt.Sprintf("%.2f/s", rate), err
		}
	}

	ourRate, bareRate, err := alternate(ctx, b.rounds,
		withProcessorTime(q.pid, side{"ours", round(ours[:])}), side{"bare", round(bare[:])})
	if err != nil {
		return nil, err
	}

	err = b.profileDuring(ctx, "query-parallel", q.quernd, func(ctx context.Context, lasting time.Duration) error {
		_, err := hammer(ctx, ours[:], lasting)

		return err
	})

	return []result{{
		name: "query-parallel", ours: fmt.Sprintf("%.2f/s", ourRate), bare: fmt.Sprintf("%.2f/s", bareRate), ratio: ourRate / bareRate,
	}}, err
}

// client runs a statement once.
type client func(ctx context.Context) error

// hammer lets every client go on for a time, and says how many statements were done a second. The last ones are
// waited for, and count.
func hammer(ctx context.Context, clients []client, lasting time.Duration) (perSecond float64, err error) {
	var done atomic.Int64

	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)

	for _, once := range clients {
		group.Go(func() error {
			for time.Since(begin) < lasting {
				if err := once(ctx); err != nil {
					return err
				}

				done.Add(1)
			}

			return nil
		})
	}

	err = group.Wait()

	return float64(done.Load()) / time.Since(begin).Seconds(), err
}

func askQueryTwin(ctx context.Context, twin *process) (client, error) {
	address, err := twin.address(ctx, "api")
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
		if err != nil {
			return err
		}

		_, err = get(request)

		return err
	}, nil
}

// serveQueryTwin has DuckDB open and runs the statement whenever it is asked.
func serveQueryTwin(ctx context.Context) error {
	bare, err := openBare(os.Getenv(queryTwinDir), runtime.NumCPU(), bareView{"sales", strings.Split(os.Getenv(queryTwinFiles), "\n")})
	if err != nil {
		return err
	}
	defer bare.close()

	return serveTwin(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lines, _, err := bare.rows(groupBy50)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}

		_, _ = w.Write(lines) // the client may have left
	}))
}
