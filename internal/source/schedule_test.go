package source

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// clock is a simulated time that all replicas of a test share.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time      { return time.UnixMilli(c.at.Load()) }
func (c *clock) set(t time.Time)     { c.at.Store(t.UnixMilli()) }
func (c *clock) add(d time.Duration) { c.at.Add(d.Milliseconds()) }

// replicas returns instances that share a database and a clock, each with its own connections.
func replicas(t *testing.T, clock *clock, count int) (list []*Sources) {
	t.Helper()

	url := pgtest.URL(t)

	for range count {
		db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 4, AcquireTimeout: 10 * time.Second, QueryTimeout: 30 * time.Second, LockTimeout: 10 * time.Second})
		require.NoError(t, err)
		t.Cleanup(db.Close)

		client, err := job.New(job.Config{DB: db, Log: slog.New(slog.DiscardHandler), Workers: river.NewWorkers()})
		require.NoError(t, err)

		list = append(list, &Sources{DB: db, Jobs: func() *job.Client { return client }, Log: slog.New(slog.DiscardHandler), Now: clock.now})
	}

	return list
}

// add stores an active source with a schedule.
func (s *Sources) add(t *testing.T, schedule Schedule) Source {
	t.Helper()

	id := uuid.Must(uuid.NewV7())
	made := Source{Account: uuid.New(), ID: id, Name: id.String(), Schedule: schedule, Status: Active, CreatedAt: s.now()}
	next, err := made.plan(s.now())
	require.NoError(t, err)

	made.next = next
	s.inTx(t, func(ctx context.Context, tx postgres.Tx) error { return insertSource(ctx, tx, made) })

	return made
}

func (s *Sources) inTx(t *testing.T, do func(ctx context.Context, tx postgres.Tx) error) {
	t.Helper()
	require.NoError(t, s.DB.InTx(t.Context(), func(tx postgres.Tx) error { return do(t.Context(), tx) }))
}

