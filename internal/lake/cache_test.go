package lake

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
)

// object writes an object of this size to the store.
func (p place) object(size int) File {
	p.t.Helper()

	file := File{Key: "lake/data/" + uuid.NewString(), Size: int64(size)}
	_, err := p.store.Write(p.t.Context(), file.Key, bytes.NewReader(bytes.Repeat([]byte{file.Key[len(file.Key)-1]}, size)))
	require.NoError(p.t, err)

	return file
}

func (p place) fetch(l *Lake, file File) (path string, release func()) {
	p.t.Helper()

	path, release, err := l.Fetch(p.t.Context(), file)
	require.NoError(p.t, err)

	content, err := os.ReadFile(path)
	require.NoError(p.t, err)
	require.Equal(p.t, bytes.Repeat([]byte{file.Key[len(file.Key)-1]}, int(file.Size)), content)

	return path, release
}

func cached(t *testing.T, folder string) int {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(folder, "*"+cacheSuffix))
	require.NoError(t, err)

	return len(files)
}

// TestLateObject fetches an object that is missing when it is requested first.
func TestLateObject(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	l, wire := p.replica(p.url, func(c *Config) { c.CacheDir, c.CacheBytes = t.TempDir(), 100 })
	late := p.object(40)
	content := bytes.Repeat([]byte{late.Key[len(late.Key)-1]}, 40)
	require.NoError(t, p.store.Delete(t.Context(), late.Key))

	var group errgroup.Group

	group.Go(func() error {
		for wire.count()[http.MethodGet] == 0 {
			runtime.Gosched()
		}

		_, err := p.store.Write(t.Context(), late.Key, bytes.NewReader(content))

		return err
	})

	_, release := p.fetch(l, late)
	release()
	require.NoError(t, group.Wait())
}

func TestCache(t *testing.T) {
	t.Parallel()

	p, folder := newPlace(t), t.TempDir()
	l, wire := p.replica(p.url, func(c *Config) { c.CacheDir, c.CacheBytes = folder, 100 })
	a, b, c, big := p.object(40), p.object(40), p.object(40), p.object(101)

	path, release := p.fetch(l, a)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(cacheMode), info.Mode())
	require.NoError(t, l.Verify(path))

	// A copy in use stays, and is fetched only once.
	same, releaseSame := p.fetch(l, a)
	require.Equal(t, path, same)

	_, releaseB := p.fetch(l, b)
	require.Equal(t, map[string]int{http.MethodGet: 2}, wire.count())

	_, _, err = l.Fetch(t.Context(), c)
	require.Equal(t, fault.Unavailable, fault.From(err).Code)
	_, _, err = l.Fetch(t.Context(), big)
	require.Equal(t, fault.LimitExceeded, fault.From(err).Code)

	// The most recently used copy stays longest. A second call of release has no effect.
	releaseB()
	releaseB()
	release()
	releaseSame()

	_, releaseC := p.fetch(l, c)
	require.Equal(t, 2, cached(t, folder))
	wire.count()

	_, releaseA := p.fetch(l, a)
	require.Empty(t, wire.count(), "a is still there, b went")
	require.False(t, l.Evict(), "both are in use")
	releaseA()
	releaseC()
	require.True(t, l.Evict())
	require.Equal(t, 1, cached(t, folder))
	wire.count()

	_, releaseC = p.fetch(l, c)
	require.Empty(t, wire.count(), "a went, which was not used for the longest time")
	releaseC()

	_, releaseA = p.fetch(l, a)
	releaseA()

	// A missing object, and objects whose size differs from the size in their row.
	_, _, err = l.Fetch(t.Context(), File{Key: "lake/data/none", Size: 1})
	require.ErrorIs(t, err, ErrMissing)
	require.Equal(t, fault.Internal, fault.From(err).Code, "the dataset exists, so this is not NotFound")

	for _, difference := range []int64{-1, 1} {
		other := b
		other.Size += difference
		_, _, err = l.Fetch(t.Context(), other)
		require.ErrorContains(t, err, "bytes")
	}

	l.cache.mu.Lock()
	require.Equal(t, l.cache.used, int64(40*cached(t, folder)))
	l.cache.mu.Unlock()

	// Another process must not use the folder at the same time.
	_, err = newCache(Config{CacheDir: folder, CacheBytes: 100, Store: l.store, Log: l.log})
	require.ErrorContains(t, err, "another process")

	without, _ := p.replica(p.url, func(*Config) {})
	_, _, err = without.Fetch(t.Context(), a)
	require.Error(t, err)
}

