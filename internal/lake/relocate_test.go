package lake

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// moved copies everything to another location, changes the addresses and empties the first location. The copy is interrupted once.
func (p place) moved() place {
	p.t.Helper()

	to := newPlace(p.t) // only its location
	copied := p
	copied.config = to.config
	copied.Lake, copied.wire = copied.replica(p.url, func(*Config) {})

	content := map[string][]byte{}

	for _, key := range p.keys() {
		object, err := p.store.Read(p.t.Context(), key, 0, -1)
		require.NoError(p.t, err)
		content[key], err = io.ReadAll(object)
		require.NoError(p.t, err)
		require.NoError(p.t, object.Close())

		if !IsMetadata(key) {
			_, err = copied.store.Write(p.t.Context(), key, bytes.NewReader(content[key]))
			require.NoError(p.t, err)
		}

		require.NoError(p.t, p.store.Delete(p.t.Context(), key))
	}

	move := Move{
		From: p.base, To: copied.base,
		Read: func(_ context.Context, key string) ([]byte, error) {
			if found, ok := content[key]; ok {
				return found, nil
			}

			return nil, fault.Absent()
		},
	}

	require.NoError(p.t, p.db.InTx(p.t.Context(), func(tx postgres.Tx) error { return move.RowsTx(p.t.Context(), tx) }))

	move.Write = func(context.Context, string, []byte) error { return io.ErrClosedPipe }
	require.ErrorIs(p.t, move.Objects(p.t.Context(), p.db), io.ErrClosedPipe)

	move.Write = func(ctx context.Context, key string, content []byte) error {
		_, err := copied.store.Write(ctx, key, bytes.NewReader(content))

		return err
	}

	for range 2 {
		require.NoError(p.t, move.Objects(p.t.Context(), p.db))
	}

	return copied
}

// TestMove moves a table with a history to another location, where everything goes on: each snapshot is read by this package and by
// iceberg-go, and the table changes further.
func TestMove(t *testing.T) {
	t.Parallel()

	const (
		steps = 50
		age   = 3 * time.Hour
	)

	h := newHistory(t)
	for range steps {
		h.step(age)
	}

	staged := newTable()
	h.place.add(staged, Append, 0, 5, wanted()...)
	columns, err := h.Plan(t.Context(), staged, wanted(), Append)
	require.NoError(t, err)

	waiting := h.stage(h.Lake, staged, columns, 5, 5)

	h.place = h.moved()
	h.known = map[string][]int{}
	h.check()
	h.requireSound()

	_, err = h.Commit(t.Context(), Change{Table: staged, Mode: Append, Ingestions: []uuid.UUID{waiting}}, noMore)
	require.NoError(t, err)

	rows, _ := h.scan(staged)
	require.EqualValues(t, 10, rows)

	for range steps {
		h.step(age)
	}

	h.check()
	h.clock.advance(2 * time.Hour)
	require.NoError(t, h.Clean(t.Context(), ahead, nothing))
	h.check()
	h.requireSound()
}

// TestMoveDamaged gives the copier Avro files that are cut or changed. It must fail or succeed, and must not stop.
func TestMoveDamaged(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	at := newTable()
	p.add(at, Append, 0, 5, wanted()...)

	var manifest []byte

	for _, key := range p.keys() {
		if IsMetadata(key) && strings.HasSuffix(key, "-m0.avro") {
			object, err := p.store.Read(t.Context(), key, 0, -1)
			require.NoError(t, err)
			manifest, err = io.ReadAll(object)
			require.NoError(t, err)
			require.NoError(t, object.Close())
		}
	}

	same := func(address string) string { return address }
	_, err := moveAvro(manifest, same, nil)
	require.NoError(t, err)

	for n := range manifest {
		if _, err := moveAvro(manifest[:n], same, nil); n < len(avroMagic) {
			require.ErrorIs(t, err, errAvro)
		}

		damaged := bytes.Clone(manifest)
		damaged[n] ^= 0x55
		_, _ = moveAvro(damaged, same, nil)
	}
}
