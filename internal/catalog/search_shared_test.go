package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// shelf is a catalog in which ada has more datasets than a search looks at one by one. All have the words of their description.
type shelf struct {
	*bundle

	ada  auth.Principal
	home uuid.UUID
}

const shelfSize = 3 * sampled

func newShelf(t *testing.T) shelf {
	t.Helper()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	s := shelf{b, ada, b.create(t, ada, "n", "alpha").NamespaceID}

	b.exec(t, `
		INSERT INTO datasets (account_id, id, namespace_id, name, name_key, data_description, created_at, updated_at)
		SELECT $1, gen_random_uuid(), $2, 'dataset-' || i, 'dataset-' || i, 'region of the order', now(), now() FROM generate_series(1, $3::int) i`,
		ada.Account, s.home, shelfSize)
	s.index(t)

	return s
}

// index does what the job does.
func (s shelf) index(t *testing.T) {
	t.Helper()

	for _, batch := range []func() (int, error){
		func() (int, error) { return s.catalog.indexStale(t.Context()) },
		func() (int, error) { return s.catalog.indexShares(t.Context()) },
	} {
		for made := 1; made > 0; {
			var err error

			made, err = batch()
			require.NoError(t, err)
		}
	}
}

// shareAll shares all datasets but the newest ones with a subject, as many requests would.
func (s shelf) shareAll(t *testing.T, kind, id string, without ...string) {
	t.Helper()

	s.exec(t, `
		INSERT INTO grants (account_id, target_id, subject_kind, subject_id, role, created_at)
		SELECT account_id, id, $2, $3, 'viewer', now() FROM datasets WHERE account_id = $1 AND name LIKE 'dataset-%' AND name <> ALL (coalesce($4::text[], '{}'))`,
		s.ada.Account, kind, id, without)
	s.exec(t, `
		INSERT INTO directory_grants (subject_kind, subject_id, account_id, namespace_id, dataset_id)
		SELECT g.subject_kind, g.subject_id, g.account_id, d.namespace_id, g.target_id
		FROM grants g JOIN datasets d ON d.account_id = g.account_id AND d.id = g.target_id WHERE g.subject_kind = $1 AND g.subject_id = $2`,
		kind, id)
}

func (s shelf) at(dataset string) Path {
	return Path{Username: "ada", Namespace: "n", Dataset: dataset}
}

// requireHit checks that a search finds a dataset, or not, with and without a typing error, everywhere and within the namespace.
func (s shelf) requireHit(t tester, who auth.Principal, number int, isHit bool) {
	t.Helper()

	name := fmt.Sprint("dataset-", number)

	for _, words := range []string{name, fmt.Sprint("dattaset ", number), fmt.Sprint("region of order ", number), strconv.Itoa(number)} {
		for _, in := range []Path{{}, {Username: "ada", Namespace: "n"}} {
			page, _, err := s.catalog.Search(t.Context(), who, Search{Words: words, In: in, Limit: 5})
			if !isHit && fault.Is(err, fault.NotFound) {
				continue // nothing in the namespace is shared
			}

			require.NoError(t, err)
			require.Equal(t, isHit, len(page) > 0 && page[0].Name == name, "%s searches %q in %q", who.Username, words, in.Namespace)
		}
	}
}

// TestSearchShared checks that somebody with many single grants finds what is shared at that moment, and nothing else.
func TestSearchShared(t *testing.T) {
	t.Parallel()

	s := newShelf(t)
	bob, eve, mia := s.signIn(t, "bob"), s.signIn(t, "eve", "finance", "staff's \\ 'group"), auth.Principal{Account: uuid.Must(uuid.NewV7()), Username: "mia"}

	s.shareAll(t, auth.SubjectAccount, bob.Account.String(), "dataset-577")
	s.shareAll(t, auth.SubjectGroup, eve.Groups[1])
	s.shareAll(t, auth.SubjectName, mia.Username)
	s.requireSound(t)

	require.Zero(t, s.count(t, `SELECT count(*) FROM directory_grants WHERE indexed IS NOT TRUE`))

	for _, who := range []auth.Principal{bob, eve, mia} {
		s.requireHit(t, who, 555, true)
		require.Len(t, s.hits(t, who, "order"), MaxHits)
	}

	s.requireHit(t, bob, 577, false)
	s.requireHit(t, eve, 577, true)

	s.share(t, s.ada, s.at("dataset-577"), "bob", auth.Viewer)
	s.share(t, s.ada, s.at("dataset-577"), "bob", auth.Editor)
	s.requireHit(t, bob, 577, true)
	require.NoError(t, s.catalog.Unshare(t.Context(), s.ada, s.at("dataset-577"), "bob"))
	s.requireHit(t, bob, 577, false)

	require.NoError(t, s.catalog.Unshare(t.Context(), s.ada, s.at("dataset-555"), "@"+eve.Groups[1]))
	s.requireHit(t, eve, 555, false)
	s.requireHit(t, bob, 555, true)

	// The document is written anew and keeps the grants.
	_, err := s.catalog.UpdateDataset(t.Context(), s.ada, s.at("dataset-555"), DatasetChange{Name: "dataset-9555"})
	require.NoError(t, err)
	s.requireHit(t, bob, 9555, true)
	s.requireHit(t, eve, 9555, false)
	s.requireSound(t)

	// A program of the previous version writes it.
	s.exec(t, `UPDATE dataset_search SET document = '''=dataset9555'' ''dataset'' ''9555''' || document WHERE dataset_id = (SELECT id FROM datasets WHERE name = 'dataset-9555')`)
	s.requireHit(t, bob, 9555, true)
	s.requireSound(t)

	// Grants to a username become grants to the account, and a deleted dataset is not found.
	s.exec(t, `INSERT INTO directory_names (username, account_id) VALUES ($1, $2)`, mia.Username, mia.Account)
	require.NoError(t, s.catalog.BindName(t.Context(), mia.Username, mia.Account))
	s.requireHit(t, auth.Principal{Account: mia.Account, Username: "renamed"}, 544, true)
	s.exec(t, `UPDATE datasets SET deleted_at = now() WHERE name = 'dataset-544'`)
	s.requireHit(t, mia, 544, false)
	s.requireSound(t)
}

