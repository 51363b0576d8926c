package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

const (
	absent       = `{"error_code": "NOT_FOUND", "message": "<what absent>", "error_message": ""}`
	noOperation  = `{"error_code": "NOT_FOUND", "message": "<path route>", "error_message": ""}`
	unauthorized = `{"error_code": "UNAUTHORIZED", "message": "The token is not valid: it is unknown, expired or revoked. Replace it: sign in again (quern login), or use an API token that is still valid.", "error_message": ""}`
	noToken      = `{"error_code": "UNAUTHORIZED", "message": "The request has no token. Send the header Authorization: Bearer TOKEN. quern login signs you in, and quern token create makes an API token.", "error_message": ""}`
)

func invalid(field, message string) string {
	return failed("VALIDATION_FAILED", "The request is not valid.", field, message)
}

func beyondRights(field, message string) string {
	return failed("FORBIDDEN", "The token in use does not allow this.", field, message)
}

func failed(code, message, sub, subMessage string) string {
	return `{"error_code": "` + code + `", "message": "` + message + `", "error_message": "", "sub_errors": [{"code": "` + sub + `", "message": "` + subMessage + `"}]}`
}

// created is the answer to a new token. It binds x to its id, x-token to its value, and x-created and x-expires to its times.
func created(x, name, role, expires string) string {
	return `{"id": "<` + x + ` uuid>", "name": "` + name + `", "role": "` + role + `", "accessRestrictedTo": [],
		"createdAt": "<` + x + `-created now>", "expiresAt": "` + expires + `", "token": "<` + x + `-token token>"}`
}

// listed is the same token in a list.
func listed(x, name, role, more string) string {
	return `{"id": "<` + x + `>", "name": "` + name + `", "role": "` + role + `", "accessRestrictedTo": [],
		"createdAt": "<` + x + `-created>", "expiresAt": "<` + x + `-expires>"` + more + `}`
}

