package catalog

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// atOnce runs functions at the same time and returns the fault code of each.
func atOnce(racers ...func() error) []fault.Code {
	var (
		codes = make([]fault.Code, len(racers))
		start = make(chan struct{})
		race  errgroup.Group
	)

	for i, run := range racers {
		race.Go(func() error {
			<-start

			codes[i] = code(run())

			return nil
		})
	}

	close(start)

	_ = race.Wait() // each error is returned as a code

	return codes
}

// arena contains the accounts of ada and bob on their own database, for one kind of race.
type arena struct {
	*bundle
	*testing.T

	ada, bob auth.Principal
}

// TestCatalogRaces checks that two concurrent operations end as if one had come before the other.
func TestCatalogRaces(t *testing.T) {
	t.Parallel()

	for name, race := range map[string]func(a arena, name string){
		"rename against read":                     renameAgainstRead,
		"delete against grant":                    deleteAgainstGrant,
		"two creates of one dataset":              createAgainstCreate,
		"two creates of one namespace":            createNamespaceAgainstCreate,
		"share against delete of the namespace":   shareAgainstDelete,
		"definition against definition":           defineAgainstDefine,
		"delete of the namespace against create":  deleteAgainstCreate,
		"shares against revocations":              shareAgainstUnshare,
		"first sign-in and binding against share": shareAgainstBind,
		"restore against create":                  restoreAgainstCreate,
		"restore against restore":                 restoreAgainstRestore,
		"restores by the owner":                   ownRestores,
		"restore of a namespace against create":   restoreNamespaceAgainstCreate,
		"restore of a namespace against erasing":  restoreNamespaceAgainstErase,
		"restore against transfer":                restoreAgainstTransfer,
		"rename against rename":                   renameAgainstRename,
		"transfer against change":                 transferAgainstChange,
		"moves against shares and deletes":        moveAgainstAll,
		"rename of two namespaces":                renameNamespaceAgainstRename,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := newBundle(t)
			a := arena{bundle: b, T: t, ada: b.signIn(t, "ada"), bob: b.signIn(t, "bob")}

			for i := range loops(200) {
				race(a, strconv.Itoa(i))
			}

			b.requireSound(t)
		})
	}
}

func dataset(namespace, name string) Path {
	return Path{Username: "ada", Namespace: namespace, Dataset: name}
}

// renameAgainstRead checks that a reader who reads the old path and then, if that is not found, the new path always
// finds the same dataset.
func renameAgainstRead(a arena, name string) {
	made := a.create(a, a.ada, "n", name)
	from, to := dataset("n", name), dataset("n", name+"-new")

	read := func() error {
		for {
			old, err := a.catalog.Describe(a.Context(), a.ada, from)
			if err == nil {
				if old.ID != made.ID {
					return fault.New(fault.Internal, "another dataset at the old path")
				}

				continue
			}

			if !fault.Is(err, fault.NotFound) {
				return err
			}

			renamed, err := a.catalog.GetDefinition(a.Context(), a.ada, to)
			if err == nil && renamed.Revision != made.Definition.Revision {
				return fault.New(fault.Internal, "another definition at the new path")
			}

			return err
		}
	}

	require.Equal(a, []fault.Code{"", "", ""}, atOnce(read, read, func() error {
		_, err := a.catalog.UpdateDataset(a.Context(), a.ada, from, DatasetChange{Name: to.Dataset})

		return err
	}))

	renamed, err := a.catalog.Describe(a.Context(), a.ada, to)
	require.NoError(a, err)
	require.Equal(a, made.ID, renamed.ID)

	_, err = a.catalog.Describe(a.Context(), a.ada, from)
	require.Equal(a, fault.NotFound, code(err))
}

