package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

const querySmallRows = 10_000

// runQuerySmall measures a statement over few rows through the API, with children that wait for it, beside a new
// instance of DuckDB each time.
func runQuerySmall(ctx context.Context, b *bench) ([]result, error) {
	q, stop, err := b.startQueries(ctx, querySmallRows, queryReady)
	if err != nil {
		return nil, err
	}
	defer stop()

	var ours, bare []time.Duration

	for i := range b.smalls + queryWarm {
		if err := q.rest(ctx); err != nil {
			return nil, err
		}

		got, err := q.run(ctx, groupBy50)
		if err != nil {
			return nil, err
		}

		if err := q.rest(ctx); err != nil {
			return nil, err
		}

		alone, err := coldBare(b.dir, groupBy50, q.views...)
		if err != nil {
			return nil, err
		}

		if got.rows != alone.rows {
			return nil, fmt.Errorf("ours has %d rows, bare %d", got.rows, alone.rows)
		}

		if i >= queryWarm {
			ours, bare = append(ours, got.took), append(bare, alone.took)
		}
	}

	err = b.profileDuring(ctx, "query-small", q.quernd, func(ctx context.Context, lasting time.Duration) error {
		for begin := time.Now(); time.Since(begin) < lasting; {
			if _, err := q.run(ctx, groupBy50); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	oursTimes, bareTimes := sorted(ours), sorted(bare)
	fmt.Fprintf(os.Stderr, "query-small: %d statements, p95 ours %v, bare %v\n", b.smalls, oursTimes.quantile(0.95), bareTimes.quantile(0.95))

	oursMedian, bareMedian := oursTimes.quantile(0.5), bareTimes.quantile(0.5)

	return []result{{
		name: "query-small", ours: milliseconds(float64(oursMedian)), bare: milliseconds(float64(bareMedian)), ratio: float64(bareMedian) / float64(oursMedian),
	}}, nil
}

const queryWarm = 3

func sorted(took []time.Duration) loaded {
	slices.Sort(took)

	return loaded{took: took}
}

// coldBare opens DuckDB, runs a statement and closes it. Closing does not count.
func coldBare(dir, statement string, views ...bareView) (answered, error) {
	begin := time.Now()

	bare, err := openBare(dir, runtime.NumCPU(), views...)
	if err != nil {
		return answered{}, err
	}
	defer bare.close()

	lines, count, err := bare.rows(statement)

	return answered{took: time.Since(begin), rows: count, bytes: len(lines)}, err
}
