// Bench measures quernd beside bare twins: the least programs that do the same work. Run it at the root
// of the repository while the stack is up, with the names of measures or none for all:
//
//	go run ./bench [-small] [-update] [-profile DIR] [NAME ...]
//
// A measure is a file here and a line in measures. Each prints one line; everything else goes to
// standard error:
//
//	bench <name> <ours> <bare> <ratio> <goal> ok|short
package main

import (
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
	run  func(ctx context.Context, b *bench) (result, error)
	twin func(ctx context.Context) error // what the bare twin's process does; nil if it needs none
}

type result struct {
	ours, bare string
	ratio      float64
}

func measures() []measure {
	return []measure{
		{name: "read", goal: 0.5, run: runRead, twin: serveReadTwin},
	}
}

// bench is what measures share.
type bench struct {
	dir     string // for logs and the built program, removed at the end
	quernd  string // the built program
	profile string // where CPU profiles go; empty for none
	rounds  int
	round   time.Duration
}

const longest = 10 * time.Minute // for one measure with all its tries

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
	small := flag.Bool("small", false, "short rounds; fail only if a ratio is clearly below the baseline")
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

	b := &bench{profile: *profile, rounds: 5, round: 4 * time.Second}
	if *small {
		b.rounds, b.round = 3, 1500*time.Millisecond
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

// measure runs a measure, prints its line and judges it. Small runs are noisy, so they get a few tries
// and print the best.
func (b *bench) measure(ctx context.Context, m measure, small, update bool) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()

	tries, floor := 1, 0.0

	if small && !update {
		reached, err := reachedBefore(m.name)
		if err != nil {
			return err
		}

		tries, floor = 3, reached*tolerated
	}

	var best result

	for try := range tries {
		got, err := m.run(ctx, b)
		if err != nil {
			return err
		}

		if try == 0 || got.ratio > best.ratio {
			best = got
		}

		if best.ratio >= floor {
			break
		}

		fmt.Fprintf(os.Stderr, "%s: try %d of %d reached %.2f, at least %.2f is expected\n", m.name, try+1, tries, got.ratio, floor)
	}

	verdict := "ok"
	if best.ratio < m.goal {
		verdict = "short"
	}

	_, err := fmt.Fprintf(os.Stdout, "bench %s %s %s %.2f %v %s\n", m.name, best.ours, best.bare, best.ratio, m.goal, verdict)
	if err != nil {
		return err
	}

	switch {
	case update:
		return remember(m.name, best.ratio)
	case best.ratio < floor:
		return fmt.Errorf("the ratio was below %.2f in %d of %d tries", floor, tries, tries)
	case !small && verdict == "short":
		return fmt.Errorf("the ratio %.2f is short of the goal %v", best.ratio, m.goal)
	default:
		return nil
	}
}
