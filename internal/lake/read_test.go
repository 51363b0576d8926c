package lake

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres"
)

// at returns the snapshot that was current at a moment, and its files, wherever they are listed.
func (p place) at(t Table, moment time.Time) (snapshot *Snapshot, files []File) {
	p.t.Helper()

	require.NoError(p.t, p.db.Do(p.t.Context(), func(q postgres.Querier) (err error) {
		snapshot, files, err = p.At(p.t.Context(), q, t, moment)

		return err
	}))

	if snapshot != nil && !snapshot.Current {
		require.Empty(p.t, files)

		var err error
		files, err = p.Files(p.t.Context(), t, snapshot.ID)
		require.NoError(p.t, err)
	}

	return snapshot, files
}

func TestShape(t *testing.T) {
	t.Parallel()

	columns := []Column{{1, "a", Bigint}, {2, "b", Decimal(9, 2)}}
	shape := shapeOf(columns)
	require.Len(t, shape, 16)
	require.Equal(t, shape, shapeOf([]Column{columns[1], columns[0]}))

	for name, other := range map[string][]Column{
		"another id":      {{3, "a", Bigint}, {2, "b", Decimal(9, 2)}},
		"another name":    {{1, "A", Bigint}, {2, "b", Decimal(9, 2)}},
		"another type":    {{1, "a", Double}, {2, "b", Decimal(9, 2)}},
		"a wider decimal": {{1, "a", Bigint}, {2, "b", Decimal(10, 2)}},
		"one less":        {{1, "a", Bigint}},
		"one more":        append(slices.Clone(columns), Column{3, "c", JSON}),
		"a sly name":      {{1, "a\" bigint\n2 \"b", Bigint}},
	} {
		require.NotEqual(t, shape, shapeOf(other), name)
	}
}

func TestUniform(t *testing.T) {
	t.Parallel()

	var (
		p, at = newPlace(t), newTable()
		id    = Column{Name: "id", Type: Bigint}
		price = Column{Name: "price", Type: Decimal(10, 2)}
		wide  = Column{Name: "price", Type: Decimal(12, 2)}
	)

	uniform := func() bool {
		snapshot, files := p.current(at)

		planned, err := p.Files(t.Context(), at, snapshot.ID)
		require.NoError(t, err)
		require.ElementsMatch(t, files, planned, "both ways to the files say the same")

		return Uniform(*snapshot, files)
	}

	p.add(at, Append, 0, 3, id)
	first := p.add(at, Append, 3, 3, id)
	require.True(t, uniform())

	p.add(at, Append, 6, 3, price, id)
	require.False(t, uniform(), "the older files lack a column")

	p.add(at, Replace, 0, 3, id, price)
	p.add(at, Append, 3, 3, price, id)
	require.True(t, uniform(), "the order does not matter")

	p.add(at, Append, 6, 3, id, wide)
	require.False(t, uniform(), "the older files have a narrow decimal")

	p.add(at, Append, 9, 3, id)
	require.False(t, uniform())

	p.commit(Change{Table: at, Mode: Restore, Snapshot: first.ID})
	require.True(t, uniform())

	snapshot, files := p.current(at)
	files[1].Shape = ""
	require.False(t, Uniform(*snapshot, files), "unknown")

	p.commit(Change{Table: at, Mode: Clear})
	require.False(t, uniform(), "no files")
}

