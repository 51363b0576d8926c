package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is a line of `go tool test2json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// report is the results and the logs of the tests of one run.
type report struct {
	out     io.Writer
	results map[string]result // by name, of tests that ended
	logs    map[string]*strings.Builder
}

type result struct {
	passed  bool
	seconds float64
}

func newReport(out io.Writer) *report {
	return &report{out: out, results: map[string]result{}, logs: map[string]*strings.Builder{}}
}

// read reads all events, and appends them to a file if one is named.
func (r *report) read(events io.Reader, file string) error {
	if file != "" {
		kept, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer kept.Close()

		events = io.TeeReader(events, kept)
	}

	lines := bufio.NewReader(events)

	for {
		line, err := lines.ReadBytes('\n')

		var one event
		if json.Unmarshal(line, &one) == nil {
			r.note(one)
		}

		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// note records an event. Subtests belong to their test, because only a whole test can run again.
func (r *report) note(e event) {
	name, _, isPart := strings.Cut(e.Test, "/")

	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "=== ") { // a message that the test runs, pauses or continues
			return
		}

		if r.logs[name] == nil {
			r.logs[name] = &strings.Builder{}
		}

		r.logs[name].WriteString(e.Output)
	case "pass", "skip", "fail":
		if isPart || name == "" {
			return
		}

		// A skipped test checks nothing, so it counts as failed.
		r.results[name] = result{passed: e.Action == "pass", seconds: e.Elapsed}
		fmt.Fprintf(r.out, "%-4s %7.1f s  %s\n", e.Action, e.Elapsed, name)

		if e.Action == "pass" {
			delete(r.logs, name)
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

// unended returns the tests without a result.
func (r *report) unended(names []string) (list []string) {
	for _, name := range names {
		if _, ended := r.results[name]; !ended {
			list = append(list, name)
		}
	}

	return list
}

// logLines is the maximum number of lines shown of a log, counted from its end, where the reason of a failure is.
const logLines = 300

// writeLogs prints the logs of failed tests. The output that belongs to no test shows why a process died.
func (r *report) writeLogs(names []string) {
	if len(names) == 0 {
		return
	}

	for _, name := range append(slices.Clone(names), "") {
		log := r.logs[name]
		if log == nil {
			continue
		}

		lines := strings.SplitAfter(log.String(), "\n")
		lines = lines[max(0, len(lines)-logLines):]

		fmt.Fprintf(r.out, "--- log of %s\n%s\n", cmp.Or(name, "the test process"), strings.Join(lines, ""))
	}
}

func (r *report) writeSlowest(count int) {
	var names []string
	for name := range r.results {
		names = append(names, name)
	}

	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(r.results[b].seconds, r.results[a].seconds) })

	for _, name := range names[:min(count, len(names))] {
		fmt.Fprintf(r.out, "slow %7.1f s  %s\n", r.results[name].seconds, name)
	}
}
