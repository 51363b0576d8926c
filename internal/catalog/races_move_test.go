package catalog

import (
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// moveAgainstAll checks that a dataset that is moved to two namespaces at once, while one of them is deleted and grants change,
// is in exactly one live namespace, and that the directory agrees with the grants.
func moveAgainstAll(a arena, name string) {
	a.create(a, a.ada, "n"+name, "d")
	a.share(a, a.ada, dataset("n"+name, "d"), "bob", auth.Viewer)

	for _, namespace := range []string{"a" + name, "b" + name} {
		_, err := a.catalog.CreateNamespace(a.Context(), a.ada, NewNamespace{Name: namespace})
		require.NoError(a, err)
	}

	at := dataset("n"+name, "d")
	move := func(namespace string) func() error {
		return func() error {
			_, err := a.catalog.UpdateDataset(a.Context(), a.ada, at, DatasetChange{Namespace: namespace})

			return err
		}
	}

	codes := atOnce(
		move("a"+name), move("b"+name),
		func() error {
			return a.catalog.DeleteNamespace(a.Context(), a.ada, Path{Username: "ada", Namespace: "b" + name})
		},
		func() error {
			return a.catalog.Share(a.Context(), a.ada, at, NewShare{Grantee: "@group", Role: auth.Viewer})
		},
		func() error {
			_, err := a.catalog.Leave(a.Context(), a.bob, at)

			return err
		},
	)
	require.Subset(a, []fault.Code{"", fault.NotFound, fault.Conflict}, codes)
	require.Equal(a, 1, a.count(a, `
		SELECT count(*) FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id
		WHERE d.live AND n.deleted_at IS NULL AND n.name_key IN ('n' || $1, 'a' || $1, 'b' || $1)`, name), codes)
}

// renameNamespaceAgainstRename checks that two namespaces never get the same name.
func renameNamespaceAgainstRename(a arena, name string) {
	rename := func(namespace string) func() error {
		_, err := a.catalog.CreateNamespace(a.Context(), a.ada, NewNamespace{Name: namespace})
		require.NoError(a, err)

		return func() error {
			_, err := a.catalog.UpdateNamespace(a.Context(), a.ada, Path{Username: "ada", Namespace: namespace}, NamespaceChange{Name: "new" + name})

			return err
		}
	}

	require.ElementsMatch(a, []fault.Code{"", fault.Conflict}, atOnce(rename("a"+name), rename("b"+name)))
}