func scenarios() []scenario {
	impossibleName := failed("FORBIDDEN", "This account cannot be used.", "username.invalid", "The username from the identity provider is not valid here. Ask the operator of the service.")
	takenName := failed("FORBIDDEN", "This account cannot be used.", "username.taken", "Another account has this username. Ask the operator of the service.")

	return []scenario{
		{name: "an account is the same whatever the way to sign in", steps: []step{
			{
				as: "ada by password", do: "GET /user/me", status: 200,
				want: `{"id": "<id uuid>", "username": "ada", "name": "Ada Test", "email": "ada@quern.test", "groups": []}`,
			},
			{
				as: "ada by code", do: "GET /user/me", status: 200,
				want: `{"id": "<id>", "username": "ada", "name": "Ada Test", "email": "ada@quern.test", "groups": []}`,
			},
			{
				as: "ada by implicit", do: "GET /user/me", status: 200,
				want: `{"id": "<id>", "username": "ada", "name": "Ada Test", "email": "ada@quern.test", "groups": []}`,
			},
			{
				as: "bob by implicit", do: "GET /user/me", status: 200,
				want: `{"id": "<bob uuid>", "username": "bob", "name": "Bob Test", "email": "bob@quern.test", "groups": ["analysts"]}`,
			},
			{as: "ada by ID token", do: "GET /user/me", status: 401, want: unauthorized},
		}},
		{name: "a username is fixed at the first request and belongs to one subject", steps: []step{
			{as: "mix:Mixed.Case", do: "GET /user/me", status: 200, want: account("mix", "mixed.case")},
			{as: "mix:renamed", do: "GET /user/me", status: 200, want: `{"id": "<mix>", "username": "mixed.case", "name": "", "email": "", "groups": []}`},
			{as: "mix:not possible", do: "GET /user/me", status: 200, want: `{"id": "<mix>", "username": "mixed.case", "name": "", "email": "", "groups": []}`},
			{as: "another:MIXED.case", do: "GET /user/me", status: 403, want: takenName},
			{as: "another:free", do: "GET /user/me", status: 200, want: account("free", "free")},
			{as: "longest:" + strings.Repeat("x", 128), do: "GET /user/me", status: 200, want: account("longest", strings.Repeat("x", 128))},
			{as: "address:jo+x@quern.test", do: "GET /user/me", status: 200, want: account("address", "jo+x@quern.test")},
			{as: "bad1:self", do: "GET /user/me", status: 403, want: impossibleName},
			{as: "bad2:", do: "GET /user/me", status: 403, want: impossibleName},
			{as: "bad3:two words", do: "GET /user/me", status: 403, want: impossibleName},
			{as: "bad4:-dash", do: "POST /user/tokens", body: `{"name": "x"}`, status: 403, want: impossibleName},
			{as: "bad5:Ünal", do: "GET /user/tokens", status: 403, want: impossibleName},
			{as: "bad6:" + strings.Repeat("x", 129), do: "GET /user/me", status: 403, want: impossibleName},
		}},
		{name: "a token from its making to its end", steps: []step{
			{as: "life", do: "GET /user/tokens", status: 200, want: `{"data": []}`},
			{as: "life", do: "POST /user/tokens", body: `{"name": "nightly"}`, status: 201, want: created("t", "nightly", "editor", "<t-expires now+2160h>"), shows: []string{"Cache-Control: no-store"}},
			{as: "life", do: "GET /user/tokens", status: 200, want: `{"data": [` + listed("t", "nightly", "editor", "") + `]}`},
			{as: "life", do: "GET /user/me", status: 200, want: account("life", "life")},
			{as: "<t-token>", do: "GET /user/me", status: 200, want: `{"id": "<life>", "username": "life", "name": "", "email": "", "groups": []}`},
			{as: "<t-token>", do: "GET /user/tokens", status: 200, want: `{"data": [` + listed("t", "nightly", "editor", `, "lastUsedAt": "<t-used now>"`) + `]}`},
			{as: "life", do: "GET /user/tokens/<t>", status: 200, want: listed("t", "nightly", "editor", `, "lastUsedAt": "<t-used>"`)},
			{as: "other", do: "GET /user/tokens/<t>", status: 404, want: absent},
			{as: "life", do: "DELETE /user/tokens/<t>", status: 204},
			{as: "life", do: "GET /user/tokens/<t>", status: 404, want: absent},
			{as: "<t-token>", do: "GET /user/me", status: 401, want: unauthorized, shows: []string{`WWW-Authenticate: Bearer realm="quern", error="invalid_token", error_description="the token is not valid"`}},
			{as: "life", do: "DELETE /user/tokens/<t>", status: 404, want: absent},
			{as: "life", do: "GET /user/tokens", status: 200, want: `{"data": []}`},
		}},
		{name: "how a token is sent", steps: []step{
			{as: "sender", do: "POST /user/tokens", body: `{"name": "x"}`, status: 201, want: created("t", "x", "editor", "<t-expires now+2160h>")},
			{do: "GET /user/me", header: []string{"Authorization: bearer <t-token>"}, status: 200, want: account("sender", "sender")},
			{do: "GET /user/me", header: []string{"Authorization: <t-token>"}, status: 401, want: noToken},
			{do: "GET /user/me", header: []string{"Authorization: Bearer"}, status: 401, want: noToken},
			{do: "GET /user/me", header: []string{"Authorization: Bearer <t-token>0"}, status: 401, want: unauthorized},
			{do: "GET /user/me", header: []string{"Authorization: Bearer <t-token> <t-token>"}, status: 401, want: unauthorized},
			{do: "GET /user/me", header: []string{"Authorization: Basic <t-token>"}, status: 401, want: noToken},
			{do: "GET /user/me?access_token=<t-token>", status: 401, want: noToken, shows: []string{`WWW-Authenticate: Bearer realm="quern"`}},
		}},
		{name: "a token can end itself", steps: []step{
			{as: "ender", do: "POST /user/tokens", body: `{"name": "x"}`, status: 201, want: created("t", "x", "editor", "<t-expires now+2160h>")},
			{as: "<t-token>", do: "DELETE /user/tokens/%7B<t>%7D", status: 404, want: absent},
			{as: "<t-token>", do: "DELETE /user/tokens/urn:uuid:<t>", status: 404, want: absent},
			{as: "<t-token>", do: "DELETE /user/tokens/<t>", status: 204},
			{as: "<t-token>", do: "DELETE /user/tokens/<t>", status: 401, want: unauthorized},
		}},
		{name: "roles and expiries that are given", steps: []step{
			{as: "giver", do: "POST /user/tokens", body: `{"name": "v", "role": "viewer"}`, status: 201, want: created("v", "v", "viewer", "<v-expires now+2160h>")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "e", "role": "editor"}`, status: 201, want: created("e", "e", "editor", "<e-expires now+2160h>")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "o", "role": "owner"}`, status: 201, want: created("o", "o", "owner", "<o-expires now+2160h>")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "n", "role": null, "expiresAt": null, "accessRestrictedTo": null}`, status: 201, want: created("n", "n", "editor", "<n-expires now+2160h>")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "day", "expiresAt": "<day-expires now+24h>", "accessRestrictedTo": []}`, status: 201, want: created("day", "day", "editor", "<day-expires>")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "zone", "expiresAt": "2027-01-31T12:00:00.5+02:00"}`, status: 201, want: created("zone", "zone", "editor", "2027-01-31T10:00:00.5Z")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "x", "role": "admin"}`, status: 422, want: invalid("role", "must be one of: viewer, editor, owner")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "x", "role": ""}`, status: 422, want: invalid("role", "must be one of: viewer, editor, owner")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "x", "expiresAt": "<past now-1s>"}`, status: 422, want: invalid("expiresAt", "must be in the future")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "x", "expiresAt": "0001-01-01T00:00:00Z"}`, status: 422, want: invalid("expiresAt", "must be in the future")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "x", "expiresAt": "<far now+8761h>"}`, status: 422, want: invalid("expiresAt", "must be at most 8760 hours from now")},
			{as: "giver", do: "POST /user/tokens", body: `{"name": "x", "expiresAt": "tomorrow"}`, status: 422, want: invalid("expiresAt", "must be a time such as 2026-11-17T09:30:00Z")},
		}},
		{name: "names of tokens", steps: []step{
			{as: "namer", do: "POST /user/tokens", body: `{"name": "Nächtlicher Bericht 🌙 한국어"}`, status: 201, want: created("u", "Nächtlicher Bericht 🌙 한국어", "editor", "<u-expires now+2160h>")},
			{as: "namer", do: "POST /user/tokens", body: `{"name": "\ud83c\udf19\u200f"}`, status: 201, want: created("s", "🌙\u200f", "editor", "<s-expires now+2160h>")},
			{as: "namer", do: "POST /user/tokens", body: `{"name": "` + strings.Repeat("🌙", 100) + `"}`, status: 201, want: created("l", strings.Repeat("🌙", 100), "editor", "<l-expires now+2160h>")},
			{as: "namer", do: "POST /user/tokens", body: `{"name": "` + strings.Repeat("🌙", 101) + `"}`, status: 422, want: invalid("name", "must have at most 100 characters")},
			{as: "namer", do: "POST /user/tokens", body: `{"name": ""}`, status: 422, want: invalid("name", "must have at least 1 character")},
			{as: "namer", do: "POST /user/tokens", body: `{"Name": "x"}`, status: 422, want: `{"error_code": "VALIDATION_FAILED", "message": "The request is not valid.", "error_message": "", "sub_errors": [
				{"code": "Name", "message": "is not a field of this request; did you mean \"name\"?"}, {"code": "name", "message": "is required"}]}`},
			{as: "namer", do: "POST /user/tokens", body: `{"name": "x", "expires_at": "2030-01-01T00:00:00Z"}`, status: 422, want: invalid("expires_at", `is not a field of this request; did you mean \"expiresAt\"?`)},
			{
				as: "namer", do: "POST /user/tokens", body: `{"role": 7, "expiresAt": false}`, status: 422,
				want: `{"error_code": "VALIDATION_FAILED", "message": "The request is not valid.", "error_message": "", "sub_errors": [
					{"code": "expiresAt", "message": "must be of type string"}, {"code": "name", "message": "is required"}, {"code": "role", "message": "must be one of: viewer, editor, owner"}]}`,
			},
			{
				as: "namer", do: "POST /user/tokens", body: `{"name": "a\u0000", "role": "boss", "expiresAt": "never"}`, status: 422,
				want: `{"error_code": "VALIDATION_FAILED", "message": "The request is not valid.", "error_message": "", "sub_errors": [
					{"code": "expiresAt", "message": "must be a time such as 2026-11-17T09:30:00Z"}, {"code": "name", "message": "contains the character U+0000"}, {"code": "role", "message": "must be one of: viewer, editor, owner"}]}`,
			},
			{as: "namer", do: "GET /user/tokens?limit=2", status: 200, want: `{"data": [` + listed("l", strings.Repeat("🌙", 100), "editor", "") + `, ` + listed("s", "🌙\u200f", "editor", "") + `], "nextCursor": "<next text>"}`},
		}},
		{name: "a list in pages, newest first", steps: []step{
			{as: "pager", do: "POST /user/tokens", body: `{"name": "1"}`, status: 201, want: created("a", "1", "editor", "<a-expires now+2160h>")},
			{as: "pager", do: "POST /user/tokens", body: `{"name": "2"}`, status: 201, want: created("b", "2", "editor", "<b-expires now+2160h>")},
			{as: "pager", do: "POST /user/tokens", body: `{"name": "3"}`, status: 201, want: created("c", "3", "editor", "<c-expires now+2160h>")},
			{as: "pager", do: "GET /user/tokens?limit=1", status: 200, want: `{"data": [` + listed("c", "3", "editor", "") + `], "nextCursor": "<after-c text>"}`},
			{as: "pager", do: "GET /user/tokens?limit=1&cursor=<after-c>", status: 200, want: `{"data": [` + listed("b", "2", "editor", "") + `], "nextCursor": "<after-b text>"}`},
			{as: "pager", do: "GET /user/tokens?limit=1&cursor=<after-b>", status: 200, want: `{"data": [` + listed("a", "1", "editor", "") + `]}`},
			{as: "pager", do: "GET /user/tokens?limit=2&cursor=<after-c>", status: 200, want: `{"data": [` + listed("b", "2", "editor", "") + `, ` + listed("a", "1", "editor", "") + `]}`},
			{as: "pager", do: "DELETE /user/tokens/<b>", status: 204},
			{as: "pager", do: "GET /user/tokens?cursor=<after-b>", status: 200, want: `{"data": [` + listed("a", "1", "editor", "") + `]}`},
			{as: "pager", do: "GET /user/tokens?limit=100", status: 200, want: `{"data": [` + listed("c", "3", "editor", "") + `, ` + listed("a", "1", "editor", "") + `]}`},
			{as: "pager", do: "GET /user/tokens?limit=0", status: 422, want: invalid("limit", "must be at least 1")},
			{as: "pager", do: "GET /user/tokens?limit=101", status: 422, want: invalid("limit", "must be at most 100")},
			{as: "pager", do: "GET /user/tokens?limit=abc", status: 422, want: invalid("limit", "must be a whole number from 1 to 100")},
			{as: "pager", do: "GET /user/tokens?limit=", status: 422, want: invalid("limit", "must be a whole number from 1 to 100")},
			{as: "pager", do: "GET /user/tokens?limit=1&limit=2", status: 422, want: invalid("limit", "is given more than once; give it once")},
			{as: "pager", do: "GET /user/tokens?cursor=nonsense", status: 422, want: invalid("cursor", "is not a cursor of this list; set it to the nextCursor of the page before, or leave it out for the first page")},
			{as: "pager", do: "GET /user/tokens?cursor=", status: 422, want: invalid("cursor", "must have at least 1 character")},
			{as: "pager", do: "GET /user/tokens?cursor=%00", status: 422, want: invalid("cursor", "is not text")},
			{as: "pager", do: "GET /user/tokens?offset=1&limit=1", status: 422, want: invalid("offset", "is not a parameter of this operation; for the next page set cursor to the nextCursor of the page before")},
		}},
		{name: "a token made with a token never exceeds or outlives it", steps: []step{
			{as: "heir", do: "POST /user/tokens", body: `{"name": "parent", "role": "viewer", "expiresAt": "<p-expires now+24h>"}`, status: 201, want: created("p", "parent", "viewer", "<p-expires>")},
			{as: "<p-token>", do: "POST /user/tokens", body: `{"name": "x", "role": "editor"}`, status: 403, want: beyondRights("role", "The token in use allows viewer at most.")},
			{as: "<p-token>", do: "POST /user/tokens", body: `{"name": "x", "role": "owner"}`, status: 403, want: beyondRights("role", "The token in use allows viewer at most.")},
			{as: "<p-token>", do: "POST /user/tokens", body: `{"name": "x", "expiresAt": "<later now+25h>"}`, status: 403, want: beyondRights("expiresAt", "A token cannot expire later than the token that creates it.")},
			{as: "<p-token>", do: "POST /user/tokens", body: `{"name": "child"}`, status: 201, want: created("c", "child", "viewer", "<p-expires>")},
			{as: "<c-token>", do: "POST /user/tokens", body: `{"name": "grandchild", "expiresAt": "<g-expires now+1h>"}`, status: 201, want: created("g", "grandchild", "viewer", "<g-expires>")},
			{as: "heir", do: "POST /user/tokens", body: `{"name": "other", "role": "owner"}`, status: 201, want: created("o", "other", "owner", "<o-expires now+2160h>")},
			{as: "<g-token>", do: "DELETE /user/tokens/<o>", status: 403, want: beyondRights("role", "The token in use allows viewer at most.")},
			{as: "<g-token>", do: "GET /user/me", status: 200, want: account("heir", "heir")},
			{as: "heir", do: "DELETE /user/tokens/<p>", status: 204},
			{as: "<p-token>", do: "GET /user/me", status: 401, want: unauthorized},
			{as: "<c-token>", do: "GET /user/me", status: 401, want: unauthorized},
			{as: "<g-token>", do: "GET /user/me", status: 401, want: unauthorized},
			{as: "<o-token>", do: "GET /user/tokens", status: 200, want: `{"data": [` + listed("o", "other", "owner", `, "lastUsedAt": "<o-used now>"`) + `]}`},
		}},
		{name: "another user's token looks absent", steps: []step{
			{as: "holder", do: "POST /user/tokens", body: `{"name": "mine"}`, status: 201, want: created("t", "mine", "editor", "<t-expires now+2160h>")},
			{as: "thief", do: "GET /user/tokens", status: 200, want: `{"data": []}`},
			{as: "thief", do: "DELETE /user/tokens/<t>", status: 404, want: absent},
			{as: "thief", do: "DELETE /user/tokens/" + uuid.NewString(), status: 404, want: absent},
			{as: "thief", do: "DELETE /user/tokens/" + uuid.Nil.String(), status: 404, want: absent},
			{as: "<t-token>", do: "GET /user/me", status: 200, want: account("holder", "holder")},
		}},
		{name: "what is not there", steps: []step{
			{do: "GET /", status: 404, want: noOperation},
			{do: "GET /nothing", status: 404, want: noOperation},
			{do: "DELETE /nothing", status: 404, want: noOperation},
			{do: "GET <root>/", header: []string{"Accept: application/json"}, status: 404, want: noOperation}, // for browsers it is the console
			{do: "GET <root>/api/v1", status: 404, want: noOperation},
			{do: "GET <root>/api/v2/user/me", status: 404, want: noOperation},
			{do: "GET <root>/metrics", status: 404, want: noOperation},
			{do: "GET <root>/debug/pprof/", status: 404, want: noOperation},
			{as: "lost", do: "GET //user/me", status: 404, want: noOperation},
			{as: "lost", do: "GET <root>//api/v1/user/me", status: 404, want: noOperation},
			{as: "lost", do: "GET /user/me/", status: 404, want: noOperation},
			{as: "lost", do: "GET /user/../user/me", status: 404, want: noOperation},
			{as: "lost", do: "GET /user/./me", status: 404, want: noOperation},
			{as: "lost", do: "GET /user/%2e%2e/user/me", status: 404, want: noOperation},
			{as: "lost", do: "GET /user%2fme", status: 404, want: noOperation},
			{as: "lost", do: "GET /USER/ME", status: 404, want: noOperation},
			{as: "lost", do: "DELETE /user/tokens/not-a-uuid", status: 404, want: absent},
			{as: "lost", do: "DELETE /user/tokens/%7B" + uuid.NewString() + "%7D", status: 404, want: absent},
			{do: "POST /user/me", status: 405, want: wrongMethod("POST", "GET (Who the caller is)"), shows: []string{"Allow: GET, HEAD"}},
			{do: "GET /query", status: 405, want: wrongMethod("GET", "POST (Run one read-only SQL statement)"), shows: []string{"Allow: POST"}},
			{do: "PUT /user/tokens", status: 405, want: wrongMethod("PUT", "GET (List the caller's API tokens), POST (Create an API token)"), shows: []string{"Allow: GET, HEAD, POST"}},
			{do: "PATCH /user/tokens/x", status: 405, want: wrongMethod("PATCH", "DELETE (Revoke an API token), GET (Get an API token)"), shows: []string{"Allow: DELETE, GET, HEAD"}},
			{do: "TRACE /user/me", status: 405, want: wrongMethod("TRACE", "GET (Who the caller is)"), shows: []string{"Allow: GET, HEAD"}},
			{do: "POST <root>/healthz", status: 405, want: wrongMethod("POST", "GET"), shows: []string{"Allow: GET, HEAD"}},
		}},
		{name: "HEAD wherever GET", steps: []step{
			{as: "header", do: "HEAD /user/me", status: 200, shows: []string{"Content-Type: application/json"}},
			{as: "header", do: "HEAD /user/tokens", status: 200, shows: []string{"Content-Type: application/json"}},
			{do: "HEAD /user/me", status: 401, shows: []string{"Content-Type: application/json", `WWW-Authenticate: Bearer realm="quern"`}},
			{as: "header", do: "HEAD /user/tokens?limit=0", status: 422},
			{do: "HEAD /openapi.json", status: 200, shows: []string{"Content-Type: application/json"}},
			{do: "HEAD /docs", status: 200, shows: []string{"Content-Type: text/html; charset=utf-8"}},
			{do: "HEAD <root>/healthz", status: 200},
			{do: "HEAD <root>/readyz", status: 200},
			{as: "header", do: "POST /ingest/new/heads/orders", status: 201, want: datasetBody("header/heads/orders", "", "{}")},
			{as: "header", do: "HEAD /data/self/heads/orders/rows", status: 200, shows: []string{"Content-Type: application/json"}},
			{as: "header", do: "HEAD /data/self/heads/orders/export", status: 422, shows: []string{"Content-Type: application/json", "Content-Disposition: "}},
			{as: "header", do: "POST /data/self/heads/orders/rows", body: rowsBody, status: 200, want: `{"indexed": 1, "snapshotId": "<heads uuid>"}`},
			{as: "header", do: "HEAD /data/self/heads/orders/rows?columns=a", status: 200, shows: []string{"Content-Type: application/json"}},
			{as: "header", do: "HEAD /data/self/heads/orders/rows?columns=b", status: 422, shows: []string{"Content-Type: application/json"}},
			{as: "header", do: "HEAD /data/self/heads/orders/export", status: 200, shows: []string{"Content-Type: text/csv", `Content-Disposition: attachment; filename=orders.csv`}},
			{as: "header", do: "HEAD /data/self/heads/orders/export?format=parquet", status: 200, shows: []string{"Content-Type: application/vnd.apache.parquet", `Content-Disposition: attachment; filename=orders.parquet`}},
			{as: "header", do: "HEAD /data/self/heads/orders/export?format=ndjson", status: 200, shows: []string{"Content-Type: application/x-ndjson", `Content-Disposition: attachment; filename=orders.ndjson`}},
			{as: "header", do: "HEAD /data/self/heads/orders/export?format=xlsx", status: 422, shows: []string{"Content-Type: application/json"}},
			{as: "header", do: "HEAD /data/self/heads/absent/rows", status: 404},
			{as: "header", do: "HEAD /data/self/heads/absent/export", status: 404},
			{as: "header", do: "HEAD /query", status: 405, shows: []string{"Allow: POST"}},
		}},
		{name: "browsers of configured origins only", settings: []string{"QUERN_CORS_ORIGINS=https://console.quern.test"}, steps: []step{
			{
				do: "OPTIONS /user/tokens", header: []string{"Origin: https://console.quern.test", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type,idempotency-key"}, status: 204,
				shows: []string{
					"Access-Control-Allow-Origin: https://console.quern.test", "Access-Control-Allow-Methods: POST",
					"Access-Control-Allow-Headers: authorization,content-type,idempotency-key", "Access-Control-Max-Age: 600", "Access-Control-Allow-Credentials: ",
				},
			},
			{do: "OPTIONS /user/tokens", header: []string{"Origin: https://console.quern.test.evil.test", "Access-Control-Request-Method: POST"}, status: 204, shows: []string{"Access-Control-Allow-Origin: ", "Access-Control-Allow-Methods: "}},
			{do: "OPTIONS /user/tokens", header: []string{"Origin: null", "Access-Control-Request-Method: POST"}, status: 204, shows: []string{"Access-Control-Allow-Origin: "}},
			{as: "browser", do: "GET /user/me", header: []string{"Origin: https://console.quern.test"}, status: 200, want: account("browser", "browser"), shows: []string{"Access-Control-Allow-Origin: https://console.quern.test", "Vary: Origin"}},
			{do: "GET /user/me", header: []string{"Origin: https://console.quern.test"}, status: 401, want: noToken, shows: []string{"Access-Control-Allow-Origin: https://console.quern.test"}},
			{do: "GET /user/me", header: []string{"Origin: https://foreign.test"}, status: 401, want: noToken, shows: []string{"Access-Control-Allow-Origin: "}},
		}},
		{name: "health and readiness", steps: []step{
			{do: "GET <root>/healthz", status: 200, want: `{"status": "ok"}`},
			{do: "GET <root>/readyz", status: 200, want: `{"status": "ok"}`},
			{
				do: "GET <admin>/readyz", status: 200,
				want: `{"status": "ok", "checks": [{"name": "process", "required": true, "ok": true}, {"name": "database", "required": true, "ok": true}, {"name": "work folder", "required": true, "ok": true}, {"name": "object store", "required": false, "ok": true}, {"name": "issuer", "required": false, "ok": true}]}`,
			},
		}},
		{name: "headers of every answer", settings: []string{"QUERN_PUBLIC_URL=https://quern.test", "QUERN_TRUSTED_PROXIES=127.0.0.0/8"}, steps: []step{
			{as: "watcher", do: "GET /user/me", header: []string{"X-Request-Id: from-the-proxy"}, status: 200, want: account("watcher", "watcher"), shows: securityHeaders("X-Request-Id: from-the-proxy")},
			{do: "GET /user/me", header: []string{"X-Request-Id: with space"}, status: 401, want: noToken, shows: securityHeaders()},
			{do: "GET /nothing", status: 404, want: noOperation, shows: securityHeaders()},
		}},
		{name: "a limit of requests for each caller", settings: []string{"QUERN_RATE_LIMIT=0.001", "QUERN_RATE_BURST=1"}, steps: []step{
			{as: "fast", do: "GET /user/me", status: 200, want: account("fast", "fast"), shows: []string{`RateLimit-Policy: "requests";q=1;w=1000`, `RateLimit: "requests";r=0;t=1000`}},
			{
				as: "fast", do: "GET /user/me", status: 429, shows: []string{"Retry-After: 1000", `RateLimit: "requests";r=0;t=1000`},
				want: `{"error_code": "RATE_LIMITED", "message": "Too many requests. Wait for the time in Retry-After.", "error_message": ""}`,
			},
			{as: "slow", do: "GET /user/me", status: 200, want: account("slow", "slow")},
			{do: "GET /user/me", status: 401, want: noToken},
		}},
		{name: "operators' commands", settings: []string{"QUERN_LOG_LEVEL=info"}, steps: []step{
			{do: "quernd user list", want: "USERNAME  EMAIL  CREATED  SEEN  STATE\n"},
			{as: "ada by password", do: "GET /user/me", status: 200, want: `{"id": "<ada uuid>", "username": "ada", "name": "Ada Test", "email": "ada@quern.test", "groups": []}`},
			{as: "zoe", do: "POST /user/tokens", body: `{"name": "z"}`, status: 201, want: created("z", "z", "editor", "<z-expires now+2160h>")},
			{do: "quernd user list", want: "USERNAME  EMAIL           CREATED               SEEN                  STATE\n" +
				"ada       ada@quern.test  <ada-created now>  <ada-seen now>  enabled\n" +
				"zoe                       <zoe-created now>  <zoe-seen now>  enabled\n"},

			{do: "quernd user disable zoe", want: "zoe is disabled\n"},
			{as: "zoe", do: "GET /user/me", status: 401, want: unauthorized},
			{as: "<z-token>", do: "GET /user/me", status: 401, want: unauthorized},
			{as: "ada by password", do: "GET /user/tokens", status: 200, want: `{"data": []}`},
			{do: "quernd user list", want: "USERNAME  EMAIL           CREATED               SEEN                  STATE\n" +
				"ada       ada@quern.test  <ada-created>  <ada-seen>  enabled\n" +
				"zoe                       <zoe-created>  <zoe-seen>  disabled\n"},
			{do: "quernd user enable zoe", want: "zoe is enabled\n"},
			{as: "<z-token>", do: "GET /user/me", status: 200, want: account("zoe", "zoe")},

			{as: "<z-token>", do: "POST /user/tokens", body: `{"name": "child"}`, status: 201, want: created("c", "child", "editor", "<z-expires>")},
			{do: "quernd token revoke <z>", want: "<z> is revoked, and all tokens that were created with it\n"},
			{as: "<z-token>", do: "GET /user/me", status: 401, want: unauthorized},
			{as: "<c-token>", do: "GET /user/me", status: 401, want: unauthorized},

			{as: "zoe", do: "POST /user/tokens", body: `{"name": "old"}`, status: 201, want: created("old", "old", "editor", "<old-expires now+2160h>")},
			{do: "quernd user release zoe", want: "zoe is free; the account that had this name is now released-<zoe>, is disabled, and keeps what it owns\n"},
			{as: "<old-token>", do: "GET /user/me", status: 401, want: unauthorized},
			{as: "new-zoe:zoe", do: "GET /user/me", status: 200, want: account("new-zoe", "zoe")},
			{as: "zoe", do: "GET /user/me", status: 403, want: takenName},
			{as: "new-zoe:zoe", do: "GET /user/tokens", status: 200, want: `{"data": []}`},

			{do: "quernd user disable nobody", status: 1, want: `quernd: There is no user "nobody".`},
			{do: "quernd user enable nobody", status: 1, want: `quernd: There is no user "nobody".`},
			{do: "quernd user release nobody", status: 1, want: `quernd: There is no user "nobody".`},
			{do: "quernd token revoke 0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01", status: 1, want: "quernd: There is no token 0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01."},
			{do: "quernd token revoke zoe", status: 1, want: "quernd: The request is not valid. id is not a token id: take it from GET /user/tokens or from the log."},
			{do: "quernd migrate", want: "the schema is up to date\n"},
		}},
	}
}

