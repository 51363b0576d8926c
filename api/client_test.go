package api

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answering returns the statuses one after the other, and then repeats the last one. Status 0 breaks the connection.
type answering struct {
	statuses []int
	header   http.Header
	requests []*http.Request
	bodies   []string
}

func (a *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	status := a.statuses[min(len(a.requests), len(a.statuses)-1)]
	a.requests, a.bodies = append(a.requests, r), append(a.bodies, string(body))

	if status == 0 {
		panic(http.ErrAbortHandler)
	}

	maps.Copy(w.Header(), a.header)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{}`)
}

// TestRetry checks that requests are repeated with the same key, except those that would act again.
func TestRetry(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, method, path string
		statuses           []int
		header             http.Header
		sent, status       int // status 0: no response
	}{
		{"well", "GET", "/user/me", []int{200}, nil, 1, 200},
		{"refused is refused", "GET", "/user/me", []int{404}, nil, 1, 404},
		{"too many", "GET", "/user/me", []int{429, 429, 200}, nil, 3, 200},
		{"away", "POST", "/user/tokens", []int{503, 200}, nil, 2, 200},
		{"broken", "POST", "/user/tokens", []int{0, 200}, nil, 2, 200},
		{"broken delete", "DELETE", "/user/tokens/1", []int{0, 200}, nil, 1, 0},
		{"refused delete", "DELETE", "/user/tokens/1", []int{429, 204}, nil, 2, 204},
		{"broken clear", "POST", "/data/a/b/c/clear", []int{0, 200}, nil, 1, 0},
		{"clear when away", "POST", "/data/a/b/c/clear", []int{503, 200}, nil, 1, 503},
		{"gives up", "GET", "/user/me", []int{429}, nil, 4, 429},
		{"waits too long", "GET", "/user/me", []int{429, 200}, http.Header{"Retry-After": {"3600"}}, 1, 429},
		{"a gateway", "GET", "/user/me", []int{502, 504, 200}, nil, 3, 200},
		{"a timeout of the service", "POST", "/query", []int{504, 200}, http.Header{"X-Request-Id": {"r"}}, 1, 504},
		{"the tracing store", "POST", "/query/runs/1/feedback", []int{502, 204}, http.Header{"X-Request-Id": {"r"}}, 1, 502},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			handler := &answering{statuses: test.statuses, header: test.header}
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)

			// On a reused connection, the transport could repeat a request by itself.
			retry := &Retry{Attempts: 4, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
			request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, strings.NewReader("said"))
			require.NoError(t, err)

			response, err := retry.Do(request)
			if test.status == 0 {
				require.Error(t, err)
			} else {
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.Equal(t, test.status, response.StatusCode)
			}

			server.Close()
			require.Len(t, handler.requests, test.sent)

			keys := map[string]bool{}
			for i, sent := range handler.requests {
				require.Equal(t, "said", handler.bodies[i])

				keys[sent.Header.Get("Idempotency-Key")] = true
			}

			require.Len(t, keys, 1)
			require.Equal(t, test.method != http.MethodPost, keys[""])
		})
	}
}

// TestRetryWaits checks that the client waits as long as the server requests.
func TestRetryWaits(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(&answering{statuses: []int{429, 200}, header: http.Header{"Retry-After": {"1"}}})
	t.Cleanup(server.Close)

	var told time.Duration

	client, err := Connect(Settings{Server: server.URL, Retry: Retry{Waiting: func(_ string, wait time.Duration) { told = wait }}})
	require.NoError(t, err)

	began := time.Now()
	_, err = Read[Me](client.GetMe(t.Context()))
	require.NoError(t, err)
	require.Equal(t, time.Second, told)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
}

// TestActsAgain checks that every POST of the contract has a key that the service honours, changes nothing, returns the
// same when repeated, or is listed in actsAgain.
func TestActsAgain(t *testing.T) {
	t.Parallel()

	harmless := []string{
		"runQuery", "linkQuestion", "checkText", "draftInferDefinition", // only read
		"finishUpload", "renewUploadUrls", "abortUpload", "cancelIngestion", "cancelRun", "cancelStatement", "cancelBenchmark", "chooseOption", "submitFeedback", "testWebhook", "testConnection", "restoreDeleted", "importSemantics", // idempotent
		"callAgent", // not sent by this client
		"callTool",  // not sent by this client
	}

	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(Document, &document))

	for path, item := range document.Paths {
		content, has := item["post"]
		if !has {
			continue
		}

		var operation struct {
			OperationID string `json:"operationId"`
		}
		require.NoError(t, json.Unmarshal(content, &operation))

		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://quern.test"+path, nil)
		require.NoError(t, err)

		keyed := strings.Contains(string(content), "#/components/parameters/IdempotencyKey")
		require.Equal(t, !keyed && !slices.Contains(harmless, operation.OperationID), actsAgain(request), path)
	}
}

// FuzzReadEvents checks that reading ends for any input, and that it returns only complete events.
func FuzzReadEvents(f *testing.F) {
	f.Add("id: 1\nevent: step\ndata: {}\n\n:\n\nid: 2\r\nevent: answer\r\ndata: a\r\ndata: b\r\n\r\nid: 3\nevent: lost")
	f.Fuzz(func(t *testing.T, text string) {
		var events []Event

		require.NoError(t, readEvents(strings.NewReader(text), func() {}, func(event Event) bool {
			events = append(events, event)

			return true
		}))
		require.LessOrEqual(t, len(events), strings.Count(text, "\n"))
	})
}

func TestReadEvents(t *testing.T) {
	t.Parallel()

	var events []Event

	text := "id: 1\nevent: step\ndata: {}\n\n:\n\nid: 2\r\nevent: answer\r\n:\r\ndata: a\r\ndata: b\r\n\r\nid: 3\nevent: lost\n"
	require.NoError(t, readEvents(strings.NewReader(text), func() {}, func(event Event) bool {
		events = append(events, event)

		return true
	}))
	require.Equal(t, []Event{{1, "step", json.RawMessage("{}")}, {2, "answer", json.RawMessage("a\nb")}}, events)
}

// TestTokenFails checks that an error of the token function is not treated as a broken connection.
func TestTokenFails(t *testing.T) {
	t.Parallel()

	client, err := Connect(Settings{Server: "http://127.0.0.1:9", Token: func(context.Context) (string, error) { return "", io.ErrNoProgress }})
	require.NoError(t, err)

	began := time.Now()
	_, err = Read[Me](client.GetMe(t.Context()))
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.Less(t, time.Since(began), 100*time.Millisecond)

	for _, address := range []string{"", "quern.test", "ftp://quern.test", "http://"} {
		_, err := Connect(Settings{Server: address})
		require.ErrorContains(t, err, "is not the address of a server")
	}
}
