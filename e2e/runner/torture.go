package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/e2e/kill"
)

// torture runs parts, one after the other, until all are done or the time is over. Each outcome is kept in a file, and the next torture
// goes on from there.
type torture struct {
	file    string        // with a line for each outcome
	killed  string        // the file that QUERN_TEST_KILLS names
	length  time.Duration // of this torture
	goal    int           // how many processes the kill loops kill at least
	version string        // of the code under test
	parts   []part
	run     func(ctx context.Context, p part) (passed bool, err error)
	out     io.Writer

	done []outcome
}

// part is what runs in one piece.
type part struct {
	name string // also identifies it in the file
	row  string // of the table; parts may share one
	loop bool   // it is a kill loop
	kind kind
	test string // its name, or a pattern
	pkg  string // of a package test
}

// outcome is a line of the file.
type outcome struct {
	Part    string    `json:"part"`
	Row     string    `json:"row"`
	Version string    `json:"version"`
	Ended   time.Time `json:"ended"`
	Seconds float64   `json:"seconds"`
	Passed  bool      `json:"passed"`
	Cut     bool      `json:"cut,omitempty"` // the time was over; it neither passed nor failed
	Rounds  int       `json:"rounds"`
	Kills   int       `json:"kills"`
}

// runAll runs what is due, prints the table, and returns an error if the newest outcome of a part is a failure.
func (t *torture) runAll(ctx context.Context) error {
	if err := t.load(); err != nil {
		return err
	}

	began, tried := time.Now(), map[string]bool{}

	for ctx.Err() == nil {
		left := t.length - time.Since(began)

		next, found := t.next(left, tried)
		if !found || left <= 0 {
			break
		}

		fmt.Fprintf(t.out, "%s: %s, %d of %d kills so far\n", time.Now().Format(time.TimeOnly), next.name, t.kills(""), t.goal)

		one, err := t.runOne(ctx, next, left)
		if ctx.Err() != nil {
			break // it was interrupted: this part begins again next time
		}

		if err != nil {
			return err
		}

		tried[next.name] = one.Cut || !one.Passed
		t.done = append(t.done, one)

		if err := t.keep(one); err != nil {
			return err
		}
	}

	t.writeTable()

	if failed := t.failed(); len(failed) > 0 {
		return errors.New("failed: " + strings.Join(failed, ", "))
	}

	return ctx.Err()
}

// runOne runs a part for as long as there is time.
func (t *torture) runOne(ctx context.Context, p part, left time.Duration) (outcome, error) {
	if err := os.WriteFile(t.killed, nil, 0o600); err != nil {
		return outcome{}, err
	}

	limited, cancel := context.WithTimeout(ctx, left)
	defer cancel()

	began := time.Now()
	passed, err := t.run(limited, p)
	one := outcome{Part: p.name, Row: p.row, Version: t.version, Ended: time.Now(), Seconds: time.Since(began).Seconds(), Passed: passed, Cut: limited.Err() != nil}

	if err != nil && !one.Cut {
		return outcome{}, err
	}

	written, err := os.ReadFile(t.killed)
	if err != nil {
		return outcome{}, err
	}

	for line := range bytes.Lines(written) {
		var result kill.Result
		if err := json.Unmarshal(line, &result); err != nil {
			return outcome{}, fmt.Errorf("the kills of %s: %w", p.name, err)
		}

		one.Kills += result.Kills
		one.Rounds += result.Rounds
	}

	return one, nil
}

// next returns the part that is due: first the kill loops, those with the fewest kills first, then the others, the one that ran last at the
// end. A part that has taken longer than the time that is left waits for the next torture. A kill loop that killed nothing is not repeated.
func (t *torture) next(left time.Duration, tried map[string]bool) (part, bool) {
	sum := t.kills("")

	due := slices.DeleteFunc(slices.Clone(t.parts), func(p part) bool {
		passed, longest := t.record(p)

		return tried[p.name] || longest >= left || passed && (!p.loop || sum >= t.goal || t.last(p).Kills == 0)
	})
	if len(due) == 0 {
		return part{}, false
	}

	return slices.MinFunc(due, func(a, b part) int {
		switch {
		case a.loop != b.loop && a.loop:
			return -1
		case a.loop != b.loop:
			return 1
		case a.loop:
			return cmp.Compare(t.kills(a.name), t.kills(b.name))
		default:
			return t.last(a).Ended.Compare(t.last(b).Ended)
		}
	}), true
}

