package app

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLook checks that the check runs once per second and never concurrently, and that all callers get its result.
func TestLook(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var (
			l     look
			looks atomic.Int64
			down  = errors.New("down")
			see   = func() error {
				looks.Add(1)
				runtime.Gosched() // lets the other callers run before there is a result

				return down
			}
			asking sync.WaitGroup
		)

		for range 1000 {
			asking.Go(func() {
				if l.recent(see) != down { //nolint:errorlint // the very same
					t.Error("another answer")
				}
			})
		}

		asking.Wait()
		require.EqualValues(t, 1, looks.Load())

		up := func() error {
			looks.Add(1)

			return nil
		}

		time.Sleep(lookAge - time.Millisecond)
		require.ErrorIs(t, l.recent(up), down, "still good")
		require.EqualValues(t, 1, looks.Load())

		time.Sleep(time.Millisecond)
		require.NoError(t, l.recent(up))
		require.EqualValues(t, 2, looks.Load())
	})
}

// TestReadyLooks checks that requests for /readyz do not each use a connection to the database.
func TestReadyLooks(t *testing.T) {
	t.Parallel()

	a, _ := newApp(t)
	a.ready(t.Context()) // also checks the schema

	began, before := time.Now(), a.db.Stats().AcquireCount()

	for range 1000 {
		require.True(t, a.ready(t.Context())[1].OK)
	}

	require.LessOrEqual(t, a.db.Stats().AcquireCount()-before, 1+int64(time.Since(began)/lookAge))
}
