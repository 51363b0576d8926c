package query

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"quern.dev/quern/bench/rig"
)

const SmallRows = 10_000

// Small measures a statement over few rows through the API, with idle sealed processes, beside a new instance
// of DuckDB each time.
func Small(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	q, stop, err := StartQueries(ctx, b, SmallRows, Ready)
	if err != nil {
		return nil, err
	}
	defer stop()

	var ours, bare []time.Duration

	for i := range b.Smalls + Warm {
		if err := q.Rest(ctx); err != nil {
			return nil, err
		}

		got, err := q.Run(ctx, groupBy50)
		if err != nil {
			return nil, err
		}

		if err := q.Rest(ctx); err != nil {
			return nil, err
		}

		alone, err := coldBare(b.Dir, groupBy50, q.views...)
		if err != nil {
			return nil, err
		}

		if got.rows != alone.rows {
			return nil, fmt.Errorf("ours has %d rows, bare %d", got.rows, alone.rows)
		}

		if i >= Warm {
			ours, bare = append(ours, got.Took), append(bare, alone.Took)
		}
	}

	err = b.ProfileDuring(ctx, "query-small", q.Quernd, func(ctx context.Context, lasting time.Duration) error {
		for begin := time.Now(); time.Since(begin) < lasting; {
			if _, err := q.Run(ctx, groupBy50); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	oursTimes, bareTimes := rig.Sorted(ours), rig.Sorted(bare)
	fmt.Fprintf(os.Stderr, "query-small: %d statements, p95 ours %v, bare %v\n", b.Smalls, oursTimes.Quantile(0.95), bareTimes.Quantile(0.95))

	oursMedian, bareMedian := oursTimes.Quantile(0.5), bareTimes.Quantile(0.5)

	return []rig.Result{{
		Name: "query-small", Ours: rig.Milliseconds(float64(oursMedian)), Bare: rig.Milliseconds(float64(bareMedian)), Ratio: float64(bareMedian) / float64(oursMedian),
	}}, nil
}

const Warm = 3

// coldBare opens DuckDB, runs a statement and closes it. The time of closing does not count.
func coldBare(dir, statement string, views ...bareView) (Answered, error) {
	begin := time.Now()

	bare, err := openBare(dir, runtime.NumCPU(), views...)
	if err != nil {
		return Answered{}, err
	}
	defer bare.close()

	lines, count, err := bare.rows(statement)

	return Answered{Took: time.Since(begin), rows: count, bytes: len(lines)}, err
}
