package e2e

// auditedCalls returns one successful request for every operation that writes or reads rows, with the audit entries that it
// creates, oldest first. The resources of the request are created as for authorizationTable, with the same names.
func auditedCalls() []auditedCall {
	return []auditedCall{
		{
			request: authorizationRow{operation: "POST /user/tokens", body: `{"name": "x"}`}, status: 201,
			entries: []string{"token.create token"},
		},
		{
			request: authorizationRow{operation: "DELETE /user/tokens/{id}"}, status: 204,
			entries: []string{"token.revoke token"},
		},
		{
			request: authorizationRow{operation: "POST /webhooks", body: `{"url": "https://receiver.invalid/"}`}, status: 201,
			entries: []string{"webhook.create webhook"},
		},
		{
			request: authorizationRow{operation: "PATCH /webhooks/{webhookId}", body: `{"active": false}`}, status: 200,
			entries: []string{"webhook.update webhook"},
		},
		{
			request: authorizationRow{operation: "DELETE /webhooks/{webhookId}"}, status: 204,
			entries: []string{"webhook.delete webhook"},
		},
		{
			request: authorizationRow{operation: "POST /webhooks/{webhookId}/rotate"}, status: 200,
			entries: []string{"webhook.rotate webhook"},
		},
		{
			request: authorizationRow{operation: "POST /webhooks/{webhookId}/test"}, status: 200,
			entries: []string{"webhook.test webhook"},
		},
		{
			request: authorizationRow{operation: "POST /connections", body: `{"name": "<new>", "kind": "s3", "s3": <s3>}`}, status: 201,
			entries: []string{"connection.create connection"},
		},
		{
			request: authorizationRow{operation: "PATCH /connections/{connectionId}", body: `{"name": "<new>"}`}, status: 200,
			entries: []string{"connection.update connection"},
		},
		{
			request: authorizationRow{operation: "DELETE /connections/{connectionId}"}, status: 204,
			entries: []string{"connection.delete connection"},
		},
		{
			request: authorizationRow{operation: "POST /connections/{connectionId}/test"}, status: 200,
			entries: []string{"connection.test connection"},
		},
		{
			request: authorizationRow{operation: "POST /connections/{connectionId}/shares", body: `{"username": "x"}`}, status: 200,
			entries: []string{"share.grant connection x"},
		},
		{
			request: authorizationRow{operation: "DELETE /connections/{connectionId}/shares", body: `{"username": "grantee"}`}, status: 200,
			entries: []string{"share.revoke connection grantee"},
		},
		{
			request: authorizationRow{operation: "POST /sources", body: `{"name": "<new>", "connectionId": "<connection>", "namespace": "sources", "datasetName": "d", "prefix": "none/"}`}, status: 201,
			entries: []string{"source.create source"},
		},
		{
			request: authorizationRow{operation: "PATCH /sources/{sourceId}", body: `{"active": false}`}, status: 200,
			entries: []string{"source.update source"},
		},
		{
			request: authorizationRow{operation: "DELETE /sources/{sourceId}"}, status: 204,
			entries: []string{"source.delete source"},
		},
		{
			request: authorizationRow{operation: "POST /sources/{sourceId}/run"}, status: 202,
			entries: []string{"source.run source"},
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
			request: authorizationRow{operation: "POST /schema/deleted/{deletedId}/restore", body: `{"name": "before"}`}, status: 200,
			entries: []string{"dataset.restore dataset <namespace>/orders name before"},
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
			request: authorizationRow{operation: deleteRows, body: conditionBody}, status: 200,
			entries: []string{"rows.delete dataset <namespace>/orders <id>", "query.run dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: putKey, body: keyBody}, status: 200,
			entries: []string{"key.put dataset <namespace>/orders a, refuse"},
		},
		{
			request: authorizationRow{operation: deleteKey}, status: 204,
			entries: []string{"key.delete dataset <namespace>/orders"},
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
			request: authorizationRow{operation: "GET /query/statements/{statementId}/rows"}, status: 200,
			entries: []string{"statement.read dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "GET /query/statements/{statementId}/pieces/{piece}"}, status: 303,
			entries: []string{"statement.export dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "POST /query/statements/{statementId}/cancel"}, status: 200,
			entries: []string{"statement.cancel statement"},
		},
		{
			request: authorizationRow{operation: "DELETE /query/statements/{statementId}"}, status: 204,
			entries: []string{"statement.delete statement"},
		},
		{
			request: authorizationRow{operation: "POST /query/check", body: checkBody}, status: 200,
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
			request: authorizationRow{operation: callTool, body: toolBody}, status: 200,
			entries: []string{"query.run dataset <namespace>/orders", "tool.call account query"},
		},
		{
			request: authorizationRow{operation: "POST /query/runs/{runId}/cancel"}, status: 200,
			entries: []string{"run.cancel run"},
		},
		{
			request: authorizationRow{operation: "POST /query/runs/{runId}/choose", body: `{"option": 1}`}, status: 200,
			entries: []string{"run.choose run"},
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
			request: authorizationRow{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/setAside"}, status: 200,
			entries: []string{"setAside.read dataset <namespace>/orders <ingestion>"},
		},
		{
			request: authorizationRow{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records"}, status: 200,
			entries: []string{"records.read dataset <namespace>/orders <ingestion>"},
		},
		{
			request: authorizationRow{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/text"}, status: 200,
			entries: []string{"records.read dataset <namespace>/orders <ingestion> 0-1"},
		},
		{
			request: authorizationRow{operation: "PUT /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/fields/{fieldName}", body: `{"value": "2"}`}, status: 200,
			entries: []string{"records.correct dataset <namespace>/orders <ingestion> 0-1 a"},
		},
		{
			request: authorizationRow{operation: "DELETE /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/fields/{fieldName}"}, status: 200,
			entries: []string{"records.uncorrect dataset <namespace>/orders <ingestion> 0-1 a"},
		},
		{
			request: authorizationRow{operation: "POST /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/reload"}, status: 202,
			entries: []string{"ingestion.create dataset <namespace>/orders merge <id>, 1 files, reload of <ingestion>"},
		},
		{
			request: authorizationRow{operation: "GET /data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/setAside/export"}, status: 200,
			entries: []string{"setAside.export dataset <namespace>/orders <ingestion>"},
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
			request: authorizationRow{operation: "PUT /data/{username}/{namespace}/{datasetName}/semantics", body: `{"row": "order"}`}, status: 200,
			entries: []string{"semantics.put dataset <namespace>/orders revision 1"},
		},
		{
			request: authorizationRow{operation: "POST /semantics/{username}/{namespace}", body: exchangeBody}, status: 200,
			entries: []string{"semantics.put dataset <namespace>/orders revision 1"},
		},
		{
			request: authorizationRow{operation: deleteChoices}, status: 204,
			entries: []string{"choices.delete dataset <namespace>/orders"},
		},
		{
			request: authorizationRow{operation: "POST /verified/{username}/{namespace}", body: verifiedBody}, status: 201,
			entries: []string{"query.run dataset <namespace>/orders", "verified.create verified <namespace>"},
		},
		{
			request: authorizationRow{operation: "PATCH /verified/{username}/{namespace}/{verifiedId}", body: `{"status": "verified"}`}, status: 200,
			entries: []string{"query.run dataset <namespace>/orders", "verified.update verified <namespace> revision 2"},
		},
		{
			request: authorizationRow{operation: "DELETE /verified/{username}/{namespace}/{verifiedId}"}, status: 204,
			entries: []string{"verified.retire verified <namespace>"},
		},
		{
			request: authorizationRow{operation: "POST /benchmarks/{username}/{namespace}"}, status: 202,
			entries: []string{"benchmark.create benchmark <namespace> model"},
		},
		{
			request: authorizationRow{operation: "POST /benchmarks/{username}/{namespace}/{benchmarkId}/cancel"}, status: 200,
			entries: []string{"benchmark.cancel benchmark <namespace> model"},
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
		{
			request: authorizationRow{operation: "DELETE /permissions/namespaces/{username}/{namespace}/shares/self"}, status: 200, byEditor: true,
			entries: []string{"share.leave namespace <namespace>"},
		},
		{
			request: authorizationRow{operation: "DELETE /permissions/datasets/{username}/{namespace}/{datasetName}/shares/self"}, status: 200, byEditor: true,
			entries: []string{"share.leave dataset <namespace>/orders"},
		},
	}
}

// internalRPC is the code of an internal error in JSON-RPC.
const internalRPC = -32603

// deleteChoices is an operation that changes something, and that viewers may call.
const deleteChoices = "DELETE /data/{username}/{namespace}/{datasetName}/choices"

type auditedCall struct {
	request  authorizationRow // without statuses
	status   int
	isEmpty  bool     // the namespace must have no datasets
	byEditor bool     // the caller is not the owner but a user with whom the namespace and the dataset are shared
	entries  []string // action, kind, path and detail of each entry; <id> is a created id; nil if the operation changes nothing
}
