package lake

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

func wanted() []Column {
	return []Column{{Name: "id", Type: Bigint}, {Name: "name", Type: Varchar}}
}

func (p place) commit(change Change) Snapshot {
	p.t.Helper()

	made, err := p.Commit(p.t.Context(), change, noMore)
	require.NoError(p.t, err)

	return made
}

func TestCommit(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()

	snapshot, _ := p.current(at)
	require.Nil(t, snapshot)

	none := p.commit(Change{Table: at, Mode: Clear})
	require.Equal(t, Snapshot{}, none, "nothing to clear")

	// Appended, together with what the caller records.
	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	ingestions := []uuid.UUID{p.stage(p.Lake, at, columns, 0, 10), p.stage(p.Lake, at, columns, 10, 20), p.stage(p.Lake, at, columns, 90, 1)}
	made, err := p.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: ingestions[:2]}, func(_ postgres.Tx, made Snapshot) error {
		require.Equal(t, int64(30), made.Rows)

		return nil
	})
	require.NoError(t, err)
	require.Equal(t, Append, made.Operation)
	require.Equal(t, []int64{1, 30, 2}, []int64{made.Sequence, made.Rows, int64(made.Files)})

	snapshot, files := p.current(at)
	require.Equal(t, made, *snapshot)
	require.Len(t, files, 2)
	require.Equal(t, []uuid.UUID{ingestions[0], ingestions[1]}, []uuid.UUID{files[0].Ingestion, files[1].Ingestion})
	require.Equal(t, []int64{10, 7}, []int64{files[0].Rows, files[0].FirstRow})
	require.NotEqual(t, uuid.Nil, files[0].Source)

	// Again: there is nothing to do any more, but the caller's part runs.
	ran := false
	again, err := p.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: ingestions[:2]}, func(_ postgres.Tx, current Snapshot) error {
		ran = true

		require.Equal(t, made, current)

		return nil
	})
	require.NoError(t, err)
	require.Equal(t, made, again)
	require.True(t, ran)

	// The caller's part fails: nothing happened.
	refusal := errors.New("no")
	_, err = p.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: ingestions[2:]}, func(postgres.Tx, Snapshot) error { return refusal })
	require.ErrorIs(t, err, refusal)
	snapshot, _ = p.current(at)
	require.Equal(t, made, *snapshot)

	cleared := p.commit(Change{Table: at, Mode: Clear})
	require.Equal(t, []int64{2, 0, 0, 0}, []int64{cleared.Sequence, cleared.Rows, cleared.Bytes, int64(cleared.Files)})
	require.Equal(t, columns, cleared.Columns)
	_, files = p.current(at)
	require.Empty(t, files)

	rows, _ := p.scan(at)
	require.Zero(t, rows)

	replaced := p.commit(Change{Table: at, Mode: Replace, Ingestions: ingestions[2:]})
	require.Equal(t, int64(1), replaced.Rows)
	require.Equal(t, made.Files+1, int(replaced.Sequence))

	restored := p.commit(Change{Table: at, Mode: Restore, Snapshot: made.ID})
	require.Equal(t, []int64{4, 30, 2}, []int64{restored.Sequence, restored.Rows, int64(restored.Files)})
	require.Equal(t, made.Bytes, restored.Bytes)

	rows, seen := p.scan(at)
	require.Equal(t, int64(30), rows)
	require.InDelta(t, 435, seen["id"].sum, 0)

	_, err = p.Commit(t.Context(), Change{Table: at, Mode: Restore, Snapshot: uuid.New()}, noMore)
	require.Equal(t, fault.NotFound, fault.From(err).Code)

	// The history, in pages.
	require.NoError(t, p.db.Do(t.Context(), func(q postgres.Querier) error {
		list, err := p.Snapshots(t.Context(), q, at, 0, 3)
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{restored.ID, replaced.ID, cleared.ID}, []uuid.UUID{list[0].ID, list[1].ID, list[2].ID})
		require.Equal(t, []bool{true, false, false}, []bool{list[0].Current, list[1].Current, list[2].Current})

		list, err = p.Snapshots(t.Context(), q, at, list[2].Sequence, 3)
		require.NoError(t, err)
		require.Len(t, list, 1)

		made.Current = false
		require.Equal(t, made, list[0])

		return nil
	}))

	for id, want := range map[uuid.UUID]int{made.ID: 2, cleared.ID: 0, replaced.ID: 1, restored.ID: 2} {
		files, err := p.Files(t.Context(), at, id)
		require.NoError(t, err)
		require.Len(t, files, want)
	}

	// Without a file: an empty table with columns.
	empty := p.commit(Change{Table: newTable(), Mode: Replace, Columns: columns})
	require.Equal(t, columns, empty.Columns)
	p.requireSound()
}

