package e2e

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// thing is the set of resources of one request, created for it.
type thing struct {
	namespace  string   // has the dataset orders
	token      string   // id of an API token of the owner with the role editor
	session    prepared // a session with one file, whose only part is uploaded
	completed  string   // id of a session of the caller with a completed file; if empty, it is created with the request
	ingestion  string   // id of an ingestion of the dataset; it is queued, cancelled for the operation that retries it, or completed for those about its record
	snapshot   string   // id of the only snapshot of the dataset
	deleted    string   // id of a deleted dataset of the owner, in the namespace
	verified   string   // id of a verified question
	benchmark  string   // its id
	statement  string   // id of a long statement of the owner; it is in progress for the operation that cancels it, else it is completed
	webhook    string   // its id
	connection string   // its id
	source     string   // id of a source that finds no files
	run        asked    // a run of the owner; it is in progress for the operation that cancels it, else it has ended
}

func newThing(t *testing.T, s *service, owner, operation string) (made thing) {
	t.Helper()

	if strings.Contains(operation, "{id}") {
		made.token, _ = newToken(t, s, owner, "editor")
	}

	if namesNamespace(operation) || strings.Contains(operation, "{n}") || strings.Contains(operation, "{statementId}") {
		made.namespace = makeDataset(t, s, owner)
	}

	if readsRows(operation) || operation == deleteRows {
		postRows(t, s, owner, "self/"+made.namespace+"/orders", rowsBody)
	}

	if readsProfile(operation) {
		postRows(t, s, owner, "self/"+made.namespace+"/orders", rowsBody)
		giveProfile(t, s, owner, made.namespace)
	}

	if strings.Contains(operation, "{sessionId}") {
		made.session = prepare(t, s, owner, 1)
		require.Equal(t, http.StatusOK, put(t, made.session.Files[0].PresignedURLs[0].URL, "x").status)
	}

	if strings.Contains(operation, "{ingestionId}") {
		made.ingestion = ingest(t, s, owner, "self/"+made.namespace+"/orders", uploadFiles(t, s, owner, "a\n1\n"))

		if strings.HasSuffix(operation, "/retry") {
			cancelled := call(t, http.MethodPost, s.url+"/data/self/"+made.namespace+"/orders/ingestions/"+made.ingestion+"/cancel", owner, "")
			require.Equal(t, http.StatusOK, cancelled.status, cancelled.body)
		}

		if strings.Contains(operation, "{recordId}") || strings.HasSuffix(operation, "/reload") {
			giveRecord(t, s, owner, made)
		}
	}

	if strings.Contains(operation, "{snapshotId}") {
		postRows(t, s, owner, "self/"+made.namespace+"/orders", rowsBody)
		made.snapshot = snapshots(t, s, owner, "self/"+made.namespace+"/orders")[0].SnapshotID
	}

	if strings.Contains(operation, "/verified/") {
		postRows(t, s, owner, "self/"+made.namespace+"/orders", rowsBody)
	}

	if strings.Contains(operation, "{verifiedId}") {
		var kept verifiedQuestion

		call(t, http.MethodPost, s.url+"/verified/self/"+made.namespace, owner, verifiedBody).json(t, &kept)
		made.verified = kept.ID
	}

	if strings.Contains(operation, "{benchmarkId}") {
		d := &filled{t: t, s: s, bearer: owner, owner: "self", namespace: made.namespace}
		made.benchmark = d.benchmark("").ID

		if strings.HasSuffix(operation, "/cancel") { // no worker has it, so it runs until it is cancelled
			s.exec(`UPDATE benchmarks SET status = 'running', finished_at = NULL WHERE id = '` + made.benchmark + `'`)
		}
	}

	if strings.Contains(operation, "{statementId}") {
		d := &filled{t: t, s: s, bearer: owner, owner: "self", namespace: made.namespace, name: "orders"}
		if !readsRows(operation) {
			postRows(t, s, owner, d.path(), rowsBody)
		}

		made.statement = d.start("FROM orders", "").await("completed").ID

		if strings.HasSuffix(operation, "/cancel") { // no worker has it, so it runs until it is cancelled
			s.exec(`UPDATE statements SET status = 'running' WHERE id = '` + made.statement + `'`)
			t.Cleanup(func() { s.exec(`DELETE FROM statements WHERE id = '` + made.statement + `'`) })
		}
	}

	if strings.Contains(operation, "{webhookId}") {
		made.webhook = webhooks{t, s, owner}.create(`{"url": "https://receiver.invalid/"}`).ID
	}

	if strings.Contains(operation, "{connectionId}") {
		made.connection = s.connect(t, owner, "n-"+uuid.NewString(), s.place)
	}

	if operation == "DELETE /connections/{connectionId}/shares" {
		s.lend(t, owner, made.connection, "grantee")
	}

	if strings.HasSuffix(operation, " /sources") || strings.Contains(operation, "{sourceId}") {
		made.connection = s.sharedConnection(t, owner)
	}

	if strings.Contains(operation, "{sourceId}") {
		made.source = s.addSource(t, owner, made.connection)
	}

	if strings.Contains(operation, "{deletedId}") {
		made.namespace = makeDataset(t, s, owner)
		made.deleted = deleteDataset(t, s, owner, "self/"+made.namespace+"/orders")
	}

	if strings.Contains(operation, "{runId}") || strings.Contains(operation, "{conversationId}") || operation == callAgent {
		script, prefer := `{}`, "Prefer: wait=60"
		d := &filled{t: t, s: s, bearer: owner, owner: "owner", namespace: made.namespace}

		switch {
		case strings.HasSuffix(operation, "/cancel"):
			script, prefer = `{"pause": 60000, "steps": [{"instruction": "wait"}]}`, "Prefer: respond-async"
		case strings.HasSuffix(operation, "/choose"):
			script = `{"outcome": "clarification", "clarification": {"question": "Which?", "options": ["this"]}, "then": {"response": "Done."}}`
		case strings.Contains(operation, "{n}"):
			script = `{"steps": [{"instruction": "read", "queries": ["FROM orders"]}]}`
		}

		if d.namespace == "" {
			d.namespace = makeDataset(t, s, owner)
		}

		call(t, http.MethodPost, s.url+"/query/ask", owner, d.script("nl2ql", script, ""), prefer, "Accept: application/json").json(t, &made.run)

		if strings.HasSuffix(operation, "/cancel") { // a run in progress would occupy a worker
			run := newRequest(t, http.MethodPost, s.url+"/query/runs/"+made.run.RunID+"/cancel", owner, "").WithContext(context.WithoutCancel(t.Context()))
			t.Cleanup(func() { _, _ = try(run) })
		}
	}

	if strings.HasSuffix(operation, "/feedback") && !strings.HasPrefix(operation, "POST ") {
		rated := call(t, http.MethodPost, s.url+"/query/runs/"+made.run.RunID+"/feedback", owner, `{"thumbsUp": true}`)
		require.Equal(t, http.StatusNoContent, rated.status, rated.body)
	}

	if strings.HasPrefix(operation, "DELETE /permissions/") {
		for _, path := range []string{"namespaces/self/" + made.namespace, "datasets/self/" + made.namespace + "/orders"} {
			share(t, s, owner, path, "grantee", "viewer")
		}
	}

	return made
}

