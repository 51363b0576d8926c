package job_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// task is a job whose worker runs a function of the test.
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

// newClient returns a client that works on no jobs.
func newClient(t *testing.T, db *postgres.DB) *job.Client {
	t.Helper()

	client, err := job.New(job.Config{DB: db, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	return client
}

func count(t *testing.T, db *postgres.DB, statement string, args ...any) (number int) {
	t.Helper()
	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), statement, args...).Scan(&number)
	}))

	return number
}

const countLeases = `SELECT count(*) FROM leases`

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

func TestSchemaVersionIsRivers(t *testing.T) {
	t.Parallel()

	migrator, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	require.NoError(t, err)
	require.Len(t, migrator.AllVersions(), job.SchemaVersion)
}

// TestRescue checks that the job of a worker that died before it had its lease is delivered again, and that a job
// whose lease is held is not.
func TestRescue(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	worked := make(chan task, 10)
	client := start(t, db, false, func(_ context.Context, args task) error {
		worked <- args

		return nil
	})

	stuck, held := task{Account: uuid.New(), Work: uuid.New()}, task{Account: uuid.New(), Work: uuid.New()}

	err := client.Hold(t.Context(), job.Work{Account: held.Account, ID: held.Work, Job: held, Queue: "tasks"}, func(ctx context.Context, _ job.Lease) error {
		require.NoError(t, db.InTx(ctx, func(tx postgres.Tx) error {
			for _, args := range []task{stuck, held} {
				if err := client.InsertTx(ctx, tx, args, &river.InsertOpts{Queue: "tasks", ScheduledAt: time.Now().Add(time.Hour)}); err != nil {
					return err
				}
			}

			_, err := tx.Exec(ctx, `UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '2 minutes'`)

			return err
		}))

		require.Equal(t, stuck, <-worked)
		time.Sleep(3 * time.Second) // longer than one sweep
		require.Empty(t, worked)

		return nil
	})
	require.NoError(t, err)
	require.Equal(t, held, <-worked, "nobody holds its lease any more")
}
