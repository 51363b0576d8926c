package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// prepareTime is the longest time until a child sends its ready frame. It is long because a machine under load is slow.
const prepareTime = time.Minute

// setup is the first frame to a child.
type setup struct {
	Folder Folder `json:"folder"`
	Seal   seal   `json:"seal"`
}

// spawnThread starts all children from one thread that lives as long as the sandbox. The kernel kills a child when the
// thread that started it ends, and the Go runtime can end other threads at any time.
func (s *Sandbox) spawnThread() {
	runtime.LockOSThread()

	for {
		select {
		case start := <-s.spawns:
			start()
		case <-s.closed.Done():
			return
		}
	}
}

func (s *Sandbox) onThread(start func() error) error {
	result := make(chan error, 1)

	select {
	case s.spawns <- func() { result <- start() }:
		return <-result
	case <-s.closed.Done():
		return errClosed
	}
}

// spawn starts a child and waits until it is prepared and sealed.
func (s *Sandbox) spawn(ctx context.Context, program string, wanted seal) (*Child, error) {
	folder, err := s.folder.job()
	if err != nil {
		return nil, err
	}

	child, err := s.exec(program, folder)
	if err != nil {
		removeFolder(folder)

		return nil, fmt.Errorf("starting a sealed process: %w", err)
	}

	late := time.AfterFunc(prepareTime, func() { child.fail(fmt.Errorf("%w: it did not start", ErrTimeout)) })
	defer late.Stop()

	defer context.AfterFunc(ctx, func() { child.fail(context.Cause(ctx)) })()

	if err := child.prepare(setup{Folder: folder, Seal: wanted}); err != nil {
		if exit := child.Close(); exit.Log != "" {
			err = fmt.Errorf("%w: %s", err, exit.Log)
		}

		return nil, fmt.Errorf("starting a sealed process for %s: %w", program, err)
	}

	return child, nil
}

func (s *Sandbox) exec(program string, folder Folder) (*Child, error) {
	var pipes [4][2]*os.File // control to the child, control from the child, data, log

	closeAll := func(end int) {
		for _, pipe := range pipes {
			if pipe[end] != nil {
				_ = pipe[end].Close()
			}
		}
	}

	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(0)
			closeAll(1)

			return nil, err
		}

		pipes[i] = [2]*os.File{r, w}
	}

	pipes[0][0], pipes[0][1] = pipes[0][1], pipes[0][0] // [0] is the parent's end, [1] the child's end
	defer closeAll(1)

	cmd := exec.Command(fmt.Sprintf("/proc/self/fd/%d", fdBinary)) //nolint:gosec,noctx // G204: the operator's program; Close ends it
	cmd.Args = []string{Name, program}
	cmd.Env = []string{}
	cmd.Dir = folder.Tmp
	cmd.Stdout, cmd.Stderr = pipes[3][1], pipes[3][1]
	cmd.ExtraFiles = []*os.File{pipes[0][1], pipes[1][1], pipes[2][1], s.binary}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	if err := s.onThread(cmd.Start); err != nil {
		closeAll(0)

		return nil, s.refused(err)
	}

	child := &Child{
		sandbox: s, folder: folder, cmd: cmd, to: pipes[0][0], from: pipes[1][0], bulk: pipes[2][0],
		log: &capped{file: pipes[3][0]}, ended: make(chan struct{}),
	}
	s.started.Add(1)

	s.mu.Lock()
	s.children[child] = struct{}{}
	s.mu.Unlock()

	child.log.reader.Go(child.log.read)

	go child.wait()

	return child, nil
}

// refused explains why no child was started. The path in the error of the system is that of a descriptor.
func (s *Sandbox) refused(err error) error {
	number, is := errors.AsType[syscall.Errno](err)

	switch {
	case !is:
		return err
	case slices.Contains([]syscall.Errno{unix.EACCES, unix.ENOEXEC, unix.ENOENT, unix.ETXTBSY}, number):
		return fmt.Errorf("%w: %s: %w", ErrBinary, s.config.Binary, number)
	default:
		return number
	}
}

// prepare sends the setup to the child and waits for its ready frame.
func (c *Child) prepare(what setup) error {
	if err := writeFrame(c.to, kindSetup, what); err != nil {
		return c.lost(err)
	}

	k, payload, err := readFrame(c.from)
	if err != nil {
		return c.lost(err)
	}

	var said outcome
	if err := json.Unmarshal(payload, &said); err != nil || k != kindReady {
		return fmt.Errorf("%w: it did not report that it started", ErrProtocol)
	}

	if said.Version != c.sandbox.config.Version {
		return fmt.Errorf("%w: %s has version %q, but this program needs version %q", ErrBinary, c.sandbox.config.Binary, said.Version, c.sandbox.config.Version)
	}

	if said.Error != "" {
		return errors.New(said.Error)
	}

	c.seal = seal{Landlock: said.Landlock, Seccomp: said.Seccomp}

	return nil
}
