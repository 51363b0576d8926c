package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// authorizationTable says for every operation and every kind of caller which status the caller gets. The request is
// always the same and valid, and it is about something that the account "owner" has: where the request names a namespace,
// one that is made for the request, with the dataset "orders", and shared with the users "viewer" and "editor".
//
//	no          token at all
//	garbage     a token that is none
//	expired     … early: valid from 10 minutes ahead … audience, issuer: of another one
//	none        alg: none … hs256: signed with the issuer's public key as secret … id: an ID token with our audience
//	disabled    a user whom the operator disabled
//	revoked     … lapsed, restricted: API tokens of the owner; the last one reaches only another namespace
//	stranger    a signed-in user to whom nothing was shared
//	viewer      … editor: users with that role on the namespace … owner: an API token of the owner with that role;
//	            where the path names no user, all three are API tokens of the owner
func authorizationTable() (columns string, rows []authorizationRow) {
	columns = "        no  garbage expired early audience issuer none hs256 id  disabled revoked lapsed restricted stranger viewer editor owner"

	return columns, []authorizationRow{
		{operation: "GET /docs", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: "GET /openapi.json", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: "GET /user/me", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /user/usage", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /user/tokens", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "POST /user/token", body: `{"name": "x"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "DELETE /user/token/{id}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    204    204"},
		{operation: "GET /audit", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      403    403    200"},

		{operation: "POST /file-upload/prepare", body: `{"filesToUpload": [{"filename": "x", "size": 1}]}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      403    200    200"},
		{operation: "GET /file-upload/{sessionId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /file-upload/{sessionId}/abort", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "GET /file-upload/{sessionId}/files", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /file-upload/{sessionId}/files/{fileId}/finish", body: finishBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "POST /file-upload/{sessionId}/files/{fileId}/urls", body: `{"partNumbers": [1]}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},

		{operation: "GET /schema/datasets/all", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /schema/datasets/all", query: "?q=orders", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /schema/{username}/namespaces", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "POST /schema/{username}/namespaces", body: `{"name": "<new>"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        403      403    403    201"},
		{operation: "PATCH /schema/{username}/namespaces/{namespace}", body: `{"exposure": "rows"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        403      403    403    200"},
		{operation: "DELETE /schema/{username}/namespaces/{namespace}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        403      403    403    409"},
		{operation: "GET /schema/{username}/{namespace}/datasets", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},

		{operation: "POST /ingest/new/{namespace}/{datasetName}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        201      403    201    201"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "PATCH /data/{username}/{namespace}/{datasetName}", body: `{"name": "renamed"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    403    200"},
		{operation: "DELETE /data/{username}/{namespace}/{datasetName}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    403    204"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/clear", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "POST /ingest/{namespace}/{datasetName}", body: rowsBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/rows", body: rowsBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/rows", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/export", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query", body: queryBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query/link", body: linkBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query/ask", body: askBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/runs/{runId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/runs/{runId}/events", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/runs/{runId}/steps/{n}/rows", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/runs/{runId}/steps/{n}/export", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/runs/{runId}/steps/{n}/export", query: "?format=parquet", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query/runs/{runId}/cancel", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "DELETE /query/runs/{runId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    204    204"},
		{operation: "GET /query/runs/{runId}/feedback", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query/runs/{runId}/feedback", body: `{"thumbsUp": true}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      204    204    204"},
		{operation: "DELETE /query/runs/{runId}/feedback", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      204    204    204"},
		{operation: "GET /query/conversations", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "GET /query/conversations/{conversationId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "PATCH /query/conversations/{conversationId}", body: `{"title": "x"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "DELETE /query/conversations/{conversationId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    204    204"},
		{operation: "GET /a2a", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: "GET /a2a/{agent}", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: "GET /a2a/{agent}/.well-known/agent-card.json", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: callAgent, body: sendBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    -32602     -32602   200    200    200"},
		{operation: callAgent, query: "?GetTask", body: taskBody("GetTask"), statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    -32001     -32001   200    200    200"},
		{operation: callAgent, query: "?CancelTask", body: taskBody("CancelTask"), statuses: "" + // it has ended
			"401 401     401     401   401      401    401  401   401 401      401     401    -32001     -32001   -32002 -32002 -32002"},
		{operation: callAgent, query: "?SubscribeToTask", body: taskBody("SubscribeToTask"), statuses: "" + // it has ended
			"401 401     401     401   401      401    401  401   401 401      401     401    -32001     -32001   -32004 -32004 -32004"},
		{operation: callAgent, query: "?ListTasks", body: taskBody("ListTasks"), statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    -32000     200      200    200    200"},
		{operation: callAgent, query: "?GetExtendedAgentCard", body: taskBody("GetExtendedAgentCard"), statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions", body: ingestionBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    202    202"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/retry", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    202    202"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/cancel", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/snapshots", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/snapshots/{snapshotId}/restore", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    403    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/inferDefinition", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "PUT /data/{username}/{namespace}/{datasetName}/inferDefinition", body: `{"dataDescription": "x"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    201    201"},

		{operation: "POST /data/{username}/{namespace}/{datasetName}/inferDefinition/draft", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/profile", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},

		{operation: "GET /permissions/namespaces/{username}/{namespace}/shares", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        403      403    403    200"},
		{operation: "POST /permissions/namespaces/{username}/{namespace}/shares", body: `{"username": "x", "role": "viewer"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        403      403    403    200"},
		{operation: "DELETE /permissions/namespaces/{username}/{namespace}/shares", body: `{"username": "grantee"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        403      403    403    200"},
		{operation: "GET /permissions/datasets/{username}/{namespace}/{datasetName}/shares", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        403      403    403    200"},
		{operation: "POST /permissions/datasets/{username}/{namespace}/{datasetName}/shares", body: `{"username": "x", "role": "viewer"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        403      403    403    200"},
		{operation: "DELETE /permissions/datasets/{username}/{namespace}/{datasetName}/shares", body: `{"username": "grantee"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        403      403    403    200"},
	}
}

// sharingTable is the same for the ways in which somebody can have rights on a namespace or a dataset, for every
// operation that names one. The request and what it is about are those of authorizationTable, without its grants:
// each is given, and taken away, for the request.
//
//	viewer@d    … editor@d: users with that role on the dataset alone
//	viewer@g    … editor@g: members of a group with that role on the namespace … editor@gd: of one with it on the dataset
//	both        viewer by the namespace and editor by the dataset … both@g: viewer by the dataset and editor by the namespace and a group
//	former      an editor of namespace and dataset, both by name and by group, until all was revoked
//	half        an editor of the namespace until that was revoked, and a viewer of the dataset
//	token       a user with the role editor on the namespace, with a token whose role is viewer
//	viewer@o    … editor@o: API tokens of the owner with that role
//	in-n        … in-d, in-x: API tokens of the owner that reach only this namespace, this dataset, another namespace
//	guest-d     a token of a user with the role editor on the namespace, that reaches only this dataset
func sharingTable() (columns string, rows []authorizationRow) {
	columns = "        viewer@d editor@d viewer@g editor@g editor@gd both both@g former half token viewer@o editor@o in-n in-d in-x guest-d"

	return columns, []authorizationRow{
		{operation: "PATCH /schema/{username}/namespaces/{namespace}", body: `{"exposure": "rows"}`, statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  404  404  403"},
		{operation: "DELETE /schema/{username}/namespaces/{namespace}", statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  404  404  403"},
		{operation: "GET /schema/{username}/{namespace}/datasets", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /ingest/new/{namespace}/{datasetName}", statuses: "" + // under the caller's own name
			"201      201      201      201      201       201  201    201    201  403   403      201      201  403  403  403"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "PATCH /data/{username}/{namespace}/{datasetName}", body: `{"name": "renamed"}`, statuses: "" +
			"403      403      403      403      403       403  403    404    403  403   403      403      403  403  404  403"},
		{operation: "DELETE /data/{username}/{namespace}/{datasetName}", statuses: "" +
			"403      403      403      403      403       403  403    404    403  403   403      403      403  403  404  403"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/clear", statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: "POST /ingest/{namespace}/{datasetName}", body: rowsBody, statuses: "" + // under the caller's own name
			"404      404      404      404      404       404  404    404    404  404   403      200      200  200  404  404"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/rows", body: rowsBody, statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/rows", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/export", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /query", body: queryBody, statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /query/link", body: linkBody, statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /query/ask", body: askBody, statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: callAgent, body: sendBody, statuses: "" +
			"200      200      200      200      200       200  200    -32602 200  200   200      200      200  200  -32602 200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions", body: ingestionBody, statuses: "" + // who reaches only a part has no uploads
			"403      202      403      202      202       202  202    404    403  403   403      202      404  404  404  404"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/retry", statuses: "" +
			"403      202      403      202      202       202  202    404    403  403   403      202      202  202  404  202"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/cancel", statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/snapshots", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/snapshots/{snapshotId}/restore", statuses: "" +
			"403      403      403      403      403       403  403    404    403  403   403      403      403  403  404  403"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/inferDefinition", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "PUT /data/{username}/{namespace}/{datasetName}/inferDefinition", body: `{"dataDescription": "x"}`, statuses: "" +
			"403      201      403      201      201       201  201    404    403  403   403      201      201  201  404  201"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/inferDefinition/draft", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/profile", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /permissions/namespaces/{username}/{namespace}/shares", statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  404  404  403"},
		{operation: "POST /permissions/namespaces/{username}/{namespace}/shares", body: `{"username": "x", "role": "viewer"}`, statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  404  404  403"},
		{operation: "DELETE /permissions/namespaces/{username}/{namespace}/shares", body: `{"username": "grantee"}`, statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  404  404  403"},
		{operation: "GET /permissions/datasets/{username}/{namespace}/{datasetName}/shares", statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  403  404  403"},
		{operation: "POST /permissions/datasets/{username}/{namespace}/{datasetName}/shares", body: `{"username": "x", "role": "viewer"}`, statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  403  404  403"},
		{operation: "DELETE /permissions/datasets/{username}/{namespace}/{datasetName}/shares", body: `{"username": "grantee"}`, statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  403  404  403"},
	}
}

type authorizationRow struct {
	operation string // as the contract has it
	query     string // of a row that asks for more of an operation than another row does
	body      string
	statuses  string
}

// finishBody is for the file of a thing, ingestionBody for a session of the caller, rowsBody, queryBody and linkBody
// for the dataset.
const (
	finishBody    = `{"uploadId": "<uploadId>", "key": "<key>", "parts": [{"partNumber": 1, "etag": "x"}]}`
	ingestionBody = `{"sessionId": "<session>"}`
	rowsBody      = `{"data": [{"a": 1}]}`
	queryBody     = `{"username": "owner", "namespace": "<namespace>", "query": "FROM orders"}`
	linkBody      = `{"username": "owner", "namespace": "<namespace>", "question": "orders from Zürich"}`
	askBody       = `{"username": "owner", "namespace": "<namespace>", "query": "{}"}`

	callAgent = "POST /a2a/{agent}"
	sendBody  = `{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": "<new>", "role": "ROLE_USER",
		"parts": [{"text": "{}"}], "metadata": {"namespace": "owner/<namespace>"}}}}`
)

// taskBody asks an agent for something about the run of a thing.
func taskBody(method string) string {
	return `{"jsonrpc": "2.0", "id": 1, "method": "` + method + `", "params": {"id": "<run>"}}`
}

// thing is what one request is about, made anew for it.
type thing struct {
	namespace string   // has the dataset orders
	token     string   // id of an API token of the owner with the role editor
	session   prepared // one file, whose only part is uploaded
	completed string   // id of a session of the caller with a completed file; if empty, one is made for the request
	ingestion string   // id of one of the dataset, which is queued; cancelled if it is to be tried again
	snapshot  string   // id of the dataset's only one
	run       asked    // of the owner: it goes on if it is to be cancelled, and has ended if not
}

func newThing(t *testing.T, s *service, owner, operation string) (made thing) {
	t.Helper()

	if strings.Contains(operation, "{id}") {
		made.token, _ = newToken(t, s, owner, "editor")
	}

	if namesNamespace(operation) || strings.Contains(operation, "{n}") {
		made.namespace = makeDataset(t, s, owner)
	}

	if readsRows(operation) {
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
	}

	if strings.Contains(operation, "{snapshotId}") {
		postRows(t, s, owner, "self/"+made.namespace+"/orders", rowsBody)
		made.snapshot = snapshots(t, s, owner, "self/"+made.namespace+"/orders")[0].SnapshotID
	}

	if strings.Contains(operation, "{runId}") || strings.Contains(operation, "{conversationId}") || operation == callAgent {
		script, prefer := `{}`, "Prefer: wait=60"
		d := &filled{t: t, s: s, bearer: owner, owner: "owner", namespace: made.namespace}

		switch {
		case strings.HasSuffix(operation, "/cancel"):
			script, prefer = `{"pause": 60000, "steps": [{"instruction": "wait"}]}`, "Prefer: respond-async"
		case strings.Contains(operation, "{n}"):
			script = `{"steps": [{"instruction": "read", "queries": ["FROM orders"]}]}`
		}

		if d.namespace == "" {
			d.namespace = makeDataset(t, s, owner)
		}

		call(t, http.MethodPost, s.url+"/query/ask", owner, d.script("nl2ql", script, ""), prefer, "Accept: application/json").json(t, &made.run)

		if strings.HasSuffix(operation, "/cancel") { // it would keep a worker from the runs of others
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

// namesNamespace says whether a request is about a namespace, or a dataset in one.
func namesNamespace(operation string) bool {
	return strings.Contains(operation, "{namespace}") || slices.Contains([]string{"POST /query", "POST /query/link", "POST /query/ask", callAgent}, operation)
}

// readsRows says whether rows of a dataset come back, or values of them.
func readsRows(operation string) bool {
	return operation == "POST /query" || operation == "POST /query/link" || strings.HasPrefix(operation, "GET ") && (strings.HasSuffix(operation, "/rows") || strings.HasSuffix(operation, "/export"))
}

// readsProfile says whether the operation needs one.
func readsProfile(operation string) bool {
	return strings.HasSuffix(operation, "/profile") || strings.HasSuffix(operation, "/draft")
}

// giveProfile waits for the profile of a namespace's dataset, or lets it have a copy of one that is there already, since all have
// the same rows.
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

// address is where the operation finds it. What is to be created has a new name.
func (made thing) address(path string) string {
	dataset := "orders"
	if strings.HasPrefix(path, "/ingest/new") {
		dataset = "new"
	}

	return strings.NewReplacer("{username}", "owner", "{namespace}", made.namespace, "{datasetName}", dataset, "{id}", made.token,
		"{agent}", "nl2ql", "{runId}", made.run.RunID, "{n}", "0", "{conversationId}", made.run.ConversationID,
		"{sessionId}", made.session.SessionID, "{fileId}", made.file().FileID, "{ingestionId}", made.ingestion, "{snapshotId}", made.snapshot).Replace(path)
}

// file is that of the session.
func (made thing) file() preparedFile {
	if len(made.session.Files) == 0 {
		return preparedFile{FileID: uuid.Nil.String(), UploadID: "x", Key: "x"}
	}

	return made.session.Files[0]
}

// asks sends the request of a row. An error of JSON-RPC counts as a status.
func (row authorizationRow) asks(t *testing.T, s *service, about thing, bearer string) *answer {
	t.Helper()

	method, path, _ := strings.Cut(row.operation, " ")

	body := strings.NewReplacer("<new>", "n-"+uuid.NewString(), "<uploadId>", about.file().UploadID, "<key>", about.file().Key, "<namespace>", about.namespace, "<run>", about.run.RunID).Replace(row.body)
	if strings.Contains(body, "<session>") && about.completed == "" {
		about.completed = ownSession(t, s, bearer)
	}

	body = strings.ReplaceAll(body, "<session>", about.completed)

	answer := call(t, method, s.url+about.address(path)+row.query, bearer, body)
	if row.operation == callAgent && strings.Contains(answer.body, `"error":{`) {
		answer.status, _ = rpcError(t, answer)
	}

	return answer
}

func TestAuthorizationTable(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_UPLOAD_MAX_OPEN_SESSIONS=1000", "QUERN_INGEST_WORKERS=0", "QUERN_UPKEEP_QUIET=1s", "QUERN_UPKEEP_EVERY=1s", scripted, "QUERN_RUN_PER_USER=1000") // what is queued stays so
	key := s.newKey()
	owner := key.token("owner")
	callers := newCallers(t, s, key)
	users := map[string]string{"viewer": key.token("viewer"), "editor": key.token("editor")}
	refusal := call(t, http.MethodGet, s.url+"/user/me", "", "").body

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
			require.Equal(t, refusal, answer.body, "%s: the answer tells why", column)
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

// ownSession is a session of the bearer with a completed file. Who cannot have one names one that is not there.
func ownSession(t *testing.T, s *service, bearer string) (id string) {
	t.Helper()

	if call(t, http.MethodPost, s.url+"/file-upload/prepare", bearer, prepareBody(1)).status != http.StatusOK {
		return uuid.NewString()
	}

	return uploadFiles(t, s, bearer, "a\n1\n")
}

// checkTable asks for each row and column, and misses rows for operations that the table is about.
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
		if row.query == "" {
			require.True(t, missing[row.operation], "%s stands twice, or is not an operation", row.operation)
			delete(missing, row.operation)
		}

		statuses := strings.Fields(row.statuses)
		require.Len(t, statuses, len(columns), row.operation)

		t.Run(row.operation+row.query, func(t *testing.T) {
			t.Parallel()

			about := newThing(t, row.operation)

			for i, column := range columns {
				if i > 0 && !strings.HasPrefix(row.operation, "GET ") { // what is only read can be read by all
					about = newThing(t, row.operation)
				}

				answer := ask(t, row, about, column)
				require.Equal(t, statuses[i], strconv.Itoa(answer.status), "%s: %s", column, answer.body)
			}
		})
	}

	require.Empty(t, missing, "operations without a row")
}

// newSharer gives the caller of a column of the sharing table the rights on a namespace, and returns the caller's token.
func newSharer(t *testing.T, s *service, key *signer, namespace, column string) (bearer string) {
	t.Helper()

	var (
		owner      = key.token("owner")
		whole, one = "namespaces/self/" + namespace, "datasets/self/" + namespace + "/orders"
		thisOne    = target("owner", namespace, "orders")
		user       = "sharer-" + column[:1] + uuid.NewString()[:8]
		group      = user + "-group"
	)

	member := key.claims(user)
	member["groups"] = []string{"another", group}
	bearer = key.sign(member)
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", bearer, "").status)

	grant := func(path, grantee, role string) { share(t, s, owner, path, grantee, role) }
	revoke := func(path, grantee string) { unshare(t, s, owner, path, grantee) }

	switch column {
	case "viewer@d", "editor@d":
		grant(one, user, column[:6])
	case "viewer@g", "editor@g":
		grant(whole, "@"+group, column[:6])
	case "editor@gd":
		grant(one, "@"+group, "editor")
	case "both":
		grant(whole, user, "viewer")
		grant(one, user, "editor")
	case "both@g":
		grant(one, user, "viewer")
		grant(whole, "@"+group, "editor")
	case "former":
		for _, path := range []string{whole, one} {
			for _, grantee := range []string{user, "@" + group} {
				grant(path, grantee, "editor")
				revoke(path, grantee)
			}
		}
	case "half":
		grant(whole, user, "editor")
		grant(one, user, "viewer")
		revoke(whole, user)
	case "token":
		grant(whole, user, "editor")

		_, bearer = newToken(t, s, bearer, "viewer")
	case "viewer@o", "editor@o":
		_, bearer = newToken(t, s, owner, column[:6])
	case "in-n":
		bearer = restrictedToken(t, s, owner, target("self", namespace, ""))
	case "in-d":
		bearer = restrictedToken(t, s, owner, thisOne)
	case "in-x":
		bearer = restrictedToken(t, s, owner, target("self", makeDataset(t, s, owner), ""))
	case "guest-d":
		grant(whole, user, "editor")

		bearer = restrictedToken(t, s, bearer, thisOne)
	default:
		require.Fail(t, "no such column", column)
	}

	return bearer
}

// newCallers makes the token of each column.
func newCallers(t *testing.T, s *service, key *signer) map[string]string {
	t.Helper()

	owner := key.token("owner")
	changed := func(claim string, value any) string {
		claims := key.claims("owner")
		claims[claim] = value

		return key.sign(claims)
	}
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }

	disabled := key.token("disabled")
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", disabled, "").status)
	s.quernd("user", "disable", "disabled")

	_, viewer := newToken(t, s, owner, "viewer")
	_, editor := newToken(t, s, owner, "editor")
	_, all := newToken(t, s, owner, "owner")

	revokedID, revoked := newToken(t, s, owner, "owner")
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/user/token/"+revokedID, owner, "").status)

	lapsedID, lapsed := newToken(t, s, owner, "owner")
	s.exec(`UPDATE tokens SET expires_at = now() - interval '1 second' WHERE id = $1`, lapsedID)

	restricted := restrictedToken(t, s, owner, target("self", makeDataset(t, s, owner), ""))

	return map[string]string{
		"no": "", "garbage": "garbage",
		"expired":  changed("exp", ago(10*time.Minute)),
		"early":    changed("nbf", ago(-10*time.Minute)),
		"audience": changed("aud", "another"),
		"issuer":   changed("iss", s.realm.issuer()+"-too"),
		"none":     unsigned(t, key),
		"hs256":    signedWithPublicKey(t, key),
		"id":       changed("typ", "ID"),
		"disabled": disabled, "revoked": revoked, "lapsed": lapsed, "restricted": restricted,
		"stranger": key.token("stranger"), "viewer": viewer, "editor": editor, "owner": all,
	}
}

func unsigned(t *testing.T, key *signer) string {
	t.Helper()

	return encodeToken(t, map[string]any{"alg": "none", "typ": "JWT"}, key.claims("owner"), func([]byte) []byte { return nil })
}

func signedWithPublicKey(t *testing.T, key *signer) string {
	t.Helper()

	public, err := x509.MarshalPKIXPublicKey(key.key.Public())
	require.NoError(t, err)

	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})

	return encodeToken(t, map[string]any{"alg": "HS256", "typ": "JWT", "kid": key.keyID}, key.claims("owner"), func(text []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(text)

		return mac.Sum(nil)
	})
}

// newToken makes an API token of the bearer.
func newToken(t *testing.T, s *service, bearer, role string) (id, value string) {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/user/token", bearer, `{"name": "made by a test", "role": "`+role+`"}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	var made struct{ ID, Token string }
	answer.json(t, &made)

	return made.ID, made.Token
}
