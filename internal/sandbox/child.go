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

// Why a child has no answer. They are told apart by errors.Is; the child's own words are *FailedError.
var (
	ErrTimeout  = errors.New("the child took too long")
	ErrMemory   = errors.New("the child ran out of memory")
	ErrOutput   = errors.New("the child wrote more than it may")
	ErrKilled   = errors.New("the child died")
	ErrProtocol = errors.New("the child said nonsense")

	errGone  = errors.New("the child is gone")
	errEnded = errors.New("the child was closed")
)

// FailedError is what a program returned as its error. The text is the child's: hostile, and for the log alone.
type FailedError struct{ Message string }

func (f *FailedError) Error() string { return "the child failed: " + f.Message }

// Exit is how a child ended.
type Exit struct {
	Err    error          // why it has no answer; nil if the job ended by itself
	Signal syscall.Signal // that killed it; every child is killed in the end
	Code   int            // of the exit, -1 after a signal
	Memory int64          // peak of resident bytes, as last seen
	CPU    time.Duration  // since it was started
	Log    string         // first part of what it wrote to its standard output and error; hostile
}

// Child is a sealed process that does one job. Send, Receive, Link and Take are called by one goroutine at a
// time; Data may be read by another, and Close called by any.
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
	over   error // the end frame, once it came

	stops []func() bool
	close sync.Once
	exit  Exit

	mu     sync.Mutex
	reason error // why it was killed, the first
	reaped bool
	alone  bool  // it was dead before there was a reason
	done   bool  // the end frame came
	peak   int64 // of resident memory
	mapped int64 // memory that counts for the limit, as last seen
}

// Link makes a file readable for the child as in/name, without copying it. Both must be on one file system.
func (c *Child) Link(path, name string) error {
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return fmt.Errorf("%q is no name for a file of the sandbox", name)
	}

	err := os.Link(path, filepath.Join(c.folder.In, name))
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("%s is not on the file system of the sandbox's folder: %w", path, err)
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

// Receive gets the next message of the program. io.EOF says that the job is done and all was received,
// *FailedError that the program gave up; everything else that there is no answer.
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
		return c.nonsense("it does not stop talking")
	case k == kindMessage:
		if err := json.Unmarshal(payload, into); err != nil {
			return c.nonsense(err.Error())
		}

		return nil
	case k == kindEnd:
		return c.finish(payload)
	default:
		return c.nonsense(fmt.Sprintf("a frame of kind %d", k))
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

// Data is the bulk that the program writes. Its io.EOF does not say that it is complete; Receive does.
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

// Close kills the child if it lives, removes its folder, and says how it ended.
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

func (c *Child) count() {
	s := c.sandbox

	s.mu.Lock()
	delete(s.children, c)
	s.mu.Unlock()

	if c.data != nil {
		s.running.Add(-1)
	}

	if c.exit.Err != nil {
		s.killed.Add(1)
	}

	if errors.Is(c.exit.Err, ErrTimeout) {
		s.timeouts.Add(1)
	}

	if errors.Is(c.exit.Err, ErrMemory) {
		s.memory.Add(1)
	}
}

// begin sets the limits of a ready child and the clocks that end it.
func (c *Child) begin(ctx context.Context, limits Limits) error {
	if err := limits.set(c.cmd.Process.Pid); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return errGone
		}

		return err
	}

	if c.gone() { // the dead take limits too
		return errGone
	}

	c.limits, c.data = limits, &bulk{child: c, left: limits.Data}
	wall := time.AfterFunc(limits.Wall, func() { c.fail(fmt.Errorf("%w: %s", ErrTimeout, limits.Wall)) })
	c.stops = []func() bool{wall.Stop, context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })}

	go c.watch()

	return nil
}

// fail kills the child and lets go everybody who waits for it. The first reason counts.
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

// gone tells whether the child is dead, reaped or not.
func (c *Child) gone() bool {
	var exited unix.Siginfo

	err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &exited, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)

	return err != nil || exited.Signo != 0
}

// wait reaps the child. Its group is killed before, while its number can belong to nobody else.
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

// lost explains a pipe that ended. A child that closed it but lives is not believed for long.
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

// death waits for the end and says why.
func (c *Child) death() error {
	<-c.ended

	if err := c.verdict(); err != nil {
		return err
	}

	return errEnded
}

// verdict is why there is no answer; nil if there is one. It is asked after the end.
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

	// The limit counts whole ticks, the usage what really ran: on a busy machine the two differ by a lot.
	if c.exit.Signal == unix.SIGKILL && c.limits.CPU > 0 && c.exit.CPU >= c.limits.CPU/2 {
		return fmt.Errorf("%w: %s of CPU", ErrTimeout, c.exit.CPU)
	}

	// Runtimes that get no memory die in many ways; those that were near their limit are believed to.
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