func TestCacheSingleFlight(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	l, wire := p.replica(p.url, func(c *Config) { c.CacheDir, c.CacheBytes = t.TempDir(), 1<<20 })
	file := p.object(1000)
	hold := make(chan struct{})

	wire.intercept(func(*http.Request) error {
		<-hold

		return nil
	}, nil)

	// One waiting caller gives up. The others are not affected.
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)

	go func() {
		_, _, err := l.Fetch(ctx, file)
		gone <- err
	}()

	var group errgroup.Group
	for range 20 {
		group.Go(func() error {
			path, release, err := l.Fetch(t.Context(), file)
			if err != nil {
				return err
			}
			defer release()

			return l.Verify(path)
		})
	}

	time.Sleep(50 * time.Millisecond)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	close(hold)
	require.NoError(t, group.Wait())
	require.Equal(t, map[string]int{http.MethodGet: 1}, wire.count())

	// When all callers have left, the fetch ends. The next caller starts a new one.
	other := p.object(1000)
	stopped := make(chan struct{})

	wire.intercept(func(r *http.Request) error {
		<-r.Context().Done()
		close(stopped)

		return r.Context().Err()
	}, nil)

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	_, _, err := l.Fetch(ctx, other)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-stopped
	wire.intercept(nil, nil)

	_, release := p.fetch(l, other)
	release()

	// A failure is not cached.
	third := p.object(1000)

	wire.intercept(func(*http.Request) error { return errors.New("no") }, nil)

	_, _, err = l.Fetch(t.Context(), third)
	require.Error(t, err)
	wire.intercept(nil, nil)

	_, release = p.fetch(l, third)
	release()
}

// TestCacheAfterCrash checks that complete copies are used again and all other files are removed.
func TestCacheAfterCrash(t *testing.T) {
	t.Parallel()

	p, folder := newPlace(t), t.TempDir()
	config := func(c *Config) { c.CacheDir, c.CacheBytes = folder, 100 }
	l, _ := p.replica(p.url, config)
	files := []File{p.object(30), p.object(30), p.object(30)}

	for _, file := range files {
		_, release := p.fetch(l, file)
		release()
		time.Sleep(5 * time.Millisecond)
	}

	require.NoError(t, l.Close())

	for _, leftover := range []string{"fetch-123", "half-50.parquet", "notes.txt", nameOf(File{Key: "x", Size: 5})} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, leftover), []byte("half"), 0o600))
	}

	require.NoError(t, os.Mkdir(filepath.Join(folder, "folder.parquet"), 0o700))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(folder, nameOf(File{Key: "y", Size: 11}))))

	l, wire := p.replica(p.url, config)
	require.Equal(t, 3, cached(t, folder))

	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 4, "and the lock")

	for _, file := range files {
		_, release := p.fetch(l, file)
		release()
	}

	require.Empty(t, wire.count())
	require.NoError(t, l.Close())

	// With less room the oldest copies are removed.
	_, _ = p.replica(p.url, func(c *Config) { c.CacheDir, c.CacheBytes = folder, 60 })
	require.Equal(t, 2, cached(t, folder))
}

