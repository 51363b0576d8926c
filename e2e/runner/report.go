package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is a line of `go tool test2json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// report is the results and the logs of the tests of one run.
type report struct {
	mutex   sync.Mutex // several tests run at the same time
	out     io.Writer
	results map[string]result // by name, of tests that ended
	logs    map[string]*strings.Builder
}

type result struct {
	passed    bool
	seconds   float64
	processor float64 // seconds of the test and of all processes that it waited for
}

func newReport(out io.Writer) *report {
	return &report{out: out, results: map[string]result{}, logs: map[string]*strings.Builder{}}
}

// read reads all events of a test, and appends them to a file if one is named.
func (r *report) read(test string, events io.Reader, file string) error {
	lines := bufio.NewReader(events)

	for {
		line, err := lines.ReadBytes('\n')

		if err := r.keep(test, line, file); err != nil {
			return err
		}

		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (r *report) keep(test string, line []byte, file string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	var one event
	if json.Unmarshal(line, &one) == nil {
		r.note(test, one)
	}

	if file == "" {
		return nil
	}

	kept, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}

	_, err = kept.Write(line)

	return errors.Join(err, kept.Close())
}

// note records an event of a test. Subtests belong to their test, because only a whole test can run again. Output that names no test
// shows why a process died.
func (r *report) note(test string, e event) {
	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "=== ") { // a message that the test runs, pauses or continues
			return
		}

		if r.logs[test] == nil {
			r.logs[test] = &strings.Builder{}
		}

		r.logs[test].WriteString(e.Output)
	case "pass", "skip", "fail":
		if e.Test != test {
			return
		}

		// A skipped test checks nothing, so it counts as failed.
		r.results[test] = result{passed: e.Action == "pass", seconds: e.Elapsed, processor: r.results[test].processor}
		fmt.Fprintf(r.out, "%-4s %7.1f s  %s\n", e.Action, e.Elapsed, test)

		if e.Action == "pass" {
			delete(r.logs, test)
		}
	}
}

// failed returns the tests that did not pass. This includes tests that never ended because the process died.
func (r *report) failed(names []string) (failed []string) {
	for _, name := range names {
		if !r.results[name].passed {
			failed = append(failed, name)
		}
	}

	return failed
}

// red returns the tests that ended and did not pass.
func (r *report) red() (list []string) {
	for name, result := range r.results {
		if !result.passed {
			list = append(list, name)
		}
	}

	slices.Sort(list)

	return list
}

// logLines is the maximum number of lines shown of each part of a log, counted from its end.
const logLines = 300

// writeLogs prints the logs of failed tests: first what their services logged, then what the tests wrote. Most lines are of services,
// and they would hide the reason of the failure.
func (r *report) writeLogs(names []string) {
	for _, name := range names {
		log := r.logs[name]
		if log == nil {
			continue
		}

		var services, test []string

		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, `"level":"`) {
				services = append(services, line)
			} else {
				test = append(test, line)
			}
		}

		fmt.Fprintf(r.out, "--- log of %s\n%s%s\n", name, last(services), last(test))
	}
}

// last joins the last lines.
func last(lines []string) string { return strings.Join(lines[max(0, len(lines)-logLines):], "") }

// used records the processor time of a test.
func (r *report) used(test string, time time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	one := r.results[test]
	one.processor += time.Seconds()
	r.results[test] = one
}

// processor returns the processor time of all tests in seconds.
func (r *report) processor() (sum float64) {
	for _, one := range r.results {
		sum += one.processor
	}

	return sum
}

// writeSlowest lists the tests that took longest, and those that kept the processors busy longest.
func (r *report) writeSlowest(count int) {
	r.writeMost("slow", count, func(one result) float64 { return one.seconds })
	r.writeMost("heavy", count, func(one result) float64 { return one.processor })
}

func (r *report) writeMost(label string, count int, measure func(result) float64) {
	names := slices.SortedFunc(maps.Keys(r.results), func(a, b string) int { return cmp.Compare(measure(r.results[b]), measure(r.results[a])) })

	for _, name := range names[:min(count, len(names))] {
		fmt.Fprintf(r.out, "%-5s %7.1f s, processors %7.1f s  %s\n", label, r.results[name].seconds, r.results[name].processor, name)
	}
}
