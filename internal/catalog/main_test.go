package catalog

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loops returns the number of iterations of a loop: full for `make torture`, a tenth otherwise.
func loops(full int) int {
	if os.Getenv("QUERN_TEST_LOOPS") == "full" {
		return full
	}

	return max(1, full/10)
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// bundle is a catalog on its own database. Its clock never shows the same time twice.
type bundle struct {
	db      *postgres.DB
	catalog Catalog
	passed  atomic.Int64 // milliseconds that the clock has advanced
}

func newBundle(t *testing.T) *bundle {
	t.Helper()

	b := &bundle{db: pgtest.New(t)}
	start := time.Now()
	b.catalog = Catalog{DB: b.db, DeleteGrace: grace, Now: func() time.Time { return start.Add(time.Duration(b.passed.Add(1)) * time.Millisecond) }}

	return b
}

// signIn creates the account of a user, as the first request of a person does.
func (b *bundle) signIn(t tester, username string, groups ...string) auth.Principal {
	t.Helper()

	who := auth.Principal{Account: uuid.Must(uuid.NewV7()), Username: username, Groups: groups}
	b.exec(t, `INSERT INTO directory_names (username, account_id) VALUES ($1, $2)`, username, who.Account)

	return who
}

func (b *bundle) exec(t tester, statement string, args ...any) {
	t.Helper()

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), statement, args...)

		return err
	}))
}

func (b *bundle) count(t tester, statement string, args ...any) (n int) {
	t.Helper()

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), statement, args...).Scan(&n)
	}))

	return n
}

func (b *bundle) create(t tester, who auth.Principal, namespace, name string) Description {
	t.Helper()

	made, err := b.catalog.CreateDataset(t.Context(), who, NewDataset{Namespace: namespace, Name: name})
	require.NoError(t, err)

	return made
}

func (b *bundle) share(t tester, who auth.Principal, at Path, grantee string, role auth.Role) {
	t.Helper()

	require.NoError(t, b.catalog.Share(t.Context(), who, at, NewShare{Grantee: grantee, Role: role}))
}

// token returns the principal of a restricted token, as a request would have it.
func (b *bundle) token(t tester, who auth.Principal, role auth.Role, paths ...Path) auth.Principal {
	t.Helper()

	targets, err := b.targets(t, who, paths...)
	require.NoError(t, err)

	who.Token = &auth.Grant{ID: uuid.New(), Role: role, Restricted: true, Targets: targets}

	return who
}

func (b *bundle) targets(t tester, who auth.Principal, paths ...Path) (targets []auth.Target, err error) {
	t.Helper()

	err = b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		targets, err = b.catalog.Targets(who, paths)(t.Context(), tx)

		return err
	})

	return targets, err
}

// all reads the list of all datasets page by page.
func (b *bundle) all(t tester, who auth.Principal, limit int) (list []Item) {
	t.Helper()

	position := &Position{}
	for range maxPages {
		page, next, err := b.catalog.All(t.Context(), who, *position, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), limit)

		list = append(list, page...)
		if next == nil {
			return list
		}

		require.Len(t, page, limit, "only the last page is short")

		position = next
	}

	require.FailNow(t, "the list does not end")

	return nil
}

// datasets reads the list of a namespace page by page.
func (b *bundle) datasets(t tester, who auth.Principal, at Path, limit int) (list []Item, err error) {
	t.Helper()

	return paged(t, limit, func(after uuid.UUID) ([]Item, uuid.UUID, error) {
		return b.catalog.Datasets(t.Context(), who, at, after, limit)
	})
}

func (b *bundle) namespaces(t tester, who auth.Principal, username string, limit int) []NamespaceItem {
	t.Helper()

	list, err := paged(t, limit, func(after uuid.UUID) ([]NamespaceItem, uuid.UUID, error) {
		return b.catalog.Namespaces(t.Context(), who, username, after, limit)
	})
	require.NoError(t, err)

	return list
}

// deleted reads the list of what can be restored page by page.
func (b *bundle) deleted(t tester, who auth.Principal, limit int) (list []Deleted) {
	t.Helper()

	var position audit.Position

	for range maxPages {
		page, next, err := b.catalog.Deleted(t.Context(), who, position, limit)
		require.NoError(t, err)

		list = append(list, page...)
		if next == (audit.Position{}) {
			return list
		}

		require.Len(t, page, limit, "only the last page is short")

		position = next
	}

	require.FailNow(t, "the list does not end")

	return nil
}

// maxPages is larger than the number of pages of any list in these tests.
const maxPages = 500

func paged[T any](t tester, limit int, read func(after uuid.UUID) ([]T, uuid.UUID, error)) (list []T, err error) {
	t.Helper()

	after := uuid.Nil
	for range maxPages {
		page, next, err := read(after)
		if err != nil {
			return nil, err
		}

		list = append(list, page...)
		if next == uuid.Nil {
			return list, nil
		}

		require.Len(t, page, limit, "only the last page is short")

		after = next
	}

	require.FailNow(t, "the list does not end")

	return nil, nil
}

// code returns the fault code of an error, or "" for success.
func code(err error) fault.Code {
	if err == nil {
		return ""
	}

	return fault.From(err).Code
}

