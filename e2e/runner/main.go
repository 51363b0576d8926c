// Runner runs the black-box tests and distinguishes flaky tests from broken ones. A test that fails runs once more, alone, after
// all others. If it passes then, the run succeeds and prints a line `flaky: NAME`, so that the test is repaired. If it fails
// again, the run fails.
//
//	go run ./e2e/runner [-race] [-run REGEXP] [-parallel N] [-timeout D] [-json FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// mostChances is the largest number of failed tests that run again. If more tests fail, the cause is not chance.
const mostChances = 5

// together is how many tests one process runs. Go starts the parallel parts of a test only after all other tests of the process have
// started, and until then the services of the test are idle. With all tests in one process, forty idle services took most of two cores.
const together = 24

// options are the flags of the command.
type options struct {
	dir      string // folder of the package with the tests
	race     bool   // for the tests; QUERN_TEST_RACE is for the service
	run      string
	parallel int
	timeout  time.Duration
	json     string
	slowest  int
}

func main() {
	o := options{dir: "e2e"}
	flag.BoolVar(&o.race, "race", false, "build the tests with the race detector")
	flag.StringVar(&o.run, "run", "^Test", "run only the tests that match this `pattern`")
	// Most tests wait for a server, a lease or a process, so more tests run at once than there are cores.
	flag.IntVar(&o.parallel, "parallel", 4, "run at most `n` tests at the same time")
	flag.DurationVar(&o.timeout, "timeout", 30*time.Minute, "end the run after this time")
	flag.StringVar(&o.json, "json", "", "also write the events of go test to this `file`")
	flag.IntVar(&o.slowest, "slowest", 10, "list this many of the slowest tests")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runAll(ctx, o, os.Stdout)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// runAll builds the tests, runs them, runs the failed ones once more, and reports the results.
func runAll(ctx context.Context, o options, out io.Writer) error {
	work, err := os.MkdirTemp("", "quern-e2e-runner-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	p := &program{path: filepath.Join(work, "e2e.test"), options: o}
	if err := p.build(ctx); err != nil {
		return err
	}

	names, err := p.list(ctx)
	if err != nil {
		return err
	}

	if len(names) == 0 {
		return fmt.Errorf("no test matches %q", o.run)
	}

	began := time.Now()
	first := newReport(out)

	for group := range slices.Chunk(shuffled(names), together) {
		if err := p.run(ctx, anyOf(group), o.parallel, first); err != nil {
			first.writeLogs(first.red())

			return err
		}
	}

	// One test can end the process of all tests. Tests without a result run again in the same way.
	if rest := first.unended(names); len(rest) > 0 {
		fmt.Fprintf(out, "the test process died; running %d tests without a result again\n", len(rest))

		if err := p.run(ctx, anyOf(rest), o.parallel, first); err != nil {
			return err
		}
	}

	failed := first.failed(names)

	var flaky []string

	broken := failed
	if len(failed) <= mostChances {
		if flaky, broken, err = p.again(ctx, failed, out); err != nil {
			return err
		}
	}

	first.writeSlowest(o.slowest)
	first.writeLogs(failed)

	for _, name := range flaky {
		fmt.Fprintf(out, "flaky: %s failed once and passed alone; its log is above\n", name)
	}

	for _, name := range broken {
		fmt.Fprintf(out, "FAIL: %s\n", name)
	}

	fmt.Fprintf(out, "e2e: %d tests in %.0f s, %d flaky\n", len(names), time.Since(began).Seconds(), len(flaky))
	fmt.Fprintf(out, "%d passed, %d failed\n", len(names)-len(broken), len(broken))

	if len(broken) > 0 {
		return errors.New("tests failed: " + strings.Join(broken, ", "))
	}

	return nil
}

// shuffled returns the tests in random order, so that no test depends on those before it.
func shuffled(names []string) []string {
	order := slices.Clone(names)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })

	return order
}

// anyOf returns a pattern for these tests.
func anyOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// program is the compiled tests.
type program struct {
	options

	path string
}

func (p *program) build(ctx context.Context) error {
	args := []string{"test", "-c", "-o", p.path}
	if p.race {
		args = append(args, "-race")
	}

	build := exec.CommandContext(ctx, "go", append(args, ".")...)
	build.Dir, build.Stdout, build.Stderr = p.dir, os.Stderr, os.Stderr

	if err := build.Run(); err != nil {
		return fmt.Errorf("build the tests: %w", err)
	}

	return nil
}

func (p *program) list(ctx context.Context) ([]string, error) {
	list := exec.CommandContext(ctx, p.path, "-test.list", p.options.run)
	list.Dir = p.dir

	printed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests: %w", err)
	}

	return slices.DeleteFunc(strings.Fields(string(printed)), func(name string) bool { return !strings.HasPrefix(name, "Test") }), nil
}

// run executes the tests that match a pattern. Failed tests are in the report and are not an error.
func (p *program) run(ctx context.Context, pattern string, parallel int, into *report) error {
	test := exec.CommandContext(ctx, "go", "tool", "test2json", "-t", "-p", "e2e", p.path,
		"-test.v=test2json", "-test.shuffle=on", "-test.count=1", "-test.run="+pattern,
		fmt.Sprintf("-test.parallel=%d", parallel), "-test.timeout="+p.timeout.String())
	test.Dir, test.Stderr = p.dir, os.Stderr
	// The first process builds quernd for all.
	test.Env = append(os.Environ(), "QUERN_TEST_BINARY="+filepath.Join(filepath.Dir(p.path), "quernd"))
	// On an interrupt the tests can still stop what they started.
	test.Cancel = func() error { return test.Process.Signal(os.Interrupt) }
	test.WaitDelay = time.Minute

	pipe, err := test.StdoutPipe()
	if err != nil {
		return err
	}

	if err := test.Start(); err != nil {
		return err
	}

	readErr := into.read(pipe, p.json)

	exited := test.Wait()
	if _, failed := errors.AsType[*exec.ExitError](exited); failed {
		exited = nil
	}

	return errors.Join(ctx.Err(), readErr, exited)
}

// again runs each test once more, alone.
func (p *program) again(ctx context.Context, failed []string, out io.Writer) (flaky, broken []string, err error) {
	for _, name := range failed {
		fmt.Fprintf(out, "running again, alone: %s\n", name)

		second := newReport(out)
		if err := p.run(ctx, "^"+name+"$", p.parallel, second); err != nil {
			return nil, nil, err
		}

		if len(second.failed([]string{name})) == 0 {
			flaky = append(flaky, name)
		} else {
			broken = append(broken, name)
			second.writeLogs([]string{name})
		}
	}

	return flaky, broken, nil
}
