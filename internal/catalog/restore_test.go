package catalog

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// restore restores something as its owner does.
func (b *bundle) restore(t tester, who auth.Principal, id uuid.UUID, name string) (Deleted, error) {
	t.Helper()

	return b.catalog.Restore(t.Context(), who, Restoration{ID: id, Name: name})
}

// TestRestoreByOwner checks what comes back with a dataset and with a namespace, and under which name.
func TestRestoreByOwner(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	b.signIn(t, "cyd")

	first := richDataset(t, b, ada)
	sales := Path{Username: "ada", Namespace: "sales"}
	b.share(t, ada, sales, "cyd", auth.Viewer)
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, orders))

	second := b.create(t, ada, "sales", "orders")

	// The name is taken: the message says by what, and what to do.
	_, err := b.restore(t, ada, first.ID, "")
	require.Equal(t, "Another dataset is named Sales/Orders now. Rename or delete it, or restore this one under another name.", fault.From(err).Message)
	_, err = b.restore(t, ada, first.ID, "ORDERS")
	require.Equal(t, fault.Conflict, code(err))

	restored, err := b.restore(t, ada, first.ID, "Before")
	require.NoError(t, err)
	require.Equal(t, Deleted{ID: first.ID, Kind: "dataset", Namespace: "Sales", Dataset: "Before"}, restored)

	for _, name := range []string{"", "before"} {
		again, err := b.restore(t, ada, first.ID, name)
		require.NoError(t, err)
		require.Equal(t, restored, again)
	}

	_, err = b.restore(t, ada, first.ID, "other")
	require.Equal(t, "It is not deleted: it is Sales/Before. Rename it to change its name.", fault.From(err).Message)

	is, err := b.catalog.Describe(t.Context(), bob, Path{Username: "ada", Namespace: "sales", Dataset: "before"})
	require.NoError(t, err, "with its grants")
	require.Equal(t, first.Definition, is.Definition)
	require.Equal(t, first.Epoch+2, is.Epoch)

	// A namespace comes back with its grants, and without the datasets that were deleted before it.
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, orders))
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, Path{Username: "ada", Namespace: "sales", Dataset: "before"}))
	require.NoError(t, b.catalog.DeleteNamespace(t.Context(), ada, sales))
	require.Len(t, b.deleted(t, ada, 2), 3)

	_, err = b.catalog.CreateNamespace(t.Context(), ada, NewNamespace{Name: "SALES"})
	require.NoError(t, err)
	_, err = b.restore(t, ada, first.NamespaceID, "")
	require.Equal(t, "Another namespace is named Sales now. Rename or delete it, or restore this one under another name.", fault.From(err).Message)

	restored, err = b.restore(t, ada, first.NamespaceID, "old-sales")
	require.NoError(t, err)
	require.Equal(t, Deleted{ID: first.NamespaceID, Kind: "namespace", Namespace: "old-sales"}, restored)

	again, err := b.restore(t, ada, first.NamespaceID, "")
	require.NoError(t, err)
	require.Equal(t, restored, again)

	shares, err := b.catalog.Shares(t.Context(), ada, Path{Username: "ada", Namespace: "old-sales"})
	require.NoError(t, err)
	require.Contains(t, shares, Share{Grantee: "cyd", Role: auth.Viewer})

	list := b.deleted(t, ada, 1)
	require.Len(t, list, 2)
	require.Equal(t, []uuid.UUID{first.ID, second.ID}, []uuid.UUID{list[0].ID, list[1].ID}, "the last one first")
	require.Equal(t, "old-sales", list[0].Namespace)
	require.Equal(t, grace, list[0].ErasedAt.Sub(list[0].DeletedAt))

	// They return to their own namespace, whatever its name is now.
	restored, err = b.restore(t, ada, second.ID, "")
	require.NoError(t, err)
	require.Equal(t, "old-sales", restored.Namespace)

	// A namespace that comes back only because a dataset needs it is shared with nobody.
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, Path{Username: "ada", Namespace: "old-sales", Dataset: "orders"}))
	require.NoError(t, b.catalog.DeleteNamespace(t.Context(), ada, Path{Username: "ada", Namespace: "old-sales"}))
	_, err = b.restore(t, ada, second.ID, "")
	require.NoError(t, err)

	shares, err = b.catalog.Shares(t.Context(), ada, Path{Username: "ada", Namespace: "old-sales"})
	require.NoError(t, err)
	require.Empty(t, shares)
	b.requireSound(t)
}

