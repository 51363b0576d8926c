package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The reasons why a child has no answer. Use errors.Is to distinguish them. An error that the program itself returns is
// a *FailedError.
var (
	ErrTimeout  = errors.New("the sealed process reached its time limit")
	ErrMemory   = errors.New("the sealed process ran out of memory")
	ErrOutput   = errors.New("the sealed process exceeded a limit")
	ErrKilled   = errors.New("the sealed process died")
	ErrProtocol = errors.New("the sealed process sent invalid data")

	errGone  = errors.New("the sealed process has ended")
	errEnded = errors.New("the sealed process was closed")
)

// FailedError is the error that a program returned. Its text comes from the child and is untrusted: use it only in
// logs.
type FailedError struct{ Message string }

func (f *FailedError) Error() string { return "the sealed process failed: " + f.Message }

// Exit describes how a child ended.
type Exit struct {
	Err    error          // why there is no answer; nil if the job ended normally
	Signal syscall.Signal // the signal that killed the child; every child is killed in the end
	Code   int            // exit code; -1 after a signal
	Memory int64          // last measured peak of resident bytes
	CPU    time.Duration  // since the start of the process
	Log    string         // first part of its standard output and error; untrusted
}

// Child is a sealed process that does one job. Send, Receive, Mount and Take must be called by one goroutine at a time.
// Data may be read by another goroutine, and Close may be called by any.
type Child struct {
	sandbox *Sandbox
	folder  Folder
	cmd     *exec.Cmd
	to      *os.File // control to the child
	from    *os.File // control from the child
	bulk    *os.File // data from the child
	log     *capped
	seal    seal
	limits  Limits
	data    *bulk
	ended   chan struct{} // closed when the process is reaped

	frames int
	spoken int64
	over   error // the result of the end frame; nil before

	stops []func() bool
	close sync.Once
	exit  Exit

	mu     sync.Mutex
	reason error // the first reason why it was killed
	reaped bool
	alone  bool  // the child was dead before there was a reason
	done   bool  // the end frame was received
	peak   int64 // bytes of resident memory
	mapped int64 // last measured bytes of memory that count for the limit
}

// Mount makes a file readable for the child as in/name, without copying it. Both must be on the same file system.
func (c *Child) Mount(path, name string) error {
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return fmt.Errorf("%q is not a valid file name for the sandbox", name)
	}

	err := os.Link(path, filepath.Join(c.folder.In, name))
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("%s is not on the file system of the sandbox folder: %w", path, err)
	}

	return err
}

// Send sends a message to the program.
func (c *Child) Send(message any) error {
	err := writeFrame(c.to, kindMessage, message)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, os.ErrClosed) {
		return c.lost(err)
	}

	return err
}

// Receive receives the next message of the program. It returns io.EOF if the job is done and all messages were
// received, and *FailedError if the program failed. Any other error means that there is no answer.
func (c *Child) Receive(into any) error {
	if c.over != nil {
		return c.over
	}

	k, payload, err := readFrame(c.from)
	if err != nil {
		return c.lost(err)
	}

	c.frames++
	c.spoken += int64(len(payload))

	switch {
	case c.frames > maxFrames || c.spoken > maxSpoken:
		return c.nonsense("too many messages")
	case k == kindMessage:
		if err := json.Unmarshal(payload, into); err != nil {
			return c.nonsense(err.Error())
		}

		return nil
	case k == kindEnd:
		return c.finish(payload)
	default:
		return c.nonsense(fmt.Sprintf("an unexpected frame of kind %d", k))
	}
}

func (c *Child) finish(payload []byte) error {
	var said outcome
	if err := json.Unmarshal(payload, &said); err != nil {
		return c.nonsense(err.Error())
	}

	c.over = io.EOF
	if said.Error != "" {
		c.over = &FailedError{Message: said.Error}
	}

	c.mu.Lock()
	c.done = true
	c.mu.Unlock()

	return c.over
}

// Data returns the bulk data that the program writes. Its io.EOF does not mean that the data is complete; the io.EOF of
// Receive does.
func (c *Child) Data() io.Reader { return c.data }

type bulk struct {
	child *Child
	left  int64
}

func (b *bulk) Read(p []byte) (int, error) {
	n, err := b.child.bulk.Read(p)
	b.left -= int64(n)

	switch {
	case b.left < 0:
		b.child.fail(fmt.Errorf("%w: data", ErrOutput))

		return 0, b.child.death()
	case errors.Is(err, os.ErrClosed):
		return n, b.child.death()
	default:
		return n, err
	}
}

// Close kills the child if it is alive, removes its folder, and returns how it ended.
func (c *Child) Close() Exit {
	c.close.Do(func() {
		c.sample()
		c.fail(errEnded)
		<-c.ended

		for _, stop := range c.stops {
			stop()
		}

		c.exit.Err = c.verdict()
		c.exit.Log = c.log.close()

		c.mu.Lock()
		c.exit.Memory = c.peak
		c.mu.Unlock()

		removeFolder(c.folder)
		c.count()
	})

	return c.exit
}

