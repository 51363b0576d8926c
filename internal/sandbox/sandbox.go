package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

var (
	errClosed = errors.New("the sandbox is closed")
	errFull   = errors.New("the work folder is full")
)

// ErrBinary means that the file of the children is missing, cannot be executed, or has another version than this
// program.
var ErrBinary = errors.New("the program of the sealed processes cannot be used")

// Config contains the settings of a sandbox.
type Config struct {
	Dir          string   // folder for jobs; on the same file system as the files to mount
	MinIsolation Tier     // New fails if the kernel supports less
	MaxIsolation Tier     // the strictest tier to use; tests lower it to behave as on an older kernel
	Idle         int      // idle children for each program
	Programs     []string // the programs that children can run
	Binary       string   // file that children execute and that calls Main; New opens it once for all children
	Version      string   // what Binary must pass to Main
	Log          *slog.Logger
	// Full reports whether the disk of Dir is full. Then no idle children are started, and no error is logged. nil
	// means never.
	Full func() bool

	wish seal // the strictest seal to use; zero means that of MaxIsolation. Tests lower it
	free bool // children are not sealed; tests use it as a positive control
}

// Stats contains counts since New, and current counts.
type Stats struct {
	Started  int64 // children started, including idle ones
	Used     int64 // children handed out by Start
	Killed   int64 // children that died, or were killed for a limit or a protocol violation
	Timeouts int64 // part of Killed: for time
	Memory   int64 // part of Killed: for memory
	Idle     int64 // current number of idle children
	Running  int64 // current number of children handed out
}

// Sandbox starts children and keeps some of them idle.
type Sandbox struct {
	config Config
	seal   seal
	binary *os.File
	folder *parentFolder
	ready  map[string]chan *Child
	spawns chan func()

	closed  context.Context //nolint:containedctx // the life of the sandbox itself, for its own goroutines
	close   context.CancelFunc
	keepers sync.WaitGroup
	thread  sync.WaitGroup

	mu       sync.Mutex
	children map[*Child]struct{}

	started, used, killed, timeouts, memory, waiting, running atomic.Int64
}

// New determines in a child what the kernel supports, removes what dead parents left, and fills the pool.
func New(config Config) (*Sandbox, error) {
	if config.Full == nil {
		config.Full = func() bool { return false }
	}

	if config.wish == (seal{}) && !config.free {
		config.wish = config.MaxIsolation.seal()
	}

	// The file stays open, so that an upgrade that replaces it does not change the children of this process.
	binary, err := os.Open(config.Binary)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBinary, err)
	}

	place, err := claim(config.Dir)
	if err != nil {
		_ = binary.Close()

		return nil, fmt.Errorf("the folder of the sandbox: %w", err)
	}

	closed, cancel := context.WithCancel(context.Background())
	s := &Sandbox{
		config: config, binary: binary, folder: place, ready: map[string]chan *Child{}, spawns: make(chan func()),
		closed: closed, close: cancel, children: map[*Child]struct{}{},
	}
	s.thread.Go(s.spawnThread)

	if err := s.probe(); err != nil {
		s.Close()

		return nil, err
	}

	for _, program := range config.Programs {
		ready := make(chan *Child)
		s.ready[program] = ready

		for range config.Idle {
			s.keepers.Go(func() { s.refill(program, ready) }) // must not read s.ready, which is not complete yet
		}
	}

	return s, nil
}

// probe starts a child that seals itself as strictly as the kernel allows.
func (s *Sandbox) probe() error {
	child, err := s.spawn(s.closed, probeProgram, s.config.wish)

	switch {
	case errors.Is(err, ErrBinary):
		return err
	case errors.Is(err, ErrKilled), errors.Is(err, ErrProtocol):
		return fmt.Errorf("%w: %s: %w", ErrBinary, s.config.Binary, err)
	case err != nil:
		return fmt.Errorf("starting the first sealed process: %w", err)
	}

	s.seal = child.seal
	child.Close()

	tier := s.seal.tier()
	if tier > s.config.MinIsolation {
		return fmt.Errorf("this kernel supports a %s sandbox (Landlock ABI %d, seccomp %t), but the settings require %s",
			tier, s.seal.Landlock, s.seal.Seccomp, s.config.MinIsolation)
	}

	s.config.Log.Info("sandbox started", "tier", tier.String(), "landlock", s.seal.Landlock, "seccomp", s.seal.Seccomp)

	return nil
}

