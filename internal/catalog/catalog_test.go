package catalog

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

func TestCheckName(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"a", "0", "A.b_c-d", "9..", strings.Repeat("n", 128)} {
		require.NoError(t, CheckName("f", name), name)
	}

	for _, name := range []string{"", ".a", "-a", "_a", "a b", "a/b", "ä", "a\n", "a\x00", "a%", strings.Repeat("n", 129)} {
		err := CheckName("f", name)
		require.Equal(t, fault.ValidationFailed, code(err), name)
		require.Equal(t, "f", fault.From(err).Subs[0].Code)
	}
}

// TestExposure checks that a dataset without its own exposure has that of its namespace, and none if neither was set.
func TestExposure(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	at, home := dataset("n", "d"), Path{Username: "ada", Namespace: "n"}

	exposure := func() Exposure {
		described, err := b.catalog.Describe(t.Context(), ada, at)
		require.NoError(t, err)

		return described.Exposure
	}

	made, err := b.catalog.CreateNamespace(t.Context(), ada, NewNamespace{Name: "n"})
	require.NoError(t, err)
	require.Empty(t, made.Exposure)
	require.Empty(t, b.create(t, ada, "n", "d").Exposure)
	require.Equal(t, SchemaExposed, b.catalog.Exposed(made.Exposure), "the least where the operator said nothing either")

	changed, err := b.catalog.UpdateNamespace(t.Context(), ada, home, NamespaceChange{Exposure: "rows"})
	require.NoError(t, err)
	require.EqualValues(t, "rows", changed.Exposure)
	require.EqualValues(t, "rows", exposure())

	updated, err := b.catalog.UpdateDataset(t.Context(), ada, at, DatasetChange{Exposure: "values"})
	require.NoError(t, err)
	require.EqualValues(t, "values", updated.Exposure)
	require.Equal(t, "d", updated.Name)

	_, err = b.catalog.UpdateNamespace(t.Context(), ada, home, NamespaceChange{Exposure: "schema"})
	require.NoError(t, err)
	require.EqualValues(t, "values", exposure())

	_, err = b.catalog.UpdateDataset(t.Context(), ada, at, DatasetChange{Name: "D"})
	require.NoError(t, err)
	require.EqualValues(t, "values", exposure(), "a rename leaves it")

	given, err := b.catalog.CreateNamespace(t.Context(), ada, NewNamespace{Name: "m", Exposure: "rows"})
	require.NoError(t, err)
	require.EqualValues(t, "rows", given.Exposure)
	require.EqualValues(t, "rows", b.create(t, ada, "m", "d").Exposure)

	_, err = b.catalog.UpdateDataset(t.Context(), ada, at, DatasetChange{})
	require.Equal(t, fault.ValidationFailed, code(err))

	bob := b.signIn(t, "bob")
	b.share(t, ada, home, "bob", auth.Editor)
	_, err = b.catalog.UpdateNamespace(t.Context(), bob, home, NamespaceChange{Exposure: "rows"})
	require.Equal(t, fault.Forbidden, code(err))
	_, err = b.catalog.UpdateNamespace(t.Context(), bob, Path{Username: "ada", Namespace: "m"}, NamespaceChange{Exposure: "rows"})
	require.Equal(t, fault.NotFound, code(err))
}

func TestGrantees(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	b.signIn(t, "bob")
	b.create(t, ada, "n", "d")

	for _, grantee := range []string{"", "@", "self", "SELF", "ada", "ADA", "-x", "a b", "ä", strings.Repeat("x", 129), "@" + strings.Repeat("g", 256)} {
		err := b.catalog.Share(t.Context(), ada, dataset("n", "d"), NewShare{Grantee: grantee, Role: auth.Viewer})
		require.Equal(t, fault.ValidationFailed, code(err), grantee)
		require.Equal(t, "username", fault.From(err).Subs[0].Code)
		require.Equal(t, fault.NotFound, code(b.catalog.Unshare(t.Context(), ada, dataset("n", "d"), grantee)), grantee)
	}

	for _, grantee := range []string{"Bob", "x@example.org", "@Größe & mehr", "@" + strings.Repeat("ä", 255), "@bob", "@self"} {
		b.share(t, ada, dataset("n", "d"), grantee, auth.Viewer)
	}

	b.share(t, ada, dataset("n", "d"), "BOB", auth.Editor)

	shares, err := b.catalog.Shares(t.Context(), ada, dataset("n", "d"))
	require.NoError(t, err)
	require.Equal(t, []Share{
		{Grantee: "@Größe & mehr", Role: auth.Viewer},
		{Grantee: "@bob", Role: auth.Viewer},
		{Grantee: "@self", Role: auth.Viewer},
		{Grantee: "@" + strings.Repeat("ä", 255), Role: auth.Viewer},
		{Grantee: "bob", Role: auth.Editor},
		{Grantee: "x@example.org", Role: auth.Viewer, Pending: true},
	}, shares)

	// A username, a group with that name and an account with that id are three different subjects.
	outsider := b.signIn(t, "cyd", "x@example.org")
	require.Empty(t, b.all(t, outsider, 10))
	b.requireSound(t)
}

