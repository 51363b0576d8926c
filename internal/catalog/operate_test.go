package catalog

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/postgres"
)

const grace = 7 * 24 * time.Hour

// richDataset creates a dataset of ada with everything that a dataset can have.
func richDataset(t *testing.T, b *bundle, ada auth.Principal) Description {
	t.Helper()

	b.create(t, ada, "Sales", "Orders")

	for i := range 3 {
		_, err := b.catalog.PutDefinition(t.Context(), ada, orders, Change{
			DataDescription: new(fmt.Sprintf("revision %d", i+1)), SchemaDefinition: &map[string]string{"total": "in euro"},
		}, nil)
		require.NoError(t, err)
	}

	b.exec(t, `UPDATE datasets SET columns = '[{"name": "total", "type": "DOUBLE", "nullable": true}]', row_count = 42,
		key_columns = '{total}', key_duplicates = 'refuse' WHERE account_id = $1`, ada.Account)

	_, err := b.catalog.indexStale(t.Context())
	require.NoError(t, err)

	b.share(t, ada, orders, "bob", auth.Viewer)
	b.share(t, ada, orders, "cyd", auth.Editor)
	b.share(t, ada, orders, "newcomer", auth.Editor)
	b.share(t, ada, orders, "@Finance", auth.Viewer)

	made, err := b.catalog.UpdateDataset(t.Context(), ada, orders, DatasetChange{Exposure: "values"})
	require.NoError(t, err)

	for _, row := range []string{"order", "sale"} {
		_, err := b.catalog.PutSemantics(t.Context(), ada, orders, made.ID, nil, saying(row))
		require.NoError(t, err)
	}

	made, err = b.catalog.Describe(t.Context(), ada, orders)
	require.NoError(t, err)

	return made
}

var orders = Path{Username: "ada", Namespace: "sales", Dataset: "orders"} //nolint:gochecknoglobals // a constant

// requireMoved checks that bob has the dataset with everything that it had.
func requireMoved(t *testing.T, b *bundle, bob auth.Principal, was Description) {
	t.Helper()

	at := Path{Username: "bob", Namespace: "Sales", Dataset: "Orders"}
	is, err := b.catalog.Describe(t.Context(), bob, at)
	require.NoError(t, err)
	require.Greater(t, is.Epoch, was.Epoch)

	was.Account, was.Owner, was.NamespaceID, was.access = bob.Account, "bob", is.NamespaceID, is.access
	was.Epoch, was.UpdatedAt = is.Epoch, is.UpdatedAt
	require.Equal(t, was, is)

	shares, err := b.catalog.Shares(t.Context(), bob, at)
	require.NoError(t, err)
	require.Equal(t, []Share{
		{Grantee: "@Finance", Role: auth.Viewer}, {Grantee: "cyd", Role: auth.Editor}, {Grantee: "newcomer", Role: auth.Editor, Pending: true},
	}, shares)

	require.Equal(t, 3, b.count(t, `SELECT count(*) FROM definitions WHERE account_id = $1 AND actor = 'ada' AND data_description = 'revision ' || revision`, bob.Account))
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM semantics WHERE account_id = $1 AND actor = 'ada'`, bob.Account))
	require.Equal(t, Semantics{Revision: 2, Saved: saying("sale")(meaning.Saved{})}, b.semantics(t, bob.Account, is.ID)[is.ID])
	b.requireSound(t)
}

func TestTransfer(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob, cyd := b.signIn(t, "ada"), b.signIn(t, "bob"), b.signIn(t, "cyd")
	made := richDataset(t, b, ada)
	bearer := b.token(t, cyd, auth.Editor, orders)

	for name, test := range map[string]struct {
		at Path
		to string
	}{
		"to nobody":             {orders, "nobody"},
		"to whom it belongs":    {orders, "ada"},
		"of nothing":            {Path{Username: "ada", Namespace: "sales", Dataset: "nothing"}, "bob"},
		"of somebody not there": {Path{Username: "nobody", Namespace: "sales", Dataset: "orders"}, "bob"},
	} {
		require.Equal(t, fault.NotFound, code(b.catalog.TransferDataset(t.Context(), test.at, test.to, moveTable)), name)
	}

	b.create(t, bob, "SALES", "ORDERS")
	require.Equal(t, fault.Conflict, code(b.catalog.TransferDataset(t.Context(), orders, "bob", moveTable)))
	_, err := b.catalog.Describe(t.Context(), cyd, orders)
	require.NoError(t, err, "nothing has changed")

	require.NoError(t, b.catalog.DeleteDataset(t.Context(), bob, Path{Username: "bob", Namespace: "sales", Dataset: "orders"}))
	require.NoError(t, b.catalog.DeleteNamespace(t.Context(), bob, Path{Username: "bob", Namespace: "sales"}))
	require.NoError(t, b.catalog.TransferDataset(t.Context(), Path{Username: "ADA", Namespace: "SALES", Dataset: "ORDERS"}, "BOB", moveTable))
	requireMoved(t, b, bob, made)

	_, err = b.catalog.Describe(t.Context(), ada, orders)
	require.Equal(t, fault.NotFound, code(err))
	_, err = b.catalog.Describe(t.Context(), ada, Path{Username: "bob", Namespace: "sales", Dataset: "orders"})
	require.Equal(t, fault.NotFound, code(err), "who gave it away keeps nothing")
	require.Equal(t, fault.NotFound, code(b.catalog.RestoreDataset(t.Context(), orders)), "the old place has no tombstone")
	require.Empty(t, b.all(t, bearer, 10), "a token for it does not follow it into another account")
	require.Len(t, b.all(t, cyd, 10), 1)

	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM audit WHERE actor = 'operator' AND action IN ('dataset.transfer', 'dataset.receive') AND target = $1`, made.ID.String()))

	// Transfer the dataset back.
	require.NoError(t, b.catalog.TransferDataset(t.Context(), Path{Username: "bob", Namespace: "sales", Dataset: "orders"}, "ada", moveTable))
	back, err := b.catalog.Describe(t.Context(), ada, orders)
	require.NoError(t, err)
	require.Equal(t, made.ID, back.ID)
	require.Equal(t, made.NamespaceID, back.NamespaceID)
	b.requireSound(t)
}

