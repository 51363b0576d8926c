package job_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// task is a job whose worker does what the test says.
type task struct {
	Account uuid.UUID `json:"account"`
	Work    uuid.UUID `json:"work"`
}

func (task) Kind() string { return "task" }

type taskWorker struct {
	river.WorkerDefaults[task]

	work func(ctx context.Context, args task) error
}

func (w *taskWorker) Work(ctx context.Context, j *river.Job[task]) error { return w.work(ctx, j.Args) }

// start runs a client with one queue until the test ends.
func start(t *testing.T, db *postgres.DB, notify bool, work func(ctx context.Context, args task) error) *job.Client {
	t.Helper()

	workers := river.NewWorkers()
	river.AddWorker(workers, &taskWorker{work: work})

	client, err := job.New(job.Config{
		DB: db, Log: slog.New(slog.DiscardHandler), Queues: map[string]int{"tasks": 4}, Workers: workers, Notify: notify,
	})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)

	go func() { done <- client.Run(ctx) }()

	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})

	return client
}

func insert(t *testing.T, db *postgres.DB, client *job.Client, args task, then error) {
	t.Helper()

	err := db.InTx(t.Context(), func(tx postgres.Tx) error {
		require.NoError(t, client.InsertTx(t.Context(), tx, args, &river.InsertOpts{Queue: "tasks"}))

		return then
	})
	require.ErrorIs(t, err, then)
}

func TestInsertIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()

	for name, notify := range map[string]bool{"polling": false, "notified": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			worked := make(chan task, 10)
			client := start(t, db, notify, func(_ context.Context, args task) error {
				worked <- args

				return nil
			})

			rolledBack, committed := task{Work: uuid.New()}, task{Work: uuid.New()}
			insert(t, db, client, rolledBack, errors.New("no"))
			insert(t, db, client, committed, nil)

			require.Equal(t, committed, <-worked)
			time.Sleep(300 * time.Millisecond)
			require.Empty(t, worked)
		})
	}
}

func TestLeaseIsHeldByOne(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	client := start(t, db, false, nil)
	work := job.Work{Account: uuid.New(), ID: uuid.New(), Job: task{}, Queue: "tasks"}

	err := client.Hold(t.Context(), work, func(ctx context.Context, lease job.Lease) error {
		require.ErrorIs(t, client.Hold(ctx, work, nil), job.ErrLost, "somebody has it")

		return db.InTx(ctx, func(tx postgres.Tx) error { return lease.FenceTx(ctx, tx) })
	})
	require.NoError(t, err)

	failure := errors.New("failed")
	require.ErrorIs(t, client.Hold(t.Context(), work, func(context.Context, job.Lease) error { return failure }), failure,
		"it was given back, and is given back after a failure too")
	require.NoError(t, client.Hold(t.Context(), work, func(context.Context, job.Lease) error { return nil }))
}

// TestLease: the work of a worker that died is taken over within 20 seconds, and what the dead one writes
// late is fenced off.
func TestLease(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	args := task{Account: uuid.New(), Work: uuid.New()}

	var (
		client  *job.Client
		ready   = make(chan struct{})
		deaf    = make(chan job.Lease, 1)
		taken   = make(chan error, 1)
		attempt atomic.Int32
	)

	client = start(t, db, false, func(ctx context.Context, args task) error {
		<-ready

		work := job.Work{Account: args.Account, ID: args.Work, Job: args, Queue: "tasks"}

		return job.Snooze(client.Hold(ctx, work, func(ctx context.Context, lease job.Lease) error {
			if attempt.Add(1) == 1 {
				// As dead as a worker can be in this process: it no longer renews, and does not know it.
				require.NoError(t, db.Do(ctx, func(q postgres.Querier) error {
					_, err := q.Exec(ctx, `UPDATE leases SET until = now() - interval '1 second' WHERE work_id = $1`, args.Work)

					return err
				}))
				deaf <- lease
				<-ctx.Done()

				return ctx.Err()
			}

			taken <- db.InTx(ctx, func(tx postgres.Tx) error { return lease.FenceTx(ctx, tx) })

			return nil
		}))
	})
	close(ready)
	insert(t, db, client, args, nil)

	dead := <-deaf
	began := time.Now()

	select {
	case err := <-taken:
		require.NoError(t, err, "the new holder may write")
	case <-time.After(20 * time.Second):
		require.Fail(t, "nobody took the work over")
	}

	t.Logf("taken over after %v", time.Since(began).Round(time.Millisecond))

	late := db.InTx(t.Context(), func(tx postgres.Tx) error { return dead.FenceTx(t.Context(), tx) })
	require.ErrorIs(t, late, job.ErrLost, "a late write of the dead one")
}

func TestSchemaVersionIsRivers(t *testing.T) {
	t.Parallel()

	migrator, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	require.NoError(t, err)
	require.Len(t, migrator.AllVersions(), job.SchemaVersion)
}