func account(x, username string) string {
	return `{"id": "<` + x + ` uuid>", "username": "` + username + `", "name": "", "email": "", "groups": []}`
}

func wrongMethod(method, allow string) string {
	return `{"error_code": "METHOD_NOT_ALLOWED", "message": "This path has no operation ` + method + `. It has: ` + allow + `. Use one of these, or another path of /api/v1/docs.", "error_message": ""}`
}

func securityHeaders(more ...string) []string {
	return append(more, "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'", "X-Content-Type-Options: nosniff",
		"Referrer-Policy: no-referrer", "Cache-Control: no-store", "Strict-Transport-Security: max-age=31536000")
}

func TestScenarios(t *testing.T) {
	t.Parallel()

	shared := start(t)
	key := shared.newKey()
	playAll(t, shared, key, scenarios())

	t.Run("what is another's and what is not there differ in no byte", func(t *testing.T) {
		t.Parallel()

		id, _ := newToken(t, shared, key.token("victim"), "viewer")
		foreign := call(t, http.MethodDelete, shared.url+"/user/tokens/"+id, key.token("snoop"), "")
		absentID := uuid.NewString()
		missing := call(t, http.MethodDelete, shared.url+"/user/tokens/"+absentID, key.token("snoop"), "")
		require.Equal(t, http.StatusNotFound, foreign.status)
		require.Equal(t, missing.body, strings.ReplaceAll(foreign.body, id, absentID))

		for _, header := range []http.Header{foreign.header, missing.header} {
			header.Del("X-Request-ID")
			header.Del("Traceparent")
			header.Del("Date")
		}

		require.Equal(t, missing.header, foreign.header)
	})
}
