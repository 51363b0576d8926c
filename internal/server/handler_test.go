package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

// lines returns a source of rows that ends with err.
func lines(err error, rows ...string) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		if len(rows) == 0 {
			return nil, err
		}

		row := rows[0]
		rows = rows[1:]

		return json.RawMessage(row), nil
	}
}

// TestFailureOfAHandler checks what a client receives when a handler fails: the error response if nothing was sent, and a
// broken connection otherwise.
func TestFailureOfAHandler(t *testing.T) {
	t.Parallel()

	large := strings.Repeat("x", bufferedBytes)

	for name, test := range map[string]struct {
		rows   []string
		err    error
		left   bool // the client has disconnected
		status int
		body   string
		breaks bool
	}{
		"no failure":   {[]string{"{}", "{}"}, io.EOF, false, 200, "{}\n{}\n", false},
		"nothing sent": {[]string{"{}"}, fault.Absent(), false, 404, `{"error_code":"NOT_FOUND","error_message":"","message":"There is no step \"\" of a run \"\" that you can see. GET /query/runs/{runId} shows the steps of a run."}` + "\n", false},
		"nothing sent, foreign error": {
			nil, errors.New("pq: password hunter2"), false, 500,
			`{"error_code":"INTERNAL","error_message":"","message":"The server had an internal error. Try again. If the error remains, report the X-Request-Id."}` + "\n", false,
		},
		"nothing sent, too late":    {nil, context.DeadlineExceeded, false, 504, `{"error_code":"TIMEOUT","error_message":"","message":"The request took too long."}` + "\n", false},
		"nothing sent, client left": {nil, context.Canceled, true, statusClientLeft, "", false},
		"begun":                     {[]string{large}, fault.Absent(), false, 200, large + "\n", true},
		"begun, foreign error":      {[]string{large, "{}"}, errors.New("pq: password hunter2"), false, 200, large + "\n{}\n", true},
		"begun, client left":        {[]string{large}, context.Canceled, true, 200, large + "\n", true},
	} {
		var log strings.Builder

		s := newServer(t, &log, nil)
		recorder, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)

		if test.left {
			ctx, leave := context.WithCancel(t.Context())
			leave()

			request = request.WithContext(ctx)
		}

		serve := func() {
			s.observe(s.guard(&operation{id: "exportStep", public: true}, func(w http.ResponseWriter, _ *http.Request) error {
				return writeLines(w, lines(test.err, test.rows...))
			})).ServeHTTP(recorder, request)
		}

		if test.breaks {
			require.PanicsWithError(t, http.ErrAbortHandler.Error(), serve, name)
		} else {
			serve()
		}

		require.Contains(t, log.String(), `"operation":"exportStep"`, name)

		require.Equal(t, test.status, recorder.Code, name)
		require.Equal(t, test.body, recorder.Body.String(), name)
	}
}

// TestEndOfAStream checks how a stream of events ends. The response begins before the first event, so that a failure can
// only break the connection.
func TestEndOfAStream(t *testing.T) {
	t.Parallel()

	event := func(kind string) []run.Event {
		e := run.Event{Seq: 1}
		e.Kind = run.EventStarted

		if kind == "last" {
			e.Kind = run.EventCompleted
		}

		return []run.Event{e}
	}

	for name, test := range map[string]struct {
		deliver func() ([]run.Event, error) // after the first event
		breaks  bool
	}{
		"last event":         {func() ([]run.Event, error) { return event("last"), nil }, false},
		"nothing to deliver": {func() ([]run.Event, error) { return nil, io.EOF }, false},
		"failure":            {func() ([]run.Event, error) { return nil, fault.New(fault.Unauthorized, "The token was revoked.") }, true},
		"panic":              {func() ([]run.Event, error) { panic("hunter2") }, true},
	} {
		var log strings.Builder

		s, first := newServer(t, &log, nil), true
		server := httptest.NewServer(s.observe(s.guard(&operation{id: "ask", public: true, lasting: true}, func(w http.ResponseWriter, r *http.Request) error {
			return writeEvents(r.Context(), w, func(context.Context) ([]run.Event, error) {
				if first {
					first = false

					return event("first"), nil
				}

				return test.deliver()
			})
		})))

		response, err := server.Client().Get(server.URL)
		require.NoError(t, err, name)
		require.Equal(t, http.StatusOK, response.StatusCode, name)
		require.Equal(t, eventStream, response.Header.Get("Content-Type"), name)

		text, err := io.ReadAll(response.Body)
		if test.breaks {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, name)
		} else {
			require.NoError(t, err, name)
		}

		require.True(t, strings.HasPrefix(string(text), ":\n\nid: 1\nevent: "), "%s: %s", name, text)
		require.NotContains(t, string(text), "error", name)
		require.NoError(t, response.Body.Close())
		server.Close()
	}
}