// giveRecord makes the ingestion one that a model has completed, with the record 0-1, which has the field a.
func giveRecord(t *testing.T, s *service, owner string, made thing) {
	t.Helper()

	defined := call(t, http.MethodPut, s.url+"/data/self/"+made.namespace+"/orders/inferDefinition", owner, `{"schemaDefinition": {"a": "A"}}`)
	require.Equal(t, http.StatusCreated, defined.status, defined.body)

	s.exec(`UPDATE ingestions SET status = 'completed', finished_at = now(), options = options || '{"extract": "model"}' WHERE id = $1`, made.ingestion)
	s.exec(`UPDATE ingestion_files SET document = '\x01' WHERE ingestion_id = $1`, made.ingestion)
	s.exec(`
		INSERT INTO document_records (account_id, dataset_id, ingestion_id, position, number, row_number, page, fields, anchor)
		SELECT account_id, dataset_id, id, 0, 1, 1, 1, '{"a": {"quote": "1", "page": 1, "to": 1, "value": "1"}}', '{"page": 1, "from": 0, "to": 1, "rank": 0, "ranks": 1}'
		FROM ingestions WHERE id = $1`, made.ingestion)
}

// namesNamespace reports whether a request names a namespace, or a dataset in one.
func namesNamespace(operation string) bool {
	return strings.Contains(operation, "{namespace}") || slices.Contains([]string{"POST /query", "POST /query/link", "POST /query/check", "POST /query/ask", callAgent, callTool}, operation)
}

