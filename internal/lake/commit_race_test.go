package lake

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/postgres"
)

// TestConcurrentCommits runs eight writers on two replicas. Every acknowledged file is in the table exactly once.
func TestConcurrentCommits(t *testing.T) {
	t.Parallel()

	const writers, each = 8, 6

	p, at := newPlace(t), newTable()
	other, _ := p.replica(p.url, func(*Config) {})

	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	var (
		mu           sync.Mutex
		acknowledged = map[uuid.UUID]bool{}
		path         = parquetFile(t, columns, 0, 3)
		group, ctx   = errgroup.WithContext(t.Context())
	)

	for writer := range writers {
		group.Go(func() error {
			l := []*Lake{p.Lake, other}[writer%2]

			for range each {
				ingestion, err := stage(ctx, l, at, columns, path)
				if err != nil {
					return err
				}

				for {
					_, err = l.Commit(ctx, Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}, noMore)
					if !errors.Is(err, ErrConflict) {
						break
					}
				}

				if err != nil {
					return err
				}

				mu.Lock()
				acknowledged[ingestion] = true
				mu.Unlock()
			}

			return nil
		})
	}

	require.NoError(t, group.Wait())
	require.Len(t, acknowledged, writers*each)

	snapshot, files := p.current(at)
	require.Equal(t, int64(writers*each), snapshot.Sequence)
	require.Equal(t, int64(3*writers*each), snapshot.Rows)
	require.Len(t, files, writers*each)

	for _, file := range files {
		require.True(t, acknowledged[file.Ingestion])
		delete(acknowledged, file.Ingestion)
	}

	require.Empty(t, acknowledged)

	rows, _ := p.scan(at)
	require.Equal(t, snapshot.Rows, rows)

	p.clock.advance(2 * time.Hour)
	require.NoError(t, p.Clean(t.Context(), ahead, nothing))
	p.requireSound()
	require.Len(t, p.keys(), writers*each+2*writers*each+1, "data files, manifests, lists, and the last metadata: nothing of what was lost")
}

// TestFirstCommits checks that of several first commits one creates the table, and the others append to it.
func TestFirstCommits(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	other, _ := p.replica(p.url, func(*Config) {})

	var group errgroup.Group

	for i := range 6 {
		group.Go(func() error {
			l := []*Lake{p.Lake, other}[i%2]

			columns, err := l.Plan(t.Context(), at, []Column{{Name: fmt.Sprintf("c%d", i), Type: Bigint}}, Append)
			if err != nil {
				return err
			}

			ingestion, err := stage(t.Context(), l, at, columns, parquetFile(t, columns, 0, 2))
			if err != nil {
				return err
			}

			_, err = l.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}, noMore)

			return err
		})
	}

	require.NoError(t, group.Wait())

	snapshot, _ := p.current(at)
	require.Len(t, snapshot.Columns, 6)
	require.Equal(t, int64(12), snapshot.Rows)
	require.Len(t, index(snapshot.Columns).ids, 6)
}

// TestDroppedIsNotCommitted checks that a file that is dropped before its commit is not committed, and is removed.
func TestDroppedIsNotCommitted(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	kept, dropped := p.stage(p.Lake, at, columns, 0, 1), p.stage(p.Lake, at, columns, 0, 1)
	drop := func(ingestion uuid.UUID) {
		require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error { return p.DropTx(t.Context(), tx, at, ingestion) }))
	}

	// The file is dropped after the commit has read its row and before the transaction of the commit.
	p.wire.intercept(func(r *http.Request) error {
		if r.Method == http.MethodPut {
			p.wire.intercept(nil, nil)
			drop(dropped)
		}

		return nil
	}, nil)

	made := p.commit(Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{kept, dropped}})
	require.Equal(t, 1, made.Files)
	drop(kept)

	_, files := p.current(at)
	require.Equal(t, kept, files[0].Ingestion, "what is committed is not dropped")

	// A writer that is still writing a dropped file gets an error.
	var staged Staged

	require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error {
		staged, err = p.StageTx(t.Context(), tx, at, dropped, Source{})

		return err
	}))
	drop(dropped)

	staged, err = p.Write(t.Context(), staged, parquetFile(t, columns, 0, 1), columns)
	require.NoError(t, err)
	require.ErrorIs(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error { return p.ReadyTx(t.Context(), tx, []Staged{staged}) }), ErrDropped)

	p.clock.advance(2 * time.Hour)
	require.NoError(t, p.Clean(t.Context(), ahead, nothing))
	p.requireSound()
	require.Len(t, p.keys(), 4, "the file that was kept, its manifest, list and metadata")
}
