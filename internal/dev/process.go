package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a server that runs as a child of this process.
type Process struct {
	name    string
	log     string
	command *exec.Cmd
	exited  chan struct{}
	polite  syscall.Signal // requests a graceful end
}

// program describes how a Process is started.
type program struct {
	name   string
	path   string
	args   []string
	env    []string
	log    string
	user   *syscall.Credential // nil means the current user
	polite syscall.Signal
}

// start runs the program in a process group of its own, so that Ctrl-C reaches only this process, which then stops the
// others in order.
func (p program) start() (*Process, error) {
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()

	command := exec.Command(p.path, p.args...) //nolint:gosec,noctx // a server that was looked for; it ends with Stop, not with a context
	command.Env, command.Dir = p.env, "/"
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.user}

	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}

	started := &Process{name: p.name, log: p.log, command: command, exited: make(chan struct{}), polite: p.polite}

	go func() {
		defer close(started.exited)

		_ = command.Wait() // Failure reports the result
	}()

	return started, nil
}

// Exited returns a channel that is closed when the process has ended, for whatever reason.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Failure returns an error with the exit status and the last lines of the log.
func (p *Process) Failure() error {
	content, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")

	return fmt.Errorf("%s has stopped (%s). The last lines of %s:\n  %s", p.name, p.command.ProcessState, p.log, strings.Join(lines[max(0, len(lines)-8):], "\n  "))
}

const (
	politeTime = 10 * time.Second
	startTime  = time.Minute
)

// Stop ends the process, gracefully at first.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(p.polite) // it may have ended already

	select {
	case <-p.exited:
	case <-time.After(politeTime):
		_ = p.command.Process.Kill()
		<-p.exited
	}
}

// await waits until ready returns true.
func (p *Process) await(ctx context.Context, ready func() bool) error {
	for deadline := time.Now().Add(startTime); !ready(); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.exited:
			return p.Failure()
		case <-time.After(50 * time.Millisecond):
		}

		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not become ready: see %s", p.name, p.log)
		}
	}

	return nil
}

// endLeftover ends a process that a killed `quernd dev` left running: the process whose PID is in the first line of the
// file, if its command line contains mark. After a restart of the machine, another process may have that PID.
func endLeftover(pidFile, mark string, polite syscall.Signal) error {
	content, err := os.ReadFile(pidFile)
	if err != nil {
		return nil //nolint:nilerr // nothing was left
	}

	line, _, _ := strings.Cut(string(content), "\n")

	number, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !runs(number, mark) {
		return nil //nolint:nilerr // not a number: nothing was left
	}

	for _, signal := range []syscall.Signal{polite, syscall.SIGKILL} {
		_ = syscall.Kill(number, signal)

		for deadline := time.Now().Add(politeTime); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if !runs(number, mark) {
				return nil
			}
		}
	}

	return fmt.Errorf("process %d of an earlier start does not stop: stop it with `kill -9 %[1]d`", number)
}

func runs(number int, mark string) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", number))

	return err == nil && bytes.Contains(content, []byte(mark))
}

// find returns the path of a program next to our own binary or in PATH.
func find(name string) (string, error) {
	own, err := os.Executable()
	if err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(own), name)); err == nil {
			return beside, nil
		}
	}

	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", err
	}

	return path, nil
}