// race lets all replicas look for slots at the same time, several times. One of them also dies at a random moment of a transaction.
func race(t *testing.T, all []*Sources) {
	t.Helper()

	var racing sync.WaitGroup

	racing.Go(func() {
		dying, die := context.WithTimeout(t.Context(), rand.N(5*time.Millisecond))
		defer die()

		_, _ = all[rand.N(len(all))].BeginDue(dying)
	})

	for _, one := range all {
		racing.Go(func() {
			for range 2 {
				if _, err := one.BeginDue(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}

	racing.Wait()
}

// end ends all runs that have begun.
func (s *Sources) end(t *testing.T, of Source) {
	t.Helper()

	for _, one := range s.runs(t, of) {
		if one.FinishedAt.IsZero() {
			one.Status, one.FinishedAt = RunCompleted, s.now()
			s.inTx(t, func(ctx context.Context, tx postgres.Tx) error {
				_, err := finishRun(ctx, tx, one)

				return err
			})
		}
	}
}

func (s *Sources) runs(t *testing.T, of Source) (found []Run) {
	t.Helper()
	require.NoError(t, s.DB.Do(t.Context(), func(q postgres.Querier) (err error) {
		found, err = selectRuns(t.Context(), q, of.Account, of.ID, uuid.Nil, maxRuns)
		slices.Reverse(found)

		return err
	}))

	return found
}

func (s *Sources) count(t *testing.T, query string) (n int) {
	t.Helper()
	require.NoError(t, s.DB.Do(t.Context(), func(q postgres.Querier) error { return q.QueryRow(t.Context(), query).Scan(&n) }))

	return n
}

func slots(runs []Run) (list []string) {
	for _, one := range runs {
		list = append(list, one.Slot.UTC().Format("15:04"))
	}

	return list
}

// TestSchedules has two sources with the same schedule and one with another on three replicas that race, for 200 minutes of simulated time.
func TestSchedules(t *testing.T) {
	t.Parallel()

	minutes := 40
	if os.Getenv("QUERN_TEST_LOOPS") == "full" {
		minutes = 200
	}

	clock := &clock{}
	begin := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	clock.set(begin)

	all := replicas(t, clock, 3)
	every := Schedule{Cron: "* * * * *", TimeZone: "Europe/Vienna"}
	watched := []Source{all[0].add(t, every), all[1].add(t, every), all[2].add(t, Schedule{Cron: "*/5 * * * *", TimeZone: "UTC", Jitter: 3 * time.Minute})}

	for range minutes {
		for range 3 { // looks before, at and after the full minute
			clock.add(20 * time.Second)
			race(t, all)
		}

		for _, one := range watched {
			all[0].end(t, one)
		}
	}

	jobs := 0

	for i, one := range watched {
		want := []string{}

		for at := begin.Add(time.Minute); !at.Add(one.Schedule.shift(one.ID)).After(clock.now()); at = at.Add(time.Minute) {
			if i < 2 || at.Minute()%5 == 0 {
				want = append(want, at.Format("15:04"))
			}
		}

		require.Equal(t, want, slots(all[0].runs(t, one)), "each slot once, in order")

		jobs += len(want)
	}

	require.Equal(t, jobs, all[0].count(t, `SELECT count(*) FROM river_job WHERE kind = 'source.run'`), "a job for each run")
	t.Logf("%d minutes on 3 replicas: %d runs, each slot of 3 sources once", minutes, jobs)
}

// TestMissedSlots checks what happens to slots that come while the service is down, while a run is in progress, and while a source is paused or stopped.
func TestMissedSlots(t *testing.T) {
	t.Parallel()

	clock := &clock{}
	clock.set(time.Date(2026, 3, 1, 8, 0, 30, 0, time.UTC))

	all := replicas(t, clock, 3)
	one := all[0].add(t, Schedule{Cron: "*/10 * * * *", TimeZone: "UTC"})

	// A service that was down for a week runs it once.
	clock.add(7 * 24 * time.Hour)
	race(t, all)
	require.Equal(t, []string{"08:10"}, slots(all[0].runs(t, one)))

	// The run is longer than the time between two slots. The slots that it misses become one run after it.
	for range 35 {
		clock.add(time.Minute)
		race(t, all)
	}

	require.Len(t, all[0].runs(t, one), 1)
	all[0].end(t, one)
	race(t, all)
	require.Equal(t, []string{"08:10", "08:10"}, slots(all[0].runs(t, one)), "a week later")
	all[0].end(t, one)
	clock.add(5 * time.Minute) // 08:40:30
	race(t, all)
	require.Equal(t, []string{"08:10", "08:10", "08:40"}, slots(all[0].runs(t, one)))

	// A stopped source has no slots, and is not due.
	all[0].inTx(t, func(ctx context.Context, tx postgres.Tx) error {
		isStopped, err := stopSource(ctx, tx, one, Stop{Code: StopFile, Reason: "broken"})
		require.True(t, isStopped)

		return err
	})
	all[0].end(t, one)
	clock.add(24 * time.Hour)
	race(t, all)
	require.Len(t, all[0].runs(t, one), 3)
	require.Zero(t, all[0].count(t, `SELECT count(*) FROM sources WHERE next_at IS NOT NULL OR slot_at IS NOT NULL`))

	// Nor does a source run that a program of the release before has stopped or paused: it does not know of slots.
	all[0].inTx(t, func(ctx context.Context, tx postgres.Tx) error {
		now := one
		now.Status, now.next = Paused, due{clock.now(), clock.now()}

		if err := updateStatus(ctx, tx, now); err != nil {
			return err
		}

		return updateSchedule(ctx, tx, now)
	})
	race(t, all)
	require.Len(t, all[0].runs(t, one), 3)
	require.Zero(t, all[0].count(t, `SELECT count(*) FROM sources WHERE next_at IS NOT NULL OR slot_at IS NOT NULL`))

	// A slot that has had its run does not get another one, also if it comes again because the clocks of replicas differ.
	all[0].inTx(t, func(ctx context.Context, tx postgres.Tx) error {
		now := one
		now.next = due{all[0].runs(t, one)[2].Slot, all[0].runs(t, one)[2].Slot}

		if err := updateStatus(ctx, tx, now); err != nil {
			return err
		}

		return updateSchedule(ctx, tx, now)
	})
	race(t, all)
	require.Len(t, all[0].runs(t, one), 3)
	clock.add(10 * time.Minute)
	race(t, all)
	require.Len(t, all[0].runs(t, one), 4)
}

// TestManyDue checks that more sources than are found at once all begin, once each.
func TestManyDue(t *testing.T) {
	t.Parallel()

	clock := &clock{}
	clock.set(time.Date(2026, 3, 1, 8, 0, 30, 0, time.UTC))

	all := replicas(t, clock, 2)
	for range dueAtOnce + 20 {
		all[0].add(t, Schedule{Cron: "0 9 * * *", TimeZone: "UTC"})
	}

	clock.add(time.Hour)

	more, err := all[0].BeginDue(t.Context())
	require.NoError(t, err)
	require.True(t, more)
	race(t, all)
	require.Equal(t, dueAtOnce+20, all[0].count(t, `SELECT count(*) FROM source_runs`))
	require.Equal(t, dueAtOnce+20, all[0].count(t, `SELECT count(DISTINCT source_id) FROM source_runs`))
}

// TestDueIndex checks that slots are found by their index, however many sources there are.
func TestDueIndex(t *testing.T) {
	t.Parallel()

	clock := &clock{}
	clock.set(time.Date(2026, 3, 1, 8, 0, 30, 0, time.UTC))

	one := replicas(t, clock, 1)[0]

	for _, statement := range []string{
		`INSERT INTO sources (account_id, name, id, username, token_id, namespace, connection_id, dataset, options, prefix, accept, pattern, status, reason, created_at, next_at)
			SELECT gen_random_uuid(), 'a', gen_random_uuid(), '', gen_random_uuid(), '', gen_random_uuid(), '', '{}', '', '{}', '', 'active', '', now(),
				CASE WHEN n % 10 = 0 THEN timestamptz '2030-01-01' END FROM generate_series(1, 20000) n`,
		`ANALYZE sources`,
	} {
		one.inTx(t, func(ctx context.Context, tx postgres.Tx) error {
			_, err := tx.Exec(ctx, statement)

			return err
		})
	}

	var plan string

	require.NoError(t, one.DB.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) `+sqlSelectDue, clock.now(), dueAtOnce).Scan(&plan)
	}))
	require.Contains(t, plan, "sources_due")
	require.NotContains(t, plan, "Seq Scan on sources")
}