// TestManySnapshots: Iceberg's metadata stays small, and everything that ever was stays readable.
func TestManySnapshots(t *testing.T) {
	t.Parallel()

	const commits = 300

	p, at := newPlace(t), newTable()

	var snapshots []Snapshot
	for i := range commits {
		snapshots = append(snapshots, p.add(at, Append, i, 1, wanted()...))
	}

	metadata := p.open(at).Metadata()
	require.Len(t, metadata.Snapshots(), defaultKeepSnapshots)

	manifests, err := p.recallList(t.Context(), p.mustState(at).current.list)
	require.NoError(t, err)
	require.LessOrEqual(t, len(manifests), maxManifests+1)

	rows, seen := p.scan(at)
	require.Equal(t, int64(commits), rows)
	require.InDelta(t, commits*(commits-1)/2, seen["id"].sum, 0)

	// A process that remembers nothing reads the oldest ones as well.
	cold, _ := p.replica(p.url, func(*Config) {})
	for _, i := range []int{0, 1, 49, 50, 51, 52, 53, 150, 199, 200, 298, 299} {
		files, err := cold.Files(t.Context(), at, snapshots[i].ID)
		require.NoError(t, err)
		require.Len(t, files, i+1)
	}

	restored, err := cold.Commit(t.Context(), Change{Table: at, Mode: Restore, Snapshot: snapshots[4].ID}, noMore)
	require.NoError(t, err)
	require.Equal(t, int64(5), restored.Rows)
	rows, _ = p.scan(at)
	require.Equal(t, int64(5), rows)

	// Replaced metadata goes after the grace, what snapshots need stays.
	before := len(p.keys())

	p.clock.advance(2 * time.Hour)
	require.NoError(t, p.Clean(t.Context(), ahead, nothing))
	require.Len(t, p.keys(), before-commits, "all metadata files but the last")
	p.requireSound()

	rows, _ = p.scan(at)
	require.Equal(t, int64(5), rows)
}

func (p place) mustState(at Table) (s *state) {
	p.t.Helper()

	require.NoError(p.t, p.db.Do(p.t.Context(), func(q postgres.Querier) (err error) {
		s, err = selectState(p.t.Context(), q, at)

		return err
	}))

	return s
}

// TestLongList: a thousand files in one commit.
func TestLongList(t *testing.T) {
	t.Parallel()

	const many = 1000

	p, at := newPlace(t), newTable()
	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	var (
		path       = parquetFile(t, columns, 0, 1)
		ingestions = make([]uuid.UUID, many)
		group      errgroup.Group
	)

	group.SetLimit(8)

	for i := range ingestions {
		group.Go(func() (err error) {
			ingestions[i], err = stage(t.Context(), p.Lake, at, columns, path)

			return err
		})
	}

	require.NoError(t, group.Wait())

	began := time.Now()
	made := p.commit(Change{Table: at, Mode: Append, Ingestions: ingestions})
	t.Logf("%d files in one commit: %v", many, time.Since(began))

	began = time.Now()
	_, files := p.current(at)
	t.Logf("%d files listed: %v", many, time.Since(began))
	require.Len(t, files, many)

	p.commit(Change{Table: at, Mode: Clear})
	p.commit(Change{Table: at, Mode: Restore, Snapshot: made.ID})
	_, restored := p.current(at)
	require.Equal(t, files, restored)

	listed, err := p.Files(t.Context(), at, made.ID)
	require.NoError(t, err)
	require.ElementsMatch(t, files, listed)
}

// TestConcurrentCommits: two replicas, eight writers. Every acknowledged file is there exactly once.
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

// TestFirstCommits: of several who make the table one wins, and the others add to it.
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

// TestRequests: a process that made the last commit reads nothing for the next one.
func TestRequests(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	p.add(at, Append, 0, 1, wanted()...)

	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	for range 2 {
		var ingestions []uuid.UUID
		for i := range 20 {
			ingestions = append(ingestions, p.stage(p.Lake, at, columns, i, 1))
		}

		p.wire.count()

		began := time.Now()

		p.commit(Change{Table: at, Mode: Append, Ingestions: ingestions})
		t.Logf("a commit of 20 files took %v", time.Since(began))
		require.Equal(t, map[string]int{http.MethodPut: 3}, p.wire.count())
	}

	// Another process reads what it does not know: the metadata and the list.
	other, wire := p.replica(p.url, func(*Config) {})
	ingestion := p.stage(p.Lake, at, columns, 0, 1)
	_, err = other.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}, noMore)
	require.NoError(t, err)
	require.Equal(t, map[string]int{http.MethodPut: 3, http.MethodGet: 2}, wire.count())
}

