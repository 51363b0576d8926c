package e2e

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// auditor is a service whose audit is read directly from the database.
type auditor struct {
	*service

	t                               *testing.T
	owner, viewer, editor, stranger string // access tokens
	apiToken, apiTokenID            string // an API token of the owner
	// late contains the ids of requests whose rows were stored before the database refused the commit. A sweep commits these
	// rows, with their audit entry, a minute or two later.
	late map[string]bool
}

func newAuditor(t *testing.T) *auditor {
	t.Helper()

	// Only the callers change anything. Maintenance creates profiles, which is not an audited change.
	s := start(t, append(silentModel(), "QUERN_INGEST_WORKERS=0", "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", scripted)...)
	key := s.newKey()
	a := &auditor{service: s, t: t, late: map[string]bool{}, owner: key.token("owner"), viewer: key.token("viewer"), editor: key.token("editor"), stranger: key.token("stranger")}

	// First sign-ins are audited too, so they happen before the test counts entries.
	for _, bearer := range []string{a.owner, a.viewer, a.editor, a.stranger} {
		require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", bearer, "").status)
	}

	a.apiTokenID, a.apiToken = newToken(t, s, a.owner, "owner")

	// On demand, the database refuses every change at the commit, or every audit entry.
	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range []string{
			`CREATE TABLE refused (what text)`,
			`INSERT INTO refused VALUES ('')`,
			`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
				IF (SELECT what FROM refused) = TG_ARGV[0] THEN RAISE EXCEPTION 'refused by a test'; END IF; RETURN NEW; END $$`,
			`CREATE TRIGGER refuse BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION refuse('audit')`,
			deferred("namespaces", "UPDATE"), deferred("datasets", "UPDATE"), deferred("definitions", "UPDATE"), deferred("grants", "UPDATE"),
			deferred("tokens", "UPDATE OF revoked_at"), deferred("upload_sessions", "UPDATE"), deferred("upload_files", "UPDATE OF status"),
			deferred("ingestions", "UPDATE OF status"), deferred("document_records", "UPDATE"), deferred("runs", "UPDATE OF status"), deferred("conversations", "UPDATE OF title"),
			deferred("run_feedback", "UPDATE"), deferred("remembered", "UPDATE"), deferred("verified_questions", "UPDATE"), deferred("benchmarks", "UPDATE"), deferred("statements", "UPDATE OF status"), deferred("webhooks", "UPDATE OF secret_version"), deferred("connections", "UPDATE OF name"), deferred("directory_connections", "UPDATE"), deferred("sources", "UPDATE OF status"), deferred("source_runs", "UPDATE"),
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

// auditEntry is a row of the audit in the form that this test compares.
type auditEntry struct {
	account, actor, token, address, requestID, outcome string
	what                                               string // as in auditedCall
	target                                             string
}

func (e auditEntry) withoutTarget() auditEntry {
	e.target = ""

	return e
}

// entries returns the whole audit of all accounts, without the entries of late requests.
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

	return slices.DeleteFunc(list, func(e auditEntry) bool { return a.late[e.requestID] })
}

// thing creates the resources that the call uses.
func (a *auditor) thing(audited auditedCall) thing {
	a.t.Helper()

	made := newThing(a.t, a.service, a.owner, audited.request.operation)
	if audited.request.body == ingestionBody {
		made.completed = uploadFiles(a.t, a.service, a.owner, "a\n1\n")
	}

	if audited.byEditor {
		for _, path := range []string{"namespaces/self/" + made.namespace, "datasets/self/" + made.namespace + "/orders"} {
			share(a.t, a.service, a.owner, path, "editor", "editor")
		}
	}

	if audited.request.operation == deleteChoices { // the owner must have chosen something
		a.exec(`INSERT INTO remembered SELECT d.account_id, d.id, d.account_id, 'cost', 'column', 'cost', 'a', now()
			FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id WHERE n.name = $1`, made.namespace)
	}

	if audited.isEmpty {
		answer := call(a.t, http.MethodDelete, a.url+"/data/self/"+made.namespace+"/orders", a.owner, "")
		require.Equal(a.t, http.StatusNoContent, answer.status, answer.body)
	}

	return made
}

// state returns a digest of everything that operations change, by table.
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

		for _, table := range []string{"namespaces", "datasets", "definitions", "grants", "directory_grants", "directory_connections", "idempotency", "upload_sessions", "ingestion_files", "remembered"} {
			of(table, "r::text", "true")
		}

		of("benchmarks", "concat(id, status = 'cancelled')", "true") // a worker completes them
		of("tokens", "concat(id, revoked_at)", "true")
		of("connections", "concat(id, name)", "true")
		of("sources", "concat(id, status)", "true")
		of("source_runs", "concat(id, status)", "true")
		of("webhooks", "concat(id, url, status, secret_version)", "true")
		// Posted rows are recorded before they are stored, and appear in the dataset later, so only ingestions of files are
		// compared.
		of("ingestions", "r::text", "kind = 'files'")
		// Releasing the reservation of an uploaded file restarts the time until its removal, and aborted files are removed
		// meanwhile. Both columns are ignored.
		of("upload_files", "(to_jsonb(r) - 'remove_at' - 'removed_at')::text", "true")
	})

	return digests
}
