package lake

import (
	"bytes"
	"container/list"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/apache/iceberg-go"
)

const (
	// memoryBytes is the approximate limit of Iceberg metadata kept in memory. It holds what this process wrote or
	// read last, so that the next commit reads nothing from the store.
	memoryBytes = 64 << 20

	// decoded is the approximate ratio of the size of metadata in memory to the size of its object.
	decoded = 4

	maxMetadata = 256 << 20
)

// memory is a cache of decoded objects. Objects never change, so entries never become invalid.
type memory struct {
	mu    sync.Mutex
	room  int64
	order *list.List // of remembered, most recently used first
	items map[string]*list.Element
}

type remembered struct {
	key   string
	value any
	size  int64
}

func newMemory(room int64) *memory {
	return &memory{room: room, order: list.New(), items: map[string]*list.Element{}}
}

func (m *memory) get(key string) (any, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	element, ok := m.items[key]
	if !ok {
		return nil, false
	}

	m.order.MoveToFront(element)

	item, _ := element.Value.(remembered)

	return item.value, true
}

func (m *memory) put(key string, value any, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if _, ok := m.items[key]; ok {
		return
	}

	m.items[key] = m.order.PushFront(remembered{key, value, size})
	m.room -= size

	for m.room < 0 {
		last := m.order.Back()
		item, _ := m.order.Remove(last).(remembered)
		delete(m.items, item.key)
		m.room += item.size
	}
}

// recall returns a decoded object, from memory if possible, else from the store.
func recall[T any](ctx context.Context, l *Lake, key string, decode func([]byte) (T, error)) (T, error) {
	if value, ok := l.known.get(key); ok {
		if value, ok := value.(T); ok {
			return value, nil
		}
	}

	var none T

	object, err := l.store.Read(ctx, key, 0, maxMetadata)
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", key, err)
	}
	defer func() { _ = object.Close() }()

	content, err := io.ReadAll(object)
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", key, err)
	}

	value, err := decode(content)
	if err != nil {
		return none, fmt.Errorf("decoding %s: %w", key, err)
	}

	l.known.put(key, value, decoded*int64(len(content)))

	return value, nil
}

func (l *Lake) recallMetadata(ctx context.Context, key string) (*tableMetadata, error) {
	return recall(ctx, l, key, parseMetadata)
}

func (l *Lake) recallList(ctx context.Context, key string) ([]iceberg.ManifestFile, error) {
	return recall(ctx, l, key, func(content []byte) ([]iceberg.ManifestFile, error) {
		return iceberg.ReadManifestList(bytes.NewReader(content))
	})
}

// recallEntries returns the file entries of a manifest. Memory holds the manifest in encoded form.
func (l *Lake) recallEntries(ctx context.Context, manifest iceberg.ManifestFile) ([]iceberg.ManifestEntry, error) {
	key, err := l.keyOf(manifest.FilePath())
	if err != nil {
		return nil, err
	}

	content, err := recall(ctx, l, key, func(content []byte) ([]byte, error) { return content, nil })
	if err != nil {
		return nil, err
	}

	return iceberg.ReadManifest(manifest, bytes.NewReader(content), true)
}
