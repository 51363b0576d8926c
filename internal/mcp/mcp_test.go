package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// newTestServer returns a server for calls that fail or need no data.
func newTestServer(t *testing.T) *Server {
	t.Helper()

	s, err := New(Config{
		PublicURL: "https://quern.example.org", TrustedOrigins: []string{"https://console.example.org"}, Version: "1", MaxBody: 1 << 20,
		RequestTimeout: time.Second, QueryTimeout: time.Second, Now: time.Now,
		Who:  func(context.Context) auth.Principal { return auth.Principal{} },
		Note: func(context.Context, error) {},
	})
	require.NoError(t, err)

	return s
}

// post sends a message, and returns the response or the fault of the handler.
func post(t *testing.T, s *Server, body string, change func(*http.Request)) (*httptest.ResponseRecorder, error) {
	t.Helper()

	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://quern.example.org/api/v1/mcp", strings.NewReader(body))
	request.Header.Set("Content-Type", jsonType)
	request.Header.Set("Accept", "application/json, text/event-stream")
	change(request)

	recorder := httptest.NewRecorder()

	return recorder, s.Handlers()["callTool"](recorder, request)
}

func unchanged(*http.Request) {}

// message returns the JSON-RPC message of a response.
func message(t *testing.T, recorder *httptest.ResponseRecorder) (found struct {
	Result json.RawMessage
	Error  *refusalError
},
) {
	t.Helper()

	text := recorder.Body.String()
	if _, data, isStream := strings.Cut(text, "data: "); isStream {
		text = data
	}

	require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(text)), &found), recorder.Body.String())

	return found
}

const toolsList = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// TestToolList checks that the list of tools is small, promises only what is served, and marks every tool as reading.
func TestToolList(t *testing.T) {
	t.Parallel()

	recorder, err := post(t, newTestServer(t), toolsList, unchanged)
	require.NoError(t, err)

	list := message(t, recorder)
	require.Nil(t, list.Error)
	t.Logf("the list of tools has %d bytes", len(list.Result))
	require.LessOrEqual(t, len(list.Result), 8<<10)

	var tools struct {
		Tools []struct {
			Name                      string
			InputSchema, OutputSchema map[string]any
			Annotations               map[string]bool
		}
	}
	require.NoError(t, json.Unmarshal(list.Result, &tools))
	require.Len(t, tools.Tools, len((&Server{}).tools()))

	for _, tool := range tools.Tools {
		require.Equal(t, map[string]bool{
			"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false, "idempotentHint": tool.Name != "ask",
		}, tool.Annotations, tool.Name)
		require.Equal(t, "object", tool.InputSchema["type"], tool.Name)
		require.Equal(t, "object", tool.OutputSchema["type"], tool.Name)
	}

	recorder, err = post(t, newTestServer(t), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, unchanged)
	require.NoError(t, err)

	var begun struct{ Capabilities json.RawMessage }

	require.NoError(t, json.Unmarshal(message(t, recorder).Result, &begun))
	require.JSONEq(t, `{"tools": {}, "prompts": {}, "resources": {}}`, string(begun.Capabilities))
}

// TestOrigins checks which pages and host names are refused.
func TestOrigins(t *testing.T) {
	t.Parallel()

	s := newTestServer(t)

	for _, one := range []struct {
		host, origin, site string
		allowed            bool
	}{
		{host: "quern.example.org", allowed: true},
		{host: "QUERN.example.org:8443", allowed: true},
		{host: "127.0.0.1:8080", allowed: true},
		{host: "[::1]:8080", allowed: true},
		{host: "localhost:8080", allowed: true},
		{host: "quern", allowed: true}, // a name inside of a cluster
		{host: "quern.example.org", origin: "https://quern.example.org", allowed: true},
		{host: "quern.example.org", origin: "https://console.example.org", site: "cross-site", allowed: true},
		{host: "evil.example"},
		{host: "evil.example", origin: "http://evil.example"},
		{host: "127.0.0.1.evil.example:8080"},
		{host: ""},
		{host: "quern.example.org", origin: "https://evil.example"},
		{host: "quern.example.org", origin: "null"},
		{host: "127.0.0.1:8080", origin: "http://evil.example"},
		{host: "quern.example.org", origin: "https://evil.example", site: "cross-site"},
		{host: "quern.example.org", origin: "https://sub.console.example.org", site: "same-site"},
	} {
		_, err := post(t, s, toolsList, func(r *http.Request) {
			if r.Host = one.host; one.origin != "" {
				r.Header.Set("Origin", one.origin)
			}

			if one.site != "" {
				r.Header.Set("Sec-Fetch-Site", one.site)
			}
		})

		require.Equal(t, !one.allowed, fault.Is(err, fault.Forbidden), "%+v: %v", one, err)
	}
}

