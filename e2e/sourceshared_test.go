package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestConnectionShareEvents checks which users get the events of a shared connection. A user whose share has ended gets none.
func TestConnectionShareEvents(t *testing.T) {
	t.Parallel()

	both := []string{"QUERN_SECRET=" + strings.Repeat("lending ", 8), "QUERN_WEBHOOK_ALLOWED_NETWORKS=127.0.0.0/8"}
	one := start(t, both...)
	two := another(t, one, both...)
	key := one.newKey()
	owner, helper, other := key.token("lender"), key.token("helper"), key.token("other")
	claims := key.claims("member")
	claims["groups"] = []string{"analysts"}
	member := key.sign(claims)
	there := newBucket(t)
	connection := one.connect(t, owner, "nightly", there)
	d := newFilled(t, one, "lender", owner)

	// The helper sees a dataset of the owner, and so reads the owner's log too.
	share(t, one, owner, "datasets/"+d.path(), "helper", "viewer")
	share(t, one, owner, "datasets/"+d.path(), "other", "viewer")

	const types = "?types=connection.shared,connection.unshared"

	owned, grouped, theirs, others := watchEvents(t, owner, types, two), watchEvents(t, member, types, one), watchEvents(t, helper, types, two), watchEvents(t, other, types, one)
	limited := watchEvents(t, restrictedToken(t, one, owner, fmt.Sprintf(`{"username": "self", "namespace": %q}`, d.namespace)), types, two)
	received := newReceiver(t, accepting)
	answer := call(t, http.MethodPost, one.url+"/webhooks", helper, fmt.Sprintf(`{"url": %q, "types": ["connection.shared", "connection.unshared"]}`, received.URL))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	one.lend(t, owner, connection, "helper")
	one.lend(t, owner, connection, "@analysts")

	told := theirs.awaits(1)
	require.Equal(t, []string{"connection.shared", "lender", "nightly", connection, "helper", ""},
		[]string{told.Type, told.Data.Username, told.Data.Connection, told.Data.ConnectionID, told.Data.Grantee, told.Data.Role})
	require.Equal(t, "@analysts", grouped.awaits(1).Data.Grantee)
	await(t, "the webhook was called", func() bool { return len(received.events()) == 1 })

	one.takeBack(t, owner, connection, "helper")
	require.Equal(t, "helper", owned.awaits(3).Data.Grantee)
	require.Equal(t, []string{"connection.shared", "connection.shared", "connection.unshared"}, owned.types())

	// A share that ended before it was told is not told.
	page := func(bearer string, after int64) []notice {
		var got struct{ Data []notice }

		answer := call(t, http.MethodGet, one.url+"/events"+types, bearer, "", "Accept: application/json", "Last-Event-ID: "+strconv.FormatInt(after, 10))
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &got)

		return got.Data
	}

	require.Empty(t, page(helper, told.seq-1))
	require.Len(t, page(member, told.seq-1), 1)
	require.Len(t, page(owner, owned.events()[0].seq-1), 3)

	// One event for each entry of the audit.
	var audited struct {
		Data []struct {
			Action, Detail string
			Target         struct{ Kind string }
		}
	}

	call(t, http.MethodGet, one.url+"/audit?limit=100", owner, "").json(t, &audited)

	var entries []string

	for _, entry := range audited.Data {
		if entry.Target.Kind == "connection" && entry.Detail != "" {
			entries = append(entries, entry.Action+" "+entry.Detail)
		}
	}

	require.ElementsMatch(t, []string{"share.grant helper", "share.grant @analysts", "share.revoke helper"}, entries)

	// Nothing of it tells where the connection leads.
	for _, text := range append(owned.texts, theirs.texts...) {
		for _, hidden := range []string{there.bucket, stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")} {
			require.NotContains(t, text, hidden)
		}
	}

	text, err := json.Marshal(received.events())
	require.NoError(t, err)
	require.NotContains(t, string(text), there.bucket)

	one.lend(t, owner, connection, "other")
	require.Equal(t, "other", others.awaits(1).Data.Grantee)
	owned.awaits(4)
	require.Len(t, grouped.events(), 1)
	require.Len(t, theirs.events(), 1)
	require.Len(t, received.events(), 1)
	require.Empty(t, limited.events(), "a restricted token cannot list shares")

	// As a line at a terminal.
	line := one.signedIn(t, value(t, call(t, http.MethodPost, one.url+"/user/tokens", owner, `{"name": "terminal", "role": "owner"}`))).
		run("watch", "--type", "connection.unshared", "--after", strconv.FormatInt(told.seq-1, 10), "--count", "1")
	require.Contains(t, line, "lender/nightly  helper")
}