// Tier returns the tier that the kernel supports.
func (s *Sandbox) Tier() Tier { return s.seal.tier() }

// Dir returns the folder of this process. It is removed by Close, or by the next New if this process dies.
func (s *Sandbox) Dir() string { return s.folder.path }

// Stats returns the counts.
func (s *Sandbox) Stats() Stats {
	return Stats{
		Started: s.started.Load(), Used: s.used.Load(), Killed: s.killed.Load(), Timeouts: s.timeouts.Load(),
		Memory: s.memory.Load(), Idle: s.waiting.Load(), Running: s.running.Load(),
	}
}

// Close kills all children, including those handed out, and removes the folder.
func (s *Sandbox) Close() {
	s.close()
	s.keepers.Wait()

	for _, child := range s.living() {
		child.Close()
	}

	s.thread.Wait()
	s.folder.remove()

	_ = s.binary.Close()
}

// Start hands out an idle child and sets its limits. The child lives until Close is called, ctx ends, or limits.Wall
// has passed. The caller closes it.
func (s *Sandbox) Start(ctx context.Context, program string, limits Limits) (*Child, error) {
	limits = limits.orDefault()

	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}

		child, err := s.take(ctx, program)
		if err != nil {
			return nil, err
		}

		err = child.begin(ctx, limits)
		if err == nil {
			s.used.Add(1)
			s.running.Add(1)

			return child, nil
		}

		child.Close()
		// A child that died while it was handed out is replaced; a limit that cannot be set is an error.
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
}

// take returns an idle child from the pool, or starts one if there is none.
func (s *Sandbox) take(ctx context.Context, program string) (*Child, error) {
	ready, known := s.ready[program]
	if !known {
		return nil, fmt.Errorf("unknown program %q", program)
	}

	select {
	case child := <-ready:
		return child, nil
	default:
		return s.spawn(ctx, program, s.seal)
	}
}

// refill keeps one idle child until the sandbox closes. If children cannot be started, it retries with increasing
// pauses. The reason is logged, and Start returns it too.
func (s *Sandbox) refill(program string, ready chan<- *Child) {
	const shortest, longest = 50 * time.Millisecond, 10 * time.Second

	pause := shortest

	for s.closed.Err() == nil {
		var child *Child

		err := errFull
		if !s.config.Full() {
			child, err = s.spawn(s.closed, program, s.seal)
		}

		if err == nil {
			err = s.offer(ready, child)
		}

		if err == nil {
			pause = shortest

			s.rest(child)

			continue
		}

		if s.closed.Err() != nil {
			return
		}

		if !errors.Is(err, errFull) && !s.config.Full() {
			s.config.Log.Error("a sealed process did not start", "program", program, "error", err)
		}

		select {
		case <-time.After(pause):
			pause = min(2*pause, longest)
		case <-s.closed.Done():
		}
	}
}

// restAtMost is the longest time that refill waits for a child that was handed out before it starts the next one.
const restAtMost = time.Second

// rest waits until a child that was handed out has ended, or restAtMost has passed. Starting the next child needs
// processors that the job needs.
func (s *Sandbox) rest(child *Child) {
	timer := time.NewTimer(restAtMost)
	defer timer.Stop()

	select {
	case <-child.ended:
	case <-timer.C:
	case <-s.closed.Done():
	}
}

// offer waits until Start takes the child. It fails if the child dies before.
func (s *Sandbox) offer(ready chan<- *Child, child *Child) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)

	select {
	case ready <- child:
		return nil
	case <-child.ended:
		exit := child.Close()

		return fmt.Errorf("an idle sealed process ended: %w: %s", exit.Err, exit.Log)
	case <-s.closed.Done():
		child.Close()

		return errClosed
	}
}

func (s *Sandbox) living() []*Child {
	s.mu.Lock()
	defer s.mu.Unlock()

	list := make([]*Child, 0, len(s.children))
	for child := range s.children {
		list = append(list, child)
	}

	return list
}
