// Bench measures quernd beside bare twins: the smallest programs that do the same work. Run it in the root folder of the
// repository while the stack is running, with the names of measures, or none for all:
//
//	go run ./bench [-small] [-update] [-profile DIR] [NAME ...]
//
// A measure is a file in the folder of its subject and a line in measures: catalog (what exists), ingest (rows in), query
// (rows out) and ask (questions). What they share is in rig. Each measure prints one line for each of its results;
// everything else is written to standard error:
//
//	bench <name> <ours> <bare> <ratio> <goal> ok|short|small
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/bench/ask"
	"quern.dev/quern/bench/catalog"
	"quern.dev/quern/bench/ingest"
	"quern.dev/quern/bench/query"
	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

func measures() []rig.Measure {
	return []rig.Measure{
		{Name: "read", Goal: 0.5, Run: catalog.Read, Twin: catalog.ReadTwin},
		{Name: "size", Goal: 0.8, Run: catalog.Size},
		{Name: "load", Goal: 1, Run: catalog.Load},
		{Name: "search", Goal: 0.5, Run: catalog.Search}, // at most twice as long, or 30 ms
		{Name: "upload", Goal: 0.9, Run: ingest.Upload},
		{Name: "prepare", Goal: 1, Run: ingest.Prepare},
		{Name: "pickup", Goal: 0.8, Run: ingest.Pickup},
		{Name: "ingest", Goal: 0.77, Run: ingest.Ingest}, // at most 1.3 times as long
		{Name: "ingest-many", Goal: 0.77, Run: ingest.Many},
		{Name: "documents", Goal: 0.8, Run: ingest.Documents}, // at most 1.25 times as long
		{Name: "append", Goal: 0.5, Run: ingest.Append},       // at most twice as long
		{Name: "merge", Goal: 0.67, Run: ingest.Merge},        // at most 1.5 times as long
		{Name: "source", Goal: 0.67, Run: ingest.Source},      // at most 1.5 times as long
		{Name: "commit", Goal: 0.33, Run: ingest.Commit},      // the lease and our own rows need three more transactions
		{Name: "query", Goal: 0.87, Run: query.Query},         // at most 1.15 times as long plus 20 ms
		{Name: "query-small", Goal: 1, Run: query.Small},
		{Name: "query-parallel", Goal: 0.8, Run: query.Parallel, Twin: query.ParallelTwin},
		{Name: "query-cold", Goal: 1, Run: query.Cold},
		{Name: "query-many", Goal: 0.8, Run: query.Many},                               // at most 1.25 times as long
		{Name: "wide", Goal: 0.67, Run: query.Wide},                                    // at most 1.5 times as long plus 50 ms; the load at most twice as long
		{Name: "result", Goal: 0.83, Run: query.Large},                                 // at most 1.2 times as long
		{Name: "python", Goal: 0.77, Run: query.Python},                                // at most 1.3 times as long
		{Name: "trino", Goal: 0.91, Run: query.Trino, ByName: "Trino: stack/up trino"}, // at most 1.1 times as long plus 50 ms
		{Name: "trino-cross", Goal: 1, Run: query.TrinoCross, ByName: "Trino: stack/up trino"},
		{Name: "link", Goal: 1, Run: query.Match},             // at most as long, or 20 ms
		{Name: "compacted", Goal: 0.77, Run: query.Compacted}, // at most 1.3 times as long
		{Name: "ask", Goal: 1, Run: ask.Ask},                  // at most as long, or 40 ms more
		{Name: "context", Goal: 1, Run: ask.Context},          // at most as long, or 20 ms more
		{Name: "growth", Goal: 1, Run: ask.Growth},            // at most 30 ms, or 10 ms more
		{Name: "planner", Goal: 1, Run: ask.Planner},          // at most as long, or 50 ms more
		{Name: "verified", Goal: 1, Run: ask.Verified},        // at most as long, or 10 ms more
		{Name: "streams", Goal: 1, Run: ask.Streams},
		{Name: "runs", Goal: 1, Run: ask.Runs},
		{Name: "a2a", Goal: 1, Run: ask.A2A, Twin: ask.A2ATwin}, // at most as long, or 15 ms more
		{Name: "mcp", Goal: 1, Run: ask.MCP},                    // at most as long as REST, or 5 ms more
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	small := flag.Bool("small", false, "run short rounds with little data, to check that the measures work; ratios are not judged")
	update := flag.Bool("update", false, "write the reached ratios to the baseline")
	profile := flag.String("profile", "", "write CPU profiles of quernd to this `folder`")
	twin := flag.String("twin", "", "run as the bare twin of this `measure`; used by bench itself")
	flag.Parse()

	if *twin != "" {
		return beTwin(ctx, *twin)
	}

	chosen, err := choose(flag.Args())
	if err != nil {
		return err
	}

	b := &rig.Bench{
		Profile: *profile, Rounds: 5, Round: 4 * time.Second, Large: 1_000_000, Searched: 100_000, Sizes: []int{100_000, 1_000_000}, Steady: time.Minute, Upload: 1 << 30, Uploads: 9,
		Pickups: 200, Rows: 10_000_000, Loads: 3, Pages: 1000, Posts: 1000, Commits: 9, Columns: 1500, Queries: 9, Smalls: 200, Colds: 5, Asks: 200, Streams: 1000,
		Sourced: 20_000_000, Listed: 10_000, Files: 64, FileSize: 64 << 20, Cluster: 50_000_000, Clustered: 5,
	}
	if *small && *update {
		return errors.New("-update needs full sizes: remove -small")
	}

	if *small {
		b.Sizes = []int{4_000}
		b.Rounds, b.Round, b.Large, b.Searched, b.Steady = 1, time.Second, 2_000, 1_000, 3*time.Second
		b.Upload, b.Uploads = 16<<20, 1
		b.Pickups, b.Rows, b.Loads, b.Pages, b.Posts, b.Commits = 10, 100_000, 1, 10, 20, 1
		b.Columns, b.Queries, b.Smalls, b.Colds, b.Asks, b.Streams = 300, 1, 10, 1, 10, 50
		b.Sourced, b.Listed = 100_000, 500
		b.Files, b.FileSize, b.Cluster, b.Clustered = 4, 1<<20, 100_000, 1
	}

	if b.Dir, err = os.MkdirTemp("", "quern-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.Dir)

	if b.Quernd, err = stack.Build(ctx, b.Dir, "-tags", "scripted"); err != nil {
		return err
	}

	atOnce := 1
	if *small {
		atOnce = smallAtOnce
	}

	var measures errgroup.Group
	measures.SetLimit(atOnce)

	problems := make([]error, len(chosen))

	for i, m := range chosen {
		measures.Go(func() error {
			if err := measure(ctx, *b, m, *small, *update); err != nil {
				problems[i] = fmt.Errorf("%s: %w", m.Name, err)
			}

			return nil // the others run to the end
		})
	}

	_ = measures.Wait() // no function returns an error

	return errors.Join(problems...)
}

// smallAtOnce is how many measures run at the same time if they are not judged. Most of them wait for services that start.
const smallAtOnce = 3

func choose(names []string) ([]rig.Measure, error) {
	var chosen []rig.Measure

	all := measures()
	if len(names) == 0 {
		for _, m := range all {
			if m.ByName != "" {
				fmt.Fprintf(os.Stderr, "%s is left out: it runs only if it is named, and needs %s\n", m.Name, m.ByName)

				continue
			}

			chosen = append(chosen, m)
		}

		return chosen, nil
	}

	for _, name := range names {
		i := slices.IndexFunc(all, func(m rig.Measure) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no measure %q", name)
		}

		chosen = append(chosen, all[i])
	}

	return chosen, nil
}

// measure runs a measure, prints its lines and, in a full run, judges them by the goal and by the baseline. A small run
// only shows that the measure works: its sizes are too small and its machine too busy for a verdict.
func measure(ctx context.Context, b rig.Bench, m rig.Measure, small, update bool) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Longest)
	defer cancel()

	var err error
	if b.Dir, err = os.MkdirTemp(b.Dir, m.Name+"-"); err != nil {
		return err
	}

	results, err := m.Run(ctx, &b)
	if err != nil {
		return err
	}

	var short []error

	for _, r := range results {
		goal := cmp.Or(r.Goal, m.Goal)

		verdict := "small"

		if !small {
			missed, err := judge(r, goal)
			if err != nil {
				return err
			}

			if verdict = "ok"; missed != nil {
				verdict = "short"

				short = append(short, missed)
			}
		}

		if _, err := fmt.Fprintf(os.Stdout, "bench %s %s %s %.2f %v %s\n", r.Name, r.Ours, r.Bare, r.Ratio, goal, verdict); err != nil {
			return err
		}

		if update {
			if err := remember(r.Name, r.Ratio); err != nil {
				return err
			}
		}
	}

	if update {
		return nil
	}

	return errors.Join(short...)
}

// judge returns in short how a result misses its goal or the ratio in the baseline, or nil if it reaches both.
func judge(r rig.Result, goal float64) (short, err error) {
	if r.Enough {
		return nil, nil
	}

	before, err := reachedBefore(r.Name)

	switch {
	case err != nil:
		return nil, err
	case r.Ratio < goal:
		return fmt.Errorf("%s: the ratio %.2f is below the goal %v", r.Name, r.Ratio, goal), nil
	case r.Ratio < before*tolerated: // a new measure has no ratio in the baseline
		return fmt.Errorf("%s: the ratio %.2f is below %v of the baseline's %.2f", r.Name, r.Ratio, tolerated, before), nil
	}

	return nil, nil
}

// beTwin does the work of the bare twin of a measure.
func beTwin(ctx context.Context, name string) error {
	chosen, err := choose([]string{name})
	if err != nil {
		return err
	}

	if chosen[0].Twin == nil {
		return fmt.Errorf("%s has no twin", name)
	}

	return chosen[0].Twin(ctx)
}
