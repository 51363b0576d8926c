package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/values"
)

// localIndexes opens files of a folder by their keys. Each has its own name as its only value.
func localIndexes(t *testing.T, count int) (x *indexes, fetched *atomic.Int64) {
	t.Helper()

	folder := t.TempDir()

	for i := range count {
		file, err := os.Create(filepath.Join(folder, fmt.Sprint("index", i)))
		require.NoError(t, err)

		_, err = values.Build(file, func(yield func(values.Entry) bool) {
			yield(values.Entry{Column: "c", Value: fmt.Sprint("index", i), Count: 1})
		}, values.DefaultBounds(), nil)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}

	require.NoError(t, os.WriteFile(filepath.Join(folder, "damaged"), []byte("not an index"), 0o600))

	fetched = &atomic.Int64{}
	x = newIndexes(nil)
	x.fetch = func(_ context.Context, file lake.File) (string, func(), error) {
		fetched.Add(1)

		return filepath.Join(folder, file.Key), func() {}, nil
	}

	return x, fetched
}

func TestIndexesStayOpen(t *testing.T) {
	t.Parallel()

	x, fetched := localIndexes(t, 3)
	x.places = 2

	use := func(key string) (*values.Index, func()) {
		index, release, err := x.take(t.Context(), lake.Object{Key: key})
		require.NoError(t, err)

		return index, release
	}

	zero, releaseZero := use("index0")
	_, release := use("index0")
	release()
	release()
	require.EqualValues(t, 1, fetched.Load())

	for _, key := range []string{"index1", "index2"} {
		_, release := use(key)
		release()
	}

	require.Len(t, x.open, 2, "the one that was not used for the longest time is let go")
	require.NotContains(t, x.open, "index0")
	require.Len(t, zero.Link(values.Ask("index0")), 1, "who has it can still use it")
	releaseZero()
	require.ErrorIs(t, zero.Close(), fs.ErrClosed, "the last one who had it closes it")

	for range 2 {
		_, _, err := x.take(t.Context(), lake.Object{Key: "damaged"})
		require.Error(t, err)
		require.NotContains(t, x.open, "damaged")
	}

	_, _, err := x.take(t.Context(), lake.Object{Key: "absent"})
	require.ErrorIs(t, err, fs.ErrNotExist)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, release, err = x.take(ctx, lake.Object{Key: "index0"})
	if !errors.Is(err, context.Canceled) { // it may have been quicker
		require.NoError(t, err)
		release()
	}
}

// TestIndexesAtOnce: whatever others do, an index that somebody has is open and the right one.
func TestIndexesAtOnce(t *testing.T) {
	t.Parallel()

	const count = 8

	x, _ := localIndexes(t, count)
	x.places = 3

	var group sync.WaitGroup

	for range 8 {
		group.Go(func() {
			for range 300 {
				key := fmt.Sprint("index", rand.IntN(count))

				index, release, err := x.take(t.Context(), lake.Object{Key: key})
				if err != nil {
					t.Error(err)

					return
				}

				if found := index.Link(values.Ask(key)); len(found) != 1 || found[0].Value != key {
					t.Errorf("%s has %v", key, found)
				}

				release()
			}
		})
	}

	group.Wait()
	require.LessOrEqual(t, len(x.open), 3)

	for _, one := range x.open {
		require.Zero(t, one.users)
	}
}
