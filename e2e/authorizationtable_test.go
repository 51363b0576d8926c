package e2e

// authorizationTable lists for every operation and every kind of caller the status that the caller gets. The request of a row is
// always the same and valid, and it is about a resource of the account "owner". If the request names a namespace, the namespace
// is created for the request, has the dataset "orders", and is shared with the users "viewer" and "editor".
//
//	no          without a token
//	garbage     a text that is not a token
//	expired     an expired token … early: valid only in an hour … audience, issuer: a token with another audience or issuer
//	none        alg: none … hs256: signed with the issuer's public key as secret … id: an ID token with our audience
//	disabled    a user whom the operator disabled
//	revoked     … lapsed, restricted: API tokens of the owner; the restricted one is limited to another namespace
//	stranger    a signed-in user to whom nothing is shared
//	viewer      … editor: users with that role on the namespace … owner: an API token of the owner with that role;
//	            if the path names no user, all three are API tokens of the owner
//	operator    an operator; the same as stranger if a row does not say so
func authorizationTable() (columns string, rows []authorizationRow) {
	columns = "        no  garbage expired early audience issuer none hs256 id  disabled revoked lapsed restricted stranger viewer editor owner operator"

	return columns, []authorizationRow{
		{operation: "GET /docs", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: "GET /openapi.json", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: "GET /version", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /user/me", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /user/usage", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /operator/health", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        403      403    403    403   200"},
		{operation: "GET /operator/users", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        403      403    403    403   200"},
		{operation: "PATCH /operator/users/{username}", body: `{"disabled": false}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        403      403    403    403   204"},
		{operation: "GET /operator/users/{username}/usage", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        403      403    403    403   200"},
		{operation: "GET /operator/limits", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        403      403    403    403   200"},
		{operation: "PUT /operator/limits", body: `{"group": "nobody", "kind": "questions", "amount": 1}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        403      403    403    403   200"},
		{operation: "DELETE /operator/limits", query: "?kind=tokens&group=nobody", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        403      403    403    403   404"},
		{operation: "GET /user/tokens", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "POST /user/tokens", body: `{"name": "x"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        201      201    201    201"},
		{operation: "GET /user/tokens/{id}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      200    200    200"},
		{operation: "DELETE /user/tokens/{id}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    204    204"},
		{operation: "GET /events", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /webhooks", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "POST /webhooks", body: `{"url": "https://receiver.invalid/"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        201      403    201    201"},
		{operation: "GET /webhooks/{webhookId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      200    200    200"},
		{operation: "PATCH /webhooks/{webhookId}", body: `{"active": false}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    200    200"},
		{operation: "DELETE /webhooks/{webhookId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    204    204"},
		{operation: "POST /webhooks/{webhookId}/rotate", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    200    200"},
		{operation: "POST /webhooks/{webhookId}/test", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    200    200"},
		{operation: "GET /webhooks/{webhookId}/deliveries", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      200    200    200"},
		{operation: "GET /connections", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "POST /connections", body: `{"name": "<new>", "kind": "s3", "s3": <s3>}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        201      403    201    201"},
		{operation: "GET /connections/{connectionId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      200    200    200"},
		{operation: "PATCH /connections/{connectionId}", body: `{"name": "<new>"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    200    200"},
		{operation: "DELETE /connections/{connectionId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    204    204"},
		{operation: "POST /connections/{connectionId}/test", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    200    200"},
		{operation: "GET /connections/{connectionId}/files", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      200    200    200"},
		{operation: "GET /connections/{connectionId}/shares", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    403    200"},
		{operation: "POST /connections/{connectionId}/shares", body: `{"username": "x"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    403    200"},
		{operation: "DELETE /connections/{connectionId}/shares", body: `{"username": "grantee"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    403    200"},
		{operation: "GET /sources", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "POST /sources", body: `{"name": "<new>", "connectionId": "<connection>", "namespace": "sources", "datasetName": "d", "prefix": "none/"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    201    201"},
		{operation: "GET /sources/{sourceId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      200    200    200"},
		{operation: "PATCH /sources/{sourceId}", body: `{"active": false}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    200    200"},
		{operation: "DELETE /sources/{sourceId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    204    204"},
		{operation: "POST /sources/{sourceId}/run", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    202    202"},
		{operation: "GET /sources/{sourceId}/runs", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      200    200    200"},
		{operation: "GET /audit", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      403    403    200"},

		{operation: "POST /file-upload/prepare", body: `{"filesToUpload": [{"filename": "x", "size": 1}]}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      403    200    200"},
		{operation: "GET /file-upload", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
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

		{operation: "GET /schema/namespaces/all", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /schema/datasets/all", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /schema/datasets/all", query: "?q=orders", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /schema/deleted", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      403    403    200"},
		{operation: "POST /schema/deleted/{deletedId}/restore", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    403    200"},
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
		{operation: deleteRows, body: conditionBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: putKey, body: keyBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: deleteKey, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    204    204"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/rows", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/export", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query", body: queryBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/statements", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /query/statements/{statementId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/statements/{statementId}/pieces", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/statements/{statementId}/pieces/{piece}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      303    303    303"},
		{operation: "GET /query/statements/{statementId}/rows", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query/statements/{statementId}/cancel", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "DELETE /query/statements/{statementId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    204    204"},
		{operation: "POST /query/link", body: linkBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query/check", body: checkBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /query/ask", body: askBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /query/models", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /query/suggestions", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /query/runs", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
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
		{operation: "POST /query/runs/{runId}/choose", body: `{"option": 1}`, statuses: "" +
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
		{operation: callAgent, query: "?CancelTask", body: taskBody("CancelTask"), statuses: "" + // the task has ended
			"401 401     401     401   401      401    401  401   401 401      401     401    -32001     -32001   -32002 -32002 -32002"},
		{operation: callAgent, query: "?SubscribeToTask", body: taskBody("SubscribeToTask"), statuses: "" + // the task has ended
			"401 401     401     401   401      401    401  401   401 401      401     401    -32001     -32001   -32004 -32004 -32004"},
		{operation: callAgent, query: "?ListTasks", body: taskBody("ListTasks"), statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    -32000     200      200    200    200"},
		{operation: callTool, body: toolBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: callTool, query: "?get_run", body: runBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      404    404    404"},
		{operation: callAgent, query: "?GetExtendedAgentCard", body: taskBody("GetExtendedAgentCard"), statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions", body: ingestionBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    202    202"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/setAside", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/text", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "PUT /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/fields/{fieldName}", body: `{"value": "2"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "DELETE /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/fields/{fieldName}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/reload", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    202    202"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/setAside/export", statuses: "" +
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

		{operation: "GET /data/{username}/{namespace}/{datasetName}/semantics", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "PUT /data/{username}/{namespace}/{datasetName}/semantics", body: `{"row": "order"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},

		{operation: "GET /data/{username}/{namespace}/{datasetName}/choices", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "DELETE /data/{username}/{namespace}/{datasetName}/choices", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      204    204    204"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/inferDefinition/draft", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/profile", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},

		{operation: "GET /semantics/{username}/{namespace}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /semantics/{username}/{namespace}", body: exchangeBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "GET /verified/{username}/{namespace}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /verified/{username}/{namespace}", body: verifiedBody, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    201    201"},
		{operation: "GET /verified/{username}/{namespace}/{verifiedId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "PATCH /verified/{username}/{namespace}/{verifiedId}", body: `{"status": "verified"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},
		{operation: "DELETE /verified/{username}/{namespace}/{verifiedId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    204    204"},

		{operation: "GET /benchmarks/{username}/{namespace}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /benchmarks/{username}/{namespace}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    202    202"},
		{operation: "GET /benchmarks/{username}/{namespace}/{benchmarkId}", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "GET /benchmarks/{username}/{namespace}/{benchmarkId}/results", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    200"},
		{operation: "POST /benchmarks/{username}/{namespace}/{benchmarkId}/cancel", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      403    200    200"},

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
		{operation: "DELETE /permissions/namespaces/{username}/{namespace}/shares/self", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      200    200    422"},
		{operation: "DELETE /permissions/datasets/{username}/{namespace}/{datasetName}/shares/self", statuses: "" + // the callers have their roles by the namespace
			"401 401     401     401   401      401    401  401   401 401      401     401    404        404      422    422    422"},
	}
}

// sharingTable is like authorizationTable, for every way in which a caller can have rights on a namespace or a dataset and for
// every operation that names one. The requests and their resources are those of authorizationTable, without its grants: each
// grant is created, and revoked, for the request.
//
//	viewer@d    … editor@d: users with that role on the dataset alone
//	viewer@g    … editor@g: members of a group with that role on the namespace … editor@gd: of a group with that role on the dataset
//	both        viewer by the namespace and editor by the dataset … both@g: viewer by the dataset and editor by the namespace and a group
//	former      a former editor of namespace and dataset, by name and by group; all grants are revoked
//	half        a viewer of the dataset whose grant as editor of the namespace is revoked
//	token       a user with the role editor on the namespace, with a token whose role is viewer
//	viewer@o    … editor@o: API tokens of the owner with that role
//	in-n        … in-d, in-x: API tokens of the owner that are limited to this namespace, this dataset, another namespace
//	guest-d     a token of a user with the role editor on the namespace, limited to this dataset
func sharingTable() (columns string, rows []authorizationRow) {
	columns = "        viewer@d editor@d viewer@g editor@g editor@gd both both@g former half token viewer@o editor@o in-n in-d in-x guest-d"

	return columns, []authorizationRow{
		{operation: "PATCH /schema/{username}/namespaces/{namespace}", body: `{"exposure": "rows"}`, statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  404  404  403"},
		{operation: "DELETE /schema/{username}/namespaces/{namespace}", statuses: "" +
			"403      403      403      403      403       403  403    403    403  403   403      403      403  404  404  403"},
		{operation: "GET /schema/{username}/{namespace}/datasets", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /ingest/new/{namespace}/{datasetName}", statuses: "" + // the dataset is created in the caller's own account
			"201      201      201      201      201       201  201    201    201  403   403      201      201  403  403  403"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "PATCH /data/{username}/{namespace}/{datasetName}", body: `{"name": "renamed"}`, statuses: "" +
			"403      403      403      403      403       403  403    404    403  403   403      403      403  403  404  403"},
		{operation: "DELETE /data/{username}/{namespace}/{datasetName}", statuses: "" +
			"403      403      403      403      403       403  403    404    403  403   403      403      403  403  404  403"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/clear", statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: "POST /ingest/{namespace}/{datasetName}", body: rowsBody, statuses: "" + // the dataset is looked up in the caller's own account
			"404      404      404      404      404       404  404    404    404  404   403      200      200  200  404  404"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/rows", body: rowsBody, statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: deleteRows, body: conditionBody, statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: putKey, body: keyBody, statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: deleteKey, statuses: "" +
			"403      204      403      204      204       204  204    404    403  403   403      204      204  204  404  204"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/rows", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/export", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /query", body: queryBody, statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /query/link", body: linkBody, statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /query/check", body: checkBody, statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /query/ask", body: askBody, statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: callAgent, body: sendBody, statuses: "" +
			"200      200      200      200      200       200  200    -32602 200  200   200      200      200  200  -32602 200"},
		{operation: callTool, body: toolBody, statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions", body: ingestionBody, statuses: "" + // a limited token loads what it uploaded itself, into its targets
			"403      202      403      202      202       202  202    404    403  403   403      202      202  202  404  202"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/setAside", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/text", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "PUT /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/fields/{fieldName}", body: `{"value": "2"}`, statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: "DELETE /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/fields/{fieldName}", statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/reload", statuses: "" +
			"403      202      403      202      202       202  202    404    403  403   403      202      202  202  404  202"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/setAside/export", statuses: "" +
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
		{operation: "GET /data/{username}/{namespace}/{datasetName}/semantics", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "PUT /data/{username}/{namespace}/{datasetName}/semantics", body: `{"row": "order"}`, statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/choices", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "DELETE /data/{username}/{namespace}/{datasetName}/choices", statuses: "" +
			"204      204      204      204      204       204  204    404    204  204   204      204      204  204  404  204"},
		{operation: "POST /data/{username}/{namespace}/{datasetName}/inferDefinition/draft", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /data/{username}/{namespace}/{datasetName}/profile", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /semantics/{username}/{namespace}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /semantics/{username}/{namespace}", body: exchangeBody, statuses: "" +
			"403      200      403      200      200       200  200    404    403  403   403      200      200  200  404  200"},
		{operation: "GET /verified/{username}/{namespace}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /verified/{username}/{namespace}", body: verifiedBody, statuses: "" +
			"403      403      403      201      403       403  201    404    403  403   403      201      201  403  404  403"},
		{operation: "GET /verified/{username}/{namespace}/{verifiedId}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "PATCH /verified/{username}/{namespace}/{verifiedId}", body: `{"status": "verified"}`, statuses: "" +
			"403      403      403      200      403       403  200    404    403  403   403      200      200  403  404  403"},
		{operation: "DELETE /verified/{username}/{namespace}/{verifiedId}", statuses: "" +
			"403      403      403      204      403       403  204    404    403  403   403      204      204  403  404  403"},
		{operation: "GET /benchmarks/{username}/{namespace}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /benchmarks/{username}/{namespace}", statuses: "" +
			"403      403      403      202      403       403  202    404    403  403   403      202      202  403  404  403"},
		{operation: "GET /benchmarks/{username}/{namespace}/{benchmarkId}", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "GET /benchmarks/{username}/{namespace}/{benchmarkId}/results", statuses: "" +
			"200      200      200      200      200       200  200    404    200  200   200      200      200  200  404  200"},
		{operation: "POST /benchmarks/{username}/{namespace}/{benchmarkId}/cancel", statuses: "" +
			"403      403      403      200      403       403  200    404    403  403   403      200      200  403  404  403"},
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
		{operation: "DELETE /permissions/namespaces/{username}/{namespace}/shares/self", statuses: "" +
			"422      422      422      422      422       200  422    404    422  403   403      422      403  403  404  403"},
		{operation: "DELETE /permissions/datasets/{username}/{namespace}/{datasetName}/shares/self", statuses: "" +
			"200      200      422      422      422       200  200    404    200  403   403      422      403  403  404  403"},
	}
}
