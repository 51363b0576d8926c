package run

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// TestList checks for several filters that the pages contain every run once, the most recent change of status first.
func TestList(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	all := []Status{Running, Completed, Failed, Cancelled, Expired}
	list := func(want Listing) (ids []uuid.UUID) {
		t.Helper()

		want.Agent = "telling"
		if want.Statuses == nil {
			want.Statuses = all
		}

		if want.Limit == 0 {
			want.Limit = 2
		}

		for {
			page, err := o.List(t.Context(), o.who, want)
			require.NoError(t, err)

			for _, run := range page.Runs {
				ids = append(ids, run.ID)
			}

			if want.After = page.Next; want.After == (Position{}) {
				require.Len(t, ids, page.Total)

				return ids
			}
		}
	}

	require.Empty(t, list(Listing{}))

	first := o.ask()
	o.let <- 1

	cancelled := o.ask()
	_, err := o.Cancel(t.Context(), o.who, cancelled.ID)
	require.NoError(t, err)

	o.want.Conversation = first.Conversation
	waiting := o.ask()

	require.Eventually(t, func() bool { // a later start would change the order
		page, err := o.List(t.Context(), o.who, Listing{Agent: "telling", Statuses: []Status{Running}, Begun: new(true), Limit: 2})

		return err == nil && len(page.Runs) == 2
	}, 10*time.Second, 10*time.Millisecond)

	o.let <- 0
	require.Eventually(t, func() bool { // until then, rows and total may differ
		page, err := o.List(t.Context(), o.who, Listing{Agent: "telling", Statuses: []Status{Completed}, Limit: 1})

		return err == nil && len(page.Runs) == 1
	}, 10*time.Second, 10*time.Millisecond)

	ended := list(Listing{Statuses: []Status{Completed}})
	require.Len(t, ended, 1)

	running := first.ID // or waiting: one of the two has ended
	if ended[0] == first.ID {
		running = waiting.ID
	}

	require.Equal(t, []uuid.UUID{ended[0]}, list(Listing{})[:1])
	require.ElementsMatch(t, []uuid.UUID{first.ID, cancelled.ID, waiting.ID}, list(Listing{}))
	require.ElementsMatch(t, []uuid.UUID{first.ID, waiting.ID}, list(Listing{Conversation: first.Conversation}))
	require.Equal(t, []uuid.UUID{cancelled.ID}, list(Listing{Statuses: []Status{Cancelled}}))
	require.Equal(t, []uuid.UUID{running}, list(Listing{Statuses: []Status{Running}}))
	require.Len(t, append(list(Listing{Statuses: []Status{Running}, Begun: new(true)}), list(Listing{Statuses: []Status{Running}, Begun: new(false)})...), 1)
	require.Empty(t, list(Listing{Since: time.Now().Add(time.Hour)}))
	require.Empty(t, list(Listing{Conversation: uuid.New()}))

	page, err := o.List(t.Context(), o.who, Listing{Agent: "other", Statuses: all, Limit: 10})
	require.NoError(t, err)
	require.Zero(t, page.Total)

	page, err = o.List(t.Context(), auth.Principal{Account: uuid.New()}, Listing{Agent: "telling", Statuses: all, Limit: 10})
	require.NoError(t, err)
	require.Zero(t, page.Total)

	restricted := o.who
	restricted.Token = &auth.Grant{ID: uuid.New(), Role: auth.Editor, Restricted: true}
	_, err = o.List(t.Context(), restricted, Listing{Agent: "telling", Statuses: all, Limit: 10})
	require.True(t, fault.Is(err, fault.Forbidden))

	page, err = o.List(t.Context(), restricted, Listing{Agent: "telling", Conversation: first.Conversation, Statuses: all, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, page.Runs)
}