func TestAt(t *testing.T) {
	t.Parallel()

	var (
		p, at  = newPlace(t), newTable()
		id     = Column{Name: "id", Type: Bigint}
		before = p.clock.now()
		tick   = func() { p.clock.advance(time.Minute) }
	)

	snapshot, _ := p.at(at, before)
	require.Nil(t, snapshot, "nothing was ever there")
	tick()

	first := p.add(at, Append, 0, 3, id)
	tick()
	second := p.add(at, Append, 3, 3, id, Column{Name: "more", Type: Varchar})
	tick()
	cleared := p.commit(Change{Table: at, Mode: Clear})
	tick()
	restored := p.commit(Change{Table: at, Mode: Restore, Snapshot: first.ID})
	tick()
	last := p.add(at, Append, 6, 3, id)

	snapshot, files := p.at(at, first.CommittedAt.Add(-time.Millisecond))
	require.Nil(t, snapshot)
	require.Empty(t, files)

	made := []Snapshot{first, second, cleared, restored, last}
	for i, want := range made {
		want.Current = i == len(made)-1
		moments := []time.Time{want.CommittedAt, want.CommittedAt.Add(30 * time.Second)}

		if !want.Current {
			moments = append(moments, made[i+1].CommittedAt.Add(-time.Microsecond))
		}

		for _, moment := range moments {
			snapshot, files := p.at(at, moment)
			require.NotNil(t, snapshot)
			require.Equal(t, want.ID, snapshot.ID)
			require.Equal(t, want.Columns, snapshot.Columns)
			require.Equal(t, want.Current, snapshot.Current)
			require.Len(t, files, want.Files)

			for _, f := range files {
				require.Equal(t, "file.csv", f.Name)
				require.NotEmpty(t, f.Shape)
			}
		}
	}

	p.wire.count()

	_, current := p.current(at)
	snapshot, files = p.at(at, p.clock.now())
	require.Equal(t, last.ID, snapshot.ID)
	require.Equal(t, current, files)
	require.Empty(t, p.wire.count(), "the current one needs no look at manifests")

	// Clocks may go back, commit times of a table do not. Of two commits with equal time the later one is current.
	p.clock.advance(-time.Hour)

	twin := p.commit(Change{Table: at, Mode: Clear})
	require.Equal(t, last.CommittedAt, twin.CommittedAt)

	snapshot, _ = p.at(at, last.CommittedAt)
	require.Equal(t, twin.ID, snapshot.ID)

	later := p.commit(Change{Table: at, Mode: Restore, Snapshot: last.ID})
	p.clock.advance(2 * time.Hour)
	p.add(at, Append, 0, 1, id)

	snapshot, _ = p.at(at, last.CommittedAt)
	require.Equal(t, later.ID, snapshot.ID, "and later too")

	require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error { return RemoveTableTx(t.Context(), tx, at, p.clock.now()) }))

	snapshot, _ = p.at(at, first.CommittedAt)
	require.Nil(t, snapshot, "a removed table has no past either")
}

func TestPlaces(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()

	columns, err := p.Plan(t.Context(), at, []Column{{Name: "id", Type: Bigint}}, Append)
	require.NoError(t, err)

	var ingestions []uuid.UUID

	pages := map[string][]int64{"d.pdf": {1, 1, 3}}

	for name, skipped := range map[string][]int64{"a.csv": {9, 2, 4}, "b.csv": nil, "c.csv": {1}, "d.pdf": nil, "": {}} {
		ingestion, err := stageFrom(t.Context(), p.Lake, at, columns, parquetFile(t, columns, 0, 3), Source{Name: name, FirstRow: 1, Places: Places{Skipped: skipped, Pages: pages[name]}})
		require.NoError(t, err)

		ingestions = append(ingestions, ingestion)
	}

	p.commit(Change{Table: at, Mode: Append, Ingestions: ingestions})

	_, files := p.current(at)
	names := map[string]string{}
	keys := []string{"lake/data/unknown"}

	for _, f := range files {
		names[f.Name] = f.Key
		keys = append(keys, f.Key)
	}

	require.Len(t, names, 5)

	places := func(t Table, keys []string) (found map[string]Places) {
		require.NoError(p.t, p.db.Do(context.Background(), func(q postgres.Querier) (err error) {
			found, err = p.Places(context.Background(), q, t, keys)

			return err
		}))

		return found
	}

	require.Equal(t, map[string]Places{names["a.csv"]: {Skipped: []int64{2, 4, 9}}, names["c.csv"]: {Skipped: []int64{1}}, names["d.pdf"]: {Skipped: []int64{}, Pages: []int64{1, 1, 3}}}, places(at, keys))
	require.Equal(t, map[string]Places{names["c.csv"]: {Skipped: []int64{1}}}, places(at, []string{names["b.csv"], names["c.csv"]}))
	require.Empty(t, places(at, nil))
	require.Empty(t, places(newTable(), keys), "keys of another table")
}
