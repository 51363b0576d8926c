package lake

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

const (
	cacheLock     = "lock"
	cacheSuffix   = ".parquet"
	cacheMode     = 0o444
	retryWhenFull = time.Second
)

// cache keeps local copies of data files in a folder, as many as there is room for. A file that somebody uses
// stays; of the others those go first that were not used for the longest time.
//
// A copy gets its name only when it is complete and on the disk, so what has a name is whole, also after a
// crash. Names are made of the key, and objects never change, so a name is never wrong.
type cache struct {
	folder string
	room   int64
	store  *blob.Store
	log    *slog.Logger
	lock   *os.File

	mu    sync.Mutex
	used  int64
	items map[string]*copied // by name
	idle  *list.List         // of *copied that nobody uses, the last used first
}

// copied is one file of the cache, there or under way.
type copied struct {
	name  string
	size  int64
	users int
	idle  *list.Element
	stop  context.CancelFunc // of the fetch, when nobody waits for it any more
	done  chan struct{}      // closed when it is there, or err is set
	err   error
	seal  seal
}

// seal is what shows that a file was changed. Links come and go, so the time of the last change of the inode
// says nothing.
type seal struct {
	size     int64
	modified time.Time
	inode    uint64
	mode     os.FileMode
}

func sealOf(path string) (seal, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return seal{}, err
	}

	made := seal{size: info.Size(), modified: info.ModTime(), mode: info.Mode()}
	if system, ok := info.Sys().(*syscall.Stat_t); ok {
		made.inode = system.Ino
	}

	return made, nil
}

func newCache(folder string, room int64, store *blob.Store, log *slog.Logger) (*cache, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}

	lock, err := os.OpenFile(filepath.Join(folder, cacheLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}

	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()

		return nil, fmt.Errorf("another process uses %s", folder)
	}

	c := &cache{folder: folder, room: room, store: store, log: log, lock: lock, items: map[string]*copied{}, idle: list.New()}

	return c, c.adopt()
}

// adopt takes over what is whole, and removes everything else.
func (c *cache) adopt() error {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return err
	}

	var found []*copied

	for _, entry := range entries {
		name := entry.Name()
		if name == cacheLock {
			continue
		}

		made, err := sealOf(c.path(name))
		if err != nil {
			return err
		}

		if !strings.HasSuffix(name, cacheSuffix) || made.mode != cacheMode || nameFor(name, made.size) != name {
			if err := os.RemoveAll(c.path(name)); err != nil {
				return err
			}

			continue
		}

		item := &copied{name: name, size: made.size, seal: made, stop: func() {}, done: make(chan struct{})}
		close(item.done)

		found = append(found, item)
	}

	slices.SortFunc(found, func(a, b *copied) int { return a.seal.modified.Compare(b.seal.modified) })

	for _, item := range found {
		c.items[item.name] = item
		c.used += item.size
		item.idle = c.idle.PushFront(item)
	}

	c.shrink(0)

	return nil
}

// close may be repeated.
func (c *cache) close() error {
	if err := c.lock.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}

	return nil
}

func (c *cache) path(name string) string { return filepath.Join(c.folder, name) }

// nameOf is the name of a file's copy. The size is part of it, so that a copy of another length is not taken.
func nameOf(file File) string {
	hash := sha256.Sum256([]byte(file.Key))

	return fmt.Sprintf("%s-%d%s", hex.EncodeToString(hash[:16]), file.Size, cacheSuffix)
}

// nameFor is what the name would be if the size were this one.
func nameFor(name string, size int64) string {
	hash, _, _ := strings.Cut(name, "-")

	return fmt.Sprintf("%s-%d%s", hash, size, cacheSuffix)
}

