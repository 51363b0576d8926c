package lake

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

func (h *history) step(age time.Duration) {
	h.t.Helper()

	ctx := h.t.Context()

	switch n := h.random.IntN(100); {
	case len(h.order) == 0 || n < 40:
		h.add(Append)
	case n < 44:
		h.add(Replace)
	case n < 47:
		h.made(h.commit(Change{Table: h.at, Mode: Clear}), nil)
	case n < 50:
		h.wide++
	case n < 58:
		id := h.order[h.random.IntN(len(h.order))]

		made, err := h.Commit(ctx, Change{Table: h.at, Mode: Restore, Snapshot: id}, noMore)
		if !fault.Is(err, fault.NotFound) {
			require.NoError(h.t, err)
			h.made(made, h.rows[id])
		}
	case n < 75:
		if change, rows := h.remove(); len(change.Files) > 0 {
			h.made(h.commit(change), rows)
		}
	case n < 77: // rows are removed too late
		if change, _ := h.remove(); len(change.Files) > 0 {
			h.add(Append)

			_, err := h.Commit(ctx, change, noMore)
			require.ErrorIs(h.t, err, ErrReplaced)
			require.NoError(h.t, h.db.InTx(ctx, func(tx postgres.Tx) error { return h.DropTx(ctx, tx, h.at, change.Rewritten) }))
		}
	case n < 82:
		if change, ok := h.merge(); ok {
			h.made(h.commit(change), h.current())
		}
	case n < 86: // a compaction that comes too late
		if change, ok := h.merge(); ok {
			h.add(Replace)

			_, err := h.Commit(ctx, change, noMore)
			require.ErrorIs(h.t, err, ErrReplaced)
			require.NoError(h.t, h.db.InTx(ctx, func(tx postgres.Tx) error { return h.DropTx(ctx, tx, h.at, change.Ingestions[0]) }))
		}
	case n < 92:
		h.clock.advance(time.Duration(h.random.IntN(int(age))))
	case n < 97:
		require.NoError(h.t, h.Expire(ctx, age))
	default:
		require.NoError(h.t, h.Clean(ctx, ahead, nothing))
	}
}

// TestMaintenanceModel runs random operations on a table. Every snapshot that is left has exactly its rows, in
// order; every row has the right provenance; and at the end the store has no object that no snapshot needs.
func TestMaintenanceModel(t *testing.T) {
	t.Parallel()

	const steps = 150

	tables := 1
	if os.Getenv("QUERN_TEST_LOOPS") == "full" {
		tables = 10
	}

	for n := range tables {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()

			const age = 3 * time.Hour

			h := newHistory(t)
			for i := range steps {
				h.step(age)

				if i%30 == 29 {
					h.check()
				}
			}

			oldest := func() int64 {
				for i, id := range h.order {
					if _, err := h.find(t.Context(), h.at, id); err == nil {
						return int64(i)
					}
				}

				return -1
			}

			before := h.clock.now().Add(-age)
			require.NoError(t, h.Expire(t.Context(), age))

			for i, id := range h.order[:max(len(h.order)-1, 0)] {
				require.Equal(t, h.times[h.order[i+1]].After(before), oldest() <= int64(i), "snapshot %d, %s", i, id)
			}

			h.clock.advance(time.Hour + time.Second)
			require.NoError(t, h.Clean(t.Context(), ahead, nothing))
			h.check()
			h.requireSound()
			require.ElementsMatch(t, h.needed(), h.keys())
			t.Logf("%d snapshots, %d are left, %d objects", len(h.order), int64(len(h.order))-oldest(), len(h.keys()))
		})
	}
}