// deleteAgainstGrant checks that the grant is refused or stays with the deleted dataset, and that a new dataset of
// that name inherits nothing.
func deleteAgainstGrant(a arena, name string) {
	dead, at := a.create(a, a.ada, "n", name), dataset("n", name)

	codes := atOnce(
		func() error { return a.catalog.DeleteDataset(a.Context(), a.ada, at) },
		func() error {
			return a.catalog.Share(a.Context(), a.ada, at, NewShare{Grantee: "bob", Role: auth.Editor})
		},
		func() error {
			return a.catalog.Share(a.Context(), a.ada, at, NewShare{Grantee: "newcomer", Role: auth.Viewer})
		},
	)
	require.Empty(a, codes[0])

	granted := 0

	for _, outcome := range codes[1:] {
		if outcome == "" {
			granted++
		} else {
			require.Equal(a, fault.NotFound, outcome)
		}
	}

	namesake := a.create(a, a.ada, "n", name)
	require.Equal(a, granted, a.count(a, `SELECT count(*) FROM grants WHERE target_id = $1`, dead.ID))
	require.Equal(a, granted, a.count(a, `SELECT count(*) FROM directory_grants WHERE dataset_id = $1`, dead.ID))
	require.Zero(a, a.count(a, `SELECT count(*) FROM grants WHERE target_id = $1`, namesake.ID))

	_, err := a.catalog.Describe(a.Context(), a.bob, at)
	require.Equal(a, fault.NotFound, code(err))
	require.Empty(a, a.all(a, a.bob, 2))
}

func createAgainstCreate(a arena, name string) {
	create := func(spelling string) func() error {
		return func() error {
			_, err := a.catalog.CreateDataset(a.Context(), a.ada, NewDataset{Namespace: "n" + name, Name: spelling + name})

			return err
		}
	}

	require.ElementsMatch(a, []fault.Code{"", fault.Conflict, fault.Conflict}, atOnce(create("d"), create("D"), create("d")))

	list, err := a.datasets(a, a.ada, Path{Username: auth.Self, Namespace: "n" + name}, 10)
	require.NoError(a, err)
	require.Len(a, list, 1)
}

func createNamespaceAgainstCreate(a arena, name string) {
	create := func(spelling string) func() error {
		return func() error {
			_, err := a.catalog.CreateNamespace(a.Context(), a.ada, NewNamespace{Name: spelling + name})

			return err
		}
	}

	require.ElementsMatch(a, []fault.Code{"", fault.Conflict, fault.Conflict}, atOnce(create("n"), create("N"), create("n")))
	require.Equal(a, 1, a.count(a, `SELECT count(*) FROM namespaces WHERE account_id = $1 AND name_key = $2`, a.ada.Account, "n"+name))
}

// shareAgainstDelete checks that nobody sees a deleted namespace, and that it is restored with exactly the grants that it had.
func shareAgainstDelete(a arena, name string) {
	made, err := a.catalog.CreateNamespace(a.Context(), a.ada, NewNamespace{Name: name})
	require.NoError(a, err)

	at := Path{Username: "ada", Namespace: name}
	a.share(a, a.ada, at, "@group", auth.Viewer)

	codes := atOnce(
		func() error { return a.catalog.DeleteNamespace(a.Context(), a.ada, at) },
		func() error {
			return a.catalog.Share(a.Context(), a.ada, at, NewShare{Grantee: "bob", Role: auth.Viewer})
		},
		func() error { return a.catalog.Unshare(a.Context(), a.ada, at, "@group") },
	)
	require.Empty(a, codes[0])
	require.Subset(a, []fault.Code{"", fault.NotFound}, codes[1:])
	require.Empty(a, a.namespaces(a, a.bob, "ada", 10))

	_, err = a.catalog.Restore(a.Context(), a.ada, Restoration{ID: made.ID})
	require.NoError(a, err)

	var want []Share
	if codes[2] != "" {
		want = append(want, Share{Grantee: "@group", Role: auth.Viewer})
	}

	if codes[1] == "" {
		want = append(want, Share{Grantee: "bob", Role: auth.Viewer})
	}

	shares, err := a.catalog.Shares(a.Context(), a.ada, at)
	require.NoError(a, err)
	require.ElementsMatch(a, want, shares)
	require.NoError(a, a.catalog.DeleteNamespace(a.Context(), a.ada, at))
}