// sqlWord is the word for the subject of a grant.
const sqlWord = `'@s' || left(encode(sha256(convert_to(g.subject_kind || ':' || g.subject_id, 'UTF8')), 'hex'), 16)`

// requireSound checks the invariants of the whole database, which hold after any operation.
func (b *bundle) requireSound(t tester) {
	t.Helper()

	for rule, violations := range map[string]string{
		"a grant without its inverse, or with a wrong one": `
			SELECT count(*) FROM (
				SELECT g.subject_kind, g.subject_id, g.account_id, coalesce(d.namespace_id, g.target_id), coalesce(d.id, $1)
				FROM grants g LEFT JOIN datasets d ON d.account_id = g.account_id AND d.id = g.target_id
				EXCEPT SELECT subject_kind, subject_id, account_id, namespace_id, dataset_id FROM directory_grants) x`,
		"an inverse without its grant": `
			SELECT count(*) FROM (
				SELECT subject_kind, subject_id, account_id, namespace_id, dataset_id FROM directory_grants
				EXCEPT SELECT g.subject_kind, g.subject_id, g.account_id, coalesce(d.namespace_id, g.target_id), coalesce(d.id, $1)
				FROM grants g LEFT JOIN datasets d ON d.account_id = g.account_id AND d.id = g.target_id) x`,
		"a grant on a namespace that was erased, or on nothing": `
			SELECT count(*) FROM grants g
			LEFT JOIN datasets d ON d.account_id = g.account_id AND d.id = g.target_id
			LEFT JOIN namespaces n ON n.account_id = g.account_id AND n.id = g.target_id AND (n.deleted_at IS NULL OR NOT n.erased)
			WHERE d.id IS NULL AND n.id IS NULL AND $1::uuid IS NOT NULL`,
		"a dataset that lives in a dead namespace": `
			SELECT count(*) FROM datasets d LEFT JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id AND n.deleted_at IS NULL
			WHERE d.deleted_at IS NULL AND n.id IS NULL AND $1::uuid IS NOT NULL`,
		"a dataset that is not searched as it is now": `
			SELECT count(*) FROM datasets d LEFT JOIN dataset_search h ON h.account_id = d.account_id AND h.dataset_id = d.id
			WHERE d.deleted_at IS NULL AND $1::uuid IS NOT NULL AND (h.stale IS DISTINCT FROM false OR NOT h.document @@
				format('%L & %L', '@n' || replace(d.namespace_id::text, '-', ''), '=' || lower(regexp_replace(d.name, '[^A-Za-z0-9]', '', 'g')))::tsquery)`,
		"something searched of what is gone": `
			SELECT count(*) FROM dataset_search h LEFT JOIN datasets d ON d.account_id = h.account_id AND d.id = h.dataset_id AND d.deleted_at IS NULL
			WHERE d.id IS NULL AND length(h.document) > 0 AND $1::uuid IS NOT NULL`,
		"a grant that is indexed and not in the document": `
			SELECT count(*) FROM directory_grants g LEFT JOIN dataset_search h ON h.account_id = g.account_id AND h.dataset_id = g.dataset_id
			WHERE g.indexed AND $1::uuid IS NOT NULL AND (h.dataset_id IS NULL OR NOT (` + sqlWord + `) = ANY (h.grantees)
				OR length(h.document) > 0 AND NOT h.document @@ quote_literal(` + sqlWord + `)::tsquery)`,
		"a grant that is in the document and not indexed, or not there": `
			SELECT count(*) FROM dataset_search h CROSS JOIN LATERAL (
				SELECT unnest(h.grantees) UNION SELECT lexeme FROM unnest(h.document) WHERE lexeme LIKE '@s%') w (word)
			WHERE $1::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM directory_grants g
				WHERE g.account_id = h.account_id AND g.dataset_id = h.dataset_id AND g.indexed AND ` + sqlWord + ` = w.word)`,
		"a gap in the revisions of a definition": `
			SELECT count(*) FROM datasets d WHERE $1::uuid IS NOT NULL AND ARRAY(SELECT generate_series(1, d.definition_revision)) IS DISTINCT FROM
				ARRAY(SELECT revision FROM definitions r WHERE r.account_id = d.account_id AND r.dataset_id = d.id ORDER BY revision)`,
		"semantics of nothing, or with a gap": `
			SELECT count(*) FROM (SELECT account_id, dataset_id, count(*) AS revisions, max(revision) AS last FROM semantics GROUP BY account_id, dataset_id) s
			LEFT JOIN datasets d ON d.account_id = s.account_id AND d.id = s.dataset_id WHERE $1::uuid IS NOT NULL AND (d.id IS NULL OR s.revisions <> s.last)`,
	} {
		require.Zero(t, b.count(t, violations, uuid.Nil), rule)
	}
}

// clearAlone clears a dataset that never had rows.
func clearAlone(c Catalog, ctx context.Context, who auth.Principal, at Path) (cleared Description, err error) { //nolint:revive // as the method was called
	err = c.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		cleared, err = c.ClearTx(ctx, tx, who, at, uuid.Nil)

		return err
	})

	return cleared, err
}

// moveTable transfers what other packages store about a dataset; here that is only its table.
func moveTable(tx postgres.Tx, from, to lake.Table) error {
	return lake.MoveTableTx(context.Background(), tx, from, to)
}