// TestPooled: everything works through a pooler too, where statements are not prepared.
func TestPooled(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()

	db, err := postgres.Open(t.Context(), postgres.Config{
		URL: p.url, Pooler: true, MaxConns: 4, AcquireTimeout: 10 * time.Second, QueryTimeout: 30 * time.Second, LockTimeout: 10 * time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(db.Close)

	p.Lake, _ = p.replica(p.url, func(c *Config) { c.DB = db })
	p.add(at, Append, 0, 10, wanted()...)
	first := p.add(at, Append, 10, 10, append(wanted(), Column{Name: "more", Type: Double})...)
	p.commit(Change{Table: at, Mode: Clear})
	p.commit(Change{Table: at, Mode: Restore, Snapshot: first.ID})

	_, files := p.current(at)
	require.Len(t, files, 2)
	require.NoError(t, p.Clean(t.Context(), ahead, nothing))
	p.requireSound()
}

// TestDroppedIsNotCommitted: whoever drops first wins, and a dropped file goes.
func TestDroppedIsNotCommitted(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	kept, dropped := p.stage(p.Lake, at, columns, 0, 1), p.stage(p.Lake, at, columns, 0, 1)
	drop := func(ingestion uuid.UUID) {
		require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error { return p.DropTx(t.Context(), tx, at, ingestion) }))
	}

	// It is dropped after the commit has read it and before its transaction.
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

	// One who still writes learns it.
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

// TestRemovedTable: nobody commits to it, it can come back until the grace is over, then nothing is left.
func TestRemovedTable(t *testing.T) {
	t.Parallel()

	p, at, moved, other := newPlace(t), newTable(), newTable(), newTable()
	p.add(at, Append, 0, 10, wanted()...)
	p.add(other, Append, 0, 10, wanted()...)

	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	ingestion := p.stage(p.Lake, at, columns, 0, 1)
	within := func(do func(ctx context.Context, tx postgres.Tx) error) error {
		return p.db.InTx(t.Context(), func(tx postgres.Tx) error { return do(t.Context(), tx) })
	}
	remove := func(ctx context.Context, tx postgres.Tx) error { return RemoveTableTx(ctx, tx, at, p.now()) }
	keep := func(ctx context.Context, tx postgres.Tx) error { return KeepTableTx(ctx, tx, at) }

	require.NoError(t, within(remove))
	snapshot, _ := p.current(at)
	require.Nil(t, snapshot)

	_, err = p.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}, noMore)
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	_, err = p.Plan(t.Context(), at, wanted(), Append)
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	err = within(func(ctx context.Context, tx postgres.Tx) error {
		_, err := p.StageTx(ctx, tx, at, ingestion, Source{})

		return err
	})
	require.Equal(t, fault.NotFound, fault.From(err).Code)

	p.clock.advance(30 * time.Minute)
	require.NoError(t, p.Clean(t.Context(), ahead, nothing))
	require.NoError(t, within(keep))
	made := p.commit(Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{ingestion}})
	require.Equal(t, int64(11), made.Rows)

	// To another account: nothing moves in the store.
	before := p.keys()

	require.NoError(t, within(func(ctx context.Context, tx postgres.Tx) error { return MoveTableTx(ctx, tx, at, moved) }))
	require.Equal(t, before, p.keys())

	at = moved
	snapshot, _ = p.current(at)
	require.Equal(t, made, *snapshot)
	p.add(at, Append, 0, 1, wanted()...)

	rows, _ := p.scan(at)
	require.Equal(t, int64(12), rows)
	p.requireSound()

	require.NoError(t, within(remove))

	never := newTable()
	require.NoError(t, within(func(ctx context.Context, tx postgres.Tx) error { return RemoveTableTx(ctx, tx, never, p.now()) }))
	p.clock.advance(2 * time.Hour)

	// The caller's rows go with the last of ours, or neither does.
	refusal := errors.New("no")
	require.ErrorIs(t, p.Clean(t.Context(), ahead, func(postgres.Tx, Table) error { return refusal }), refusal)

	var gone []Table

	// Before that they are told in good time, and hold no connection.
	var told []Table

	tell := func(t Table) error {
		told = append(told, t)

		return nil
	}

	require.NoError(t, p.Clean(t.Context(), tell, func(_ postgres.Tx, t Table) error {
		gone = append(gone, t)

		return nil
	}))
	require.ElementsMatch(t, []Table{at, never}, gone)
	require.ElementsMatch(t, []Table{at, never}, told)
	require.Equal(t, fault.NotFound, fault.From(p.mustNotKeep(at)).Code)
	require.Len(t, p.keys(), 4, "all of the other table, nothing of this one")
	p.requireSound()

	rows, _ = p.scan(other)
	require.Equal(t, int64(10), rows)
}

func (p place) mustNotKeep(at Table) error {
	var snapshot *Snapshot

	err := p.db.Do(p.t.Context(), func(q postgres.Querier) (err error) {
		snapshot, _, err = p.Current(p.t.Context(), q, at)

		return err
	})
	require.NoError(p.t, err)
	require.Nil(p.t, snapshot)

	_, err = p.Files(p.t.Context(), at, uuid.New())

	return err
}

// nothing is kept about a table elsewhere.
// ahead and nothing are for callers of Clean who have no rows of their own.
func ahead(Table) error { return nil }

func nothing(postgres.Tx, Table) error { return nil }