// TestSearchSharedWidely checks datasets with more grantees than a document has words for.
func TestSearchSharedWidely(t *testing.T) {
	t.Parallel()

	s := newShelf(t)
	bob := s.signIn(t, "bob")

	s.exec(t, `
		WITH made AS (
			INSERT INTO grants (account_id, target_id, subject_kind, subject_id, role, created_at)
			SELECT account_id, id, 'account', gen_random_uuid(), 'viewer', now() FROM datasets CROSS JOIN generate_series(1, 120) WHERE name = 'dataset-555'
			RETURNING account_id, target_id, subject_kind, subject_id)
		INSERT INTO directory_grants (subject_kind, subject_id, account_id, namespace_id, dataset_id)
		SELECT subject_kind, subject_id, account_id, $1, target_id FROM made`, s.home)
	s.shareAll(t, auth.SubjectAccount, bob.Account.String())
	s.requireSound(t)

	require.Equal(t, 21, s.count(t, `SELECT count(*) FROM directory_grants WHERE indexed IS FALSE`))
	s.requireHit(t, bob, 555, true)
	require.NoError(t, s.catalog.Unshare(t.Context(), s.ada, s.at("dataset-555"), "bob"))
	s.requireHit(t, bob, 555, false)
}

// TestSearchSharedBefore checks grants of before the documents had words for them.
func TestSearchSharedBefore(t *testing.T) {
	t.Parallel()

	s := newShelf(t)
	bob := s.signIn(t, "bob")

	s.exec(t, `ALTER TABLE directory_grants DISABLE TRIGGER USER`)
	s.shareAll(t, auth.SubjectAccount, bob.Account.String(), "dataset-577")
	s.exec(t, `ALTER TABLE directory_grants ENABLE TRIGGER USER`)

	for range 2 {
		s.requireHit(t, bob, 555, true)
		s.requireHit(t, bob, 577, false)
		s.index(t)
		s.requireSound(t)
		require.Zero(t, s.count(t, `SELECT count(*) FROM directory_grants WHERE indexed IS NOT TRUE`))
	}
}

// TestSearchSharedRaces shares and ends shares while documents are written.
func TestSearchSharedRaces(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	made := b.create(t, ada, "n", "alpha")
	at := Path{Username: "ada", Namespace: "n", Dataset: "alpha"}

	for i := range loops(200) {
		var all errgroup.Group

		for n := range 3 {
			grantee := fmt.Sprint("@group", n)

			all.Go(func() error {
				return b.catalog.Share(t.Context(), ada, at, NewShare{Grantee: grantee, Role: auth.Viewer})
			})
			all.Go(func() error {
				if err := b.catalog.Unshare(t.Context(), ada, at, grantee); !fault.Is(err, fault.NotFound) {
					return err
				}

				return nil
			})
		}

		all.Go(func() error {
			return b.db.InTx(t.Context(), func(tx postgres.Tx) error {
				return b.catalog.SetValuesTx(t.Context(), tx, made.Account, made.ID, []string{fmt.Sprint("value", i)})
			})
		})
		all.Go(func() error {
			return b.db.InTx(t.Context(), func(tx postgres.Tx) error { // as the job, which has done this long ago
				_, err := tx.Exec(t.Context(), strings.Replace(sqlIndexGrants, "indexed IS NULL", "$1 > 0", 1), indexBatch)

				return err
			})
		})
		require.NoError(t, all.Wait())
		b.requireSound(t)
	}
}
