package lake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	movedAtOnce = 4
	movedBatch  = 100
)

// Move is a change of the location of all tables, after their rows and objects were copied. From and To are prefixes of addresses that
// end with a slash.
type Move struct {
	From, To string

	// Read returns the original object, with NotFound if there is none. Write writes the object with other addresses.
	Read  func(ctx context.Context, key string) ([]byte, error)
	Write func(ctx context.Context, key string, content []byte) error
}

func (m Move) address(address string) string {
	if key, inside := strings.CutPrefix(address, m.From); inside {
		return m.To + key
	}

	return address
}

// IsMetadata reports whether the object with this key has addresses in it, so that Objects writes it.
func IsMetadata(key string) bool {
	return strings.HasPrefix(key, "lake/") && strings.Contains(key, "/metadata/")
}

// RowsTx changes the addresses in the rows: the pointers of tables, and what is known of staged files.
func (m Move) RowsTx(ctx context.Context, tx postgres.Tx) error {
	if err := movePointers(ctx, tx, m.From, m.To); err != nil {
		return err
	}

	entry, err := entryType()
	if err != nil {
		return err
	}

	return moveEntries(ctx, tx, func(content []byte) ([]byte, error) {
		c := &avroCopy{in: content, address: m.address}
		c.value(entry, "")

		return c.out, c.err
	})
}

// entryType returns the type of the entries of manifests, from an empty manifest.
func entryType() (*avroType, error) {
	var manifest bytes.Buffer
	if _, err := iceberg.NewManifestWriter(formatVersion, &manifest, *iceberg.UnpartitionedSpec, schemaOf(nil), 1); err != nil {
		return nil, err
	}

	file, err := parseAvroFile(manifest.Bytes())

	return file.of, err
}

// Objects writes the metadata, manifest lists and manifests of all tables with other addresses. It can be repeated.
func (m Move) Objects(ctx context.Context, db *postgres.DB) error {
	for after := (Table{}); ; {
		var tables []Table

		if err := db.Do(ctx, func(q postgres.Querier) (err error) {
			tables, err = selectMoved(ctx, q, after, movedBatch)

			return err
		}); err != nil || len(tables) == 0 {
			return err
		}

		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(movedAtOnce)

		for _, t := range tables {
			group.Go(func() (err error) {
				defer fault.Recover(&err)

				return m.table(ctx, db, t)
			})
		}

		if err := group.Wait(); err != nil {
			return err
		}

		after = tables[len(tables)-1]
	}
}

// table writes the objects of a table: manifests first, because manifest lists have their sizes.
func (m Move) table(ctx context.Context, db *postgres.DB, t Table) error {
	var keys []string

	if err := db.Do(ctx, func(q postgres.Querier) (err error) {
		keys, err = selectMetadata(ctx, q, t)

		return err
	}); err != nil {
		return err
	}

	var (
		sizes = moved{sizes: map[string]int64{}}
		kinds [3][]string
	)

	for _, key := range keys {
		switch {
		case strings.HasSuffix(key, "-m0.avro"):
			kinds[0] = append(kinds[0], key)
		case strings.HasSuffix(key, ".avro"):
			kinds[1] = append(kinds[1], key)
		default:
			kinds[2] = append(kinds[2], key)
		}
	}

	for _, kind := range kinds {
		manifests := sizes.manifests(m.To)
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(readers)

		for _, key := range kind {
			group.Go(func() (err error) {
				defer fault.Recover(&err)

				size, err := m.object(ctx, key, manifests)
				if fault.Is(err, fault.NotFound) {
					return nil
				}

				if err != nil {
					return fmt.Errorf("changing the addresses in %s: %w", key, err)
				}

				sizes.put(key, size)

				return nil
			})
		}

		if err := group.Wait(); err != nil {
			return err
		}
	}

	return db.Do(ctx, func(q postgres.Querier) error { return updateSizes(ctx, q, t, sizes.sizes) })
}

// moved are the sizes of the objects that were written, by key.
type moved struct {
	mu    sync.Mutex
	sizes map[string]int64
}

func (m *moved) put(key string, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.sizes[key] = size
}

// manifests returns the sizes by address.
func (m *moved) manifests(base string) map[string]int64 {
	found := make(map[string]int64, len(m.sizes))
	for key, size := range m.sizes {
		found[base+key] = size
	}

	return found
}

func (m Move) object(ctx context.Context, key string, manifests map[string]int64) (int64, error) {
	content, err := m.Read(ctx, key)
	if err != nil {
		return 0, err
	}

	if strings.HasSuffix(key, ".avro") {
		content, err = moveAvro(content, m.address, manifests)
	} else {
		content, err = m.document(content)
	}

	if err != nil {
		return 0, err
	}

	return int64(len(content)), m.Write(ctx, key, content)
}

// document returns a JSON document with other addresses. It changes every text that is an address, also in fields that this package does
// not know, because other programs add such fields.
func (m Move) document(content []byte) ([]byte, error) {
	var document any

	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()

	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}

	return json.Marshal(m.texts(document))
}

func (m Move) texts(value any) any {
	switch v := value.(type) {
	case string:
		return m.address(v)
	case []any:
		for i := range v {
			v[i] = m.texts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = m.texts(v[name])
		}
	}

	return value
}

type stagedEntry struct {
	account, dataset, id uuid.UUID
	entry                []byte
}
