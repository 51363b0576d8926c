package job_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"quern.dev/quern/e2e/kill"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// workerOf names the environment variable that turns the test binary into a worker on the given database.
const workerOf = "QUERN_TEST_WORKER_OF"

func TestMain(m *testing.M) {
	if address := os.Getenv(workerOf); address != "" {
		fmt.Fprintln(os.Stderr, "the worker ended:", workTasks(address))
		os.Exit(1)
	}

	goleak.VerifyTestMain(m)
}

// takeover is the longest time until another worker has the work of a dead worker.
const takeover = 20 * time.Second

// TestLease checks that the work of a dead process is taken over, and that a process that only seemed dead cannot
// write.
func TestLease(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	t.Run("killed amid a write", func(t *testing.T) {
		t.Parallel()

		rounds := 1
		if os.Getenv("QUERN_TEST_LOOPS") == "full" {
			rounds = 10
		}

		for range rounds {
			kill.Round(t)

			w := newWorkplace(t)
			dead := w.employ(t)
			w.deliver(t)
			dead.says(t, patience, "holds")
			dead.told(t, "hang")
			dead.says(t, patience, "hangs")

			heir := w.employ(t)
			require.NoError(t, kill.Process(t, dead.cmd.Process))
			heir.takesOver(t)
			heir.told(t, "write", "end")
			heir.says(t, patience, "written")
			heir.says(t, patience, "ended")

			w.requireWritten(t, heir)
		}
	})

	t.Run("stopped, and awake again too late", func(t *testing.T) {
		t.Parallel()

		w := newWorkplace(t)
		late := w.employ(t)
		w.deliver(t)
		late.says(t, patience, "holds")
		late.told(t, "write")
		late.says(t, patience, "written")

		heir := w.employ(t)
		late.signal(t, syscall.SIGSTOP)
		late.stands(t)
		late.told(t, "write") // the first command that it runs when it continues
		heir.takesOver(t)

		// While the other worker works.
		late.signal(t, syscall.SIGCONT)
		late.says(t, patience, "lost", "refused")
		heir.told(t, "write", "end")
		heir.says(t, patience, "written")
		heir.says(t, patience, "ended")

		// And after the other worker has ended.
		late.told(t, "write")
		late.says(t, patience, "refused")

		w.requireWritten(t, late, heir)
	})
}

// patience is the longest time for an action that is slow only on a busy machine.
const patience = time.Minute

// workplace is a database with a table that records the writes of workers.
type workplace struct {
	address string
	db      *postgres.DB
}

func newWorkplace(t *testing.T) workplace {
	t.Helper()

	address := pgtest.URL(t)
	db, err := openDatabase(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(db.Close)

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), `CREATE TABLE written (number bigserial, worker bigint)`)

		return err
	}))

	return workplace{address: address, db: db}
}

func openDatabase(ctx context.Context, address string) (*postgres.DB, error) {
	return postgres.Open(ctx, postgres.Config{
		URL: address, MaxConns: 5, AcquireTimeout: patience, QueryTimeout: patience, LockTimeout: patience,
	})
}

func (w workplace) deliver(t *testing.T) {
	t.Helper()

	client, err := job.New(job.Config{DB: w.db, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	insert(t, w.db, client, task{Account: uuid.New(), Work: uuid.New()}, nil)
}

// requireWritten checks that each process has written once, in this order, and that no lease is held.
func (w workplace) requireWritten(t *testing.T, by ...*process) {
	t.Helper()

	var workers []int
	for _, p := range by {
		workers = append(workers, p.cmd.Process.Pid)
	}

	require.Equal(t, workers, w.query(t, `SELECT worker FROM written ORDER BY number`))
	require.Equal(t, []int{0}, w.query(t, `SELECT count(*) FROM leases`))
}

func (w workplace) query(t *testing.T, statement string) (numbers []int) {
	t.Helper()
	require.NoError(t, w.db.Do(t.Context(), func(q postgres.Querier) error {
		rows, err := q.Query(t.Context(), statement)
		require.NoError(t, err)

		numbers, err = pgx.CollectRows(rows, pgx.RowTo[int])

		return err
	}))

	return numbers
}

// process is a worker in its own process.
type process struct {
	cmd  *exec.Cmd
	in   io.Writer
	said chan string
}

func (w workplace) employ(t *testing.T) *process {
	t.Helper()

	p := &process{cmd: exec.Command(os.Args[0]), said: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), workerOf+"="+w.address)
	p.cmd.Stderr = t.Output()

	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)

	p.in = in

	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())

	heard := make(chan struct{})

	go func() {
		defer close(heard)

		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()

	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-heard
		_ = p.cmd.Wait()
	})

	p.says(t, patience, "works")

	return p
}