// record reports whether a part has passed in this version, and how long it took at most.
func (t *torture) record(p part) (passed bool, longest time.Duration) {
	for _, one := range t.done {
		if one.Part == p.name {
			passed = passed || one.Passed && !one.Cut && one.Version == t.version
			longest = max(longest, time.Duration(one.Seconds*float64(time.Second)))
		}
	}

	return passed, longest
}

// kills returns how many processes a part has killed in all versions, or all parts if none is named.
func (t *torture) kills(name string) (sum int) {
	for _, one := range t.done {
		if name == "" || one.Part == name {
			sum += one.Kills
		}
	}

	return sum
}

// last returns the newest outcome of a part.
func (t *torture) last(p part) (newest outcome) {
	for _, one := range t.done {
		if one.Part == p.name {
			newest = one
		}
	}

	return newest
}

// failed returns the parts whose newest outcome is a failure.
func (t *torture) failed() (names []string) {
	for _, p := range t.parts {
		if last := t.last(p); last.Part != "" && !last.Passed && !last.Cut {
			names = append(names, p.name)
		}
	}

	return names
}

// load reads the outcomes of earlier tortures.
func (t *torture) load() error {
	content, err := os.ReadFile(t.file)
	if errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(filepath.Dir(t.file), 0o755)
	} else if err != nil {
		return err
	}

	for line := range bytes.Lines(content) {
		var one outcome
		if err := json.Unmarshal(line, &one); err != nil {
			return fmt.Errorf("%s: %w. Remove the file to begin again", t.file, err)
		}

		t.done = append(t.done, one)
	}

	return nil
}

// keep appends an outcome to the file.
func (t *torture) keep(one outcome) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}

	file, err := os.OpenFile(t.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}

	_, err = file.Write(append(line, '\n'))

	return errors.Join(err, file.Close())
}

// row is a line of the table: the outcomes of the parts with this name in one version.
type row struct {
	name, version                 string
	runs, rounds, kills, failures int
	seconds                       float64
}

// rows returns the table, in the order in which the parts first ran, and the sum.
func (t *torture) rows() (list []*row, sum row) {
	for _, one := range t.done {
		at := slices.IndexFunc(list, func(r *row) bool { return r.name == one.Row && r.version == one.Version })
		if at < 0 {
			at, list = len(list), append(list, &row{name: one.Row, version: one.Version})
		}

		for _, r := range []*row{list[at], &sum} {
			r.seconds += one.Seconds
			r.rounds += one.Rounds
			r.kills += one.Kills

			if !one.Cut {
				r.runs++
			}

			if !one.Cut && !one.Passed {
				r.failures++
			}
		}
	}

	sum.name = "sum"

	return list, sum
}

// writeTable prints all outcomes so far, and what is left to do.
func (t *torture) writeTable() {
	const line = "%-44s %5v %7v %6v %9v %9v %8v  %s\n"

	list, sum := t.rows()
	fmt.Fprintf(t.out, line, "test", "runs", "rounds", "kills", "time", "per kill", "failures", "version")

	for _, r := range append(list, &sum) {
		each := "-"
		if r.kills > 0 {
			each = fmt.Sprintf("%.1f s", r.seconds/float64(r.kills))
		}

		took := time.Duration(math.Round(r.seconds)) * time.Second
		fmt.Fprintf(t.out, line, r.name, r.runs, r.rounds, r.kills, took, each, r.failures, r.version)
	}

	ready := 0

	for _, p := range t.parts {
		passed, longest := t.record(p)
		if passed {
			ready++
		}

		if longest >= t.length {
			fmt.Fprintf(t.out, "%s takes longer than %v, so it runs only with more time\n", p.name, t.length)
		}
	}

	fmt.Fprintf(t.out, "torture: %d of %d kills; %d of %d parts have passed in version %s; outcomes are in %s\n",
		sum.kills, t.goal, ready, len(t.parts), t.version, t.file)
}

// versionOf returns the commit of the code in a folder, and marks changes that are not committed.
func versionOf(ctx context.Context, root string) (string, error) {
	git := func(args ...string) ([]byte, error) {
		command := exec.CommandContext(ctx, "git", args...)
		command.Dir = root

		return command.Output()
	}

	commit, err := git("rev-parse", "--short=10", "HEAD")
	if err != nil {
		return "", fmt.Errorf("which commit this is: %w", err)
	}

	changes, err := git("diff", "HEAD")
	if err != nil {
		return "", fmt.Errorf("what has changed since the commit: %w", err)
	}

	version := strings.TrimSpace(string(commit))
	if len(changes) > 0 {
		version += fmt.Sprintf("+%x", sha256.Sum256(changes))[:7]
	}

	return version, nil
}
