package lake

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// TestRemovedTable checks that commits to a removed table fail, that the table can be restored until the grace period
// ends, and that nothing is left afterwards.
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

	// A move to another account moves no object in the store.
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

	// The caller's rows are deleted in the same transaction as the last row of the table, or neither is.
	refusal := errors.New("no")
	require.ErrorIs(t, p.Clean(t.Context(), ahead, func(postgres.Tx, Table) error { return refusal }), refusal)

	var gone []Table

	// The callback before is called for each table before its rows are deleted.
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

// ahead and nothing are the callbacks of Clean for tests without rows of their own.
func ahead(Table) error { return nil }

func nothing(postgres.Tx, Table) error { return nil }