// readsRows reports whether the operation returns rows of a dataset, or values of rows.
func readsRows(operation string) bool {
	return operation == "POST /query" || operation == "POST /query/link" || operation == "POST /query/check" || operation == callTool || strings.HasPrefix(operation, "GET ") && (strings.HasSuffix(operation, "/rows") || strings.HasSuffix(operation, "/export") || strings.HasSuffix(operation, "/setAside") || strings.HasSuffix(operation, "/records") || strings.HasSuffix(operation, "/text") || strings.HasSuffix(operation, "/pieces/{piece}"))
}

// readsProfile reports whether the operation needs a profile.
func readsProfile(operation string) bool {
	return strings.HasSuffix(operation, "/profile") || strings.HasSuffix(operation, "/draft")
}

// giveProfile waits for the profile of the namespace's dataset. To save time it first copies the profile of another dataset, if
// one exists: all datasets have the same rows.
func giveProfile(t *testing.T, s *service, owner, namespace string) {
	t.Helper()

	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `
			INSERT INTO lake_profiles (account_id, dataset_id, snapshot_id, sequence, row_count, computed_at, profile_key, profile_size, summary)
			SELECT p.account_id, d.id, p.snapshot_id, p.sequence, p.row_count, p.computed_at, p.profile_key, p.profile_size, p.summary
			FROM lake_profiles p, datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id
			WHERE d.account_id = p.account_id AND n.name = $1 LIMIT 1 ON CONFLICT DO NOTHING`, namespace)
		require.NoError(t, err)
	})

	await(t, "a profile", func() bool {
		return call(t, http.MethodGet, s.url+"/data/self/"+namespace+"/orders/profile", owner, "").status == http.StatusOK
	})
}

// address returns the path of an operation with the names of this thing. A dataset to be created gets a new name.
func (made thing) address(path string) string {
	dataset := "orders"
	if strings.HasPrefix(path, "/ingest/new") {
		dataset = "new"
	}

	return strings.NewReplacer("/pieces/{piece}", "/pieces/1", "{statementId}", made.statement, "{username}", "owner", "{namespace}", made.namespace, "{datasetName}", dataset, "{id}", made.token,
		"{agent}", "nl2ql", "{runId}", made.run.RunID, "{n}", "0", "{conversationId}", made.run.ConversationID,
		"{sessionId}", made.session.SessionID, "{fileId}", made.file().FileID, "{ingestionId}", made.ingestion, "{recordId}", "0-1", "{fieldName}", "a", "{snapshotId}", made.snapshot, "{deletedId}", made.deleted, "{verifiedId}", made.verified,
		"{benchmarkId}", made.benchmark, "{webhookId}", made.webhook, "{connectionId}", made.connection, "{sourceId}", made.source).Replace(path)
}

// file returns the file of the session.
func (made thing) file() preparedFile {
	if len(made.session.Files) == 0 {
		return preparedFile{FileID: uuid.Nil.String(), UploadID: "x", Key: "x"}
	}

	return made.session.Files[0]
}

// asks sends the request of a row. The code of a JSON-RPC error replaces the status.
func (row authorizationRow) asks(t *testing.T, s *service, about thing, bearer string) *answer {
	t.Helper()

	method, path, _ := strings.Cut(row.operation, " ")

	body := strings.NewReplacer("<new>", "n-"+uuid.NewString(), "<uploadId>", about.file().UploadID, "<key>", about.file().Key, "<namespace>", about.namespace, "<run>", about.run.RunID, "<s3>", s.place.s3Settings(), "<connection>", about.connection).Replace(row.body)
	if strings.Contains(body, "<session>") && about.completed == "" {
		about.completed = ownSession(t, s, bearer)
	}

	body = strings.ReplaceAll(body, "<session>", about.completed)

	answer := call(t, method, s.url+about.address(path)+row.query, bearer, body)
	if row.operation == callAgent && answer.status == http.StatusOK && len(field(t, answer.body, "error")) > 0 {
		answer.status, _ = rpcError(t, answer)
	}

	if row.operation == callTool && answer.status == http.StatusOK {
		answer.status = toolStatus(usedOf(t, answer))
	}

	return answer
}

