package run

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// TestRecent checks for several filters that the pages contain every run once, newest first.
func TestRecent(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	_, err := o.Catalog.CreateNamespace(t.Context(), o.who, catalog.NewNamespace{Name: "yard"})
	require.NoError(t, err)

	list := func(want Filter) (ids []uuid.UUID) {
		t.Helper()

		for want.Limit = 2; ; {
			page, next, err := o.Recent(t.Context(), o.who, want)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), want.Limit)

			for _, run := range page {
				ids = append(ids, run.ID)
			}

			if want.After = next; next == uuid.Nil {
				return ids
			}
		}
	}
	cancelled := func() Run {
		t.Helper()

		made := o.ask()
		_, err := o.Cancel(t.Context(), o.who, made.ID)
		require.NoError(t, err)

		return made
	}

	require.Empty(t, list(Filter{}))

	one, two := cancelled(), cancelled()
	o.want.Conversation = one.Conversation
	three := cancelled()
	o.want.Conversation, o.want.Question.Namespace = uuid.Nil, "yard"
	four := o.ask()

	require.Equal(t, []uuid.UUID{four.ID, three.ID, two.ID, one.ID}, list(Filter{}))
	require.Equal(t, []uuid.UUID{three.ID, two.ID, one.ID}, list(Filter{Status: Cancelled}))
	require.Equal(t, []uuid.UUID{four.ID}, list(Filter{Status: Running}))
	require.Equal(t, []uuid.UUID{three.ID, one.ID}, list(Filter{Conversation: one.Conversation}))
	require.Empty(t, list(Filter{Conversation: one.Conversation, Status: Running}))
	require.Empty(t, list(Filter{Conversation: uuid.New()}))

	shop, yard := &catalog.Path{Username: "ada", Namespace: "shop"}, &catalog.Path{Username: "ada", Namespace: "yard"}
	require.Equal(t, []uuid.UUID{three.ID, two.ID, one.ID}, list(Filter{Namespace: shop}))
	require.Equal(t, []uuid.UUID{four.ID}, list(Filter{Namespace: yard}))
	require.Empty(t, list(Filter{Namespace: shop, Status: Running}))
	require.Empty(t, list(Filter{Namespace: yard, Conversation: one.Conversation}))

	_, _, err = o.Recent(t.Context(), o.who, Filter{Namespace: &catalog.Path{Username: "ada", Namespace: "none"}, Limit: 2})
	require.True(t, fault.Is(err, fault.NotFound))

	page, next, err := o.Recent(t.Context(), auth.Principal{Account: uuid.New()}, Filter{Limit: 2})
	require.NoError(t, err)
	require.Empty(t, page)
	require.Equal(t, uuid.Nil, next)
}

// TestRecentRestricted checks that a page for a restricted token passes over a limited number of runs, and that the next page
// continues there.
func TestRecentRestricted(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	restricted := o.who
	restricted.Token = &auth.Grant{ID: uuid.New(), Role: auth.Editor, Restricted: true}

	o.exec(`
		INSERT INTO runs (account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, created_at, deadline_at)
		SELECT $1, run_id_at(now() + n * interval '1 s'), gen_random_uuid(), '', 'completed', '', '{}', '{}', '', 1, now(), now()
		FROM generate_series(1, $2) n`, o.who.Account, 3*maxPassed)
	o.exec(`UPDATE runs SET caller = jsonb_build_object('Token', jsonb_build_object('ID', $1::text)) WHERE id = (SELECT min(id::text)::uuid FROM runs)`,
		restricted.Token.ID)

	want, pages, found := Filter{Limit: 25}, 0, 0

	for {
		page, next, err := o.Recent(t.Context(), restricted, want)
		require.NoError(t, err)

		pages, found = pages+1, found+len(page)
		if want.After = next; next == uuid.Nil {
			break
		}
	}

	require.Equal(t, 1, found)
	require.Greater(t, pages, 1)
	require.LessOrEqual(t, pages, 4)
}

// TestRecentIsIndexed checks that every list reads an index in its order, however many runs there are.
func TestRecentIsIndexed(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	o.exec(`
		INSERT INTO runs (account_id, id, conversation_id, namespace_id, agent, status, question, request, caller, trace_id, last_seq, created_at, deadline_at)
		SELECT $1, run_id_at(now() - n * interval '1 s'), gen_random_uuid(), md5((n % 10)::text)::uuid, '', 'completed', '', '{}', '{}', '', 1, now(), now()
		FROM generate_series(1, 20000) n`, o.who.Account)
	o.exec(`ANALYZE runs`)

	first := []any{o.who.Account, uuid.Max, 26}

	for statement, arguments := range map[string][]any{
		sqlSelectRecent:          first,
		sqlSelectRecentStatus:    append(first[:3:3], Failed),
		sqlSelectRecentNamespace: append(first[:3:3], uuid.New(), Statuses()),
		sqlSelectRecentTurns:     append(first[:3:3], uuid.New(), Failed, uuid.NullUUID{}),
	} {
		var plan []string

		require.NoError(t, o.DB.Do(t.Context(), func(q postgres.Querier) error {
			rows, err := q.Query(t.Context(), `EXPLAIN `+statement, arguments...)
			if err != nil {
				return err
			}

			plan, err = pgx.CollectRows(rows, pgx.RowTo[string])

			return err
		}))

		for _, line := range plan {
			require.NotContains(t, line, "Seq Scan", plan)
			require.NotContains(t, line, "Bitmap", plan)
		}
	}
}
