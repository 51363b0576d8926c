// Runner runs the black-box tests and distinguishes flaky tests from broken ones. A test that fails runs once more, alone, after
// all others. If it passes then, the run succeeds and prints a line `flaky: NAME`, so that the test is repaired. If it fails
// again, the run fails.
//
//	go run ./e2e/runner [-race] [-run REGEXP] [-parallel N] [-timeout D] [-json FILE]
//
// With -torture it runs the parts of `make torture` instead, and keeps their outcomes in a file.
//
//	runner -torture FILE [-run REGEXP] [-time D] [-kills N] [-share full|NUMBER]
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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// mostChances is the largest number of failed tests that run again. If more tests fail, the cause is not chance.
const mostChances = 5

// parts is how many parallel parts of one test run at the same time.
const parts = 2

// options are the flags of the command.
type options struct {
	dir      string // folder of the package with the tests
	race     bool   // for the tests; QUERN_TEST_RACE is for the service
	run      string
	parallel int
	timeout  time.Duration
	json     string
	slowest  int
	torture  string
	length   time.Duration
	kills    int
	share    string
}

func main() {
	o := options{dir: "e2e"}
	flag.BoolVar(&o.race, "race", false, "build the tests with the race detector")
	flag.StringVar(&o.run, "run", "^Test", "run only the tests that match this `pattern`")
	// Most tests wait for a server, a lease or a process, so more tests run at once than there are cores.
	flag.IntVar(&o.parallel, "parallel", 3, "run at most `n` tests at the same time")
	flag.DurationVar(&o.timeout, "timeout", 30*time.Minute, "end a test after this time")
	flag.StringVar(&o.json, "json", "", "also write the events of go test to this `file`")
	flag.IntVar(&o.slowest, "slowest", 10, "list this many of the slowest tests, and of those with the most processor time")
	flag.StringVar(&o.torture, "torture", "", "run the parts of the torture, and keep their outcomes in this `file`")
	flag.DurationVar(&o.length, "time", 150*time.Minute, "torture: end after this time")
	flag.IntVar(&o.kills, "kills", 0, "torture: repeat the kill loops until they have killed this many processes")
	flag.StringVar(&o.share, "share", "full", "torture: how much of each loop runs; full, or a `number` such as 0.3 or 2")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

	run := runAll
	if o.torture != "" {
		run = runTorture
	}

	err := run(ctx, o, os.Stdout)

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

	defer p.removeShared(context.WithoutCancel(ctx))

	names, err := p.list(ctx)
	if err != nil {
		return err
	}

	if len(names) == 0 {
		return fmt.Errorf("no test matches %q", o.run)
	}

	serial, err := serialTests(o.dir)
	if err != nil {
		return err
	}

	began := time.Now()
	first := newReport(out)

	if err := p.runEach(ctx, names, serial, first); err != nil {
		first.writeLogs(first.red())

		return err
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

	fmt.Fprintf(out, "e2e: %d tests in %.0f s, %.0f s of processor time, %d flaky\n", len(names), time.Since(began).Seconds(), first.processor(), len(flaky))
	fmt.Fprintf(out, "%d passed, %d failed\n", len(names)-len(broken), len(broken))

	if len(broken) > 0 {
		return errors.New("tests failed: " + strings.Join(broken, ", "))
	}

	return nil
}

// serialTest matches a test that must run alone, for example because it measures times. The linter asks for this comment.
var serialTest = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{ //nolint:paralleltest`)

// serialTests returns the tests of a package that must run alone.
func serialTests(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}

	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}

		for _, match := range serialTest.FindAllSubmatch(source, -1) {
			names = append(names, string(match[1]))
		}
	}

	return names, nil
}

// program is the compiled tests.
type program struct {
	options

	path string
	env  []string // more environment for the tests
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

// runEach runs each test in a process of its own, several at the same time, in random order, so that no test depends on another.
// The serial tests follow alone. In one process Go would start the parallel parts of a test only after all other tests have started,
// and until then the services of the test are idle.
func (p *program) runEach(ctx context.Context, names, serial []string, into *report) error {
	order := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(serial, name) })
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })

	lanes, running := errgroup.WithContext(ctx)
	lanes.SetLimit(p.parallel)

	for _, name := range order {
		lanes.Go(func() error { return p.run(running, name, into) })
	}

	if err := lanes.Wait(); err != nil {
		return err
	}

	for _, name := range names {
		if slices.Contains(serial, name) {
			if err := p.run(ctx, name, into); err != nil {
				return err
			}
		}
	}

	return nil
}

// run executes one test. A failed test is in the report and is not an error.
func (p *program) run(ctx context.Context, name string, into *report) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	test := grouped(exec.CommandContext(ctx, "go", "tool", "test2json", "-t", "-p", "e2e", p.path,
		"-test.v=test2json", "-test.count=1", "-test.run=^"+name+"$",
		fmt.Sprintf("-test.parallel=%d", parts), "-test.timeout="+p.timeout.String()))
	test.Dir, test.Stderr = p.dir, os.Stderr
	test.Env = p.sharedEnv()

	pipe, err := test.StdoutPipe()
	if err != nil {
		return err
	}

	if err := test.Start(); err != nil {
		return err
	}

	readErr := into.read(name, pipe, p.json)

	exited := test.Wait()
	endGroup(test)
	into.used(name, test.ProcessState.UserTime()+test.ProcessState.SystemTime())

	if _, failed := errors.AsType[*exec.ExitError](exited); failed {
		exited = nil
	}

	return errors.Join(ctx.Err(), readErr, exited)
}

// sharedEnv names the folder for what the tests share: quernd, a realm and a migrated database.
func (p *program) sharedEnv() []string {
	return slices.Concat(os.Environ(), p.env, []string{"QUERN_TEST_SHARED=" + filepath.Dir(p.path)})
}

// removeShared lets the tests remove what they shared.
func (p *program) removeShared(ctx context.Context) {
	remove := exec.CommandContext(ctx, p.path, "-test.run=^$")
	remove.Dir, remove.Env = p.dir, append(p.sharedEnv(), "QUERN_TEST_REMOVE=yes")

	if output, err := remove.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "removing what the tests shared: %v\n%s", err, output)
	}
}

// again runs each test once more, alone.
func (p *program) again(ctx context.Context, failed []string, out io.Writer) (flaky, broken []string, err error) {
	for _, name := range failed {
		fmt.Fprintf(out, "running again, alone: %s\n", name)

		second := newReport(out)
		if err := p.run(ctx, name, second); err != nil {
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
