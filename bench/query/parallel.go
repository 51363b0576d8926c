package query

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

	"quern.dev/quern/bench/rig"
)

const (
	Clients = 8

	// Names of the environment variables with the parameters of the twin.
	queryTwinFiles = "BENCH_FILES"
	queryTwinDir   = "BENCH_DIR"
)

// Parallel measures the throughput of clients that send statements without a pause. Its twin is the same number of
// processes that keep DuckDB open and repeat the same statement.
func Parallel(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	q, stop, err := StartQueries(ctx, b, b.Rows, Clients, fmt.Sprintf("QUERN_QUERY_MAX_RUNNING=%d", 2*Clients)) // one user gets half of the slots
	if err != nil {
		return nil, err
	}
	defer stop()

	var ours, bare [Clients]Client

	for i := range Clients {
		ours[i] = func(ctx context.Context) error {
			_, err := q.Run(ctx, groupBy50)

			return err
		}

		twin, err := b.StartTwin(ctx, "query-parallel", queryTwinFiles+"="+strings.Join(q.views[0].files, "\n"), queryTwinDir+"="+b.Dir)
		if err != nil {
			return nil, err
		}
		defer twin.Stop()

		if bare[i], err = askQueryTwin(ctx, twin); err != nil {
			return nil, err
		}
	}

	round := func(clients []Client) func(ctx context.Context) (float64, string, error) {
		return func(ctx context.Context) (float64, string, error) {
			if err := q.Rest(ctx); err != nil {
				return 0, "", err
			}

			rate, err := Hammer(ctx, clients, 2*b.Round)

			return rate, fmt.Sprintf("%.2f/s", rate), err
		}
	}

	ourRate, bareRate, err := rig.Alternate(ctx, b.Rounds,
		rig.WithProcessorTime(q.PID, rig.Side{Name: "ours", Round: round(ours[:])}), rig.Side{Name: "bare", Round: round(bare[:])})
	if err != nil {
		return nil, err
	}

	err = b.ProfileDuring(ctx, "query-parallel", q.Quernd, func(ctx context.Context, lasting time.Duration) error {
		_, err := Hammer(ctx, ours[:], lasting)

		return err
	})

	return []rig.Result{{
		Name: "query-parallel", Ours: fmt.Sprintf("%.2f/s", ourRate), Bare: fmt.Sprintf("%.2f/s", bareRate), Ratio: ourRate / bareRate,
	}}, err
}

// Client runs a statement once.
type Client func(ctx context.Context) error

// Hammer runs every client repeatedly for the given time, and returns the number of completed statements per second. It
// waits for the last ones, and counts them.
func Hammer(ctx context.Context, clients []Client, lasting time.Duration) (perSecond float64, err error) {
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

func askQueryTwin(ctx context.Context, twin *rig.Process) (Client, error) {
	address, err := twin.Address(ctx, "api")
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
		if err != nil {
			return err
		}

		_, err = rig.Get(request)

		return err
	}, nil
}

// ParallelTwin keeps DuckDB open and runs the statement for every request.
func ParallelTwin(ctx context.Context) error {
	bare, err := openBare(os.Getenv(queryTwinDir), runtime.NumCPU(), bareView{"sales", strings.Split(os.Getenv(queryTwinFiles), "\n")})
	if err != nil {
		return err
	}
	defer bare.close()

	return rig.ServeTwin(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lines, _, err := bare.rows(groupBy50)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}

		_, _ = w.Write(lines) // the client may have disconnected
	}))
}
