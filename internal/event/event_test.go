package event_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func quiet(postgres.Tx, []event.Event) error { return nil }

func written(account uuid.UUID, n int64) event.Event {
	return event.Event{
		Account: account, Type: event.Loaded, At: time.Now(), Subject: event.Subject{Kind: event.KindDataset, Account: account, ID: account},
		Data: event.Data{Namespace: "shop", Dataset: "orders", Rows: &n},
	}
}

// TestNothingIsMissed lets writers commit in another order than they wrote, while three processes give numbers and a reader follows. The reader must
// get every committed event once, and nothing of what was rolled back.
func TestNothingIsMissed(t *testing.T) {
	t.Parallel()

	const (
		writers = 12
		each    = 40
	)

	db := pgtest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	accounts := []uuid.UUID{uuid.New(), uuid.New()}

	var numbering, writing errgroup.Group

	for range 3 {
		numbering.Go(func() error {
			for ctx.Err() == nil {
				if _, err := event.Number(ctx, db, quiet); err != nil && ctx.Err() == nil {
					return err
				}

				time.Sleep(time.Millisecond)
			}

			return nil
		})
	}

	for w := range writers {
		writing.Go(func() error {
			for i := range each {
				err := db.InTx(ctx, func(tx postgres.Tx) error {
					if err := event.WriteTx(ctx, tx, written(accounts[w%2], int64(w*each+i))); err != nil {
						return err
					}

					time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond) // a later writer commits first

					if i%10 == 9 {
						return context.DeadlineExceeded // rolled back
					}

					return nil
				})
				if err != nil && i%10 != 9 {
					return err
				}
			}

			return nil
		})
	}

	var (
		after int64
		got   []int64
	)

	read := func() {
		require.NoError(t, db.Do(ctx, func(q postgres.Querier) error {
			head, _, err := event.Head(ctx, q)
			if err != nil {
				return err
			}

			page, err := event.List(ctx, q, event.Range{Logs: accounts, After: after, Until: head}, 1000)

			for _, e := range page {
				require.Greater(t, e.Seq, after)

				after = e.Seq
				got = append(got, *e.Data.Rows)
			}

			after = max(after, head)

			return err
		}))
	}

	done := make(chan error, 1)

	go func() { done <- writing.Wait() }()

	for ended := false; !ended; {
		select {
		case err := <-done:
			require.NoError(t, err)

			ended = true
		default:
		}

		read()
	}

	require.Eventually(t, func() bool { read(); return len(got) >= writers*each*9/10 }, 5*time.Second, 5*time.Millisecond)
	stop()
	require.NoError(t, numbering.Wait())

	slices.Sort(got)
	require.Len(t, slices.Compact(slices.Clone(got)), len(got), "an event arrived twice")
	require.Len(t, got, writers*each*9/10)

	for _, n := range got {
		require.NotEqual(t, int64(9), n%each%10, "a rolled back event arrived")
	}
}

// TestRetention checks that events are dropped by weeks, and that those of a week without a partition are kept and moved.
func TestRetention(t *testing.T) {
	t.Parallel()

	db, now := pgtest.New(t), time.Now()
	account := uuid.New()

	require.NoError(t, event.Prepare(t.Context(), db, now))
	require.NoError(t, db.InTx(t.Context(), func(tx postgres.Tx) error { return event.WriteTx(t.Context(), tx, written(account, 1)) }))

	_, err := event.Number(t.Context(), db, quiet)
	require.NoError(t, err)

	count := func() (n int, partition string) {
		require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
			return q.QueryRow(t.Context(), `SELECT count(*), coalesce(min(tableoid::regclass::text), '') FROM events WHERE account_id = $1`, account).Scan(&n, &partition)
		}))

		return n, partition
	}

	n, partition := count()
	require.Equal(t, 1, n)
	require.Regexp(t, `^events_\d{4}_\d{2}$`, partition)

	require.NoError(t, event.Drop(t.Context(), db, now))

	n, _ = count()
	require.Equal(t, 1, n)

	require.NoError(t, event.Drop(t.Context(), db, now.AddDate(0, 0, 15)))

	n, _ = count()
	require.Zero(t, n)
}