func TestAuthorizationTable(t *testing.T) {
	t.Parallel()

	s := start(t, append(silentModel(), "QUERN_UPLOAD_MAX_OPEN_SESSIONS=1000", "QUERN_INGEST_WORKERS=0", "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", scripted, "QUERN_RUN_MAX_PER_USER=1000", "QUERN_STATEMENT_MAX_PER_USER=1000", withOperators)...) // without ingestion workers, queued ingestions stay queued
	key := s.newKey()
	owner := key.token("owner")
	callers := newCallers(t, s, key)
	users := map[string]string{"viewer": key.token("viewer"), "editor": key.token("editor")}
	missing := call(t, http.MethodGet, s.url+"/user/me", "", "").body
	refusal := call(t, http.MethodGet, s.url+"/user/me", "garbage", "").body
	require.NotEqual(t, missing, refusal)

	columns, rows := authorizationTable()
	things := func(t *testing.T, operation string) thing {
		t.Helper()

		return newThing(t, s, owner, operation)
	}
	checkTable(t, columns, rows, func(operation) bool { return true }, things, func(t *testing.T, row authorizationRow, about thing, column string) *answer {
		t.Helper()
		require.Contains(t, callers, column)

		bearer := callers[column]

		if user, shared := users[column]; shared && strings.Contains(row.operation, "{username}") {
			bearer = user

			if about.namespace != "" {
				share(t, s, owner, "namespaces/self/"+about.namespace, column, column)
			}
		}

		answer := row.asks(t, s, about, bearer)
		if answer.status == http.StatusUnauthorized {
			want := refusal
			if bearer == "" {
				want = missing
			}

			require.Equal(t, want, answer.body, "%s: the answer tells why a token is refused", column)
			require.True(t, strings.HasPrefix(answer.header.Get("WWW-Authenticate"), `Bearer realm="quern"`), column)
		}

		return answer
	})

	columns, rows = sharingTable()
	named := func(o operation) bool { return namesNamespace(o.String()) }
	checkTable(t, columns, rows, named, things, func(t *testing.T, row authorizationRow, about thing, column string) *answer {
		t.Helper()

		return row.asks(t, s, about, newSharer(t, s, key, about.namespace, column))
	})
}

// ownSession creates a session of the bearer with a completed file. If the bearer may not upload, it returns an id that does not
// exist.
func ownSession(t *testing.T, s *service, bearer string) (id string) {
	t.Helper()

	if call(t, http.MethodPost, s.url+"/file-upload/prepare", bearer, prepareBody(1)).status != http.StatusOK {
		return uuid.NewString()
	}

	return uploadFiles(t, s, bearer, "a\n1\n")
}

// checkTable sends the request of each row as each column's caller, and fails if an operation of the table has no row.
func checkTable(
	t *testing.T, header string, rows []authorizationRow, isAbout func(operation) bool, newThing func(t *testing.T, operation string) thing,
	ask func(t *testing.T, row authorizationRow, about thing, column string) *answer,
) {
	t.Helper()

	columns, missing := strings.Fields(header), map[string]bool{}

	for _, operation := range operations() {
		if isAbout(operation) {
			missing[operation.String()] = true
		}
	}

	for _, row := range rows {
		if row.query == "" || missing[row.operation] {
			require.True(t, missing[row.operation], "%s stands twice, or is not an operation", row.operation)
			delete(missing, row.operation)
		}

		statuses := strings.Fields(row.statuses)
		if columns[len(columns)-1] == "operator" && len(statuses) == len(columns)-1 { // operators see no more data than strangers
			statuses = append(statuses, statuses[slices.Index(columns, "stranger")])
		}

		require.Len(t, statuses, len(columns), row.operation)

		t.Run(row.operation+row.query, func(t *testing.T) {
			t.Parallel()

			about := newThing(t, row.operation)

			for i, column := range columns {
				if i > 0 && !strings.HasPrefix(row.operation, "GET ") { // a request that only reads can use the same resources again
					about = newThing(t, row.operation)
				}

				answer := ask(t, row, about, column)
				require.Equal(t, statuses[i], strconv.Itoa(answer.status), "%s: %s", column, answer.body)
			}
		})
	}

	require.Empty(t, missing, "operations without a row")
}