// TestTransferCutOff takes the steps of a transfer and stops after each.
func TestTransferCutOff(t *testing.T) {
	t.Parallel()

	for done := range 4 {
		t.Run(fmt.Sprintf("after %d steps", done), func(t *testing.T) {
			t.Parallel()

			b := newBundle(t)
			ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
			b.signIn(t, "cyd")

			made := richDataset(t, b, ada)
			there := Path{Username: "bob", Namespace: "sales", Dataset: "orders"}

			takeSteps(t, b, done)
			b.requireSound(t)

			_, err := b.catalog.Describe(t.Context(), bob, there)
			require.Equal(t, fault.NotFound, code(err), "it is not there before it is complete")

			switch done {
			case 0:
				require.NoError(t, b.catalog.TransferDataset(t.Context(), orders, "bob", moveTable))
			case 1, 2:
				require.NoError(t, b.catalog.RestoreDataset(t.Context(), orders), "back where it was")

				_, err = b.catalog.PutDefinition(t.Context(), ada, orders, Change{DataDescription: new("later")}, nil)
				require.NoError(t, err)
				require.NoError(t, b.catalog.Unshare(t.Context(), ada, orders, "cyd"))

				made, err = b.catalog.UpdateDataset(t.Context(), ada, orders, DatasetChange{Name: "Later"})
				require.NoError(t, err)

				from := orders
				from.Dataset = "later"
				require.NoError(t, b.catalog.TransferDataset(t.Context(), from, "bob", moveTable))

				there.Dataset = "later"
				is, err := b.catalog.Describe(t.Context(), bob, there)
				require.NoError(t, err)
				require.Equal(t, made.ID, is.ID)
				require.Equal(t, made.Definition, is.Definition, "what was in the first copy is not left in the second")

				shares, err := b.catalog.Shares(t.Context(), bob, there)
				require.NoError(t, err)
				require.Equal(t, []Share{{Grantee: "@Finance", Role: auth.Viewer}, {Grantee: "newcomer", Role: auth.Editor, Pending: true}}, shares)
				b.requireSound(t)

				return
			default:
				require.Equal(t, fault.NotFound, code(b.catalog.RestoreDataset(t.Context(), orders)))
				require.NoError(t, b.catalog.RestoreDataset(t.Context(), there), "restoring it at the new place ends it")
			}

			requireMoved(t, b, bob, made)
		})
	}
}