// TestRequests checks requests that do not reach a tool.
func TestRequests(t *testing.T) {
	t.Parallel()

	s := newTestServer(t)

	for body, code := range map[string]fault.Code{
		``:                         fault.BadRequest,
		`[` + toolsList + `]`:      fault.BadRequest, // would count as one request
		`"x"`:                      fault.BadRequest,
		strings.Repeat(" ", 2<<20): fault.PayloadTooLarge,
	} {
		_, err := post(t, s, body, unchanged)
		require.True(t, fault.Is(err, code), "%.20s: %v", body, err)
	}

	_, err := post(t, s, toolsList, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	require.True(t, fault.Is(err, fault.UnsupportedMediaType), err)
	_, err = post(t, s, toolsList, func(r *http.Request) { r.Header.Set("Accept", "application/json") })
	require.True(t, fault.Is(err, fault.NotAcceptable), err)

	recorder, err := post(t, s, toolsList, func(r *http.Request) { r.Header.Set("Accept", "*/*") })
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, recorder.Code)
	require.Equal(t, "no", recorder.Header().Get("X-Accel-Buffering"))

	// What the SDK refuses in plain text is a JSON-RPC error too.
	for _, body := range []string{`{`, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`} {
		recorder, err := post(t, s, body, unchanged)
		require.NoError(t, err)
		require.NotNil(t, message(t, recorder).Error, "%s: %s", body, recorder.Body)
	}
}

// TestPanic checks that a panic in a tool, which the SDK calls in a goroutine of its own, ends one call only.
func TestPanic(t *testing.T) {
	t.Parallel()

	s := newTestServer(t) // has no catalog, so every use of it panics
	noted := make(chan error, 1)
	s.Note = func(_ context.Context, err error) { noted <- err }

	recorder, err := post(t, s, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_datasets","arguments":{}}}`, unchanged)
	require.NoError(t, err)
	require.True(t, fault.Is(<-noted, fault.Internal))

	failed := message(t, recorder).Error
	require.NotNil(t, failed, recorder.Body.String())
	require.Equal(t, -32603, failed.Code)
	require.NotContains(t, failed.Message, "nil pointer")
}

// TestMistakes checks that mistakes of a model are results that it can read.
func TestMistakes(t *testing.T) {
	t.Parallel()

	s := newTestServer(t)

	for arguments, words := range map[string]string{
		`{}`:                                 "dataset: is required",
		`[]`:                                 "must be an object",
		`{"dataset": 5}`:                     "dataset: must be a text",
		`{"dataset": "orders"}`:              "must be owner/namespace/name",
		`{"dataset": "a/b/c", "table": "x"}`: "table: is not an argument of describe_dataset; it has: dataset",
		`{"dataset": "` + strings.Repeat("x", 400) + `"}`: "may have at most 386 characters",
	} {
		recorder, err := post(t, s, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"describe_dataset","arguments":`+arguments+`}}`, unchanged)
		require.NoError(t, err)

		var failed struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent any
		}

		require.NoError(t, json.Unmarshal(message(t, recorder).Result, &failed), recorder.Body.String())
		require.True(t, failed.IsError)
		require.Nil(t, failed.StructuredContent)
		require.Contains(t, failed.Content[0].Text, words)
		require.True(t, strings.HasPrefix(failed.Content[0].Text, "VALIDATION_FAILED: "), failed.Content[0].Text)
	}
}

// TestFaults checks that every code is decided, and that texts of foreign errors are not shown.
func TestFaults(t *testing.T) {
	t.Parallel()

	for _, code := range fault.Codes() {
		_, decided := isOurs()[code]
		require.True(t, decided, code)
	}

	require.Len(t, isOurs(), len(fault.Codes()))

	_, err := refused(errors.New("password=hunter2"))
	require.ErrorContains(t, err, "internal error")
	require.NotContains(t, err.Error(), "hunter2")

	limited := fault.New(fault.RateLimited, "Too many.")
	limited.RetryAfter = 1500 * time.Millisecond
	told, err := refused(limited)
	require.NoError(t, err)

	text, err := json.Marshal(told.Content)
	require.NoError(t, err)
	require.Contains(t, string(text), "RATE_LIMITED: Too many.\\nTry again in 2 seconds.")
}