// TestClientLeavesAStream checks that a stream ends without an error when its client disconnects.
func TestClientLeavesAStream(t *testing.T) {
	t.Parallel()

	var log strings.Builder

	s := newServer(t, &log, nil)
	server := httptest.NewServer(s.observe(s.guard(&operation{id: "ask", public: true, lasting: true}, func(w http.ResponseWriter, r *http.Request) error {
		return writeEvents(r.Context(), w, func(ctx context.Context) ([]run.Event, error) {
			<-ctx.Done()

			return nil, ctx.Err()
		})
	})))

	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	require.NoError(t, err)

	response, err := server.Client().Do(request)
	require.NoError(t, err)
	leave()
	require.NoError(t, response.Body.Close())
	server.Close() // waits for the handler

	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(log.String()), &line))
	require.Equal(t, "INFO", line["level"])
	require.InDelta(t, http.StatusOK, line["status"], 0)
	require.NotContains(t, line, "error")
}

// TestEveryOperationHasOneHandler checks that a service does not start if its handlers differ from the contract.
func TestEveryOperationHasOneHandler(t *testing.T) {
	t.Parallel()

	type table = map[string]func(http.ResponseWriter, *http.Request) error

	for problem, change := range map[string]func(table){
		"operation callAgent has no handler": func(agents table) {
			delete(agents, "callAgent")
		},
		"the contract has no operation for the handler stopAgent": func(agents table) {
			agents["stopAgent"] = agents["callAgent"]
		},
		"operation getMe has two handlers": func(agents table) {
			agents["getMe"] = agents["callAgent"]
		},
		"operation runQuery has two handlers": func(agents table) {
			agents["runQuery"] = agents["callAgent"]
		},
	} {
		agents := noAgents()
		change(agents)

		_, err := New(Config{Metrics: prometheus.NewRegistry(), Agents: agents})
		require.EqualError(t, err, problem)
	}
}

// TestErrorOfAnAgent checks that the handlers of other packages return their errors to this one.
func TestErrorOfAnAgent(t *testing.T) {
	t.Parallel()

	var log strings.Builder

	recorder := httptest.NewRecorder()
	newServer(t, &log, nil).Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, agentsPath+"/unknown", nil))

	require.Equal(t, http.StatusNotFound, recorder.Code)
	require.JSONEq(t, `{"error_code":"NOT_FOUND","error_message":"","message":"There is no agent \"unknown\" that you can see. GET /a2a lists the agents."}`, recorder.Body.String())
	require.Contains(t, log.String(), `"operation":"getAgent"`)
}

// TestTokenByDefault checks that every operation needs a token, except those that the contract names as public.
func TestTokenByDefault(t *testing.T) {
	t.Parallel()

	var log strings.Builder

	s := newServer(t, &log, nil)

	var public []string

	for path, item := range s.contract.document.Paths.Map() {
		for method, source := range item.Operations() {
			if source.Security != nil && len(*source.Security) == 0 {
				public = append(public, source.OperationID)

				continue
			}

			recorder := httptest.NewRecorder()
			s.Handler().ServeHTTP(recorder, httptest.NewRequest(method, basePath+strings.NewReplacer("{", "", "}", "").Replace(path), nil))
			require.Equal(t, http.StatusUnauthorized, recorder.Code, source.OperationID)
		}
	}

	require.ElementsMatch(t, []string{"listAgents", "getAgent", "getAgentCard", "getOpenAPI", "getDocs"}, public)
}

// TestConversationBody checks the body of getConversation, whose rows and results are not generated types.
func TestConversationBody(t *testing.T) {
	t.Parallel()

	id := uuid.MustParse("0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01")

	for want, c := range map[string]run.Conversation{
		`{"id":"` + id.String() + `","title":"x","username":"ada","namespace":"n","turns":[]}`: {ID: id, Title: "x", Username: "ada", Namespace: "n"},
		`{"id":"` + id.String() + `","title":"a \u003c b","username":"ada","namespace":"n","turns":[{"runId":"` + id.String() + `","agent":"nl2ql","question":"How many?","status":"failed",` +
			`"error":{"code":"TIMEOUT","message":"It took too long."}}]}`: {
			ID: id, Title: "a < b", Username: "ada", Namespace: "n", Turns: []run.Run{{
				ID: id, Agent: "nl2ql", Question: run.Question{Text: "How many?"}, Status: run.Failed, Error: fault.New(fault.Timeout, "It took too long."),
			}},
		},
	} {
		recorder := httptest.NewRecorder()
		writeJSON(recorder, http.StatusOK, showConversation(c))
		require.Equal(t, want+"\n", recorder.Body.String())
	}
}

// TestAddressesOutsideTheContract checks the bodies of the documents that other standards and probes define.
func TestAddressesOutsideTheContract(t *testing.T) {
	t.Parallel()

	var log strings.Builder

	s := newServer(t, &log, func(c *Config) { c.Issuer = "https://issuer.test/realms/a&b" })

	for path, body := range map[string]string{
		"/healthz": `{"status":"ok"}`,
		"/readyz":  `{"status":"ok"}`,
		resourceMetadataPath: `{"authorization_servers":["https://issuer.test/realms/a\u0026b"],"bearer_methods_supported":["header"],` +
			`"resource":"https://quern.test","resource_documentation":"https://quern.test/api/v1/docs","scopes_supported":["openid"]}`,
	} {
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))

		require.Equal(t, http.StatusOK, recorder.Code, path)
		require.Equal(t, "application/json", recorder.Header().Get("Content-Type"), path)
		require.Equal(t, body+"\n", recorder.Body.String(), path)
	}
}
