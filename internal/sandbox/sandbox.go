package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

var errClosed = errors.New("the sandbox is closed")

// Config says what children there are and where they live.
type Config struct {
	Dir      string   // job folders; on the file system of the files that are linked in
	Least    Tier     // New refuses a kernel that gives less
	Most     Tier     // that is tried; tests of programs lower it to see them as on an older kernel
	Ready    int      // children kept ready for each program
	Programs []string // what the children can run
	Command  []string // how a child is started, before the program's name; default /proc/self/exe sandbox
	Log      *slog.Logger

	wish seal // the most that is tried; zero is all. Tests lower it
	free bool // children are not sealed; tests, for their positive control
}

// Stats are counts since New, and how many there are now.
type Stats struct {
	Started  int64 // children, ready ones too
	Used     int64 // handed out by Start
	Killed   int64 // died or were ended for a limit, nonsense or the caller's leaving
	Timeouts int64 // of these, ended for time
	Memory   int64 // of these, ended for memory
	Ready    int64 // now, waiting for work
	Running  int64 // now, handed out
}

// Sandbox starts children and keeps some ready.
type Sandbox struct {
	config Config
	seal   seal
	place  *place
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

// New finds out in a child what the kernel can do, removes what dead parents left, and fills the pool.
func New(config Config) (*Sandbox, error) {
	if len(config.Command) == 0 {
		config.Command = []string{"/proc/self/exe", "sandbox"}
	}

	if config.wish == (seal{}) && !config.free {
		config.wish = config.Most.seal()
	}

	place, err := claim(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("the sandbox's folder: %w", err)
	}

	closed, cancel := context.WithCancel(context.Background())
	s := &Sandbox{
		config: config, place: place, ready: map[string]chan *Child{}, spawns: make(chan func()),
		closed: closed, close: cancel, children: map[*Child]struct{}{},
	}
	s.thread.Go(s.spawnThread)

	if err := s.probe(); err != nil {
		s.Close()

		return nil, err
	}

	for _, program := range config.Programs {
		s.ready[program] = make(chan *Child)

		for range config.Ready {
			s.keepers.Go(func() { s.keep(program) })
		}
	}

	return s, nil
}

// probe starts a child that seals itself as well as it can.
func (s *Sandbox) probe() error {
	child, err := s.spawn(s.closed, probeProgram, s.config.wish)
	if err != nil {
		return fmt.Errorf("a first child: %w", err)
	}

	s.seal = child.seal
	child.Close()

	tier := s.seal.tier()
	if tier > s.config.Least {
		return fmt.Errorf("this kernel gives a %s sandbox (Landlock ABI %d, seccomp %t), the settings ask for %s",
			tier, s.seal.Landlock, s.seal.Seccomp, s.config.Least)
	}

	s.config.Log.Info("sandbox", "tier", tier.String(), "landlock", s.seal.Landlock, "seccomp", s.seal.Seccomp)

	return nil
}

// Tier is what the kernel gives.
func (s *Sandbox) Tier() Tier { return s.seal.tier() }

// Dir is the folder of this process: what is in it goes with the process, or with the next New.
func (s *Sandbox) Dir() string { return s.place.path }

// Stats counts.
func (s *Sandbox) Stats() Stats {
	return Stats{
		Started: s.started.Load(), Used: s.used.Load(), Killed: s.killed.Load(), Timeouts: s.timeouts.Load(),
		Memory: s.memory.Load(), Ready: s.waiting.Load(), Running: s.running.Load(),
	}
}

// Close ends all children, also those that are handed out, and removes the folder.
func (s *Sandbox) Close() {
	s.close()
	s.keepers.Wait()

	for _, child := range s.living() {
		child.Close()
	}

	s.thread.Wait()
	s.place.remove()
}

// Start hands out a child that is ready and sets its limits. It lives until Close, at most as long as ctx
// and limits.Wall. The caller closes it.
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
		// One that died in the moment of being handed out is replaced; a limit that cannot be set is an error.
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
}

// take gets a child from the pool, or starts one if there is none.
func (s *Sandbox) take(ctx context.Context, program string) (*Child, error) {
	ready, known := s.ready[program]
	if !known {
		return nil, fmt.Errorf("the sandbox has no program %q", program)
	}

	select {
	case child := <-ready:
		return child, nil
	default:
		return s.spawn(ctx, program, s.seal)
	}
}

// keep keeps one child ready, until the sandbox closes. If children do not come up it tries less and less
// often: the reason stands in the log, and Start gets it too.
func (s *Sandbox) keep(program string) {
	const shortest, longest = 50 * time.Millisecond, 10 * time.Second

	pause := shortest

	for s.closed.Err() == nil {
		child, err := s.spawn(s.closed, program, s.seal)
		if err == nil {
			err = s.offer(program, child)
		}

		if err == nil {
			pause = shortest

			s.rest(child)

			continue
		}

		if s.closed.Err() != nil {
			return
		}

		s.config.Log.Error("sandbox child", "program", program, "error", err)

		select {
		case <-time.After(pause):
			pause = min(2*pause, longest)
		case <-s.closed.Done():
		}
	}
}

// restAtMost is how long a child that was handed out may work before the next one is started.
const restAtMost = time.Second

// rest waits until a child that was handed out is done, or works for long: to start the next one takes processors
// that the work needs.
func (s *Sandbox) rest(child *Child) {
	timer := time.NewTimer(restAtMost)
	defer timer.Stop()

	select {
	case <-child.ended:
	case <-timer.C:
	case <-s.closed.Done():
	}
}

// offer waits until somebody takes the child. One that dies while it waits is an error.
func (s *Sandbox) offer(program string, child *Child) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)

	select {
	case s.ready[program] <- child:
		return nil
	case <-child.ended:
		exit := child.Close()

		return fmt.Errorf("died while it waited: %w: %s", exit.Err, exit.Log)
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
