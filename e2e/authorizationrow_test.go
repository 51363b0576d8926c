package e2e

type authorizationRow struct {
	operation string // as in the contract
	query     string // query string, for a further row of the same operation
	body      string
	statuses  string
}

// finishBody is for the file of a thing, ingestionBody for a session of the caller. The other bodies name the dataset or its
// namespace.
const (
	finishBody    = `{"uploadId": "<uploadId>", "key": "<key>", "parts": [{"partNumber": 1, "etag": "9dd4e461268c8034f5c8564e155c67a6"}]}` // the MD5 of the file
	ingestionBody = `{"sessionId": "<session>"}`
	verifiedBody  = `{"question": "How many orders exist?", "query": "SELECT count(*) AS n FROM orders"}`
	exchangeBody  = `{"document": "version: 0.1.1\nsemantic_model: [{name: m, datasets: [{name: orders, source: orders, custom_extensions: [{vendor_name: COMMON, data: '{\"quern\": {\"row\": \"order\"}}'}]}]}]"}`
	rowsBody      = `{"data": [{"a": 1}]}`
	conditionBody = `{"condition": "a = 1"}`
	deleteRows    = "POST /data/{username}/{namespace}/{datasetName}/rows/delete"
	putKey        = "PUT /data/{username}/{namespace}/{datasetName}/key"
	deleteKey     = "DELETE /data/{username}/{namespace}/{datasetName}/key"
	keyBody       = `{"columns": ["a"], "duplicates": "refuse"}`
	queryBody     = `{"username": "owner", "namespace": "<namespace>", "query": "FROM orders"}`
	linkBody      = `{"username": "owner", "namespace": "<namespace>", "question": "orders from Zürich"}`
	checkBody     = `{"text": "There are 3 rows.", "statements": [{"username": "owner", "namespace": "<namespace>", "query": "FROM orders"}]}`
	askBody       = `{"username": "owner", "namespace": "<namespace>", "query": "{}"}`

	callTool  = "POST /mcp"
	toolBody  = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "query", "arguments": {"namespace": "owner/<namespace>", "sql": "FROM orders"}}}`
	callAgent = "POST /a2a/{agent}"
	sendBody  = `{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": "<new>", "role": "ROLE_USER",
		"parts": [{"text": "{}"}], "metadata": {"namespace": "owner/<namespace>"}}}}`
)

// runBody is a call of a tool about a run that does not exist.
const runBody = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_run", "arguments": {"runId": "01999999-9999-7999-8999-999999999999"}}}`

// taskBody is a call to an agent about the run of a thing.
func taskBody(method string) string {
	return `{"jsonrpc": "2.0", "id": 1, "method": "` + method + `", "params": {"id": "<run>"}}`
}
