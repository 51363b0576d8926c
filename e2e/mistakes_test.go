package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mistake is a request that a developer may send by mistake. The caller is ada, the owner of shop/orders.
type mistake struct {
	what, method, path, body string
	headers                  []string
}

// mistakes are the usual ones.
func mistakes() []mistake {
	post, get, json := http.MethodPost, http.MethodGet, []string(nil)
	sql := func(what, statement string) mistake {
		return mistake{what, post, "/query", fmt.Sprintf(`{"username": "self", "namespace": "shop", "query": %q}`, statement), json}
	}
	header := func(lines ...string) []string { return lines }

	return []mistake{
		{"a path with a typo", get, "/dataset/ada/shop/orders", "", json},
		{"a trailing slash", get, "/user/me/", "", json},
		{"the wrong method", http.MethodPut, "/user/me", "{}", json},
		{"a body that is not JSON", post, "/query", "query=SELECT 1", json},
		{"JSON with a comma at the end", post, "/query", `{"username": "self",}`, json},
		{"an empty body", post, "/query", "", json},
		{"a list as the body", post, "/query", "[]", json},
		{"a form as the content type", post, "/query", "query=1", header("Content-Type: application/x-www-form-urlencoded")},
		{"rows with an unknown content type", post, "/ingest/shop/orders", "a,b", header("Content-Type: application/vnd.ms-excel")},
		{"an Accept that is not offered", post, "/query", `{"username": "self", "namespace": "shop", "query": "SELECT 1"}`, header("Accept: application/xml")},
		{"a key in the wrong case", post, "/query", `{"userName": "self", "namespace": "shop", "query": "SELECT 1"}`, json},
		{"an unknown field", post, "/query", `{"username": "self", "namespace": "shop", "sql": "SELECT 1"}`, json},
		{"a number where a text belongs", post, "/query", `{"username": "self", "namespace": 7, "query": "SELECT 1"}`, json},
		{"a text where a boolean belongs", post, "/query", `{"username": "self", "namespace": "shop", "query": "SELECT 1", "explain": "yes"}`, json},
		{"a date in another format", post, "/query", `{"username": "self", "namespace": "shop", "query": "SELECT 1", "asOf": "17.11.2026"}`, json},
		{"a date without a time", post, "/query", `{"username": "self", "namespace": "shop", "query": "SELECT 1", "asOf": "2026-11-17"}`, json},
		{"an unknown namespace", post, "/query", `{"username": "self", "namespace": "shoop", "query": "SELECT 1"}`, json},
		{"a namespace with a space", post, "/query", `{"username": "self", "namespace": "my shop", "query": "SELECT 1"}`, json},
		{"an unknown agent", post, "/query/ask", `{"username": "self", "namespace": "shop", "query": "How many?", "agent": "sql"}`, json},
		{"an unknown model", post, "/query/ask", `{"username": "self", "namespace": "shop", "query": "How many?", "model": "gpt"}`, json},
		{"an empty question", post, "/query/ask", `{"username": "self", "namespace": "shop", "query": ""}`, json},
		{"an unknown conversation", post, "/query/ask", `{"username": "self", "namespace": "shop", "query": "How many?", "conversationId": "0199c0ea-d6e8-7192-9ab2-3c4d5e6f7081"}`, json},
		{"a conversation that is no uuid", post, "/query/ask", `{"username": "self", "namespace": "shop", "query": "How many?", "conversationId": "1"}`, json},
		{"an unknown dataset of a question", post, "/query/ask", `{"username": "self", "namespace": "shop", "query": "How many?", "datasets": ["order"]}`, json},
		{"an unknown dataset", get, "/data/ada/shop/order", "", json},
		{"an unknown run", get, "/query/runs/0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70", "", json},
		{"a run that is no uuid", get, "/query/runs/42", "", json},
		{"a limit that is too large", get, "/data/ada/shop/orders/rows?limit=20000", "", json},
		{"a limit that is no number", get, "/data/ada/shop/orders/rows?limit=all", "", json},
		{"an invented cursor", get, "/data/ada/shop/orders/rows?cursor=2", "", json},
		{"an unknown column", get, "/data/ada/shop/orders/rows?columns=regoin", "", json},
		{"an offset, which lists do not have", get, "/data/ada/shop/orders/rows?offset=10", "", json},
		{"a misspelt parameter", get, "/query/runs?stauts=failed", "", json},
		{"a parameter given twice", get, "/user/tokens?limit=10&limit=20", "", json},
		{"a field of the body in the address", post, "/query?namespace=shop", `{"username": "self", "query": "SELECT 1"}`, json},
		{"an unknown export format", get, "/data/ada/shop/orders/export?format=xlsx", "", json},
		{"a second dataset of the same name", post, "/ingest/new/shop/orders", "{}", json},
		{"a dataset name with a space", post, "/ingest/new/shop/my%20orders", "{}", json},
		{"a second namespace of the same name", post, "/schema/self/namespaces", `{"name": "shop"}`, json},
		{"a namespace that is not empty", http.MethodDelete, "/schema/self/namespaces/shop", "", json},
		{"rows that are not in data", post, "/ingest/shop/orders", `[{"region": "north"}]`, json},
		{"rows that are no objects", post, "/ingest/shop/orders", `{"data": ["north"]}`, json},
		{"rows for an unknown dataset", post, "/ingest/shop/order", `{"data": [{"region": "north"}]}`, json},
		{"an ingestion without a session", post, "/data/ada/shop/orders/ingestions", "{}", json},
		{"an ingestion of an unknown session", post, "/data/ada/shop/orders/ingestions", `{"sessionId": "0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70"}`, json},
		{"a misspelt option", post, "/data/ada/shop/orders/ingestions", `{"sessionId": "0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70", "options": {"seperator": ";"}}`, json}, //nolint:misspell // the mistake
		{"an unknown mode", post, "/data/ada/shop/orders/ingestions", `{"sessionId": "0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70", "mode": "overwrite"}`, json},
		{"an upload without files", post, "/file-upload/prepare", `{"filesToUpload": []}`, json},
		{"a file of no bytes", post, "/file-upload/prepare", `{"filesToUpload": [{"filename": "a.csv", "size": 0}]}`, json},
		{"a share for oneself", post, "/permissions/datasets/ada/shop/orders/shares", `{"username": "ada", "role": "viewer"}`, json},
		{"an unknown role", post, "/permissions/datasets/ada/shop/orders/shares", `{"username": "bob", "role": "reader"}`, json},
		{"a share of another's dataset", post, "/permissions/datasets/bob/shop/orders/shares", `{"username": "carol", "role": "viewer"}`, json},
		{"a revocation without a grant", http.MethodDelete, "/permissions/datasets/ada/shop/orders/shares", `{"username": "bob"}`, json},
		{"a token without a name", post, "/user/tokens", "{}", json},
		{"a definition without a field", http.MethodPut, "/data/ada/shop/orders/inferDefinition", "{}", json},
		{"no token", get, "/user/me", "", header("Authorization: ")},
		{"a token without Bearer", get, "/user/me", "", header("Authorization: qrn_0123456789")},
		{"a token in another header", get, "/user/me", "", header("Authorization: ", "X-Api-Key: qrn_0123456789")},
		{"an unknown token", get, "/user/me", "", header("Authorization: Bearer qrn_0123456789")},
		{"an Idempotency-Key with a space", post, "/ingest/new/shop/more", "{}", header("Idempotency-Key: my key")},
		{"a token with a field of another style", post, "/user/tokens", `{"name": "x", "expires_at": "2026-12-01T00:00:00Z"}`, json},
		{"a token that expires in the past", post, "/user/tokens", `{"name": "x", "expiresAt": "2020-01-01T00:00:00Z"}`, json},
		{"a token with an unknown role", post, "/user/tokens", `{"name": "x", "role": "admin"}`, json},
		{"a token for a namespace that does not exist", post, "/user/tokens", `{"name": "x", "accessRestrictedTo": [{"username": "self", "namespace": "shoop"}]}`, json},
		{"a namespace under another name than one's own", post, "/schema/bob/namespaces", `{"name": "mine"}`, json},
		{"leaving a share of one's own", http.MethodDelete, "/permissions/datasets/ada/shop/orders/shares/self", "", json},
		{"a dataset that moves to an unknown namespace", http.MethodPatch, "/data/ada/shop/orders", `{"namespace": "nowhere"}`, json},
		{"an unknown exposure", http.MethodPatch, "/schema/self/namespaces/shop", `{"exposure": "all"}`, json},
		{"a rating without a thumb", post, "/query/runs/0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70/feedback", `{"comment": "good"}`, json},
		{"a rating of an unknown run", post, "/query/runs/0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70/feedback", `{"thumbsUp": true}`, json},
		{"a status that runs do not have", get, "/query/runs?status=done", "", json},
		{"a namespace without its owner", get, "/query/runs?namespace=shop", "", json},
		{"a parameter that is missing", post, "/query", `{"query": "SELECT region FROM shop.orders WHERE region = $1"}`, json},
		{"a parameter that the statement does not have", post, "/query", `{"query": "SELECT region FROM shop.orders", "parameters": [1]}`, json},
		{"a parameter that does not fit its type", post, "/query", `{"query": "SELECT $day", "parameters": {"day": {"type": "date", "value": "17.11.2026"}}}`, json},
		{"a parameter for the name of a dataset", post, "/query", `{"query": "SELECT * FROM $1", "parameters": ["orders"]}`, json},
		{"a name without a namespace", post, "/query", `{"query": "SELECT region FROM orders"}`, json},
		{"a misspelt namespace in a statement", post, "/query", `{"query": "SELECT region FROM shoop.orders"}`, json},
		sql("a misspelt column", "SELECT regoin FROM orders"),
		sql("a misspelt dataset", "SELECT region FROM order_s"),
		sql("a misspelt function", "SELECT cuont(*) FROM orders"),
		sql("a missing FROM", "SELECT region"),
		sql("a text in double quotes", `SELECT * FROM orders WHERE region = "north"`), //nolint:unqueryvet // a statement of a user
		sql("a column that is not grouped", "SELECT region, count(*) FROM orders"),
		sql("an aggregate in WHERE", "SELECT region FROM orders WHERE count(*) > 1 GROUP BY region"),
		sql("a keyword with a typo", "SELCT region FROM orders"),
		sql("an open bracket", "SELECT count( FROM orders"),
		sql("an INSERT", "INSERT INTO orders VALUES ('west')"),
		sql("two statements", "SELECT 1; SELECT 2"),
		sql("a sum of texts", "SELECT sum(region) FROM orders"),
		sql("a text as a number", "SELECT region + 5 FROM orders"),
		sql("a view", "CREATE VIEW north AS SELECT * FROM orders"), //nolint:unqueryvet // a statement of a user
		sql("a setting of the engine", "PRAGMA table_info(orders)"),
		sql("a file by a function", "SELECT * FROM read_csv('orders.csv')"), //nolint:unqueryvet // a statement of a user
		sql("a file", "SELECT * FROM 'orders.csv'"),                         //nolint:unqueryvet // a statement of a user
		sql("another's dataset", `SELECT * FROM "bob/shop/orders"`),         //nolint:unqueryvet // a statement of a user
		sql("a setting", "SET threads = 8"),
	}
}