// TestRepeats checks that a request with the same key creates nothing new, whatever has happened since.
func TestRepeats(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	once := func(operation string) auth.Once {
		return auth.Once{Key: "k", Operation: operation, RequestHash: sha256.Sum256([]byte(operation))}
	}

	namespace := func() Namespace {
		made, err := b.catalog.CreateNamespace(t.Context(), ada, NewNamespace{Name: "n", Exposure: "values", Once: once("createNamespace")})
		require.NoError(t, err)

		return made
	}
	first := namespace()
	require.Equal(t, first, namespace())

	made := func() Description {
		made, err := b.catalog.CreateDataset(t.Context(), ada, NewDataset{
			Namespace: "n", Name: "d", Definition: Change{DataDescription: new("text")}, Once: once("createDataset"),
		})
		require.NoError(t, err)

		return made
	}
	dataset1 := made()
	require.EqualValues(t, 1, dataset1.Definition.Revision)
	require.Equal(t, dataset1, made())

	share := func() {
		require.NoError(t, b.catalog.Share(t.Context(), ada, dataset("n", "d"), NewShare{Grantee: "bob", Role: auth.Viewer, Once: once("share")}))
	}
	share()
	require.NoError(t, b.catalog.Unshare(t.Context(), ada, dataset("n", "d"), "bob"))
	share()
	require.Empty(t, b.all(t, bob, 10), "it was taken away since")

	_, err := b.catalog.UpdateDataset(t.Context(), ada, dataset("n", "d"), DatasetChange{Name: "renamed"})
	require.NoError(t, err)
	require.Equal(t, dataset1.ID, made().ID)
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, dataset("n", "renamed")))
	require.Equal(t, dataset1.ID, made().ID, "no second one")

	other := once("createDataset")
	other.RequestHash = sha256.Sum256([]byte("another body"))
	_, err = b.catalog.CreateDataset(t.Context(), ada, NewDataset{Namespace: "n", Name: "d", Once: other})
	require.Equal(t, fault.ValidationFailed, code(err))

	_, err = b.catalog.CreateDataset(t.Context(), bob, NewDataset{Namespace: "n", Name: "d", Once: once("createDataset")})
	require.NoError(t, err, "another caller's key is another key")

	b.passed.Add((25 * time.Hour).Milliseconds())
	require.NotEqual(t, dataset1.ID, made().ID, "a key is forgotten after a day")
}

// TestLesserTokens checks that a token allows the lower of its own role and the role of its account.
func TestLesserTokens(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	b.create(t, ada, "n", "d")

	with := func(role auth.Role) auth.Principal {
		who := ada
		who.Token = &auth.Grant{Role: role}

		return who
	}

	_, err := b.catalog.CreateDataset(t.Context(), with(auth.Viewer), NewDataset{Namespace: "n", Name: "e"})
	require.Equal(t, fault.Forbidden, code(err))
	_, err = b.catalog.CreateNamespace(t.Context(), with(auth.Viewer), NewNamespace{Name: "m"})
	require.Equal(t, fault.Forbidden, code(err))
	_, err = clearAlone(b.catalog, t.Context(), with(auth.Viewer), dataset("n", "d"))
	require.Equal(t, fault.Forbidden, code(err))

	b.create(t, with(auth.Editor), "m", "e")
	require.Equal(t, fault.Forbidden, code(b.catalog.DeleteDataset(t.Context(), with(auth.Editor), dataset("m", "e"))))
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), with(auth.Owner), dataset("m", "e")))

	for _, role := range []auth.Role{auth.Viewer, auth.Editor, auth.Owner} {
		for _, item := range b.all(t, with(role), 10) {
			require.Equal(t, role, item.Role(with(role)))
		}
	}
}

func TestDefinition(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	b.create(t, ada, "n", "d")

	put := func(change Change, expected []int64) (Definition, error) {
		return b.catalog.PutDefinition(t.Context(), ada, dataset("n", "d"), change, expected)
	}

	empty, err := b.catalog.GetDefinition(t.Context(), ada, dataset("n", "d"))
	require.NoError(t, err)
	require.Equal(t, Definition{SchemaDefinition: map[string]string{}}, empty)

	_, err = put(Change{}, nil)
	require.Equal(t, fault.ValidationFailed, code(err))

	saved, err := put(Change{SchemaDefinition: &map[string]string{"a": "1", "b": "2"}}, []int64{7, 0})
	require.NoError(t, err)
	require.Equal(t, Definition{Revision: 1, SchemaDefinition: map[string]string{"a": "1", "b": "2"}}, saved)

	saved, err = put(Change{DataDescription: new("text")}, nil)
	require.NoError(t, err)
	require.Equal(t, Definition{Revision: 2, DataDescription: "text", SchemaDefinition: map[string]string{"a": "1", "b": "2"}}, saved, "an absent field keeps its value")

	saved, err = put(Change{SchemaDefinition: &map[string]string{"c": "3"}}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"c": "3"}, saved.SchemaDefinition, "the whole map is replaced")

	saved, err = put(Change{DataDescription: new(""), SchemaDefinition: &map[string]string{}}, nil)
	require.NoError(t, err)
	require.Equal(t, Definition{Revision: 4, SchemaDefinition: map[string]string{}}, saved)

	for _, stale := range [][]int64{{0}, {3}, {5}, {-1}, {3, 5}, {}} {
		_, err = put(Change{DataDescription: new("late")}, stale)
		require.Equal(t, fault.PreconditionFailed, code(err))
	}

	again, err := b.catalog.GetDefinition(t.Context(), ada, dataset("n", "d"))
	require.NoError(t, err)
	require.Equal(t, saved, again)
	b.requireSound(t)
}
