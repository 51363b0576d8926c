package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestAuditComplete compares the audit with what happened. Every change and every read of rows creates entries with the caller,
// the token and the address, in the account that owns the resource. Nothing else creates entries.
func TestAuditComplete(t *testing.T) { //nolint:tparallel // the whole audit is counted, and the database refuses things in between
	t.Parallel()

	a := newAuditor(t)

	missing := map[string]bool{}
	for _, operation := range operations() {
		if operation.forOperators() { // TestOperators
			continue
		}

		if operation.method != http.MethodGet || readsRows(operation.String()) || readsProfile(operation.String()) {
			missing[operation.String()] = true
		}
	}

	for _, audited := range auditedCalls() {
		require.True(t, missing[audited.request.operation], "%s stands twice, or is not audited", audited.request.operation)
		delete(missing, audited.request.operation)

		t.Run(audited.request.operation, func(t *testing.T) {
			a := *a
			a.t = t

			a.checkEntries(audited)

			if len(audited.entries) > 0 {
				a.checkRollback(audited)
			}

			a.checkRefusals(audited)
		})
	}

	require.Empty(t, missing, "operations that are audited, and not here")

	t.Run("states that refuse", func(t *testing.T) {
		a := *a
		a.t = t

		a.checkConflicts()
	})

	t.Run("what others do stands with the owner", func(t *testing.T) {
		a := *a
		a.t = t

		made := newThing(t, a.service, a.owner, "{namespace}")
		share(t, a.service, a.owner, "namespaces/self/"+made.namespace, "editor", "editor")
		before := a.entries()
		answer := call(t, http.MethodPost, a.url+"/data/owner/"+made.namespace+"/orders/clear", a.editor, "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)

		after := a.entries()
		require.Len(t, after, len(before)+1)
		require.Equal(t, auditEntry{
			account: "owner", actor: "editor", address: "127.0.0.1", requestID: answer.header.Get("X-Request-Id"), outcome: "done",
			what: "dataset.clear dataset " + made.namespace + "/orders",
		}, after[len(before)].withoutTarget())
	})

	t.Run("what is read stands with each owner", func(t *testing.T) {
		a := *a
		a.t = t

		a.checkReads()
	})
}

// checkReads runs statements of a viewer over datasets of two owners, and statements without a dataset.
func (a *auditor) checkReads() {
	a.t.Helper()

	one, two := newThing(a.t, a.service, a.owner, "POST /query"), newThing(a.t, a.service, a.editor, "POST /query")
	share(a.t, a.service, a.owner, "namespaces/self/"+one.namespace, "viewer", "viewer")
	share(a.t, a.service, a.editor, "datasets/self/"+two.namespace+"/orders", "viewer", "viewer")

	theirs := `\"editor/` + two.namespace + `/orders\"`

	for _, read := range []struct {
		statement string
		status    int
		entries   []string // account and what of each entry
	}{
		{"FROM orders JOIN " + theirs + " USING (a)", 200, []string{"editor query.run dataset " + two.namespace + "/orders", "owner query.run dataset " + one.namespace + "/orders"}},
		{"SELECT * FROM orders o, orders p", 200, []string{"owner query.run dataset " + one.namespace + "/orders"}},
		{"FROM " + theirs, 200, []string{"editor query.run dataset " + two.namespace + "/orders"}},
		{"SELECT 1", 200, []string{"viewer query.run account"}},
		// An error message can contain values, so a failed statement is also a read.
		{"SELECT ('x' || a)::int FROM orders", 422, []string{"owner query.run dataset " + one.namespace + "/orders"}},
		{"SELECT * FROM orders, absent", 422, nil},
		{"SELECT * FROM orders WHERE", 422, nil},
	} {
		before := a.entries()
		answer := call(a.t, http.MethodPost, a.url+"/query", a.viewer, `{"username": "owner", "namespace": "`+one.namespace+`", "query": "`+read.statement+`"}`)
		require.Equal(a.t, read.status, answer.status, "%s: %s", read.statement, answer.body)

		var entries []string

		for _, entry := range a.entries()[len(before):] {
			require.Equal(a.t, "viewer", entry.actor)
			require.Equal(a.t, answer.header.Get("X-Request-Id"), entry.requestID)

			entries = append(entries, entry.account+" "+entry.what)
		}

		slices.Sort(entries) // their times are equal, so their order is not defined
		require.Equal(a.t, read.entries, entries, read.statement)
	}
}

// checkEntries makes the call with an API token and checks its entries.
func (a *auditor) checkEntries(audited auditedCall) {
	a.t.Helper()

	made, name := a.thing(audited), "n-"+uuid.NewString()
	audited.request.body = strings.ReplaceAll(audited.request.body, "<new>", name)
	before := a.entries()
	bearer, actor, token := a.apiToken, "owner", a.apiTokenID

	if audited.byEditor {
		bearer, actor, token = a.editor, "editor", ""
	}

	answer := audited.request.asks(a.t, a.service, made, bearer)
	require.Equal(a.t, audited.status, answer.status, answer.body)

	entries := a.entries()[len(before):]
	require.Len(a.t, entries, len(audited.entries), "%+v", entries)

	for i, entry := range entries {
		want := strings.NewReplacer("<namespace>", made.namespace, "<new>", name, "<file>", made.file().FileID, "<ingestion>", made.ingestion).Replace(audited.entries[i])

		if before, after, found := strings.Cut(want, "<id>"); found {
			id := strings.TrimSuffix(strings.TrimPrefix(entry.what, before), after)
			require.NoError(a.t, uuid.Validate(id), entry.what)

			want = before + id + after
		}

		require.Equal(a.t, auditEntry{
			account: "owner", actor: actor, token: token, address: "127.0.0.1", requestID: answer.header.Get("X-Request-Id"), outcome: "done",
			what: want,
		}, entry.withoutTarget())
		require.NoError(a.t, uuid.Validate(entry.target))

		if made.token != "" {
			require.Equal(a.t, made.token, entry.target)
		}
	}
}

// checkRollback makes the call while the database refuses the change, and while it refuses the entry. The change and its entry
// must both be missing, and no row may be returned without its entry.
func (a *auditor) checkRollback(audited auditedCall) {
	a.t.Helper()

	for _, what := range []string{"changes", "audit"} {
		// A statement is run, and recorded, before it is kept, and a condition before its rows are deleted.
		isKept := strings.Contains(audited.request.operation, " /verified/") && !strings.HasPrefix(audited.request.operation, "DELETE ")
		if isKept || audited.request.operation == deleteRows {
			continue
		}

		if what == "changes" && (readsRows(audited.request.operation) || readsProfile(audited.request.operation)) {
			continue
		}

		made := a.thing(audited)
		before, state := a.entries(), a.state()
		a.exec(`UPDATE refused SET what = $1`, what)
		bearer := a.owner
		if audited.byEditor {
			bearer = a.editor
		}

		answer := audited.request.asks(a.t, a.service, made, bearer)

		require.Contains(a.t, []int{http.StatusInternalServerError, internalRPC}, answer.status, "%s are refused: %s", what, answer.body)
		require.Equal(a.t, before, a.entries(), "%s are refused", what)
		require.Equal(a.t, state, a.state(), "%s are refused", what)

		a.exec(`UPDATE refused SET what = ''`)
		a.late[answer.header.Get("X-Request-Id")] = true
	}
}

// checkRefusals makes the call fail in every way that applies to the operation.
func (a *auditor) checkRefusals(audited auditedCall) {
	a.t.Helper()

	made := a.thing(audited)
	if made.namespace != "" {
		share(a.t, a.service, a.owner, "namespaces/self/"+made.namespace, "viewer", "viewer")
	}

	before := a.entries()
	refuse := func(row authorizationRow, about thing, bearer string, statuses ...int) {
		a.t.Helper()

		if row.operation == callAgent && !slices.Contains(statuses, http.StatusUnauthorized) {
			statuses = []int{-32602, -32600, -32700}
		}

		if row.operation == callTool && row.body != audited.request.body {
			statuses = []int{http.StatusBadRequest}
		}

		answer := row.asks(a.t, a.service, about, bearer)
		require.Contains(a.t, statuses, answer.status, answer.body)
		require.Equal(a.t, before, a.entries(), answer.body)
	}

	nothing := thing{
		namespace: "absent", token: uuid.NewString(), session: prepared{SessionID: uuid.NewString()},
		completed: made.completed, ingestion: uuid.NewString(), snapshot: uuid.NewString(), deleted: uuid.NewString(), connection: uuid.NewString(),
		source: uuid.NewString(),
	}
	isMade := strings.HasPrefix(audited.request.operation, "POST /ingest/new") || // owned by the caller
		slices.Contains([]string{"POST /user/tokens", "POST /file-upload/prepare", "POST /webhooks", "POST /connections"}, audited.request.operation)

	// An ingestion may name a dataset of the caller that does not exist yet.
	mayBeAbsent := strings.HasSuffix(audited.request.operation, "/ingestions") || audited.request.operation == "POST /schema/{username}/namespaces"

	if !isMade && !mayBeAbsent {
		refuse(audited.request, nothing, a.owner, http.StatusNotFound)
		refuse(audited.request, nothing, a.apiToken, http.StatusNotFound)
	}

	if !isMade {
		refuse(audited.request, made, a.stranger, http.StatusForbidden, http.StatusNotFound)
		refuse(audited.request, made, "garbage", http.StatusUnauthorized)
	}

	asViewer := readsRows(audited.request.operation) || readsProfile(audited.request.operation) || slices.Contains([]string{"POST /query/ask", callAgent, deleteChoices}, audited.request.operation)
	if !isMade && !asViewer && !audited.byEditor {
		refuse(audited.request, made, a.viewer, http.StatusForbidden, http.StatusNotFound)
	}

	if audited.request.body != "" {
		for body, status := range map[string]int{`["x"]`: http.StatusUnprocessableEntity, `{`: http.StatusBadRequest} {
			row := audited.request
			row.body = body
			refuse(row, made, a.owner, status)
		}
	}
}

// checkConflicts makes calls that fail because of the current state of the resources.
func (a *auditor) checkConflicts() {
	a.t.Helper()

	made := newThing(a.t, a.service, a.owner, "{namespace}")
	second := call(a.t, http.MethodPost, a.url+"/ingest/new/"+made.namespace+"/second", a.owner, "", "Idempotency-Key: second")
	require.Equal(a.t, http.StatusCreated, second.status, second.body)

	before := a.entries()

	for _, refused := range []struct {
		status       int
		method, path string
		body         string
		header       []string
	}{
		{status: 409, method: "POST", path: "/schema/self/namespaces", body: `{"name": "<namespace>"}`},
		{status: 422, method: "POST", path: "/schema/self/namespaces", body: `{"name": "a b"}`},
		{status: 409, method: "DELETE", path: "/schema/self/namespaces/<namespace>"},
		{status: 409, method: "POST", path: "/ingest/new/<namespace>/orders"},
		{status: 422, method: "POST", path: "/ingest/new/new-namespace/-bad"},
		{status: 409, method: "PATCH", path: "/data/self/<namespace>/orders", body: `{"name": "second"}`},
		{status: 422, method: "PATCH", path: "/data/self/<namespace>/orders", body: `{}`},
		{status: 412, method: "PUT", path: "/data/self/<namespace>/orders/inferDefinition", body: `{"dataDescription": "x"}`, header: []string{`If-Match: "7"`}},
		{status: 422, method: "PUT", path: "/data/self/<namespace>/orders/inferDefinition", body: `{}`},
		{status: 422, method: "POST", path: "/permissions/namespaces/self/<namespace>/shares", body: `{"username": "self", "role": "viewer"}`},
		{status: 422, method: "POST", path: "/permissions/datasets/self/<namespace>/orders/shares", body: `{"username": "a b", "role": "viewer"}`},
		{status: 404, method: "DELETE", path: "/permissions/namespaces/self/<namespace>/shares", body: `{"username": "x"}`},
		{status: 404, method: "DELETE", path: "/permissions/datasets/self/<namespace>/orders/shares", body: `{"username": "x"}`},
		{status: 422, method: "POST", path: "/user/tokens", body: `{"name": "x", "expiresAt": "2001-01-01T00:00:00Z"}`},
		{status: 422, method: "POST", path: "/user/tokens", body: `{"name": "x", "accessRestrictedTo": [{"username": "self", "namespace": "absent"}]}`},
		// A repeated request changes nothing, so it creates no entry.
		{status: 201, method: "POST", path: "/ingest/new/<namespace>/second", header: []string{"Idempotency-Key: second"}},
		{status: 422, method: "POST", path: "/ingest/new/<namespace>/third", header: []string{"Idempotency-Key: second"}},
	} {
		fill := func(text string) string { return strings.ReplaceAll(text, "<namespace>", made.namespace) }
		answer := call(a.t, refused.method, a.url+fill(refused.path), a.owner, fill(refused.body), refused.header...)
		require.Equal(a.t, refused.status, answer.status, "%s %s: %s", refused.method, refused.path, answer.body)
		require.Equal(a.t, before, a.entries(), "%s %s", refused.method, refused.path)
	}

	require.True(a.t, slices.ContainsFunc(before, func(e auditEntry) bool { return e.what == "dataset.create dataset "+made.namespace+"/second" }))
}
