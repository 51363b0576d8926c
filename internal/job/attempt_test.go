package job_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func newWork() job.Work {
	return job.Work{Account: uuid.New(), ID: uuid.New(), Job: task{}, Queue: "tasks"}
}

func execute(t *testing.T, db *postgres.DB, statement string, args ...any) {
	t.Helper()
	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), statement, args...)

		return err
	}))
}

// TestAttempt checks what follows each result of an attempt, and that the lease is given back.
func TestAttempt(t *testing.T) {
	t.Parallel()

	var (
		failure = errors.New("the file is broken")
		outage  = errors.New("the store does not answer")
		full    = fmt.Errorf("writing: %w", syscall.ENOSPC)
		told    = errors.New("for the log")
	)

	cases := map[string]struct {
		result   error
		last     bool
		stopping bool    // the process stops while the work is done
		rooms    []error // results of Room, one after the other
		noFail   bool

		want    error
		waits   bool
		failed  bool
		skipped bool // the work is not begun
	}{
		"done":                       {},
		"no longer wanted":           {result: fmt.Errorf("recording: %w", job.ErrStopped), last: true},
		"lost":                       {result: fmt.Errorf("recording: %w", job.ErrLost), last: true, want: job.ErrLost},
		"may pass":                   {result: outage, want: outage},
		"may pass, last attempt":     {result: outage, last: true, want: told, failed: true},
		"failed":                     {result: failure, want: told, failed: true},
		"stopping":                   {result: failure, stopping: true, want: failure},
		"stopping, last attempt":     {result: failure, stopping: true, last: true, want: told, failed: true},
		"no room to begin":           {rooms: []error{full}, want: full, waits: true, skipped: true},
		"no room left by others":     {result: full, last: true, rooms: []error{nil, full}, want: full, waits: true},
		"no room, but now there is":  {result: full, rooms: []error{nil, nil}, want: told, failed: true},
		"no room, but none needed":   {result: full, want: told, failed: true},
		"records failures itself":    {result: failure, last: true, noFail: true, want: failure},
		"no room, its own failures":  {result: full, noFail: true, rooms: []error{nil, full}, want: full, waits: true},
		"waits by its own decision":  {result: job.Wait(failure), noFail: true, want: failure, waits: true},
		"stopping, its own failures": {result: outage, stopping: true, noFail: true, want: outage},
	}

	db := pgtest.New(t)
	client := newClient(t, db)

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ctx, stop := context.WithCancel(t.Context())
			defer stop()

			begun, failed := false, false
			attempt := job.Attempt{
				Work: newWork(), Last: test.last,
				Do: func(ctx context.Context, lease job.Lease) error {
					begun = true

					require.NoError(t, lease.InTx(ctx, func(postgres.Tx) error { return nil }))

					if test.stopping {
						stop()
					}

					return test.result
				},
				Passing: func(err error) bool { return errors.Is(err, outage) },
				Fail: func(_ context.Context, _ job.Lease, reason error) error {
					require.ErrorIs(t, reason, test.result)

					failed = true

					return told
				},
			}

			if test.noFail {
				attempt.Fail, attempt.Passing = nil, nil
			}

			if test.rooms != nil {
				attempt.Room = func() (err error) {
					err, test.rooms = test.rooms[0], test.rooms[1:]

					return err
				}
			}

			err := client.Attempt(ctx, attempt)
			require.ErrorIs(t, err, test.want)
			require.Equal(t, test.failed, failed)
			require.Equal(t, !test.skipped, begun)
			require.Empty(t, test.rooms)
			require.Zero(t, count(t, db, countLeases+` WHERE work_id = $1`, attempt.Work.ID))

			snoozed, isSnoozed := errors.AsType[*river.JobSnoozeError](job.Snooze(err))
			require.Equal(t, test.waits || errors.Is(test.want, job.ErrLost), isSnoozed)

			if test.waits {
				require.Less(t, snoozed.Duration, 5*time.Second)
			}
		})
	}
}

func TestAttemptOfHeldWork(t *testing.T) {
	t.Parallel()

	client := newClient(t, pgtest.New(t))
	work := newWork()

	require.NoError(t, client.Hold(t.Context(), work, func(ctx context.Context, _ job.Lease) error {
		require.ErrorIs(t, client.Attempt(ctx, job.Attempt{Work: work}), job.ErrLost, "neither Do nor Fail is called")

		return nil
	}))
}

// TestRecord checks that writes need the lease, and that a write about work that is no longer wanted is rolled back.
func TestRecord(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	client := newClient(t, db)
	failure := errors.New("failed")

	execute(t, db, `CREATE TABLE written (what text)`)

	write := func(ctx context.Context, tx postgres.Tx, what string) error {
		_, err := tx.Exec(ctx, `INSERT INTO written (what) VALUES ($1)`, what)

		return err
	}

	require.NoError(t, client.Hold(t.Context(), newWork(), func(ctx context.Context, lease job.Lease) error {
		record := func(what string, wanted bool) error {
			return lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return wanted, write(ctx, tx, what) })
		}
		conclude := func(ctx context.Context, what string, wanted bool, then error) error {
			return lease.Conclude(ctx, func(ctx context.Context, tx postgres.Tx) (bool, error) {
				return wanted, errors.Join(write(ctx, tx, what), then)
			})
		}

		require.NoError(t, record("wanted", true))
		require.ErrorIs(t, record("unwanted", false), job.ErrStopped)

		ended, end := context.WithCancel(ctx)
		end()

		require.NoError(t, conclude(ended, "concluded", true, nil), "although the context has ended")
		require.NoError(t, conclude(ctx, "concluded, unwanted", false, nil), "it has ended already")
		require.ErrorIs(t, conclude(ctx, "concluded, failed", true, failure), failure)

		execute(t, db, `UPDATE leases SET lease_id = $1`, uuid.New())

		require.ErrorIs(t, record("lost", true), job.ErrLost)
		require.ErrorIs(t, lease.InTx(ctx, func(tx postgres.Tx) error { return write(ctx, tx, "lost") }), job.ErrLost)
		require.NoError(t, conclude(ctx, "concluded, lost", true, nil), "another worker has it")

		return nil
	}))

	require.Equal(t, 2, count(t, db, `SELECT count(*) FROM written`))
	require.Equal(t, 2, count(t, db, `SELECT count(*) FROM written WHERE what IN ('wanted', 'concluded')`))
}

// TestGiveBack checks that the lease of a dead worker is removed, and that a lease that is held is not.
func TestGiveBack(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	client := newClient(t, db)
	work := newWork()

	require.NoError(t, client.Hold(t.Context(), work, func(ctx context.Context, lease job.Lease) error {
		require.NoError(t, client.GiveBack(ctx, work))
		require.NoError(t, lease.InTx(ctx, func(postgres.Tx) error { return nil }))

		execute(t, db, `UPDATE leases SET until = now() - interval '1 second'`)
		require.NoError(t, client.GiveBack(ctx, work))
		require.Zero(t, count(t, db, countLeases))

		return nil
	}))
}
