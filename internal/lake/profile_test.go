package lake

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// profile saves a profile of a snapshot, with the joins.
func (p place) profile(at Table, of Snapshot, joins ...Join) (Profiled, error) {
	p.t.Helper()

	path := filepath.Join(p.t.TempDir(), "profile")
	require.NoError(p.t, os.WriteFile(path, []byte(`{"of": "`+of.ID.String()+`"}`), 0o600))

	made := Profiled{Snapshot: of.ID, Sequence: of.Sequence, Rows: of.Rows, ComputedAt: p.now().UTC().Truncate(time.Millisecond), Summary: json.RawMessage(`{"a": 1}`)}

	require.NoError(p.t, p.db.InTx(p.t.Context(), func(tx postgres.Tx) (err error) {
		made.Profile, err = p.StageObjectTx(p.t.Context(), tx, at, ".json")

		return err
	}))

	var err error
	made.Profile, err = p.WriteObject(p.t.Context(), made.Profile, path)
	require.NoError(p.t, err)

	return made, p.db.InTx(p.t.Context(), func(tx postgres.Tx) error {
		return p.SaveProfileTx(p.t.Context(), tx, Due{Table: at, Chore: Profile, Snapshot: of.ID}, made, joins)
	})
}

// profiled returns the snapshot of the profile, and whether the chore is due.
func (p place) profiled(at Table) (snapshot uuid.UUID, isDue bool) {
	p.t.Helper()

	require.NoError(p.t, p.db.Do(p.t.Context(), func(q postgres.Querier) error {
		found, err := p.Profiles(p.t.Context(), q, at.Account, []uuid.UUID{at.Dataset})
		require.NoError(p.t, err)

		snapshot = found[at.Dataset].Snapshot

		due, err := selectDue(p.t.Context(), q, Profile, p.now().Add(time.Hour), 100)
		for _, d := range due {
			isDue = isDue || d.Table == at
		}

		return err
	}))

	return snapshot, isDue
}

func TestProfiles(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()

	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	commit := func(mode Mode) Snapshot {
		change := Change{Table: at, Mode: mode}
		if mode == Append || mode == Replace {
			change.Ingestions = []uuid.UUID{p.stage(p.Lake, at, columns, 0, 10)}
		}

		return p.commit(change)
	}
	shows := func(of Snapshot, due bool) {
		t.Helper()

		snapshot, isDue := p.profiled(at)
		require.Equal(t, of.ID, snapshot)
		require.Equal(t, due, isDue)
	}

	first := commit(Append)
	shows(Snapshot{}, true)

	old, err := p.profile(at, first)
	require.NoError(t, err)
	shows(first, false)

	// A profile stays valid after an append, but is hidden after rows were removed.
	second := commit(Append)
	shows(first, true)

	replaced := commit(Replace)
	shows(Snapshot{}, true)

	// A profile of an older snapshot that is finished after the replacement is not saved.
	_, err = p.profile(at, second)
	require.True(t, fault.Is(err, fault.NotFound), err)
	shows(Snapshot{}, true)

	made, err := p.profile(at, replaced)
	require.NoError(t, err)
	shows(replaced, false)

	cleared := commit(Clear)
	shows(Snapshot{}, true)
	_, err = p.profile(at, cleared)
	require.NoError(t, err)
	shows(cleared, false)

	restored := p.commit(Change{Table: at, Mode: Restore, Snapshot: first.ID})
	shows(Snapshot{}, true)

	last, err := p.profile(at, restored)
	require.NoError(t, err)
	shows(restored, false)

	// After the grace period only the last object is left.
	p.clock.advance(p.deleteGrace + 48*time.Hour)
	require.NoError(t, p.Clean(t.Context(), ahead, func(postgres.Tx, Table) error { return nil }))

	for _, o := range []Object{old.Profile, made.Profile} {
		_, err := p.store.Head(t.Context(), o.Key)
		require.True(t, fault.Is(err, fault.NotFound), err)
	}

	_, err = p.store.Head(t.Context(), last.Profile.Key)
	require.NoError(t, err)
}

func TestJoins(t *testing.T) {
	t.Parallel()

	p, orders := newPlace(t), newTable()
	customers := Table{Account: orders.Account, Dataset: uuid.New()}
	snapshots := map[Table]Snapshot{}

	for _, at := range []Table{orders, customers} {
		columns, err := p.Plan(t.Context(), at, wanted(), Append)
		require.NoError(t, err)

		snapshots[at] = p.commit(Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{p.stage(p.Lake, at, columns, 0, 1)}})
	}

	requireJoins := func(at Table, want ...Join) {
		t.Helper()

		require.NoError(t, p.db.Do(t.Context(), func(q postgres.Querier) error {
			found, err := p.Joins(t.Context(), q, at.Account, []uuid.UUID{at.Dataset})
			require.ElementsMatch(t, want, found[at.Dataset])

			return err
		}))
	}

	_, err := p.profile(orders, snapshots[orders])
	require.NoError(t, err)
	requireJoins(orders)

	_, err = p.profile(customers, snapshots[customers], Join{Column: "id", Other: orders.Dataset, To: "customer_id", Share: 0.5})
	require.NoError(t, err)
	requireJoins(orders, Join{Column: "customer_id", Other: customers.Dataset, To: "id", Share: 0.5})
	requireJoins(customers, Join{Column: "id", Other: orders.Dataset, To: "customer_id", Share: 0.5})

	// The join is found again from the other side, which replaces the earlier value.
	_, err = p.profile(orders, snapshots[orders], Join{Column: "customer_id", Other: customers.Dataset, To: "id", Share: 1})
	require.NoError(t, err)
	requireJoins(customers, Join{Column: "id", Other: orders.Dataset, To: "customer_id", Share: 1})

	require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error {
		return p.RemoveProfileTx(t.Context(), tx, Due{Table: orders, Chore: Profile, Snapshot: snapshots[orders].ID})
	}))
	requireJoins(customers)
	requireJoins(orders)

	none, _ := p.profiled(orders)
	require.Equal(t, uuid.Nil, none)

	// A removed table accepts no profile.
	err = p.db.InTx(t.Context(), func(tx postgres.Tx) error {
		require.NoError(t, RemoveTableTx(t.Context(), tx, orders, p.now()))

		return p.SaveProfileTx(t.Context(), tx, Due{Table: orders, Chore: Profile}, Profiled{Sequence: 1, Summary: json.RawMessage(`{}`)}, nil)
	})
	require.True(t, fault.Is(err, fault.NotFound), err)
}

// TestFirstProfile checks that a new table is profiled at once, and later after a quiet period.
func TestFirstProfile(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	p.quietPeriod = time.Minute

	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	isDue := func() (found bool) {
		require.NoError(t, p.db.Do(t.Context(), func(q postgres.Querier) error {
			due, err := p.Due(t.Context(), q, Profile, 100)
			for _, d := range due {
				found = found || d.Table == at
			}

			return err
		}))

		return found
	}

	first := p.commit(Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{p.stage(p.Lake, at, columns, 0, 10)}})
	require.True(t, isDue())

	_, err = p.profile(at, first)
	require.NoError(t, err)
	require.False(t, isDue())

	p.commit(Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{p.stage(p.Lake, at, columns, 10, 20)}})
	require.False(t, isDue(), "further rows may follow")
}