// TestCacheChanged checks that every kind of change to a copy is detected, and that the copy is removed and fetched
// again.
func TestCacheChanged(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	l, _ := p.replica(p.url, func(c *Config) { c.CacheDir, c.CacheBytes = t.TempDir(), 1000 })
	file := p.object(40)

	for name, change := range map[string]func(path string) error{
		"written": func(path string) error {
			return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, bytes.Repeat([]byte{'!'}, 40), 0o600), os.Chmod(path, cacheMode))
		},
		"longer": func(path string) error {
			return errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 50), os.Chmod(path, cacheMode))
		},
		"mode":    func(path string) error { return os.Chmod(path, 0o644) },
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+"~"), os.WriteFile(path, make([]byte, 40), cacheMode))
		},
	} {
		path, release := p.fetch(l, file)
		require.NoError(t, os.Link(path, filepath.Join(t.TempDir(), "link")), "a link changes nothing")
		require.NoError(t, l.Verify(path), name)
		require.NoError(t, change(path), name)
		require.ErrorIs(t, l.Verify(path), ErrChanged, name)
		require.NoError(t, l.Verify(path), "it is gone")

		_, releaseNew := p.fetch(l, file)
		releaseNew()
		release()
	}

	require.Error(t, l.Verify("/etc/passwd"))
}

// TestDropCopies checks that copies are removed at once if nobody uses them, and that a user still finds the copy at its path.
func TestDropCopies(t *testing.T) {
	t.Parallel()

	p, folder := newPlace(t), t.TempDir()
	l, _ := p.replica(p.url, func(c *Config) { c.CacheDir, c.CacheBytes = folder, 1000 })

	_, release := p.fetch(l, p.object(10))
	release()

	used := p.object(20)
	path, release := p.fetch(l, used)

	l.DropCopies(time.Now().Add(-time.Hour))
	require.Equal(t, 2, cached(t, folder), "they are younger")

	l.DropCopies(time.Now().Add(time.Minute))
	require.Equal(t, 1, cached(t, folder))
	require.NoError(t, os.Link(path, filepath.Join(t.TempDir(), "link")))

	_, releaseAgain := p.fetch(l, used)
	release()
	require.Equal(t, 1, cached(t, folder), "another user has it")
	releaseAgain()
	require.Equal(t, 0, cached(t, folder))
	require.Zero(t, l.Cache().Bytes)
}

// TestCacheLastUserLeaves covers the case that the last user of a file releases it at the moment its download completes.
// Whichever happens first, the cache counts exactly the files in its folder.
func TestCacheLastUserLeaves(t *testing.T) {
	t.Parallel()

	p, folder := newPlace(t), t.TempDir()
	l, _ := p.replica(p.url, func(c *Config) { c.CacheDir, c.CacheBytes = folder, 1000 })
	c := l.cache

	for range 20 {
		item, err := c.take(t.Context(), p.object(10), nil)
		require.NoError(t, err)

		// The fetch has a complete temporary file and waits for the lock to rename it. The user waits behind it to
		// leave.
		c.mu.Lock()
		require.Eventually(t, func() bool { return drafted(t, folder) || isClosed(item.done) }, 10*time.Second, 5*time.Millisecond)

		left := make(chan struct{})

		go func() {
			defer close(left)

			c.leave(item)
		}()

		time.AfterFunc(5*time.Millisecond, c.mu.Unlock)
		<-left
		<-item.done

		c.mu.Lock()
		require.Equal(t, c.used, int64(10*cached(t, folder)), "a file that nobody counts")
		c.mu.Unlock()
	}
}

// drafted reports whether the folder has a complete temporary file.
func drafted(t *testing.T, folder string) bool {
	t.Helper()

	drafts, err := filepath.Glob(filepath.Join(folder, "fetch-*"))
	require.NoError(t, err)

	for _, draft := range drafts {
		if info, err := os.Stat(draft); err == nil && info.Mode() == cacheMode {
			return true
		}
	}

	return false
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
