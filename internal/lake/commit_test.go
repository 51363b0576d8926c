package lake

import (
	"errors"
	"net/http"
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

	// Append, together with the caller's function.
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

	// Repeat: there is nothing left to commit, but the caller's function runs.
	ran := false
	again, err := p.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: ingestions[:2]}, func(_ postgres.Tx, current Snapshot) error {
		ran = true

		require.Equal(t, made, current)

		return nil
	})
	require.NoError(t, err)
	require.Equal(t, made, again)
	require.True(t, ran)

	// If the caller's function fails, nothing changes.
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

	// List the snapshots in pages.
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

	// Without a file, Replace makes an empty table with columns.
	empty := p.commit(Change{Table: newTable(), Mode: Replace, Columns: columns})
	require.Equal(t, columns, empty.Columns)
	p.requireSound()
}

// TestManySnapshots checks that Iceberg's metadata stays small and that every snapshot stays readable.
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

	// A process with an empty memory can read the oldest snapshots too.
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

	// Replaced metadata is removed after the grace period. Objects that snapshots need stay.
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

// TestLongList commits a thousand files at once.
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

// TestRequests checks that a process that made the last commit reads nothing from the store for the next one.
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

	// Another process reads the two objects that it does not have in memory: the metadata and the manifest list.
	other, wire := p.replica(p.url, func(*Config) {})
	ingestion := p.stage(p.Lake, at, columns, 0, 1)
	_, err = other.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}, noMore)
	require.NoError(t, err)
	require.Equal(t, map[string]int{http.MethodPut: 3, http.MethodGet: 2}, wire.count())
}

// TestPooled checks that everything works through a connection pooler, where statements are not prepared.
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
