package lake

import (
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/postgres"
)

func TestCompactable(t *testing.T) {
	t.Parallel()

	const kib, mib = 1 << 10, 1 << 20

	for name, test := range map[string]struct {
		sizes    []int64
		from, to int
	}{
		"none":                        {},
		"too few":                     {sizes: slices.Repeat([]int64{kib}, 3)},
		"small ones":                  {sizes: slices.Repeat([]int64{kib}, 4), to: 4},
		"all that follow":             {sizes: slices.Repeat([]int64{kib}, 100), to: 100},
		"no more than a child takes":  {sizes: slices.Repeat([]int64{kib}, 900), to: 500},
		"after a large one":           {sizes: append([]int64{200 * mib}, slices.Repeat([]int64{kib}, 4)...), from: 1, to: 5},
		"not with a larger one":       {sizes: append([]int64{30 * mib}, slices.Repeat([]int64{kib}, 3)...)},
		"a larger one is passed over": {sizes: append([]int64{30 * mib}, slices.Repeat([]int64{kib}, 5)...), from: 1, to: 6},
		"up to the size":              {sizes: slices.Repeat([]int64{40 * mib}, 9), to: 3},
		"half the size is enough":     {sizes: slices.Repeat([]int64{64 * mib}, 20)},
		"a large one between":         {sizes: slices.Concat(slices.Repeat([]int64{kib}, 3), []int64{90 * mib}, slices.Repeat([]int64{kib}, 3))},
	} {
		files := make([]File, len(test.sizes))
		for i, size := range test.sizes {
			files[i] = File{Key: strconv.Itoa(i), Size: size}
		}

		found := Compactable(files)
		require.Len(t, found, test.to-test.from, name)

		if len(found) > 0 {
			require.Equal(t, strconv.Itoa(test.from), found[0].Key, name)
		}
	}
}

// TestCompactableStaysSmall checks, for several sizes of posts, that the number of small files stays low and that
// compaction writes less than 12 times the bytes that were posted.
func TestCompactableStaysSmall(t *testing.T) {
	t.Parallel()

	for _, size := range []int64{1 << 10, 50 << 10, 3 << 20, 20 << 20} {
		var (
			files         []File
			came, written int64
			most          int
		)

		for range 4000 {
			files, came = append(files, File{Size: size}), came+size+fileCost

			for found := Compactable(files); found != nil; found = Compactable(files) {
				at := 0
				for &files[at] != &found[0] {
					at++
				}

				sum := int64(0)
				for _, f := range found {
					sum += f.Size
				}

				written += sum + fileCost
				files = slices.Replace(files, at, at+len(found), File{Size: sum})
			}

			large := 0
			for _, f := range files {
				if f.Size >= compactTo/2-fileCost {
					large++
				}
			}

			most = max(most, len(files)-large)
		}

		t.Logf("%d bytes: at most %d small files, what is written for them is %.1f times what came", size, most, float64(written)/float64(came))
		require.LessOrEqual(t, most, 30)
		require.Less(t, float64(written)/float64(came), 12.0)
	}
}

// TestCompactAmongOthers compacts files while other goroutines append, expire and clean.
func TestCompactAmongOthers(t *testing.T) {
	t.Parallel()

	var (
		h          = newHistory(t)
		other, _   = h.replica(h.url, func(c *Config) { c.DeleteGrace = 2 * time.Second })
		group, ctx = errgroup.WithContext(t.Context())
		ended      atomic.Bool
		compacted  int
	)

	h.Lake = other
	h.add(Append)
	columns := h.mustState(h.at).current.Columns
	before := len(h.current())
	path := parquetFile(t, columns, 1000, 1)

	group.Go(func() error {
		defer ended.Store(true)

		for range 120 {
			ingestion, err := stageFrom(ctx, other, h.at, columns, path, Source{File: uuid.New(), Name: "1000", Places: Places{Skipped: []int64{2}, Pages: []int64{1, 3}}, FirstRow: 1})
			if err != nil {
				return err
			}

			// A commit that always comes second is repeated, as an ingestion repeats it.
			for err = ErrConflict; errors.Is(err, ErrConflict); {
				_, err = other.Commit(ctx, Change{Table: h.at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}, noMore)
			}

			if err != nil {
				return err
			}
		}

		return nil
	})
	group.Go(func() error {
		for !ended.Load() {
			if err := other.Expire(ctx, 0); err != nil {
				return err
			}

			if err := other.Clean(ctx, ahead, nothing); err != nil {
				return err
			}
		}

		return nil
	})

	for !ended.Load() && ctx.Err() == nil {
		change, ok := h.merge()
		if !ok {
			continue
		}

		switch _, err := h.Commit(ctx, change, noMore); {
		case err == nil:
			compacted++
		case ctx.Err() == nil: // the group reports why it ended
			require.ErrorIs(t, err, ErrConflict)
			require.NoError(t, h.db.InTx(t.Context(), func(tx postgres.Tx) error { return h.DropTx(t.Context(), tx, h.at, change.Ingestions[0]) }))
		}
	}

	require.NoError(t, group.Wait())
	require.Positive(t, compacted)

	snapshot, files := h.place.current(h.at)
	require.Equal(t, int64(before+120), snapshot.Rows)

	rows := slices.Clone(h.current())
	for range 120 {
		rows = append(rows, 1000)
	}

	h.checkRows(files, rows)
	t.Logf("%d times, %d files are left", compacted, len(files))

	h.clock.advance(3 * time.Hour)
	require.NoError(t, h.Expire(t.Context(), 0))
	h.clock.advance(2 * time.Hour)
	require.NoError(t, h.Clean(t.Context(), ahead, nothing))
	h.requireSound()
	require.Len(t, h.keys(), len(files)+len(h.manifestsNow())+2, "data files, manifests, one list, and the metadata")
}

func (h *history) manifestsNow() []string {
	h.t.Helper()

	manifests, err := h.recallList(h.t.Context(), h.mustState(h.at).current.list)
	require.NoError(h.t, err)

	keys, err := h.manifestKeys(manifests)
	require.NoError(h.t, err)

	return keys
}