func (p *process) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal))
}

// stands waits until every thread has stopped, because the signal takes effect later.
func (p *process) stands(t *testing.T) {
	t.Helper()

	require.Eventually(t, func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		require.NoError(t, err)

		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if _, state, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(state, "T") {
				return false
			}
		}

		return len(threads) > 0
	}, patience, time.Millisecond)
}

func (p *process) told(t *testing.T, commands ...string) {
	t.Helper()

	for _, command := range commands {
		_, err := fmt.Fprintln(p.in, command)
		require.NoError(t, err)
	}
}

// says waits for the next words of the process, which must be these, in any order.
func (p *process) says(t *testing.T, within time.Duration, words ...string) {
	t.Helper()

	var said []string

	deadline := time.After(within)
	for range words {
		select {
		case word := <-p.said:
			said = append(said, word)
		case <-deadline:
			require.Failf(t, "it does not say it", "%v within %v, only %v", words, within, said)
		}
	}

	require.ElementsMatch(t, words, said)
}

func (p *process) takesOver(t *testing.T) {
	t.Helper()

	began := time.Now()
	p.says(t, takeover, "holds")
	t.Logf("taken over after %v", time.Since(began).Round(time.Millisecond))
}

// workTasks is the main function of a worker process. Until its standard input ends, it holds the lease of the work
// that is delivered, and writes on command, even if it has lost the lease.
func workTasks(address string) error {
	commands := make(chan string)

	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}

		os.Exit(0)
	}()

	db, err := openDatabase(context.Background(), address)
	if err != nil {
		return err
	}

	var client *job.Client

	workers := river.NewWorkers()
	river.AddWorker(workers, &taskWorker{work: func(ctx context.Context, args task) error {
		work := job.Work{Account: args.Account, ID: args.Work, Job: args, Queue: "tasks"}

		err := client.Hold(ctx, work, func(ctx context.Context, lease job.Lease) error {
			say("holds")
			context.AfterFunc(ctx, func() {
				if errors.Is(context.Cause(ctx), job.ErrLost) {
					say("lost")
				}
			})

			return obey(context.WithoutCancel(ctx), db, lease, commands)
		})
		if err == nil {
			say("ended")
		}

		return job.Snooze(err)
	}})

	client, err = job.New(job.Config{
		DB: db, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Queues: map[string]int{"tasks": 1}, Workers: workers,
	})
	if err != nil {
		return err
	}

	say("works")

	return client.Run(context.Background())
}

// say reports progress to the test.
func say(what any) { _, _ = fmt.Fprintln(os.Stdout, what) }

// obey runs commands until the command to end.
func obey(ctx context.Context, db *postgres.DB, lease job.Lease, commands <-chan string) error {
	for command := range commands {
		if command == "end" {
			break
		}

		err := db.InTx(ctx, func(tx postgres.Tx) error {
			if err := lease.FenceTx(ctx, tx); err != nil {
				return err
			}

			if _, err := tx.Exec(ctx, `INSERT INTO written (worker) VALUES ($1)`, os.Getpid()); err != nil {
				return err
			}

			if command == "hang" {
				say("hangs")
				select {}
			}

			return nil
		})

		switch {
		case err == nil:
			say("written")
		case errors.Is(err, job.ErrLost):
			say("refused")
		default:
			say(err)
		}
	}

	return nil
}

// TestWait checks that a job that has to wait is delivered again soon, and is not treated as failed or as held by
// another worker.
func TestWait(t *testing.T) {
	t.Parallel()

	reason := errors.New("the disk is full")
	waiting := job.Wait(reason)
	require.ErrorIs(t, waiting, reason)

	for _, err := range []error{waiting, fmt.Errorf("loading: %w", waiting), errors.Join(waiting, errors.New("other"))} {
		snoozed, ok := errors.AsType[*river.JobSnoozeError](job.Snooze(err))
		require.True(t, ok)
		require.Less(t, snoozed.Duration, 5*time.Second)
	}

	require.Equal(t, reason, job.Snooze(reason))
}
