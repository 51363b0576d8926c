package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// auditedCalls has one good request for every operation that writes or reads rows, and what the audit says of it, oldest first.
// What it is about is made as for authorizationTable, with the same names.
func auditedCalls() []auditedCall {
	return []auditedCall{
		{
			request: authorizationRow{operation: "POST /user/token", body: `{"name": "x"}`}, status: 200,
			entries: []string{"token.create token"},
		},
		{
			request: authorizationRow{operation: "DELETE /user/token/{id}"}, status: 204,
			entries: []string{"token.revoke token"},
		},
		{
			request: authorizationRow{operation: "POST /file-upload/prepare", body: `{"filesToUpload": [{"filename": "x", "size": 1}]}`}, status: 200,
			entries: []string{"upload.prepare upload"},
		},
		{
			request: authorizationRow{operation: "POST /file-upload/{sessionId}/abort"}, status: 200,
			entries: []string{"upload.abort upload"},
		},
		{
			request: authorizationRow{operation: "POST /file-upload/{sessionId}/files/{fileId}/finish", body: finishBody}, status: 200,
			entries: []string{"upload.finish upload <file>"},
		},
		{request: authorizationRow{operation: "POST /file-upload/{sessionId}/files/{fileId}/urls", body: `{"partNumbers": [1]}`}, status: 200},
		{
			request: authorizationRow{operation: "POST /schema/{username}/namespaces", body: `{"name": "<new>"}`}, status: 201,
			entries: []string{"namespace.create namespace <new>"},
		},
		{
			request: authorizationRow{operation: "PATCH /schema/{username}/namespaces/{namespace}", body: `{"exposure": "rows"}`}, status: 200,
			entries: []string{"namespace.update namespace <namespace> exposure rows"},
		},
		{
			request: authorizationRow{operation: "DELETE /schema/{username}/namespaces/{namespace}"}, status: 204, isEmpty: true,
			entries: []string{"namespace.delete namespace <namespace>"},
		},
		{
			request: authorizationRow{operation: "POST /ingest/new/{namespace}/{datasetName}", body: `{"dataDescription": "x"}`}, status: 201,
			entries: []string{"definition.put dataset <namespace>/new revision 1", "dataset.create dataset <namespace>/new"},
		},
		{
			request: authorizationRow{operation: "PATCH /data/{username}/{namespace}/{datasetName}", body: `{"name": "renamed"}`}, status: 200,
			entries: []string{"dataset.update dataset <namespace>/orders name renamed"},
		},
		{
			request: authorizationRow{operation: "DELETE /data/{username}/{namespace}/{datasetName}"}, status: 204,
			entries: []string{"dataset.delete dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "POST /data/{username}/{namespace}/{datasetName}/clear"}, status: 200,
			entries: []string{"dataset.clear dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "POST /ingest/{namespace}/{datasetName}", body: rowsBody}, status: 200,
			entries: []string{"rows.append dataset <namespace>/orders <id>"},
		},
		{
			request: authorizationRow{operation: "POST /data/{username}/{namespace}/{datasetName}/rows", body: rowsBody}, status: 200,
			entries: []string{"rows.append dataset <namespace>/orders <id>"},
		},
		{
			request: authorizationRow{operation: "GET /data/{username}/{namespace}/{datasetName}/rows"}, status: 200,
			entries: []string{"rows.list dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "GET /data/{username}/{namespace}/{datasetName}/export"}, status: 200,
			entries: []string{"dataset.export dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "POST /query", body: queryBody}, status: 200,
			entries: []string{"query.run dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "POST /query/link", body: linkBody}, status: 200,
			entries: []string{"query.link namespace <namespace>"},
		},
		{
			request: authorizationRow{operation: "GET /data/{username}/{namespace}/{datasetName}/profile"}, status: 200,
			entries: []string{"profile.get dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "POST /data/{username}/{namespace}/{datasetName}/inferDefinition/draft"}, status: 200,
			entries: []string{"profile.get dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "POST /query/ask", body: askBody}, status: 200,
			entries: []string{"run.create run"},
		},
		{
			request: authorizationRow{operation: "GET /query/runs/{runId}/steps/{n}/rows"}, status: 200,
			entries: []string{"step.read dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "GET /query/runs/{runId}/steps/{n}/export"}, status: 200,
			entries: []string{"step.export dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: callAgent, body: sendBody}, status: 200,
			entries: []string{"run.create run"},
		},
		{
			request: authorizationRow{operation: "POST /query/runs/{runId}/cancel"}, status: 200,
			entries: []string{"run.cancel run"},
		},
		{
			request: authorizationRow{operation: "DELETE /query/runs/{runId}"}, status: 204,
			entries: []string{"run.delete run"},
		},
		{
			request: authorizationRow{operation: "POST /query/runs/{runId}/feedback", body: `{"thumbsUp": true}`}, status: 204,
			entries: []string{"feedback.submit run"},
		},
		{
			request: authorizationRow{operation: "DELETE /query/runs/{runId}/feedback"}, status: 204,
			entries: []string{"feedback.withdraw run"},
		},
		{
			request: authorizationRow{operation: "PATCH /query/conversations/{conversationId}", body: `{"title": "x"}`}, status: 200,
			entries: []string{"conversation.rename conversation"},
		},
		{
			request: authorizationRow{operation: "DELETE /query/conversations/{conversationId}"}, status: 204,
			entries: []string{"conversation.delete conversation"},
		},
		{
			request: authorizationRow{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions", body: ingestionBody}, status: 202,
			entries: []string{"ingestion.create dataset <namespace>/orders append <id>, 1 files"},
		},
		{
			request: authorizationRow{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/retry"}, status: 202,
			entries: []string{"ingestion.retry dataset <namespace>/orders <ingestion>"},
		},
		{
			request: authorizationRow{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/cancel"}, status: 200,
			entries: []string{"ingestion.cancel dataset <namespace>/orders <ingestion>"},
		},
		{
			request: authorizationRow{operation: "POST /data/{username}/{namespace}/{datasetName}/snapshots/{snapshotId}/restore"}, status: 200,
			entries: []string{"snapshot.restore dataset <namespace>/orders <id>"},
		},
		{
			request: authorizationRow{operation: "PUT /data/{username}/{namespace}/{datasetName}/inferDefinition", body: `{"schemaDefinition": {"a": "A"}}`}, status: 201,
			entries: []string{"definition.put dataset <namespace>/orders revision 1"},
		},
		{
			request: authorizationRow{operation: "POST /permissions/namespaces/{username}/{namespace}/shares", body: `{"username": "x", "role": "viewer"}`}, status: 200,
			entries: []string{"share.grant namespace <namespace> x viewer"},
		},
		{
			request: authorizationRow{operation: "DELETE /permissions/namespaces/{username}/{namespace}/shares", body: `{"username": "grantee"}`}, status: 200,
			entries: []string{"share.revoke namespace <namespace> grantee"},
		},
		{
			request: authorizationRow{operation: "POST /permissions/datasets/{username}/{namespace}/{datasetName}/shares", body: `{"username": "@g", "role": "editor"}`}, status: 200,
			entries: []string{"share.grant dataset <namespace>/orders @g editor"},
		},
		{
			request: authorizationRow{operation: "DELETE /permissions/datasets/{username}/{namespace}/{datasetName}/shares", body: `{"username": "grantee"}`}, status: 200,
			entries: []string{"share.revoke dataset <namespace>/orders grantee"},
		},
	}
}

// internalRPC is an internal error of JSON-RPC.
const internalRPC = -32603

type auditedCall struct {
	request authorizationRow // without statuses
	status  int
	isEmpty bool     // the namespace must have no datasets
	entries []string // action, kind, path and detail of each; <id> is one that is made; none: it changes nothing
}

// TestAuditComplete holds the audit against what happened: every change and every read of rows leaves entries that say who did it, with which
// token and from where, in the account whose things they are; and nothing else leaves any.
func TestAuditComplete(t *testing.T) { //nolint:tparallel // the whole audit is counted, and the database refuses things in between
	t.Parallel()

	a := newAuditor(t)

	missing := map[string]bool{}
	for _, operation := range operations() {
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

// checkReads runs statements of a viewer over datasets of two owners, and over none.
func (a *auditor) checkReads() {
	a.t.Helper()

	one, two := newThing(a.t, a.service, a.owner, "POST /query"), newThing(a.t, a.service, a.editor, "POST /query")
	share(a.t, a.service, a.owner, "namespaces/self/"+one.namespace, "viewer", "viewer")
	share(a.t, a.service, a.editor, "datasets/self/"+two.namespace+"/orders", "viewer", "viewer")

	theirs := `\"editor/` + two.namespace + `/orders\"`

	for _, read := range []struct {
		statement string
		status    int
		entries   []string // account and what
	}{
		{"FROM orders JOIN " + theirs + " USING (a)", 200, []string{"editor query.run dataset " + two.namespace + "/orders", "owner query.run dataset " + one.namespace + "/orders"}},
		{"SELECT * FROM orders o, orders p", 200, []string{"owner query.run dataset " + one.namespace + "/orders"}},
		{"FROM " + theirs, 200, []string{"editor query.run dataset " + two.namespace + "/orders"}},
		{"SELECT 1", 200, []string{"viewer query.run account"}},
		// A fault can tell of values, so it is a read.
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

		slices.Sort(entries) // they are of one moment
		require.Equal(a.t, read.entries, entries, read.statement)
	}
}

// auditor is a service whose audit is read past it.
type auditor struct {
	*service

	t                               *testing.T
	owner, viewer, editor, stranger string // tokens of the issuer
	apiToken, apiTokenID            string // of the owner
}

func newAuditor(t *testing.T) *auditor {
	t.Helper()

	// Nobody but the callers changes anything; profiles are made, which is no change.
	s := start(t, "QUERN_INGEST_WORKERS=0", "QUERN_UPKEEP_QUIET=1s", "QUERN_UPKEEP_EVERY=1s", scripted)
	key := s.newKey()
	a := &auditor{service: s, t: t, owner: key.token("owner"), viewer: key.token("viewer"), editor: key.token("editor"), stranger: key.token("stranger")}

	// First sign-ins are audited too, so they come first.
	for _, bearer := range []string{a.owner, a.viewer, a.editor, a.stranger} {
		require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", bearer, "").status)
	}

	a.apiTokenID, a.apiToken = newToken(t, s, a.owner, "owner")

	// On demand the database refuses, at the commit, whatever changes something; or any entry of the audit.
	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range []string{
			`CREATE TABLE refused (what text)`,
			`INSERT INTO refused VALUES ('')`,
			`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
				IF (SELECT what FROM refused) = TG_ARGV[0] THEN RAISE EXCEPTION 'refused by a test'; END IF; RETURN NEW; END $$`,
			`CREATE TRIGGER refuse BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION refuse('audit')`,
			deferred("namespaces", "UPDATE"), deferred("datasets", "UPDATE"), deferred("definitions", "UPDATE"), deferred("grants", "UPDATE"),
			deferred("tokens", "UPDATE OF revoked_at"), deferred("upload_sessions", "UPDATE"), deferred("upload_files", "UPDATE OF status"),
			deferred("ingestions", "UPDATE OF status"), deferred("runs", "UPDATE OF status"), deferred("conversations", "UPDATE OF title"),
			deferred("run_feedback", "UPDATE"),
		} {
			_, err := connection.Exec(ctx, statement)
			require.NoError(t, err, statement)
		}
	})

	return a
}

func deferred(table, update string) string {
	return `CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR DELETE OR ` + update + ` ON ` + table + `
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse('changes')`
}

// auditEntry is a row of the audit, in the words of this test.
type auditEntry struct {
	account, actor, token, address, requestID, outcome string
	what                                               string // as in auditedCall
	target                                             string
}

func (e auditEntry) withoutTarget() auditEntry {
	e.target = ""

	return e
}

// entries is the whole audit, of all accounts.
func (a *auditor) entries() (list []auditEntry) {
	a.t.Helper()
	withDatabase(a.t, a.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		rows, err := connection.Query(ctx, `
			SELECT n.username, actor, coalesce(token_id::text, ''), address, request_id, outcome,
				rtrim(concat_ws(' ', action, kind, nullif(concat_ws('/', nullif(namespace, ''), nullif(dataset, '')), ''), detail)), target
			FROM audit JOIN directory_names n USING (account_id) ORDER BY at, id`)
		require.NoError(a.t, err)

		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e auditEntry, err error) {
			return e, row.Scan(&e.account, &e.actor, &e.token, &e.address, &e.requestID, &e.outcome, &e.what, &e.target)
		})
		require.NoError(a.t, err)
	})

	return list
}

// thing is what the call is about.
func (a *auditor) thing(audited auditedCall) thing {
	a.t.Helper()

	made := newThing(a.t, a.service, a.owner, audited.request.operation)
	if audited.request.body == ingestionBody {
		made.completed = uploadFiles(a.t, a.service, a.owner, "a\n1\n")
	}

	if audited.isEmpty {
		answer := call(a.t, http.MethodDelete, a.url+"/data/self/"+made.namespace+"/orders", a.owner, "")
		require.Equal(a.t, http.StatusNoContent, answer.status, answer.body)
	}

	return made
}

// checkEntries makes the call with an API token.
func (a *auditor) checkEntries(audited auditedCall) {
	a.t.Helper()

	made, name := a.thing(audited), "n-"+uuid.NewString()
	audited.request.body = strings.ReplaceAll(audited.request.body, "<new>", name)
	before := a.entries()
	answer := audited.request.asks(a.t, a.service, made, a.apiToken)
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
			account: "owner", actor: "owner", token: a.apiTokenID, address: "127.0.0.1", requestID: answer.header.Get("X-Request-Id"), outcome: "done",
			what: want,
		}, entry.withoutTarget())
		require.NoError(a.t, uuid.Validate(entry.target))

		if made.token != "" {
			require.Equal(a.t, made.token, entry.target)
		}
	}
}

// checkRollback makes the call while the database refuses the change, and while it refuses the entry: neither is there
// without the other, and no row goes out without its entry.
func (a *auditor) checkRollback(audited auditedCall) {
	a.t.Helper()

	for _, what := range []string{"changes", "audit"} {
		if what == "changes" && (readsRows(audited.request.operation) || readsProfile(audited.request.operation)) {
			continue
		}

		made := a.thing(audited)
		before, state := a.entries(), a.state()
		a.exec(`UPDATE refused SET what = $1`, what)
		answer := audited.request.asks(a.t, a.service, made, a.owner)
		a.exec(`UPDATE refused SET what = ''`)

		require.Contains(a.t, []int{http.StatusInternalServerError, internalRPC}, answer.status, "%s are refused: %s", what, answer.body)
		require.Equal(a.t, before, a.entries(), "%s are refused", what)
		require.Equal(a.t, state, a.state(), "%s are refused", what)
	}
}

// state is a digest of all that operations change, by table.
func (a *auditor) state() map[string]string {
	a.t.Helper()

	digests := map[string]string{}

	withDatabase(a.t, a.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		of := func(table, row, where string) {
			var digest *string

			require.NoError(a.t, connection.QueryRow(ctx, `SELECT md5(string_agg(`+row+`, '' ORDER BY `+row+`)) FROM `+table+` r WHERE `+where).Scan(&digest))

			if digest != nil {
				digests[table] = *digest
			}
		}

		for _, table := range []string{"namespaces", "datasets", "definitions", "grants", "directory_grants", "idempotency", "upload_sessions", "ingestion_files"} {
			of(table, "r::text", "true")
		}

		of("tokens", "concat(id, revoked_at)", "true")
		// Posted rows are noted before they are stored, and then seen in the dataset.
		of("ingestions", "r::text", "kind = 'files'")
		// A reservation that was taken back begins the time anew after which a file goes, and aborted ones go meanwhile.
		of("upload_files", "(to_jsonb(r) - 'remove_at' - 'removed_at')::text", "true")
	})

	return digests
}

// checkRefusals makes the call so that it fails in every way that fits the operation.
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

		answer := row.asks(a.t, a.service, about, bearer)
		require.Contains(a.t, statuses, answer.status, answer.body)
		require.Equal(a.t, before, a.entries(), answer.body)
	}

	nothing := thing{
		namespace: "absent", token: uuid.NewString(), session: prepared{SessionID: uuid.NewString()},
		completed: made.completed, ingestion: uuid.NewString(), snapshot: uuid.NewString(),
	}
	isMade := strings.HasPrefix(audited.request.operation, "POST /ingest/new") || // under the caller
		slices.Contains([]string{"POST /user/token", "POST /file-upload/prepare"}, audited.request.operation)

	// An ingestion may name a dataset of the caller's that is not there yet.
	mayBeAbsent := strings.HasSuffix(audited.request.operation, "/ingestions") || audited.request.operation == "POST /schema/{username}/namespaces"

	if !isMade && !mayBeAbsent {
		refuse(audited.request, nothing, a.owner, http.StatusNotFound)
		refuse(audited.request, nothing, a.apiToken, http.StatusNotFound)
	}

	if !isMade {
		refuse(audited.request, made, a.stranger, http.StatusForbidden, http.StatusNotFound)
		refuse(audited.request, made, "garbage", http.StatusUnauthorized)
	}

	asViewer := readsRows(audited.request.operation) || readsProfile(audited.request.operation) || slices.Contains([]string{"POST /query/ask", callAgent}, audited.request.operation)
	if !isMade && !asViewer {
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

// checkConflicts makes calls that fail because of how things are.
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
		{status: 422, method: "POST", path: "/user/token", body: `{"name": "x", "expires_at": "2001-01-01T00:00:00Z"}`},
		{status: 422, method: "POST", path: "/user/token", body: `{"name": "x", "accessRestrictedTo": [{"username": "self", "namespace": "absent"}]}`},
		// A repeat does nothing, so there is nothing to tell.
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
