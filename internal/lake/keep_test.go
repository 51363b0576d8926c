package lake

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// keep undoes the removal of a table.
func (p place) keep(t Table) error {
	return p.db.InTx(p.t.Context(), func(tx postgres.Tx) error { return KeepTableTx(p.t.Context(), tx, t) })
}

func (p place) kept(t Table) []uuid.UUID {
	p.t.Helper()

	var found []uuid.UUID

	require.NoError(p.t, p.db.Do(p.t.Context(), func(q postgres.Querier) (err error) {
		found, err = Kept(p.t.Context(), q, t.Account, []uuid.UUID{t.Dataset})

		return err
	}))

	return found
}

// TestKeepAgainstClean restores tables while two processes remove them. A restored table keeps every object; every other table
// loses all of them.
func TestKeepAgainstClean(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	other, _ := p.replica(p.url, func(*Config) {})

	var restored, removed int

	for i := range 12 {
		at := newTable()
		p.add(at, Append, 0, 10, wanted()...)
		p.add(at, Append, 10, 10, wanted()...)
		require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error { return RemoveTableTx(t.Context(), tx, at, p.now()) }))
		require.Equal(t, []uuid.UUID{at.Dataset}, p.kept(at))
		p.clock.advance(2 * time.Hour)

		var (
			race errgroup.Group
			err  error
			lead = time.Duration(i-6) * time.Millisecond // of the cleanup
		)

		for _, cleaner := range []*Lake{p.Lake, other} {
			race.Go(func() error {
				time.Sleep(-lead)

				return cleaner.Clean(t.Context(), ahead, nothing)
			})
		}

		race.Go(func() error {
			time.Sleep(lead)

			err = p.keep(at)

			return nil
		})
		require.NoError(t, race.Wait())

		if err == nil {
			restored++

			p.clock.advance(2 * time.Hour)
			require.NoError(t, p.Clean(t.Context(), ahead, nothing))

			rows, _ := p.scan(at)
			require.Equal(t, int64(20), rows)
		} else {
			removed++

			require.True(t, fault.Is(err, fault.NotFound), err)
			require.Empty(t, p.kept(at))
			require.NoError(t, p.Clean(t.Context(), ahead, nothing))
		}

		p.requireSound()
	}

	t.Logf("%d restored, %d removed", restored, removed)
}

// TestKeepAfterCrash stops the cleanup at each of its requests to the store. A table whose removal has begun cannot be restored,
// although most of its objects still exist, and the next cleanup finishes the removal.
func TestKeepAfterCrash(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	whole := newTable()
	p.add(whole, Append, 0, 10, wanted()...)

	for n := range int64(3) {
		var deletes atomic.Int64

		at := newTable()
		p.add(at, Append, 0, 10, wanted()...)
		require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error { return RemoveTableTx(t.Context(), tx, at, p.now()) }))
		p.clock.advance(2 * time.Hour)

		victim, wire := p.replica(p.url, func(*Config) {})
		ctx, die := context.WithCancel(t.Context())

		wire.intercept(func(r *http.Request) error {
			if r.Method == http.MethodDelete || r.Method == http.MethodPost {
				if deletes.Add(1) > n {
					die()

					return errors.New("the process is dead")
				}
			}

			return nil
		}, nil)

		require.Error(t, victim.Clean(ctx, ahead, nothing))
		require.Empty(t, p.kept(at))
		require.True(t, fault.Is(p.keep(at), fault.NotFound))
		require.NoError(t, p.Clean(t.Context(), ahead, nothing))
		require.True(t, fault.Is(p.keep(at), fault.NotFound))
		p.requireSound()
		die()
	}

	rows, _ := p.scan(whole)
	require.Equal(t, int64(10), rows)
}
