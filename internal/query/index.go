package query

import (
	recency "container/list"
	"context"
	"sync"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/values"
)

// The limits for all open indexes together. Indexes that are in use can exceed them. An index of a million values takes
// 7 MB, and each index holds a file open.
const (
	indexMemory = 256 << 20
	indexFiles  = 500
)

// indexes keeps the most recently used value indexes open. Objects never change, so an index is identified by its key.
type indexes struct {
	fetch  func(ctx context.Context, file lake.File) (path string, release func(), err error)
	room   int64 // largest total memory, in bytes
	places int   // largest number of open files

	mu     sync.Mutex
	memory int64
	open   map[string]*openIndex // by key
	recent *recency.List         // of *openIndex, the most recently used first
}

// openIndex is an index that is open or is being opened.
type openIndex struct {
	key   string
	users int
	at    *recency.Element // nil after the index was removed from indexes
	done  chan struct{}
	index *values.Index
	err   error
}

func newIndexes(l *lake.Lake) *indexes {
	return &indexes{fetch: l.Fetch, room: indexMemory, places: indexFiles, open: map[string]*openIndex{}, recent: recency.New()}
}

// take returns the open index of an object, which stays open until release is called.
func (x *indexes) take(ctx context.Context, object lake.Object) (index *values.Index, release func(), err error) {
	x.mu.Lock()

	one, met := x.open[object.Key]
	if !met {
		one = &openIndex{key: object.Key, done: make(chan struct{})}
		one.at = x.recent.PushFront(one)
		x.open[object.Key] = one

		// Other callers may wait for the same index, so opening it must not end with the first caller's context.
		go x.fill(context.WithoutCancel(ctx), one, object)
	} else {
		x.recent.MoveToFront(one.at)
	}

	one.users++
	x.mu.Unlock()

	select {
	case <-one.done:
	case <-ctx.Done():
		x.leave(one)

		return nil, nil, ctx.Err()
	}

	if one.err != nil {
		x.leave(one)

		return nil, nil, one.err
	}

	return one.index, sync.OnceFunc(func() { x.leave(one) }), nil
}

// fill opens the copy of the index in the cache. Once it is open, the cache may remove the copy.
func (x *indexes) fill(ctx context.Context, one *openIndex, object lake.Object) {
	var index *values.Index

	err := fault.Try(func() (err error) {
		index, err = x.openFile(ctx, object)

		return err
	})

	x.mu.Lock()
	defer x.mu.Unlock()

	if one.index, one.err = index, err; err != nil {
		x.forget(one)
	} else {
		x.memory += index.Memory()
		x.shrink()
	}

	close(one.done)
}

func (x *indexes) openFile(ctx context.Context, object lake.Object) (*values.Index, error) {
	path, release, err := x.fetch(ctx, object.File())
	if err != nil {
		return nil, err
	}
	defer release()

	return values.Open(path)
}

// leave ends one use of an index, and closes the index if it was removed and has no other users.
func (x *indexes) leave(one *openIndex) {
	x.mu.Lock()
	defer x.mu.Unlock()

	one.users--
	x.closeUnused(one)
}

// shrink removes the least recently used indexes until the limits are met. The caller holds mu.
func (x *indexes) shrink() {
	for at := x.recent.Back(); at != nil && (x.memory > x.room || x.recent.Len() > x.places); {
		one, _ := at.Value.(*openIndex)
		at = at.Prev()

		if one.index != nil {
			x.memory -= one.index.Memory()
			x.forget(one)
			x.closeUnused(one)
		}
	}
}

// count returns how many indexes are open or being opened.
func (x *indexes) count() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()

	return int64(len(x.open))
}

// Evict closes the least recently used value index. It returns false if all open indexes are in use. An open file takes
// space on the disk even after its copy in the cache was deleted.
func (q *Query) Evict() bool { return q.indexes.evict() }

func (x *indexes) evict() bool {
	x.mu.Lock()
	defer x.mu.Unlock()

	for at := x.recent.Back(); at != nil; at = at.Prev() {
		one, _ := at.Value.(*openIndex)
		if one.index == nil || one.users > 0 {
			continue
		}

		x.memory -= one.index.Memory()
		x.forget(one)
		x.closeUnused(one)

		return true
	}

	return false
}

// forget removes an index from the list without closing it. The caller holds mu.
func (x *indexes) forget(one *openIndex) {
	x.recent.Remove(one.at)
	delete(x.open, one.key)

	one.at = nil
}

func (x *indexes) closeUnused(one *openIndex) {
	if one.at == nil && one.users == 0 && one.index != nil {
		_ = one.index.Close() // no data can be lost: the file was only read
		one.index = nil
	}
}
