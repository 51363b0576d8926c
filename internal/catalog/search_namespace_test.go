package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
)

// TestSearchNamespace checks that datasets are found by the name of their namespace, by those who may see them.
func TestSearchNamespace(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob, cyd := b.signIn(t, "ada"), b.signIn(t, "bob"), b.signIn(t, "cyd")

	b.create(t, ada, "sales", "orders")
	b.create(t, ada, "sales", "returns")
	b.create(t, ada, "web-Sales.2026", "visits")
	b.create(t, ada, "stock", "orders")
	b.create(t, ada, "stock", "sales_targets")
	b.share(t, ada, Path{Username: "ada", Namespace: "sales", Dataset: "orders"}, "bob", auth.Viewer)
	b.share(t, ada, Path{Username: "ada", Namespace: "stock"}, "bob", auth.Viewer)

	paths := func(who auth.Principal, words string) (list []string) {
		for _, hit := range b.found(t, who, Search{Words: words, Limit: 2}) {
			list = append(list, hit.Namespace+"/"+hit.Name)
		}

		return list
	}

	all := []string{"stock/sales_targets", "sales/orders", "sales/returns", "web-Sales.2026/visits"}
	require.ElementsMatch(t, all, paths(ada, "sales"))
	require.Equal(t, all[0], paths(ada, "Sale")[0], "its own name counts more")
	require.ElementsMatch(t, all[1:3], paths(ada, "sal")[1:], "the beginning of a namespace")
	require.Equal(t, "sales/orders", paths(ada, "sales/orders")[0])
	require.Equal(t, "stock/orders", paths(ada, "orders stock")[0])
	require.Equal(t, []string{"web-Sales.2026/visits"}, paths(ada, "web 2026"))
	require.Equal(t, []string{"namespace"}, b.found(t, ada, Search{Words: "web", Limit: 2})[0].MatchedIn)
	require.Empty(t, paths(ada, "s"), "no beginning of one letter")

	require.ElementsMatch(t, []string{"stock/sales_targets", "sales/orders"}, paths(bob, "sales"), "only what is shared")
	require.Empty(t, paths(bob, "web"))
	require.Empty(t, paths(cyd, "sales"))
	require.Equal(t, []string{"sales/returns"}, paths(b.token(t, ada, auth.Viewer, Path{Username: "ada", Namespace: "sales", Dataset: "returns"}), "sales"))

	_, err := b.catalog.UpdateNamespace(t.Context(), ada, Path{Username: "ada", Namespace: "sales"}, NamespaceChange{Name: "trade"})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"trade/orders", "trade/returns"}, paths(ada, "trade"))
	require.NotContains(t, paths(ada, "sales"), "trade/orders")
}
