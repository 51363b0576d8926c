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

// localIndexes returns indexes for files of a temporary folder, by key. Each file contains its own name as its only value.
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
	require.Len(t, zero.Match(values.Ask("index0")), 1, "who has it can still use it")
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
	if !errors.Is(err, context.Canceled) { // the index may have been opened first
		require.NoError(t, err)
		release()
	}
}

// TestIndexesAtOnce checks with concurrent use that a taken index is open and is the requested one.
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

				if found := index.Match(values.Ask(key)); len(found) != 1 || found[0].Value != key {
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

// TestIndexesEvicted checks that the least recently used index is closed, and never one in use.
func TestIndexesEvicted(t *testing.T) {
	t.Parallel()

	x, fetched := localIndexes(t, 3)
	releases := make([]func(), 3)

	for i := range releases {
		_, release, err := x.take(t.Context(), lake.Object{Key: fmt.Sprint("index", i)})
		require.NoError(t, err)

		releases[i] = release
	}

	require.False(t, x.evict(), "all are in use")
	releases[1]()
	releases[2]()
	require.True(t, x.evict())
	require.NotContains(t, x.open, "index1")
	require.True(t, x.evict())
	require.False(t, x.evict())

	index, release, err := x.take(t.Context(), lake.Object{Key: "index0"})
	require.NoError(t, err)
	require.Positive(t, index.Memory())
	require.EqualValues(t, 3, fetched.Load(), "it was open all the time")
	release()
	releases[0]()
	require.True(t, x.evict())
	require.Zero(t, x.memory)
}
