// Bench measures quernd beside bare twins: the least programs that do the same work. Run it at the root
// of the repository while the stack is up, with the names of measures or none for all:
//
//	go run ./bench [-small] [-update] [-profile DIR] [NAME ...]
//
// A measure is a file here and a line in measures. Each prints one line for each of its results;
// everything else goes to standard error:
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
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// measure compares ours with bare. A ratio says how good we are: 1 is as good as the twin, more is better.
type measure struct {
	name string
	goal float64
	run  func(ctx context.Context, b *bench) ([]result, error) // the same names in the same order each time
	twin func(ctx context.Context) error                       // what the bare twin's process does; nil if it needs none
}

type result struct {
	name       string
	ours, bare string
	ratio      float64
	goal       float64 // instead of the measure's, if it has one of its own
	enough     bool    // an absolute goal is reached, so the ratio does not matter
}

func measures() []measure {
	return []measure{
		{name: "read", goal: 0.5, run: runRead, twin: serveReadTwin},
		{name: "size", goal: 0.8, run: runSize},
		{name: "load", goal: 1, run: runLoad},
		{name: "search", goal: 0.5, run: runSearch}, // at most twice as long, or 30 ms
		{name: "upload", goal: 0.9, run: runUpload},
		{name: "prepare", goal: 1, run: runPrepare},
		{name: "pickup", goal: 0.8, run: runPickup},
		{name: "ingest", goal: 0.77, run: runIngest}, // at most 1.3 times as long
		{name: "append", goal: 0.5, run: runAppend},  // at most twice as long
		{name: "commit", goal: 0.33, run: runCommit}, // the lease and our own rows are three more transactions
		{name: "query", goal: 0.87, run: runQuery},   // at most 1.15 times as long, and 20 ms
		{name: "query-small", goal: 1, run: runQuerySmall},
		{name: "query-parallel", goal: 0.8, run: runQueryParallel, twin: serveQueryTwin},
		{name: "query-cold", goal: 1, run: runQueryCold},
		{name: "query-many", goal: 0.8, run: runQueryMany}, // at most 1.25 times as long
		{name: "wide", goal: 0.67, run: runWide},           // at most 1.5 times as long, and 50 ms; to load: twice as long
		{name: "link", goal: 1, run: runLink},              // or 20 ms
		{name: "compacted", goal: 0.77, run: runCompacted}, // at most 1.3 times as long
		{name: "ask", goal: 1, run: runAsk},                // or 40 ms more
		{name: "context", goal: 1, run: runContext},        // or 20 ms more
		{name: "planner", goal: 1, run: runPlanner},        // or 50 ms more
		{name: "streams", goal: 1, run: runStreams},
		{name: "runs", goal: 1, run: runRuns},
		{name: "a2a", goal: 1, run: runA2A, twin: serveA2ATwin}, // or 15 ms more
	}
}

// bench is what measures share.
type bench struct {
	dir      string // for logs and the built program, removed at the end
	quernd   string // the built program
	profile  string // where CPU profiles go; empty for none
	rounds   int
	round    time.Duration
	large    int           // datasets and grants in a large catalog
	searched int           // datasets of which one is sought
	steady   time.Duration // how long a load at a constant rate lasts
	upload   int64         // bytes of an upload
	uploads  int           // rounds of them
	pickups  int           // jobs
	rows     int           // of a file
	loads    int           // rounds of it
	posts    int           // of rows, to one dataset
	commits  int
	columns  int // of a wide table
	queries  int // rounds of one statement
	smalls   int // statements over few rows
	colds    int // services that know no file
	asks     int // questions
	streams  int // on one replica
}

const longest = 20 * time.Minute // for one measure

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
	small := flag.Bool("small", false, "short rounds over little data; shows that the measures work and judges no ratio")
	update := flag.Bool("update", false, "write the reached ratios to the baseline")
	profile := flag.String("profile", "", "write CPU profiles of quernd to this `folder`")
	twin := flag.String("twin", "", "be the bare twin of this `measure`; bench starts itself so")
	flag.Parse()

	if *twin != "" {
		return beTwin(ctx, *twin)
	}

	chosen, err := choose(flag.Args())
	if err != nil {
		return err
	}

	b := &bench{
		profile: *profile, rounds: 5, round: 4 * time.Second, large: 1_000_000, searched: 100_000, steady: time.Minute, upload: 1 << 30, uploads: 9,
		pickups: 200, rows: 10_000_000, loads: 3, posts: 1000, commits: 9, columns: 1500, queries: 9, smalls: 200, colds: 5, asks: 200, streams: 1000,
	}
	if *small && *update {
		return errors.New("-update takes full sizes: leave -small out")
	}

	if *small {
		b.rounds, b.round, b.large, b.searched, b.steady = 1, time.Second, 2_000, 1_000, 3*time.Second
		b.upload, b.uploads = 16<<20, 1
		b.pickups, b.rows, b.loads, b.posts, b.commits = 10, 100_000, 1, 20, 1
		b.columns, b.queries, b.smalls, b.colds, b.asks, b.streams = 300, 1, 10, 1, 10, 50
	}

	if b.dir, err = os.MkdirTemp("", "quern-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)

	b.quernd = filepath.Join(b.dir, "quernd")
	if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.quernd, "./cmd/quernd").CombinedOutput(); err != nil {
		return fmt.Errorf("building quernd: %w\n%s", err, out)
	}

	var problems []error
	for _, m := range chosen {
		if err := b.measure(ctx, m, *small, *update); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m.name, err))
		}
	}

	return errors.Join(problems...)
}

func choose(names []string) ([]measure, error) {
	all := measures()
	if len(names) == 0 {
		return all, nil
	}

	var chosen []measure
	for _, name := range names {
		i := slices.IndexFunc(all, func(m measure) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no measure %q", name)
		}

		chosen = append(chosen, all[i])
	}

	return chosen, nil
}

// measure runs a measure, prints its lines and, in a full run, judges them by the goal and by the baseline. A small run says only that the
// measure works: its sizes are too small and its machine too busy for a verdict.
func (b *bench) measure(ctx context.Context, m measure, small, update bool) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()

	results, err := m.run(ctx, b)
	if err != nil {
		return err
	}

	var short []error

	for _, r := range results {
		goal := cmp.Or(r.goal, m.goal)

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

		if _, err := fmt.Fprintf(os.Stdout, "bench %s %s %s %.2f %v %s\n", r.name, r.ours, r.bare, r.ratio, goal, verdict); err != nil {
			return err
		}

		if update {
			if err := remember(r.name, r.ratio); err != nil {
				return err
			}
		}
	}

	if update {
		return nil
	}

	return errors.Join(short...)
}

// judge says what a result is short of: its goal, or what was reached before.
func judge(r result, goal float64) (short, err error) {
	if r.enough {
		return nil, nil
	}

	before, err := reachedBefore(r.name)

	switch {
	case err != nil:
		return nil, err
	case r.ratio < goal:
		return fmt.Errorf("%s: the ratio %.2f is short of the goal %v", r.name, r.ratio, goal), nil
	case r.ratio < before*tolerated: // nothing was reached before by a new measure
		return fmt.Errorf("%s: the ratio %.2f is below %v of the baseline's %.2f", r.name, r.ratio, tolerated, before), nil
	}

	return nil, nil
}
