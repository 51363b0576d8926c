package lake

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
)

// Fetch returns the path of a local, read-only copy of a data file. The copy stays until release is called.
// Concurrent callers wait for the same copy.
//
// Faults: LimitExceeded if the file is larger than the cache. Unavailable if files in use or a full disk leave no
// room, or the store does not answer. Unavailable and InvalidState for a file of an attached table that cannot
// be had, or may not be read any more.
func (l *Lake) Fetch(ctx context.Context, file File) (path string, release func(), err error) {
	opened, err := l.openForeign(ctx, []File{file})
	if err != nil {
		return "", nil, err
	}

	return l.fetch(ctx, file, opened[file.At])
}

// fetch is Fetch. read opens a file of an attached table, and is nil for one of our store.
func (l *Lake) fetch(ctx context.Context, file File, read ReadForeignFile) (path string, release func(), err error) {
	if l.cache == nil {
		return "", nil, errors.New("this process has no cache of data files")
	}

	// Not under the lock of the cache: Room may evict other copies, which takes that lock.
	if !l.cache.has(file) {
		if err := l.cache.watch.Room(file.Size); err != nil {
			return "", nil, err
		}
	}

	item, err := l.cache.take(ctx, file, read)
	if err != nil {
		return "", nil, err
	}

	select {
	case <-item.done:
	case <-ctx.Done():
		l.cache.leave(item)

		return "", nil, ctx.Err()
	}

	if item.err != nil {
		l.cache.leave(item)

		return "", nil, item.err
	}

	return l.cache.path(item.name), sync.OnceFunc(func() { l.cache.leave(item) }), nil
}

// fetches is how many files are fetched from the store at once.
const fetches = 8

// FetchAll fetches files for a process that is not trusted. It calls use with the path of each file and its position
// in the list, from several goroutines. release must be called even after an error.
//
// Faults: as Fetch, and LimitExceeded if the files together are larger than the cache.
func (l *Lake) FetchAll(ctx context.Context, files []File, use func(path string, n int) error) (release func(), err error) {
	var size int64
	for _, file := range files {
		size += file.Size
	}

	if l.cache != nil && size > l.cache.room {
		return func() {}, fault.New(fault.LimitExceeded, fmt.Sprintf("The data files have %d bytes, but the cache of this server holds only %d.", size, l.cache.room))
	}

	opened, err := l.openForeign(ctx, files)
	if err != nil {
		return func() {}, err
	}

	releases := make([]func(), len(files))

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetches)

	for n, file := range files {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			path, release, err := l.fetch(ctx, file, opened[file.At])
			if err != nil {
				return err
			}

			releases[n] = func() {
				_ = l.Verify(path) // a changed copy is removed and logged

				release()
			}

			return use(path, n)
		})
	}

	err = group.Wait()

	return func() {
		for _, release := range releases {
			if release != nil {
				release()
			}
		}
	}, err
}

// Verify checks cheaply that a copy is still the file that was fetched. Call it after a process that is not trusted
// had access to the copy. A changed copy is removed. ErrChanged if it was changed.
func (l *Lake) Verify(path string) error {
	if l.cache == nil || filepath.Dir(path) != filepath.Clean(l.cache.folder) {
		return errors.New("the path is not in the folder of the cache")
	}

	return l.cache.verify(filepath.Base(path))
}

// Evict removes the least recently used copy. It returns false if all copies are in use.
func (l *Lake) Evict() bool {
	if l.cache == nil {
		return false
	}

	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()

	if l.cache.idle.Len() == 0 {
		return false
	}

	item, _ := l.cache.idle.Back().Value.(*copied)
	l.cache.forget(item)

	return true
}