// takeSteps does the first steps of TransferDataset.
func takeSteps(t *testing.T, b *bundle, done int) {
	t.Helper()

	var (
		source, moved Dataset
		target        auth.Principal
		goods         contents
		ctx           = t.Context()
	)

	require.NoError(t, b.db.Do(ctx, func(q postgres.Querier) (err error) {
		source, target, err = b.catalog.transferParties(ctx, q, orders, "bob")

		return err
	}))

	for _, step := range []func(tx postgres.Tx) error{
		func(tx postgres.Tx) (err error) {
			source, goods, err = b.catalog.withdrawTx(ctx, tx, source, "bob")

			return err
		},
		func(tx postgres.Tx) (err error) {
			moved, err = b.catalog.receiveTx(ctx, tx, target, source, goods)

			return err
		},
		func(tx postgres.Tx) error {
			_, err := removeDataset(ctx, tx, source)

			return errors.Join(err, moveTable(tx, source.table(), moved.table()))
		},
	}[:done] {
		require.NoError(t, b.db.InTx(ctx, step))
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	b.signIn(t, "cyd")

	first := richDataset(t, b, ada)
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, orders))

	second := b.create(t, ada, "sales", "orders")
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, fault.Conflict, code(b.catalog.RestoreDataset(t.Context(), orders)), "the name is taken")

	_, err := b.catalog.Describe(t.Context(), bob, orders)
	require.Equal(t, fault.NotFound, code(err), "the namesake inherits nothing")

	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, orders))
	require.NoError(t, b.catalog.DeleteNamespace(t.Context(), ada, Path{Username: "ada", Namespace: "sales"}))

	require.NoError(t, b.catalog.RestoreDataset(t.Context(), orders))
	is, err := b.catalog.Describe(t.Context(), ada, orders)
	require.NoError(t, err)
	require.Equal(t, second.ID, is.ID, "the one that was deleted last")
	require.Equal(t, "Sales", is.Namespace)

	// The older dataset is restored into the namespace that has the name of its former namespace now.
	_, err = b.catalog.UpdateDataset(t.Context(), ada, orders, DatasetChange{Name: "other"})
	require.NoError(t, err)
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, Path{Username: "ada", Namespace: "sales", Dataset: "other"}))
	require.NoError(t, b.catalog.DeleteNamespace(t.Context(), ada, Path{Username: "ada", Namespace: "sales"}))

	home, err := b.catalog.CreateNamespace(t.Context(), ada, NewNamespace{Name: "SALES"})
	require.NoError(t, err)
	require.NoError(t, b.catalog.RestoreDataset(t.Context(), orders))

	is, err = b.catalog.Describe(t.Context(), bob, orders)
	require.NoError(t, err, "with its grants")
	require.Equal(t, first.ID, is.ID)
	require.Equal(t, home.ID, is.NamespaceID)
	require.Equal(t, first.Definition, is.Definition)
	require.Equal(t, first.Epoch+2, is.Epoch)
	require.Len(t, b.all(t, bob, 10), 1)
	b.requireSound(t)

	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, orders))
	b.passed.Add(grace.Milliseconds())
	require.Equal(t, fault.NotFound, code(b.catalog.RestoreDataset(t.Context(), orders)), "the grace is over")
	require.Equal(t, fault.NotFound, code(b.catalog.RestoreDataset(t.Context(), Path{Username: "nobody", Namespace: "sales", Dataset: "orders"})))
}

func TestBindName(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")

	for i := range bindBatch + 5 {
		b.create(t, ada, "n", strconv.Itoa(i))
		b.share(t, ada, Path{Username: "ada", Namespace: "n", Dataset: strconv.Itoa(i)}, "newcomer", auth.Viewer)
	}

	b.share(t, ada, Path{Username: "ada", Namespace: "n"}, "Newcomer", auth.Editor)

	shares, err := b.catalog.Shares(t.Context(), ada, Path{Username: "ada", Namespace: "n"})
	require.NoError(t, err)
	require.Equal(t, []Share{{Grantee: "newcomer", Role: auth.Editor, Pending: true}}, shares)

	newcomer := b.signIn(t, "newcomer")
	require.Len(t, b.all(t, newcomer, 100), bindBatch+5, "it takes effect by itself")

	// Sharing again replaces the grant that was made by username.
	b.share(t, ada, Path{Username: "ada", Namespace: "n"}, "newcomer", auth.Viewer)
	shares, err = b.catalog.Shares(t.Context(), ada, Path{Username: "ada", Namespace: "n"})
	require.NoError(t, err)
	require.Equal(t, []Share{{Grantee: "newcomer", Role: auth.Viewer}}, shares)

	require.NoError(t, b.catalog.BindName(t.Context(), "newcomer", newcomer.Account))
	require.Zero(t, b.count(t, `SELECT count(*) FROM grants WHERE subject_kind = 'name'`))
	b.requireSound(t)

	// Another account gets the username.
	b.exec(t, `UPDATE directory_names SET username = 'released' WHERE account_id = $1`, newcomer.Account)
	next := b.signIn(t, "newcomer")
	require.Empty(t, b.all(t, next, 100))

	newcomer.Username = "released"
	require.Len(t, b.all(t, newcomer, 100), bindBatch+5)

	id, err := b.catalog.AccountID(t.Context(), "NewComer")
	require.NoError(t, err)
	require.Equal(t, next.Account, id)

	_, err = b.catalog.AccountID(t.Context(), "nobody")
	require.True(t, fault.Is(err, fault.NotFound), err)
}
