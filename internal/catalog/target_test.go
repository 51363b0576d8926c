package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

func TestTargetsAndPaths(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	b.create(t, ada, "Sales", "Orders")
	b.create(t, ada, "Private", "Notes")
	b.create(t, bob, "own", "d")
	b.share(t, ada, orders, "bob", auth.Viewer)

	given := []Path{{Username: auth.Self, Namespace: "own"}, orders, {Username: "BOB", Namespace: "OWN", Dataset: "D"}, orders}
	targets, err := b.targets(t, bob, given...)
	require.NoError(t, err)
	require.Len(t, targets, 3, "each once")

	paths := func() []Path {
		paths, err := b.catalog.Paths(t.Context(), bob, targets)
		require.NoError(t, err)

		return paths
	}
	own := []Path{{Username: "bob", Namespace: "own"}, {Username: "bob", Namespace: "own", Dataset: "d"}}
	require.ElementsMatch(t, append(own, Path{Username: "ada", Namespace: "Sales", Dataset: "Orders"}), paths())

	for name, unseen := range map[string]Path{
		"a namespace of which only a dataset is shared": {Username: "ada", Namespace: "sales"},
		"somebody else's":            {Username: "ada", Namespace: "private", Dataset: "notes"},
		"a name that is not there":   {Username: "bob", Namespace: "own", Dataset: "nothing"},
		"a user who is not there":    {Username: "nobody", Namespace: "own"},
		"a name that nothing can be": {Username: "bob", Namespace: strings.Repeat("n", 200)},
	} {
		_, err := b.targets(t, bob, orders, unseen)
		require.Equal(t, fault.Invalid("accessRestrictedTo.1", unseenTarget(unseen)), err, name)
	}

	_, err = b.catalog.UpdateDataset(t.Context(), ada, orders, DatasetChange{Name: "Renamed"})
	require.NoError(t, err)
	require.ElementsMatch(t, append(own, Path{Username: "ada", Namespace: "Sales", Dataset: "Renamed"}), paths())

	require.NoError(t, b.catalog.Unshare(t.Context(), ada, Path{Username: "ada", Namespace: "sales", Dataset: "renamed"}, "bob"))
	require.ElementsMatch(t, own, paths(), "names of what one cannot see are not told")

	require.NoError(t, b.catalog.DeleteDataset(t.Context(), bob, Path{Username: "bob", Namespace: "own", Dataset: "d"}))
	b.create(t, bob, "own", "d")
	require.ElementsMatch(t, own[:1], paths(), "a re-created one is not it")

	none, err := b.catalog.Paths(t.Context(), bob, nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestTokenOfADataset creates and reads back a token for a dataset, as a request does.
func TestTokenOfADataset(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	b.exec(t, `INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
		VALUES ($1, 'person', 'bob', 'i', 's', '', '', '{}', now(), now())`, bob.Account)

	made := b.create(t, ada, "Sales", "Orders")
	b.create(t, ada, "Sales", "Other")
	b.create(t, bob, "own", "d")
	b.share(t, ada, Path{Username: "ada", Namespace: "sales"}, "bob", auth.Editor)

	tokens := auth.Tokens{DB: b.db, Now: time.Now, DefaultLifetime: time.Hour, MaxLifetime: time.Hour}
	token, value, err := tokens.Create(t.Context(), bob, auth.NewToken{Name: "t", Targets: b.catalog.Targets(bob, []Path{orders})})
	require.NoError(t, err)
	require.Equal(t, []auth.Target{{Kind: kindDataset, Account: ada.Account, ID: made.ID}}, token.Targets)

	authenticator, err := auth.New(auth.Config{DB: b.db, Now: time.Now, Issuer: "https://issuer.test", Audiences: []string{"quern"}, Algorithms: []string{"RS256"}})
	require.NoError(t, err)
	bearer, err := authenticator.Authenticate(t.Context(), value, auth.Origin{})
	require.NoError(t, err)

	require.Equal(t, []string{"ada/Sales/Orders"}, names(b.all(t, bearer, 10)))
	listed, err := b.datasets(t, bearer, Path{Username: "ada", Namespace: "sales"}, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"ada/Sales/Orders"}, names(listed))

	namespaces := b.namespaces(t, bearer, "ada", 10)
	require.Len(t, namespaces, 1)
	require.Empty(t, namespaces[0].Role(bearer), "the namespace is only where it is")
	require.Empty(t, b.namespaces(t, bearer, auth.Self, 10))

	_, err = b.datasets(t, bearer, Path{Username: auth.Self, Namespace: "own"}, 10)
	require.Equal(t, fault.NotFound, code(err), "not even what is the bearer's own")

	_, err = clearAlone(b.catalog, t.Context(), bearer, orders)
	require.NoError(t, err, "an editor's work")
	require.Equal(t, fault.Forbidden, code(b.catalog.DeleteDataset(t.Context(), bearer, orders)))
	require.Equal(t, fault.Forbidden, code(b.catalog.Share(t.Context(), bearer, orders, NewShare{Grantee: "cyd", Role: auth.Viewer})))

	for name, want := range map[string]NewDataset{
		"in a new namespace": {Namespace: "new", Name: "d"}, "in an old one": {Namespace: "own", Name: "e"},
	} {
		_, err = b.catalog.CreateDataset(t.Context(), bearer, want)
		require.Equal(t, fault.Forbidden, code(err), name)
	}

	_, err = b.catalog.CreateNamespace(t.Context(), bearer, NewNamespace{Name: "new"})
	require.Equal(t, fault.Forbidden, code(err))

	// A token for a namespace of its own account can create datasets in that namespace and in no other.
	home := b.token(t, bob, auth.Editor, Path{Username: auth.Self, Namespace: "own"})
	b.create(t, home, "OWN", "e")
	require.Equal(t, []string{"bob/own/d", "bob/own/e"}, names(b.all(t, home, 1)))

	// Rename, delete and re-create the dataset that the token names.
	_, err = b.catalog.UpdateDataset(t.Context(), ada, orders, DatasetChange{Name: "Renamed"})
	require.NoError(t, err)
	require.Equal(t, []string{"ada/Sales/Renamed"}, names(b.all(t, bearer, 10)))

	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, Path{Username: "ada", Namespace: "sales", Dataset: "renamed"}))
	b.create(t, ada, "sales", "renamed")
	require.Empty(t, b.all(t, bearer, 10))
	require.Empty(t, b.namespaces(t, bearer, "ada", 10))

	nothing := bob
	nothing.Token = &auth.Grant{ID: uuid.New(), Role: auth.Editor, Restricted: true}
	require.Empty(t, b.all(t, nothing, 10), "restricted to nothing")
}