// TestWhoRestores checks that only the owner, without a limited token, sees and restores what is deleted.
func TestWhoRestores(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	made := b.create(t, ada, "n", "d")
	b.share(t, ada, dataset("n", "d"), "bob", auth.Editor)

	restricted := b.token(t, ada, auth.Owner, dataset("n", "d"))
	editor := ada
	editor.Token = &auth.Grant{ID: uuid.New(), Role: auth.Editor}

	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, dataset("n", "d")))

	for _, who := range []auth.Principal{restricted, editor} {
		_, _, err := b.catalog.Deleted(t.Context(), who, audit.Position{}, 10)
		require.Equal(t, fault.Forbidden, code(err))
		_, err = b.restore(t, who, made.ID, "")
		require.Equal(t, fault.Forbidden, code(err))
	}

	require.Empty(t, b.deleted(t, bob, 10))

	_, theirs := b.restore(t, bob, made.ID, "")
	_, absent := b.restore(t, bob, uuid.New(), "")
	require.Equal(t, fault.NotFound, code(theirs))
	require.Equal(t, absent, theirs, "nothing is revealed")
}

// TestRestoreTooLate checks that nothing is listed or restored after its grace period, or after its removal has begun.
func TestRestoreTooLate(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")

	removing, late := b.create(t, ada, "n", "removing"), b.create(t, ada, "n", "late")
	b.share(t, ada, Path{Username: "ada", Namespace: "n"}, "bob", auth.Viewer)

	for _, name := range []string{"late", "removing"} {
		require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, dataset("n", name)))
	}

	require.NoError(t, b.catalog.DeleteNamespace(t.Context(), ada, Path{Username: "ada", Namespace: "n"}))
	require.Len(t, b.deleted(t, ada, 10), 3)

	b.exec(t, `UPDATE lake_tables SET removing = true WHERE dataset_id = $1`, removing.ID)
	require.Len(t, b.deleted(t, ada, 10), 2)
	_, err := b.restore(t, ada, removing.ID, "")
	require.Equal(t, fault.NotFound, code(err))
	require.Len(t, b.deleted(t, ada, 10), 2, "the namespace did not come back")

	require.NoError(t, b.catalog.EraseNamespaces(t.Context()))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM grants`), "not yet")

	b.passed.Add(grace.Milliseconds())
	require.Empty(t, b.deleted(t, ada, 10))

	for _, id := range []uuid.UUID{late.ID, late.NamespaceID} {
		_, err := b.restore(t, ada, id, "")
		require.Equal(t, fault.NotFound, code(err))
	}

	require.NoError(t, b.catalog.EraseNamespaces(t.Context()))
	require.Zero(t, b.count(t, `SELECT count(*) FROM grants`))
	b.requireSound(t)

	// What was erased does not come back if a longer grace period is configured.
	b.catalog.DeleteGrace = 10 * grace
	_, err = b.restore(t, ada, late.NamespaceID, "")
	require.Equal(t, fault.NotFound, code(err))
	require.Len(t, b.deleted(t, ada, 10), 1, "the dataset that no cleanup has begun to remove")
}

// TestDeletedOfMany checks that a page of the list reads no more rows than it has entries, however much was deleted.
func TestDeletedOfMany(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	b.create(t, ada, "n", "d")
	b.exec(t, `
		INSERT INTO datasets (account_id, id, namespace_id, name, created_at, name_key, updated_at, deleted_at)
		SELECT d.account_id, gen_random_uuid(), d.namespace_id, i::text, d.created_at, i::text, d.updated_at, now() - i * interval '1 second'
		FROM datasets d, generate_series(1, 20000) i`)
	b.exec(t, `ANALYZE datasets`)

	var plan []string

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) error {
		rows, err := q.Query(t.Context(), "EXPLAIN "+sqlSelectDeleted, ada.Account, time.Now().Add(-grace), time.Now(), uuid.Nil, 25)
		if err != nil {
			return err
		}

		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])

		return err
	}))
	require.Contains(t, strings.Join(plan, "\n"), "Index Scan Backward using datasets_restorable")
}

// TestRestoredStays checks that a dataset that was restored and deleted again has a new grace period.
func TestRestoredStays(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	made := b.create(t, ada, "n", "d")

	for i := range 3 {
		require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, dataset("n", "d")), strconv.Itoa(i))
		b.passed.Add((grace - time.Minute).Milliseconds())
		_, err := b.restore(t, ada, made.ID, "")
		require.NoError(t, err)
		require.Zero(t, b.count(t, `SELECT count(*) FROM lake_tables WHERE removed_at IS NOT NULL`))
	}
}