// Fetch returns the path of a local, read-only copy of a data file, which stays until release is called. Several
// who ask at once wait for the same copy.
//
// LimitExceeded: the file is larger than the cache. Unavailable: files in use leave no room, or the store does
// not answer.
func (l *Lake) Fetch(ctx context.Context, file File) (path string, release func(), err error) {
	if l.cache == nil {
		return "", nil, errors.New("this process has no cache of data files")
	}

	item, err := l.cache.take(ctx, file)
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

// fetches is how many files come from the store at once.
const fetches = 8

// FetchAll fetches files for a process that is not trusted: use gets the path of each and its place in the list, from
// several goroutines. release is there also after an error.
//
// Faults: as Fetch, and LimitExceeded if they are more than the cache holds.
func (l *Lake) FetchAll(ctx context.Context, files []File, use func(path string, n int) error) (release func(), err error) {
	var size int64
	for _, file := range files {
		size += file.Size
	}

	if l.cache != nil && size > l.cache.room {
		return func() {}, fault.New(fault.LimitExceeded, fmt.Sprintf("The data files have %d bytes; this server has room for %d.", size, l.cache.room))
	}

	releases := make([]func(), len(files))

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetches)

	for n, file := range files {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			path, release, err := l.Fetch(ctx, file)
			if err != nil {
				return err
			}

			releases[n] = func() {
				_ = l.Verify(path) // a changed copy is thrown away and stands in the log

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

// Verify checks that a copy is still what was fetched, which is cheap: whoever gave it to a process that is not
// trusted asks afterwards. A changed one is thrown away. ErrChanged.
func (l *Lake) Verify(path string) error {
	if l.cache == nil || filepath.Dir(path) != filepath.Clean(l.cache.folder) {
		return errors.New("not a file of the cache")
	}

	return l.cache.verify(filepath.Base(path))
}

// take returns the file's copy and counts the caller among its users. If there is none it makes room and
// begins to fetch it.
func (c *cache) take(ctx context.Context, file File) (*copied, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	name := nameOf(file)
	if item, ok := c.items[name]; ok {
		item.users++

		if item.idle != nil {
			c.idle.Remove(item.idle)
			item.idle = nil
		}

		return item, nil
	}

	if file.Size > c.room {
		return nil, fault.New(fault.LimitExceeded, "A data file is larger than the cache of data files.")
	}

	c.shrink(file.Size)

	if c.used+file.Size > c.room {
		full := fault.New(fault.Unavailable, "The cache of data files is full. Try again shortly.")
		full.RetryAfter = retryWhenFull

		return nil, full
	}

	// It is fetched for whoever asks meanwhile too, so it does not end with the first one.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	item := &copied{name: name, size: file.Size, users: 1, stop: stop, done: make(chan struct{})}
	c.items[name] = item
	c.used += file.Size

	go c.fetch(ctx, file, item)

	return item, nil
}

// shrink removes copies that nobody uses until there is room for so many bytes more. The caller holds mu.
func (c *cache) shrink(more int64) {
	for c.used+more > c.room && c.idle.Len() > 0 {
		item, _ := c.idle.Back().Value.(*copied)
		c.forget(item)
	}
}

// forget removes a copy. Whoever has it open or linked keeps what he has. The caller holds mu.
func (c *cache) forget(item *copied) {
	if c.items[item.name] != item {
		return
	}

	if item.idle != nil {
		c.idle.Remove(item.idle)
		item.idle = nil
	}

	delete(c.items, item.name)

	c.used -= item.size

	if err := os.Remove(c.path(item.name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		c.log.Error("a cached data file cannot be removed", "file", item.name, "error", err)
	}
}

// leave counts a user off. The last one stops a fetch that is still under way.
func (c *cache) leave(item *copied) {
	c.mu.Lock()
	defer c.mu.Unlock()

	item.users--
	if item.users > 0 || c.items[item.name] != item {
		return
	}

	select {
	case <-item.done:
		item.idle = c.idle.PushFront(item)
	default:
		item.stop()
		// The fetch may take a moment to end. Who asks meanwhile begins a new one.
		delete(c.items, item.name)

		c.used -= item.size
	}
}

func (c *cache) fetch(ctx context.Context, file File, item *copied) {
	defer item.stop()

	var draft string

	err := fault.Try(func() (err error) {
		draft, err = c.download(ctx, file)

		return err
	})

	// The copy gets its name and is told to be there as one: whoever leaves in between would take it off the count and
	// leave the file behind.
	c.mu.Lock()
	defer c.mu.Unlock()

	if err == nil {
		item.seal, err = c.place(draft, item)
	}

	if err != nil {
		item.err = err

		if c.items[item.name] == item {
			delete(c.items, item.name)

			c.used -= item.size
		}
	}

	close(item.done)
}

// download writes the object to a file under a name that nobody knows.
func (c *cache) download(ctx context.Context, file File) (path string, err error) {
	object, err := c.store.Read(ctx, file.Key, 0, -1)
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", file.Key, err)
	}
	defer func() { _ = object.Close() }()

	draft, err := os.CreateTemp(c.folder, "fetch-*")
	if err != nil {
		return "", err
	}

	defer func() {
		if path == "" { // it failed, or there was a panic
			_ = os.Remove(draft.Name())
		}
	}()

	size, err := io.Copy(draft, io.LimitReader(object, file.Size+1))
	if err == nil && size != file.Size {
		err = fmt.Errorf("fetching %s: it has not the %d bytes that it should have", file.Key, file.Size)
	}

	if err := errors.Join(err, draft.Chmod(cacheMode), draft.Sync(), draft.Close()); err != nil {
		return "", err
	}

	return draft.Name(), nil
}

// place gives a whole draft the name of its copy. After an error there is neither. The caller holds mu.
func (c *cache) place(draft string, item *copied) (made seal, err error) {
	defer func() {
		if err != nil {
			_ = os.Remove(draft)
		}
	}()

	if c.items[item.name] != item {
		return made, context.Canceled // everybody left
	}

	if err := os.Rename(draft, c.path(item.name)); err != nil {
		return made, err
	}

	if made, err = sealOf(c.path(item.name)); err != nil {
		_ = os.Remove(c.path(item.name))
	}

	return made, err
}

func (c *cache) verify(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	item, ok := c.items[name]
	if !ok || item.seal == (seal{}) {
		return nil // it is gone, and was or will be fetched anew
	}

	made, err := sealOf(c.path(name))
	if err == nil && made == item.seal {
		return nil
	}

	c.forget(item)
	c.log.Error("a cached data file was changed and is thrown away", "file", name, "error", err)

	return ErrChanged
}
