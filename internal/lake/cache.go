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

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/disk"
	"quern.dev/quern/internal/fault"
)

const (
	cacheLock     = "lock"
	cacheSuffix   = ".parquet"
	cacheMode     = 0o444
	retryWhenFull = time.Second
)

// cache keeps local copies of data files in a folder, up to a size limit. Copies in use are not removed; of the
// others, the least recently used is removed first.
//
// A copy gets its name only when it is complete and on the disk, so a file with a name is complete, even after a
// crash. Names are derived from keys, and objects never change, so a copy never becomes outdated.
type cache struct {
	folder string
	room   int64
	watch  *disk.Watch
	store  *blob.Store
	log    *slog.Logger
	lock   *os.File

	mu    sync.Mutex
	used  int64
	stats CacheStats
	items map[string]*copied // by name
	idle  *list.List         // of *copied that are not in use, most recently used first
}

// CacheStats are counts of the local copies of data files.
type CacheStats struct {
	Bytes        int64 // size of the copies, including those that are being fetched
	Hits, Misses int64 // data files that were wanted and had a copy, or none
}

// Cache returns the counts of the cache. They are zero if there is none.
func (l *Lake) Cache() CacheStats {
	if l.cache == nil {
		return CacheStats{}
	}

	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()

	stats := l.cache.stats
	stats.Bytes = l.cache.used

	return stats
}

// copied is one file of the cache, complete or being fetched.
type copied struct {
	name  string
	size  int64
	users int
	idle  *list.Element
	stop  context.CancelFunc // cancels the fetch when no caller waits for it any more
	done  chan struct{}      // closed when the copy is complete or err is set
	err   error
	seal  seal

	isDropped bool // remove it when its last user leaves
}

// seal identifies the state of a file, to detect changes. The time of the last change of the inode is not part of it,
// because adding and removing hard links changes that time.
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

func newCache(config Config) (*cache, error) {
	folder := config.CacheDir
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

	c := &cache{
		folder: folder, room: config.CacheBytes, watch: config.Folder, store: config.Store, log: config.Log, lock: lock,
		items: map[string]*copied{}, idle: list.New(),
	}

	return c, c.adopt()
}

// adopt takes over complete copies and removes everything else.
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

// close can be repeated.
func (c *cache) close() error {
	if err := c.lock.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}

	return nil
}

func (c *cache) path(name string) string { return filepath.Join(c.folder, name) }

// nameOf returns the name of the copy of a file. The name contains the size, so that a copy of another length is not
// used.
func nameOf(file File) string {
	hash := sha256.Sum256([]byte(file.Key))

	return fmt.Sprintf("%s-%d%s", hex.EncodeToString(hash[:16]), file.Size, cacheSuffix)
}

// nameFor returns the given name with another size.
func nameFor(name string, size int64) string {
	hash, _, _ := strings.Cut(name, "-")

	return fmt.Sprintf("%s-%d%s", hash, size, cacheSuffix)
}

// has reports whether a copy of the file exists or is being fetched.
func (c *cache) has(file File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	_, ok := c.items[nameOf(file)]

	return ok
}

// take returns the copy of a file and counts the caller as a user. If there is no copy, take makes room and starts to
// fetch it.
func (c *cache) take(ctx context.Context, file File, read ReadForeignFile) (*copied, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	name := nameOf(file)
	if item, ok := c.items[name]; ok {
		item.users++
		c.stats.Hits++

		if item.idle != nil {
			c.idle.Remove(item.idle)
			item.idle = nil
		}

		return item, nil
	}

	c.stats.Misses++

	if file.Size > c.room {
		return nil, fault.New(fault.LimitExceeded, "A data file is larger than the cache of data files.")
	}

	c.shrink(file.Size)

	if c.used+file.Size > c.room {
		full := fault.New(fault.Unavailable, "The cache of data files is full. Try again shortly.")
		full.RetryAfter = retryWhenFull

		return nil, full
	}

	// Other callers may wait for this fetch too, so it must not end with the context of the first one.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	item := &copied{name: name, size: file.Size, users: 1, stop: stop, done: make(chan struct{})}
	c.items[name] = item
	c.used += file.Size

	go c.fetch(ctx, file, read, item)

	return item, nil
}

// shrink removes unused copies until there is room for more bytes. The caller holds mu.
func (c *cache) shrink(more int64) {
	for c.used+more > c.room && c.idle.Len() > 0 {
		item, _ := c.idle.Back().Value.(*copied)
		c.forget(item)
	}
}

// forget removes a copy. Open files and hard links of the copy stay usable, but a user that has only its path finds nothing. The caller holds mu.
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

// leave removes a user from a copy. The last user cancels a fetch that is in progress.
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

		if item.isDropped {
			c.forget(item)
		}
	default:
		item.stop()
		// The fetch may take a moment to end. A caller that needs the file in the meantime starts a new fetch.
		delete(c.items, item.name)

		c.used -= item.size
	}
}

func (c *cache) fetch(ctx context.Context, file File, read ReadForeignFile, item *copied) {
	defer item.stop()

	var draft string

	err := fault.Try(func() (err error) {
		draft, err = c.download(ctx, file, read)

		return err
	})

	// Rename the file and close done under one lock: a caller that leaves in between would subtract the size and
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

// open opens an object that a row lists. Some stores do not have an object for a moment while it is written again, for example after a
// request whose answer was lost, so open tries a few times. An object that stays missing is ErrMissing and not NotFound: the caller
// asked for a dataset, and the dataset exists.
func (c *cache) open(ctx context.Context, key string) (io.ReadCloser, error) {
	for pause := 50 * time.Millisecond; ; pause *= 4 {
		object, err := c.store.Read(ctx, key, 0, -1)
		if !fault.Is(err, fault.NotFound) {
			return object, err
		}

		if pause > time.Second {
			return nil, ErrMissing
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// download writes the object to a file with a temporary name.
func (c *cache) download(ctx context.Context, file File, read ReadForeignFile) (path string, err error) {
	if read == nil {
		read = func(ctx context.Context, _ string) (io.ReadCloser, error) { return c.open(ctx, file.Key) }
	}

	object, err := read(ctx, file.Address)
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", file.Key, err)
	}
	defer func() { _ = object.Close() }()

	draft, err := os.CreateTemp(c.folder, "fetch-*")
	if err != nil {
		return "", err
	}

	defer func() {
		if path == "" { // after an error or a panic
			_ = os.Remove(draft.Name())
		}
	}()

	size, err := io.Copy(c.watch.Writer(draft), io.LimitReader(object, file.Size+1))
	if err == nil && file.Address != "" {
		err = file.fits(draft)
	} else if err == nil && size != file.Size {
		err = fmt.Errorf("fetching %s: the size is not %d bytes", file.Key, file.Size)
	}

	if err := errors.Join(err, draft.Chmod(cacheMode), draft.Sync(), draft.Close()); err != nil {
		return "", err
	}

	return draft.Name(), nil
}

// place renames a complete temporary file to the name of its copy. After an error neither file exists. The caller
// holds mu.
func (c *cache) place(draft string, item *copied) (made seal, err error) {
	defer func() {
		if err != nil {
			_ = os.Remove(draft)
		}
	}()

	if c.items[item.name] != item {
		return made, context.Canceled // no caller waits any more
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
		return nil // the copy was removed, or is being fetched
	}

	made, err := sealOf(c.path(name))
	if err == nil && made == item.seal {
		return nil
	}

	c.forget(item)
	c.log.Error("a cached data file was changed and is removed", "file", name, "error", err)

	return ErrChanged
}