// abandonedError is the reason why the context of a child ended. Callers often end it before they close a child that has answered.
type abandonedError struct{ error }

func (e abandonedError) Unwrap() error { return e.error }

func (c *Child) count() {
	s := c.sandbox

	s.mu.Lock()
	delete(s.children, c)
	s.mu.Unlock()

	if c.data != nil {
		s.running.Add(-1)
	}

	if _, abandoned := errors.AsType[abandonedError](c.exit.Err); c.exit.Err != nil && !abandoned {
		s.killed.Add(1)
	}

	if errors.Is(c.exit.Err, ErrTimeout) {
		s.timeouts.Add(1)
	}

	if errors.Is(c.exit.Err, ErrMemory) {
		s.memory.Add(1)
	}
}

// begin sets the limits of an idle child, and the timers that end it.
func (c *Child) begin(ctx context.Context, limits Limits) error {
	if err := limits.set(c.cmd.Process.Pid); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return errGone
		}

		return err
	}

	if c.gone() { // limits can also be set for a dead process
		return errGone
	}

	c.limits, c.data = limits, &bulk{child: c, left: limits.Data}
	wall := time.AfterFunc(limits.Wall, func() { c.fail(fmt.Errorf("%w: %s", ErrTimeout, limits.Wall)) })
	c.stops = []func() bool{wall.Stop, context.AfterFunc(ctx, func() { c.fail(abandonedError{context.Cause(ctx)}) })}

	go c.watch()

	return nil
}

// fail kills the child and releases all goroutines that wait for it. Only the first reason is kept.
func (c *Child) fail(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.reason == nil {
		c.reason = reason
		c.alone = c.reaped || c.gone()
	}

	if !c.reaped {
		_ = unix.Kill(-c.cmd.Process.Pid, unix.SIGKILL)
	}

	for _, pipe := range []*os.File{c.to, c.from, c.bulk} {
		_ = pipe.Close()
	}
}

// gone reports whether the child is dead, reaped or not.
func (c *Child) gone() bool {
	var exited unix.Siginfo

	err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &exited, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)

	return err != nil || exited.Signo != 0
}

// wait reaps the child. It kills the process group before that, while its number cannot belong to another process.
func (c *Child) wait() {
	pid := c.cmd.Process.Pid

	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		continue
	}

	c.mu.Lock()
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = c.cmd.Wait()
	c.reaped = true
	c.mu.Unlock()

	state := c.cmd.ProcessState
	c.exit.Code, c.exit.CPU = state.ExitCode(), state.UserTime()+state.SystemTime()

	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		c.exit.Signal = status.Signal()
	}

	close(c.ended)
}

func (c *Child) nonsense(what string) error {
	c.fail(fmt.Errorf("%w: %s", ErrProtocol, what))

	return c.death()
}

// lost explains the end of a pipe. A child that closed the pipe but stays alive is killed after one second.
func (c *Child) lost(err error) error {
	if errors.Is(err, errFrame) {
		return c.nonsense(err.Error())
	}

	select {
	case <-c.ended:
	case <-time.After(time.Second):
		c.fail(fmt.Errorf("%w: it closed its pipe", ErrProtocol))
	}

	return c.death()
}

// death waits for the end of the child and returns the reason.
func (c *Child) death() error {
	<-c.ended

	if err := c.verdict(); err != nil {
		return err
	}

	return errEnded
}

// verdict returns why there is no answer, and nil if there is one. It must be called after the end of the child.
func (c *Child) verdict() error {
	c.mu.Lock()
	reason, alone, done, mapped := c.reason, c.alone, c.done, c.mapped
	c.mu.Unlock()

	switch {
	case done, !alone && errors.Is(reason, errEnded):
		return nil
	case reason != nil && !alone:
		return reason
	}

	// The limit counts whole ticks, but the usage counts the real time. On a busy machine the difference is large.
	if c.exit.Signal == unix.SIGKILL && c.limits.CPU > 0 && c.exit.CPU >= c.limits.CPU/2 {
		return fmt.Errorf("%w: %s of CPU", ErrTimeout, c.exit.CPU)
	}

	// Runtimes that get no memory die in many ways. Assume this reason if the child was near its limit.
	if c.limits.Memory > 0 && mapped > c.limits.Memory*3/4 {
		return fmt.Errorf("%w: %d bytes", ErrMemory, mapped)
	}

	text := c.log.settle()
	for _, sign := range []string{"out of memory", "cannot allocate memory", "bad_alloc", "pthread_create failed"} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%w: %s", ErrMemory, sign)
		}
	}

	if c.exit.Signal != 0 {
		return fmt.Errorf("%w: %s", ErrKilled, c.exit.Signal)
	}

	return fmt.Errorf("%w: exit code %d", ErrKilled, c.exit.Code)
}
