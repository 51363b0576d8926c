package job_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres/pgtest"
)

// TestEvery checks that a periodic job is inserted at the start, in the queue of cleanup, once in its interval.
func TestEvery(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	worked := make(chan task, 10)
	workers := river.NewWorkers()
	river.AddWorker(workers, &taskWorker{work: func(_ context.Context, args task) error {
		worked <- args

		return nil
	}})

	args := task{Work: uuid.New()}
	client, err := job.New(job.Config{
		DB: db, Log: slog.New(slog.DiscardHandler), Queues: map[string]int{job.CleanupQueue: 1}, Workers: workers,
		Periodic: []*river.PeriodicJob{job.Every(time.Hour, args)},
	})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)

	go func() { done <- client.Run(ctx) }()

	require.Equal(t, args, <-worked)
	stop()
	require.NoError(t, <-done)
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM river_job`))
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM river_job
		WHERE kind = 'task' AND queue = 'cleanup' AND max_attempts = 10 AND unique_key IS NOT NULL`))
}

// TestAlone checks that only one worker works on the jobs of a kind. The id of the lease is the same in all releases,
// because replicas of two releases run side by side during an upgrade.
func TestAlone(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	client := newClient(t, db)

	require.NoError(t, client.Alone(t.Context(), task{Work: uuid.New()}, func(ctx context.Context, _ job.Lease) error {
		require.Equal(t, 1, count(t, db, `SELECT count(*) FROM leases WHERE account_id = $1 AND work_id = $2 AND job = 'task' AND queue = 'cleanup'`,
			uuid.Nil, uuid.NewSHA1(uuid.NameSpaceOID, []byte("task"))))

		_, isSnoozed := errors.AsType[*river.JobSnoozeError](client.Alone(ctx, task{}, nil))
		require.True(t, isSnoozed)

		return nil
	}))
	require.Zero(t, count(t, db, countLeases))
}
