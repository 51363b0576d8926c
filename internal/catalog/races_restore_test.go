package catalog

import (
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// ownRestores checks that a dataset and its namespace can be restored at the same time, each more than once.
func ownRestores(a arena, name string) {
	made := a.create(a, a.ada, name, "d")
	at := Path{Username: "ada", Namespace: name}
	a.share(a, a.ada, at, "bob", auth.Viewer)
	require.NoError(a, a.catalog.DeleteDataset(a.Context(), a.ada, dataset(name, "d")))
	require.NoError(a, a.catalog.DeleteNamespace(a.Context(), a.ada, at))

	restore := func(want Restoration) func() error {
		return func() error {
			_, err := a.catalog.Restore(a.Context(), a.ada, want)

			return err
		}
	}

	require.Equal(a, []fault.Code{"", "", "", ""}, atOnce(
		restore(Restoration{ID: made.ID}), restore(Restoration{ID: made.ID}), restore(Restoration{ID: made.NamespaceID}), restore(Restoration{ID: made.NamespaceID})))

	found, err := a.catalog.Describe(a.Context(), a.ada, dataset(name, "d"))
	require.NoError(a, err)
	require.Equal(a, made.ID, found.ID)
	require.Equal(a, made.NamespaceID, found.NamespaceID)
	require.EqualValues(a, 2, found.Epoch, "deleted, restored once")
	require.Equal(a, 1, a.count(a, `SELECT count(*) FROM audit WHERE action = 'dataset.restore' AND target = $1`, made.ID.String()))
	require.Equal(a, 1, a.count(a, `SELECT count(*) FROM audit WHERE action = 'namespace.restore' AND target = $1`, made.NamespaceID.String()))
	require.Empty(a, a.deleted(a, a.ada, 2))
}

// restoreNamespaceAgainstCreate checks that the first of the two gets the name.
func restoreNamespaceAgainstCreate(a arena, name string) {
	made, err := a.catalog.CreateNamespace(a.Context(), a.ada, NewNamespace{Name: name})
	require.NoError(a, err)
	require.NoError(a, a.catalog.DeleteNamespace(a.Context(), a.ada, Path{Username: "ada", Namespace: name}))

	require.ElementsMatch(a, []fault.Code{"", fault.Conflict}, atOnce(
		func() error {
			_, err := a.catalog.Restore(a.Context(), a.ada, Restoration{ID: made.ID})

			return err
		},
		func() error {
			_, err := a.catalog.CreateNamespace(a.Context(), a.ada, NewNamespace{Name: name})

			return err
		}))
	require.Equal(a, 1, a.count(a, `SELECT count(*) FROM namespaces WHERE account_id = $1 AND name_key = $2 AND deleted_at IS NULL`, a.ada.Account, name))
}

// restoreNamespaceAgainstErase checks that a namespace at the end of its grace period is restored with its grants or not at all.
// The clock of the two is not the same, as on two machines.
func restoreNamespaceAgainstErase(a arena, name string) {
	made, err := a.catalog.CreateNamespace(a.Context(), a.ada, NewNamespace{Name: name})
	require.NoError(a, err)

	at := Path{Username: "ada", Namespace: name}
	a.share(a, a.ada, at, "bob", auth.Viewer)
	require.NoError(a, a.catalog.DeleteNamespace(a.Context(), a.ada, at))

	ahead := a.catalog
	ahead.Now = func() time.Time { return a.catalog.Now().Add(grace) }

	codes := atOnce(
		func() error {
			_, err := a.catalog.Restore(a.Context(), a.ada, Restoration{ID: made.ID})

			return err
		},
		func() error { return ahead.EraseNamespaces(a.Context()) },
	)
	require.Empty(a, codes[1])

	grants := a.count(a, `SELECT count(*) FROM grants WHERE target_id = $1`, made.ID)

	switch codes[0] {
	case "":
		require.Equal(a, 1, grants)
		require.NoError(a, a.catalog.Unshare(a.Context(), a.ada, at, "bob"))
	case fault.NotFound:
		require.Zero(a, grants)
	default:
		require.Fail(a, "another fault", codes[0])
	}

	require.Empty(a, a.deleted(a, a.ada, 2))
}

// restoreAgainstTransfer checks that a dataset has one owner at the end: the new one, or the one who restored it in between.
func restoreAgainstTransfer(a arena, name string) {
	made := a.create(a, a.ada, "n", name)

	codes := atOnce(
		func() error { return a.catalog.TransferDataset(a.Context(), dataset("n", name), "bob", moveTable) },
		func() error {
			for {
				list, _, err := a.catalog.Deleted(a.Context(), a.ada, audit.Position{}, 1)
				if err != nil || len(list) > 0 {
					_, err = a.catalog.Restore(a.Context(), a.ada, Restoration{ID: made.ID})

					return err
				}

				if _, err := a.catalog.Describe(a.Context(), a.bob, Path{Username: "bob", Namespace: "n", Dataset: name}); err == nil {
					return nil
				}
			}
		},
	)
	require.Subset(a, []fault.Code{"", fault.Conflict, fault.NotFound}, codes)

	_, err := a.catalog.Describe(a.Context(), a.bob, Path{Username: "bob", Namespace: "n", Dataset: name})
	require.Equal(a, codes[0] == "", err == nil, "%v", codes)

	_, err = a.catalog.Describe(a.Context(), a.ada, dataset("n", name))
	require.Equal(a, codes[0] == fault.Conflict, err == nil, "%v", codes)
	require.Empty(a, a.deleted(a, a.bob, 2), "what the transfer left has no table")
}
