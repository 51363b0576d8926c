package catalog

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/postgres"
)

// saying returns a change that says what one row is.
func saying(row string) func(meaning.Saved) meaning.Saved {
	return func(meaning.Saved) meaning.Saved { return meaning.Saved{Meaning: meaning.Meaning{Row: row}} }
}

// semantics returns the semantics of datasets.
func (b *bundle) semantics(t *testing.T, account uuid.UUID, ids ...uuid.UUID) (found map[uuid.UUID]Semantics) {
	t.Helper()

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) (err error) {
		found, err = b.catalog.Semantics(t.Context(), q, account, ids)

		return err
	}))

	return found
}

func TestSemantics(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	made := b.create(t, ada, "sales", "orders")

	put := func(who auth.Principal, id uuid.UUID, expected []int64, row string) (int64, error) {
		saved, err := b.catalog.PutSemantics(t.Context(), who, orders, id, expected, saying(row))

		return saved.Revision, err
	}

	_, err := put(bob, made.ID, nil, "order")
	require.Equal(t, fault.NotFound, code(err))

	b.share(t, ada, orders, "bob", auth.Viewer)
	_, err = put(bob, made.ID, nil, "order")
	require.Equal(t, fault.Forbidden, code(err))

	b.share(t, ada, orders, "bob", auth.Editor)
	revision, err := put(bob, made.ID, []int64{0}, "order")
	require.NoError(t, err)
	require.EqualValues(t, 1, revision)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM semantics WHERE account_id = $1 AND revision = 1 AND actor = 'bob' AND actor_id <> account_id`, ada.Account))

	_, err = put(ada, made.ID, []int64{0}, "sale")
	require.Equal(t, fault.PreconditionFailed, code(err))

	_, err = put(ada, uuid.New(), nil, "sale")
	require.Equal(t, fault.NotFound, code(err), "another dataset has the name now")

	// The change is made from the current content.
	saved, err := b.catalog.PutSemantics(t.Context(), ada, orders, made.ID, []int64{7, 1}, func(current meaning.Saved) meaning.Saved {
		current.Row += " line"

		return current
	})
	require.NoError(t, err)
	require.Equal(t, Semantics{Revision: 2, Saved: saying("order line")(meaning.Saved{})}, saved)

	require.Equal(t, map[uuid.UUID]Semantics{made.ID: saved}, b.semantics(t, ada.Account, made.ID, uuid.New()))

	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, orders))
	_, err = put(ada, made.ID, nil, "sale")
	require.Equal(t, fault.NotFound, code(err))

	require.NoError(t, b.catalog.RestoreDataset(t.Context(), orders))
	require.Equal(t, saved, b.semantics(t, ada.Account, made.ID)[made.ID])
	b.requireSound(t)
}

func TestJoinTargets(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	own, hidden, lent := b.create(t, ada, "sales", "orders"), b.create(t, bob, "own", "hidden"), b.create(t, bob, "own", "lent")
	b.share(t, bob, Path{Username: "bob", Namespace: "own", Dataset: "lent"}, "ada", auth.Viewer)

	var found map[string]Item

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) (err error) {
		found, err = b.catalog.JoinTargets(t.Context(), q, ada, []string{
			TargetKey(own.Dataset), TargetKey(hidden.Dataset), TargetKey(lent.Dataset), "", "nonsense", own.Account.String(), own.Account.String() + "/",
		})

		return err
	}))
	require.Len(t, found, 2)
	require.Equal(t, "ada", found[TargetKey(own.Dataset)].Owner)
	require.Equal(t, "bob", found[TargetKey(lent.Dataset)].Owner)
}