// TestMistakes compares the error messages for usual mistakes with testdata/mistakes.golden. A message must tell a developer who does
// not know the API what to change. Read each changed message before you accept it with -update.
func TestMistakes(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	key := s.newKey()
	bearer := key.token("ada")
	require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/ingest/new/shop/orders", bearer, "").status)
	require.Equal(t, http.StatusOK, call(t, http.MethodPost, s.url+"/ingest/shop/orders", bearer, `{"data": [{"region": "north"}, {"region": "south"}]}`).status)

	claims := key.claims("ada")
	claims["exp"] = time.Now().Add(-time.Hour).Unix()

	const expired = "EXPIRED"

	list := append(mistakes(), mistake{"an expired token", http.MethodGet, "/user/me", "", []string{"Authorization: Bearer " + expired}})

	var told strings.Builder

	for _, m := range list {
		fmt.Fprintf(&told, "# %s\n%s\n", m.what, strings.TrimSpace(m.method+" "+m.path+" "+m.body))

		for i, line := range m.headers {
			fmt.Fprintln(&told, strings.TrimSpace(line))
			m.headers[i] = strings.Replace(line, expired, key.sign(claims), 1)
		}

		answer := call(t, m.method, s.url+m.path, bearer, m.body, m.headers...)

		require.GreaterOrEqual(t, answer.status, 400, told.String())

		var body struct {
			Code    string `json:"error_code"`
			Message string
			More    string                           `json:"error_message"`
			Subs    []struct{ Code, Message string } `json:"sub_errors"`
		}

		answer.json(t, &body)
		fmt.Fprintln(&told, strings.TrimSpace(fmt.Sprintf("%d %s: %s %s", answer.status, body.Code, body.Message, body.More)))

		for _, sub := range body.Subs {
			fmt.Fprintf(&told, "    %s: %s\n", sub.Code, sub.Message)
		}

		told.WriteString("\n")
	}

	told.WriteString(tellCLIMistakes(t, s, key))

	file := filepath.Join("testdata", "mistakes.golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(told.String()), 0o600))
	}

	expected, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(expected), told.String())
}
