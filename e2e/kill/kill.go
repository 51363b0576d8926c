// Package kill ends processes with SIGKILL, as a crash does, and counts them by test. Only tests use it, and the runner, which reads the counts.
package kill

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"time"
)

// TB is the part of testing.TB that the package needs, so that the runner can use it without importing testing.
type TB interface {
	Helper()
	Name() string
	Errorf(format string, args ...any)
	Cleanup(run func())
	Failed() bool
}

// Result is what a kill loop did: a line of the file that QUERN_TEST_KILLS names.
type Result struct {
	Test    string  `json:"test"`
	Kills   int     `json:"kills"`
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
	Passed  bool    `json:"passed"`
}

// loop counts what a test kills.
type loop struct {
	began  time.Time
	rounds int
	killed map[int]bool // by process id: a process that is killed twice counts once
}

// running contains the kill loops by name. For every other test it contains the number of processes that the test has killed.
//
//nolint:gochecknoglobals // it belongs to the tests of this process
var running = struct {
	sync.Mutex

	loops  map[string]*loop
	others map[string]int
}{loops: map[string]*loop{}, others: map[string]int{}}

// few is how many processes a test may kill that is not a kill loop.
const few = 5

// Loop says that the test kills processes again and again. `make torture` finds the tests that call it, so the call is in the function of
// the test, before anything is started. When the test has ended and QUERN_TEST_KILLS names a file, the result is appended to it.
func Loop(tb TB) {
	tb.Helper()

	name := root(tb)

	running.Lock()
	defer running.Unlock()

	if running.loops[name] != nil {
		tb.Errorf("%s is a kill loop already", name)

		return
	}

	running.loops[name] = &loop{began: time.Now(), killed: map[int]bool{}}

	tb.Cleanup(func() {
		if err := end(name, !tb.Failed()); err != nil {
			tb.Errorf("the result of the kill loop: %v", err)
		}
	})
}

// end removes a loop and writes its result.
func end(name string, passed bool) error {
	running.Lock()
	defer running.Unlock()

	l := running.loops[name]
	delete(running.loops, name)

	path := os.Getenv("QUERN_TEST_KILLS")
	if path == "" {
		return nil
	}

	line, err := json.Marshal(Result{Test: name, Kills: len(l.killed), Rounds: l.rounds, Seconds: time.Since(l.began).Seconds(), Passed: passed})
	if err != nil {
		return err
	}

	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	_, err = file.Write(append(line, '\n'))

	return errors.Join(err, file.Close())
}

// Round counts a round of the loop: what the test does again and again while processes die.
func Round(tb TB) {
	running.Lock()
	defer running.Unlock()

	if l := running.loops[root(tb)]; l != nil {
		l.rounds++
	}
}

// Process kills a process and counts it. The error is os.ErrProcessDone if it had ended.
func Process(tb TB, process *os.Process) error {
	tb.Helper()

	if err := process.Kill(); err != nil {
		return err
	}

	running.Lock()
	defer running.Unlock()

	if l := running.loops[root(tb)]; l != nil {
		l.killed[process.Pid] = true

		return nil
	}

	name := tb.Name()
	if running.others[name] == 0 {
		tb.Cleanup(func() {
			running.Lock()
			defer running.Unlock()

			delete(running.others, name)
		})
	}

	if running.others[name]++; running.others[name] == few+1 {
		tb.Errorf("%s kills more than %d processes: begin it with kill.Loop(t), so that `make torture` runs it", name, few)
	}

	return nil
}

// ID is Process for a process that somebody else started.
func ID(tb TB, id int) error {
	tb.Helper()

	process, err := os.FindProcess(id)
	if err != nil {
		return err
	}

	return errors.Join(Process(tb, process), process.Release())
}

// root returns the name of the test without its parts.
func root(tb TB) string {
	name, _, _ := strings.Cut(tb.Name(), "/")

	return name
}
