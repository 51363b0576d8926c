package audit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func write(t *testing.T, db *postgres.DB, at time.Time) uuid.UUID {
	t.Helper()

	id := uuid.New()

	require.NoError(t, db.InTx(t.Context(), func(tx postgres.Tx) error {
		return audit.WriteTx(t.Context(), tx, audit.Entry{Account: id, At: at, Actor: audit.Operator, Action: "account.disable", Target: audit.Target{Kind: "account"}})
	}))

	return id
}

func partitionOf(t *testing.T, db *postgres.DB, id uuid.UUID) (partition string) {
	t.Helper()

	var outcome string
	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT tableoid::regclass::text, outcome FROM audit WHERE account_id = $1`, id).Scan(&partition, &outcome)
	}))
	require.Equal(t, audit.Done, outcome)

	return partition
}

func TestEntriesLandInTheirMonth(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	now := time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC)

	var replicas errgroup.Group
	for range 3 {
		replicas.Go(func() error { return audit.Prepare(t.Context(), db, now) })
	}

	require.NoError(t, replicas.Wait())

	for at, partition := range map[time.Time]string{
		now:                          "audit_2026_11",
		now.Add(time.Second):         "audit_2026_12",
		now.Add(80 * 24 * time.Hour): "audit_2027_02",
		now.AddDate(5, 0, 0):         "audit_default",
		now.AddDate(0, -11, 0):       "audit_default",
	} {
		require.Equal(t, partition, partitionOf(t, db, write(t, db, at)))
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	account, now := uuid.New(), time.Date(2026, 11, 30, 23, 59, 58, 0, time.UTC)
	require.NoError(t, audit.Prepare(t.Context(), db, now))

	for i := range 7 {
		require.NoError(t, db.InTx(t.Context(), func(tx postgres.Tx) error {
			return audit.WriteTx(t.Context(), tx, audit.Entry{
				Account: account, At: now.Add(time.Duration(i/2) * time.Second), Actor: "ada", Action: "dataset.create", Detail: strconv.Itoa(i),
				Target: audit.Target{Kind: "dataset", ID: "x", Namespace: "shop", Dataset: "orders"},
			})
		}))
	}

	var got []string

	for after, more := (audit.Position{}), true; more; more = after != (audit.Position{}) {
		page, next, err := audit.Log{DB: db}.List(t.Context(), account, audit.Filter{}, after, 2)
		require.NoError(t, err)

		for _, entry := range page {
			require.Equal(t, audit.Target{Kind: "dataset", ID: "x", Namespace: "shop", Dataset: "orders"}, entry.Target)

			got = append(got, entry.Detail)
		}

		after = next
	}

	require.Equal(t, []string{"6", "5", "4", "3", "2", "1", "0"}, got)
}

// TestListFilters checks a filter against a log in which it selects few entries: a page is short, but none is left out.
func TestListFilters(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	account, now := uuid.New(), time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

	entry := func(at int, action, namespace, dataset string) audit.Entry {
		return audit.Entry{
			Account: account, At: now.Add(time.Duration(at) * time.Second), Actor: "ada", Action: action, Detail: strconv.Itoa(at),
			Target: audit.Target{Kind: "dataset", ID: "x", Namespace: namespace, Dataset: dataset},
		}
	}
	entries := []audit.Entry{
		entry(0, "dataset.create", "shop", "orders"), entry(1, "share.grant", "shop", ""), entry(2, "dataset.create", "shop", "people"),
		entry(3, "dataset.create", "other", "orders"), entry(4, "token.create", "", ""),
	}
	// More reads than one page searches.
	for at := range 20_500 {
		entries = append(entries, entry(5+at, "query.run", "shop", "orders"))
	}

	entries = append(entries, entry(30_000, "dataset.export", "Shop", "Orders"), entry(30_001, "rows.list", "shop", "orders"))
	require.NoError(t, db.InTx(t.Context(), func(tx postgres.Tx) error { return audit.WriteTx(t.Context(), tx, entries...) }))

	all := func(filter audit.Filter) (got []string, pages int) {
		for after, more := (audit.Position{}), true; more; more = after != (audit.Position{}) {
			page, next, err := audit.Log{DB: db}.List(t.Context(), account, filter, after, 2)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), 2)

			for _, e := range page {
				got = append(got, e.Detail)
			}

			after, pages = next, pages+1
		}

		return got, pages
	}

	got, pages := all(audit.Filter{Namespace: "shop", Dataset: "orders", Changes: true})
	require.Equal(t, []string{"30000", "1", "0"}, got)
	require.Equal(t, 2, pages)

	got, _ = all(audit.Filter{Namespace: "shop", Changes: true})
	require.Equal(t, []string{"30000", "2", "1", "0"}, got)

	got, _ = all(audit.Filter{Changes: true})
	require.Equal(t, []string{"30000", "4", "3", "2", "1", "0"}, got)

	page, _, err := audit.Log{DB: db}.List(t.Context(), account, audit.Filter{Namespace: "shop", Dataset: "orders"}, audit.Position{}, 2)
	require.NoError(t, err)
	require.Equal(t, "30001", page[0].Detail)
}

// TestEntriesOfAMonthThatWasNotPrepared checks that entries of a month without a partition are kept, and move when
// the partition is created.
func TestEntriesOfAMonthThatWasNotPrepared(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	now := time.Date(2030, 1, 15, 0, 0, 0, 0, time.UTC)
	id := write(t, db, now)
	require.Equal(t, "audit_default", partitionOf(t, db, id))

	require.NoError(t, audit.Prepare(t.Context(), db, now))
	require.Equal(t, "audit_2030_01", partitionOf(t, db, id))
}
