package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 10 * time.Second
	poolSize     = 20 // connections to the database, of ours and of every twin
)

// process is a child that logs to a file of its own and says there where it listens.
type process struct {
	cancel context.CancelFunc
	ended  chan struct{}
	log    string
	pid    int
}

// start gives the child exactly this environment and as many processors as every other child.
func (b *bench) start(ctx context.Context, environment []string, name string, args ...string) (*process, error) {
	log, err := os.CreateTemp(b.dir, "log-")
	if err != nil {
		return nil, err
	}
	defer log.Close()

	ctx, cancel := context.WithCancel(ctx)

	command := exec.CommandContext(ctx, name, args...)
	command.Env = append([]string{"GOMAXPROCS=" + strconv.Itoa(runtime.NumCPU())}, environment...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTimeout

	if err := command.Start(); err != nil {
		cancel()

		return nil, err
	}

	p := &process{cancel: cancel, ended: make(chan struct{}), log: log.Name(), pid: command.Process.Pid}

	go func() {
		defer close(p.ended)

		_ = command.Wait() // a child that ended too early is found by what it did not do
	}()

	return p, nil
}

func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// address waits until the child says where it listens for what.
func (p *process) address(ctx context.Context, what string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	for {
		log, err := os.ReadFile(p.log)
		if err != nil {
			return "", err
		}

		for line := range bytes.Lines(log) {
			var entry struct{ Msg, What, Address string }
			if json.Unmarshal(line, &entry) == nil && entry.Msg == "listening" && entry.What == what {
				return entry.Address, nil
			}
		}

		select {
		case <-p.ended:
			return "", fmt.Errorf("the process ended:\n%s", log)
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for the %s listener: %w\n%s", what, ctx.Err(), log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// passed is how many bytes the child has read and written so far, whatever from and to.
func (p *process) passed() (total int64, err error) {
	account, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.pid))
	if err != nil {
		return 0, err
	}

	var read, written int64
	if _, err := fmt.Sscanf(string(account), "rchar: %d\nwchar: %d\n", &read, &written); err != nil {
		return 0, err
	}

	return read + written, nil
}

// processorTime is what a process has taken, and all its children that have ended.
func processorTime(pid int) (time.Duration, error) {
	own, ended, err := processorTimes(pid)

	return own + ended, err
}

// processorTimes is what a process has taken itself, and what its children that have ended.
func processorTimes(pid int) (own, ended time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}

	// The name, in parentheses, may have anything in it. After it the times are the 12th to 15th.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])

	var times [4]time.Duration

	for i, field := range fields[11:15] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, 0, err
		}

		times[i] = time.Duration(ticks) * (time.Second / 100) // Linux counts hundredths there, everywhere
	}

	return times[0] + times[1], times[2] + times[3], nil
}