// defineAgainstDefine checks that, of two callers who have read the same revision, one succeeds and the other gets
// PreconditionFailed.
func defineAgainstDefine(a arena, name string) {
	a.create(a, a.ada, "n", name)
	a.share(a, a.ada, dataset("n", name), "bob", auth.Editor)

	for revision := range int64(3) {
		put := func(who auth.Principal) func() error {
			return func() error {
				saved, err := a.catalog.PutDefinition(a.Context(), who, dataset("n", name), Change{DataDescription: new(who.Username)}, []int64{revision})
				if err == nil && saved.Revision != revision+1 {
					return fault.New(fault.Internal, "a revision was left out")
				}

				return err
			}
		}

		codes := atOnce(put(a.ada), put(a.bob))
		require.ElementsMatch(a, []fault.Code{"", fault.PreconditionFailed}, codes)

		winner := a.ada
		if codes[1] == "" {
			winner = a.bob
		}

		definition, err := a.catalog.GetDefinition(a.Context(), a.ada, dataset("n", name))
		require.NoError(a, err)
		require.Equal(a, Definition{Revision: revision + 1, DataDescription: winner.Username, SchemaDefinition: map[string]string{}}, definition)
	}

	// Without If-Match both are saved, one after the other.
	put := func(change Change) func() error {
		return func() error {
			_, err := a.catalog.PutDefinition(a.Context(), a.ada, dataset("n", name), change, nil)

			return err
		}
	}
	schema := map[string]string{"a": "b"}
	require.Equal(a, []fault.Code{"", ""}, atOnce(put(Change{DataDescription: new("both")}), put(Change{SchemaDefinition: &schema})))

	definition, err := a.catalog.GetDefinition(a.Context(), a.ada, dataset("n", name))
	require.NoError(a, err)
	require.Equal(a, Definition{Revision: 5, DataDescription: "both", SchemaDefinition: schema}, definition)
}

// deleteAgainstCreate checks that the new dataset prevents the deletion of the namespace or is created in a new
// namespace of that name.
func deleteAgainstCreate(a arena, name string) {
	_, err := a.catalog.CreateNamespace(a.Context(), a.ada, NewNamespace{Name: name})
	require.NoError(a, err)

	codes := atOnce(
		func() error {
			return a.catalog.DeleteNamespace(a.Context(), a.ada, Path{Username: "ada", Namespace: name})
		},
		func() error {
			_, err := a.catalog.CreateDataset(a.Context(), a.ada, NewDataset{Namespace: name, Name: "d"})

			return err
		},
	)
	require.Contains(a, []fault.Code{"", fault.Conflict}, codes[0])
	require.Empty(a, codes[1])

	_, err = a.catalog.Describe(a.Context(), a.ada, dataset(name, "d"))
	require.NoError(a, err)
}

// shareAgainstUnshare checks that one grant with its inverse remains, or neither.
func shareAgainstUnshare(a arena, name string) {
	var racers []func() error

	a.create(a, a.ada, "n", name)

	for _, at := range []Path{dataset("n", name), {Username: "ada", Namespace: "n"}} {
		for _, role := range []auth.Role{auth.Viewer, auth.Editor} {
			racers = append(racers,
				func() error { return a.catalog.Share(a.Context(), a.ada, at, NewShare{Grantee: "bob", Role: role}) },
				func() error { return a.catalog.Unshare(a.Context(), a.ada, at, "bob") })
		}
	}

	for range 3 {
		require.Subset(a, []fault.Code{"", fault.NotFound}, atOnce(racers...))
	}

	a.requireSound(a)

	shares, err := a.catalog.Shares(a.Context(), a.ada, dataset("n", name))
	require.NoError(a, err)
	require.LessOrEqual(a, len(slices.DeleteFunc(shares, func(s Share) bool { return s.ViaNamespace })), 1)
}

// shareAgainstBind checks a share with a username while its user signs in and the operator binds the username.
func shareAgainstBind(a arena, name string) {
	a.create(a, a.ada, "n", name)

	at, newcomer := dataset("n", name), "newcomer-"+name
	a.share(a, a.ada, at, newcomer, auth.Viewer)

	who := a.signIn(a, newcomer)
	codes := atOnce(
		func() error { return a.catalog.BindName(a.Context(), newcomer, who.Account) },
		func() error {
			return a.catalog.Share(a.Context(), a.ada, at, NewShare{Grantee: newcomer, Role: auth.Editor})
		},
		func() error { return a.catalog.BindName(a.Context(), newcomer, who.Account) },
	)
	require.Equal(a, []fault.Code{"", "", ""}, codes)
	a.requireSound(a)

	shares, err := a.catalog.Shares(a.Context(), a.ada, at)
	require.NoError(a, err)
	require.Equal(a, []Share{{Grantee: newcomer, Role: auth.Editor}}, shares)
	require.Len(a, a.all(a, who, 2), 1)

	require.NoError(a, a.catalog.Unshare(a.Context(), a.ada, at, newcomer))
	require.Empty(a, a.all(a, who, 2))
}

