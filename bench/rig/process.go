package rig

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
	PoolSize     = 20 // connections to the database, of ours and of every twin
)

// Process is a child that logs to a file of its own, including the addresses on which it listens.
type Process struct {
	cancel context.CancelFunc
	ended  chan struct{}
	log    string
	PID    int
}

// start starts a child with exactly this environment and as many processors as every other child.
func (b *Bench) start(ctx context.Context, environment []string, name string, args ...string) (*Process, error) {
	log, err := os.CreateTemp(b.Dir, "log-")
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

	p := &Process{cancel: cancel, ended: make(chan struct{}), log: log.Name(), PID: command.Process.Pid}

	go func() {
		defer close(p.ended)

		_ = command.Wait() // a child that ended too early is detected by what it did not do
	}()

	return p, nil
}

func (p *Process) Stop() {
	p.cancel()
	<-p.ended
}

// Address waits until the child has logged the address of the given listener.
func (p *Process) Address(ctx context.Context, what string) (string, error) {
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

// Passed returns how many bytes the child has read and written so far, from and to anywhere.
func (p *Process) Passed() (total int64, err error) {
	account, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.PID))
	if err != nil {
		return 0, err
	}

	var read, written int64
	if _, err := fmt.Sscanf(string(account), "rchar: %d\nwchar: %d\n", &read, &written); err != nil {
		return 0, err
	}

	return read + written, nil
}

// processorTime returns the processor time of a process and of all its children that have ended.
func processorTime(pid int) (time.Duration, error) {
	own, ended, err := ProcessorTimes(pid)

	return own + ended, err
}

// ProcessorTimes returns the processor time of a process itself, and that of its children that have ended.
func ProcessorTimes(pid int) (own, ended time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}

	// The name, in parentheses, can contain any characters. After it, the times are the fields 12 to 15.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])

	var times [4]time.Duration

	for i, field := range fields[11:15] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, 0, err
		}

		times[i] = time.Duration(ticks) * (time.Second / 100) // Linux always counts in hundredths of a second here
	}

	return times[0] + times[1], times[2] + times[3], nil
}
