package catalog

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

func names(items []Item) (list []string) {
	for _, item := range items {
		list = append(list, Path{Username: item.Owner, Namespace: item.Namespace, Dataset: item.Name}.String())
	}

	return list
}

// TestAllThatIsShared checks lists of many overlapping grants: by account, by username and by groups.
func TestAllThatIsShared(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada", "analysts"), b.signIn(t, "bob", "analysts", "finance")

	var want []string

	for i := range 60 {
		namespace, name := fmt.Sprintf("n%d", i%7), fmt.Sprint("d", i)
		b.create(t, ada, namespace, name)

		at := Path{Username: "ada", Namespace: namespace, Dataset: name}
		for _, grantee := range [][]string{{"bob"}, {"@analysts"}, {"bob", "@analysts", "@finance"}, {"@finance"}}[i%4] {
			b.share(t, ada, at, grantee, auth.Viewer)
		}

		want = append(want, at.String())
	}

	// Other owners share as much again with bob; one of them shares a namespace of more than a page.
	for i := range 5 {
		owner := b.signIn(t, fmt.Sprint("owner", i))

		for k := range 12 + 100*(i/4) {
			b.create(t, owner, "shared", fmt.Sprint("d", k))
			want = append(want, Path{Username: owner.Username, Namespace: "shared", Dataset: fmt.Sprint("d", k)}.String())
		}

		at := Path{Username: owner.Username, Namespace: "shared"}
		b.share(t, owner, at, []string{"bob", "@finance"}[i%2], auth.Editor)

		at.Dataset = "d5"
		b.share(t, owner, at, "bob", auth.Viewer) // the namespace already includes it
	}

	for k := range 3 {
		b.create(t, bob, "own", fmt.Sprint("d", k))
		want = append(want, Path{Username: "bob", Namespace: "own", Dataset: fmt.Sprint("d", k)}.String())
	}

	b.share(t, bob, Path{Username: "bob", Namespace: "own"}, "@finance", auth.Viewer) // a group that bob is in

	for _, limit := range []int{1, 2, 7, 25, 100} {
		require.ElementsMatch(t, want, names(b.all(t, bob, limit)), "limit %d", limit)
	}

	spaces := []string{"bob/own"}
	for i := range 7 {
		spaces = append(spaces, fmt.Sprint("ada/n", i))
	}

	for i := range 5 {
		spaces = append(spaces, fmt.Sprintf("owner%d/shared", i))
	}

	for _, limit := range []int{1, 2, 7, 100} {
		var list []string

		for after := (Position{}); ; {
			page, next, err := b.catalog.AllNamespaces(t.Context(), bob, after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), limit)

			for _, item := range page {
				list = append(list, item.Owner+"/"+item.Name)
			}

			if next == nil {
				break
			}

			after = *next
		}

		require.ElementsMatch(t, spaces, list, "limit %d", limit)
		require.Equal(t, "bob/own", list[0], "limit %d", limit)
	}

	require.Len(t, b.all(t, ada, 100), 60, "what ada shared with a group of hers is in the list once")

	page, next, err := b.catalog.All(t.Context(), bob, Position{}, 3)
	require.NoError(t, err)
	require.Len(t, page, 3)
	require.Equal(t, "bob", page[0].Owner, "one's own comes first")
	require.NotNil(t, next)
}

// TestCursorsOutliveWhatTheyPointAt checks lists whose last item is deleted, or no longer shared, before the next
// page is read.
func TestCursorsOutliveWhatTheyPointAt(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob, cyd := b.signIn(t, "ada"), b.signIn(t, "bob"), b.signIn(t, "cyd")
	home := Path{Username: "ada", Namespace: "n"}

	var ids []uuid.UUID
	for i := range 6 {
		ids = append(ids, b.create(t, ada, "n", fmt.Sprint("d", i)).ID)
		b.share(t, ada, Path{Username: "ada", Namespace: "n", Dataset: fmt.Sprint("d", i)}, "cyd", auth.Viewer)
	}

	b.share(t, ada, home, "bob", auth.Viewer)
	b.create(t, ada, "m", "last")
	b.share(t, ada, Path{Username: "ada", Namespace: "m"}, "bob", auth.Viewer)
	b.share(t, ada, Path{Username: "ada", Namespace: "m", Dataset: "last"}, "cyd", auth.Viewer)

	everybody := []auth.Principal{ada, bob, cyd}
	positions := make([]*Position, len(everybody))

	for i, who := range everybody {
		_, next, err := b.catalog.Datasets(t.Context(), who, home, uuid.Nil, 2)
		require.NoError(t, err)
		require.Equal(t, ids[1], next)

		_, positions[i], err = b.catalog.All(t.Context(), who, Position{}, 2)
		require.NoError(t, err)
	}

	// Remove the dataset that the cursors point at, the one after it and, for cyd, one more.
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, Path{Username: "ada", Namespace: "n", Dataset: "d1"}))
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, Path{Username: "ada", Namespace: "n", Dataset: "d2"}))
	require.NoError(t, b.catalog.Unshare(t.Context(), ada, Path{Username: "ada", Namespace: "n", Dataset: "d3"}, "cyd"))

	for i, who := range everybody {
		want := []string{"ada/n/d3", "ada/n/d4", "ada/n/d5"}
		if who.Username == "cyd" {
			want = want[1:]
		}

		page, next, err := b.catalog.Datasets(t.Context(), who, home, ids[1], 5)
		require.NoError(t, err)
		require.Equal(t, want, names(page))
		require.Equal(t, uuid.Nil, next)

		all, last, err := b.catalog.All(t.Context(), who, *positions[i], 5)
		require.NoError(t, err)
		require.Equal(t, append(want, "ada/m/last"), names(all))
		require.Nil(t, last)
	}

	// Remove everything after the cursor and keep something before it.
	for _, name := range []string{"d4", "d5"} {
		require.NoError(t, b.catalog.Unshare(t.Context(), ada, Path{Username: "ada", Namespace: "n", Dataset: name}, "cyd"))
	}

	page, _, err := b.catalog.Datasets(t.Context(), cyd, home, ids[1], 5)
	require.NoError(t, err)
	require.Empty(t, page)

	// Delete the namespace that the cursor is in.
	for _, name := range []string{"d0", "d3", "d4", "d5"} {
		require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, Path{Username: "ada", Namespace: "n", Dataset: name}))
	}

	require.NoError(t, b.catalog.DeleteNamespace(t.Context(), ada, home))

	for i, who := range everybody {
		_, _, err := b.catalog.Datasets(t.Context(), who, home, ids[1], 5)
		require.Equal(t, fault.NotFound, code(err))

		all, _, err := b.catalog.All(t.Context(), who, *positions[i], 5)
		require.NoError(t, err)
		require.Equal(t, []string{"ada/m/last"}, names(all))
	}
}

// TestNamesOfNobody checks that an unknown user and a user who shares nothing look the same: no namespaces, and their
// datasets are not found.
func TestNamesOfNobody(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	b.create(t, ada, "n", "d")

	for _, username := range []string{"ada", "nobody", "", "not a name"} {
		page, next, err := b.catalog.Namespaces(t.Context(), bob, username, uuid.Nil, 10)
		require.NoError(t, err)
		require.Empty(t, page)
		require.Equal(t, uuid.Nil, next)

		_, err = b.datasets(t, bob, Path{Username: username, Namespace: "n"}, 10)
		require.Equal(t, fault.Absent(), err)

		_, err = b.catalog.Describe(t.Context(), bob, Path{Username: username, Namespace: "n", Dataset: "d"})
		require.Equal(t, fault.Absent(), err)
	}
}