// restoreAgainstCreate checks that the first of the two gets the name when the namespace was deleted too.
func restoreAgainstCreate(a arena, name string) {
	first := a.create(a, a.ada, name, "d")
	a.share(a, a.ada, dataset(name, "d"), "bob", auth.Viewer)
	require.NoError(a, a.catalog.DeleteDataset(a.Context(), a.ada, dataset(name, "d")))
	require.NoError(a, a.catalog.DeleteNamespace(a.Context(), a.ada, Path{Username: "ada", Namespace: name}))

	codes := atOnce(
		func() error { return a.catalog.RestoreDataset(a.Context(), dataset(name, "d")) },
		func() error {
			_, err := a.catalog.CreateDataset(a.Context(), a.ada, NewDataset{Namespace: strings.ToUpper(name), Name: "d"})

			return err
		},
	)
	require.ElementsMatch(a, []fault.Code{"", fault.Conflict}, codes)

	found, err := a.catalog.Describe(a.Context(), a.ada, dataset(name, "d"))
	require.NoError(a, err)
	require.Equal(a, codes[0] == "", found.ID == first.ID)

	if codes[0] == "" {
		require.NoError(a, a.catalog.Unshare(a.Context(), a.ada, dataset(name, "d"), "bob"))
	}

	require.Empty(a, a.all(a, a.bob, 2))
}

func restoreAgainstRestore(a arena, name string) {
	a.create(a, a.ada, "n", name)
	require.NoError(a, a.catalog.DeleteDataset(a.Context(), a.ada, dataset("n", name)))

	restore := func() error { return a.catalog.RestoreDataset(a.Context(), dataset("n", name)) }
	require.ElementsMatch(a, []fault.Code{"", fault.NotFound}, atOnce(restore, restore))

	found, err := a.catalog.Describe(a.Context(), a.ada, dataset("n", name))
	require.NoError(a, err)
	require.EqualValues(a, 2, found.Epoch, "deleted, restored")
}

// renameAgainstRename checks two datasets that are renamed to the same name.
func renameAgainstRename(a arena, name string) {
	rename := func(from string) func() error {
		a.create(a, a.ada, name, from)

		return func() error {
			_, err := a.catalog.UpdateDataset(a.Context(), a.ada, dataset(name, from), DatasetChange{Name: "wanted"})

			return err
		}
	}

	require.ElementsMatch(a, []fault.Code{"", fault.Conflict}, atOnce(rename("one"), rename("two")))
}

// transferAgainstChange checks that a change during a transfer is refused or is transferred too.
func transferAgainstChange(a arena, name string) {
	made := a.create(a, a.ada, "n", name)
	a.share(a, a.ada, dataset("n", name), "@group", auth.Viewer)

	codes := atOnce(
		func() error { return a.catalog.TransferDataset(a.Context(), dataset("n", name), "bob", moveTable) },
		func() error { return a.catalog.Unshare(a.Context(), a.ada, dataset("n", name), "@group") },
		func() error {
			_, err := a.catalog.PutDefinition(a.Context(), a.ada, dataset("n", name), Change{DataDescription: new("late")}, nil)

			return err
		},
		func() error {
			_, err := a.catalog.UpdateDataset(a.Context(), a.ada, dataset("n", name), DatasetChange{Name: name + "-new"})

			return err
		},
		func() error {
			_, err := clearAlone(a.catalog, a.Context(), a.ada, dataset("n", name))

			return err
		},
	)
	require.Subset(a, []fault.Code{"", fault.NotFound}, codes)
	a.requireSound(a)

	if codes[0] != "" {
		require.Empty(a, codes[3], "it was renamed before")

		return
	}

	if codes[3] == "" {
		name += "-new"
	}

	at := Path{Username: "bob", Namespace: "n", Dataset: name}
	moved, err := a.catalog.Describe(a.Context(), a.bob, at)
	require.NoError(a, err, "%v", codes)
	require.Equal(a, made.ID, moved.ID)

	shares, err := a.catalog.Shares(a.Context(), a.bob, at)
	require.NoError(a, err)
	require.Equal(a, codes[1] == "", len(shares) == 0, "a grant that was taken away stays away")
	require.Equal(a, codes[2] == "", moved.Definition.DataDescription == "late")

	epoch := int64(1)
	if codes[4] == "" {
		epoch++
	}

	require.GreaterOrEqual(a, moved.Epoch, epoch)
}