// TestTokenOfARevokedNamespace checks a token for a whole namespace after its account has lost all but one dataset of
// that namespace.
func TestTokenOfARevokedNamespace(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	home := Path{Username: "ada", Namespace: "n"}

	for _, name := range []string{"d1", "d2", "d3", "d4"} {
		b.create(t, ada, "n", name)
	}

	b.share(t, ada, home, "bob", auth.Viewer)
	b.share(t, ada, Path{Username: "ada", Namespace: "n", Dataset: "d4"}, "bob", auth.Editor)
	bearer := b.token(t, bob, auth.Viewer, home, Path{Username: "ada", Namespace: "n", Dataset: "d4"})
	require.NoError(t, b.catalog.Unshare(t.Context(), ada, home, "bob"))

	described, err := b.catalog.Describe(t.Context(), bearer, Path{Username: "ada", Namespace: "n", Dataset: "d4"})
	require.NoError(t, err)

	for limit := 1; limit <= 5; limit++ {
		all := b.all(t, bearer, limit)
		require.Len(t, all, 1, "limit %d", limit)
		require.Equal(t, described.ID, all[0].ID)

		listed, err := b.datasets(t, bearer, home, limit)
		require.NoError(t, err)
		require.Len(t, listed, 1, "limit %d", limit)
		require.Len(t, b.namespaces(t, bearer, "ada", limit), 1)
	}

	require.NoError(t, b.catalog.Unshare(t.Context(), ada, Path{Username: "ada", Namespace: "n", Dataset: "d4"}, "bob"))
	require.Empty(t, b.all(t, bearer, 2))
	require.Empty(t, b.namespaces(t, bearer, "ada", 2))

	_, err = b.datasets(t, bearer, home, 2)
	require.Equal(t, fault.NotFound, code(err))
}
