package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

func newServer(t *testing.T, log *strings.Builder, change func(*Config)) *Server {
	t.Helper()

	c := Config{
		Log: slog.New(slog.NewJSONHandler(log, nil)), Metrics: prometheus.NewRegistry(), PublicURL: "https://quern.test",
		Ready: func(context.Context) []Check { return nil }, MaxBody: 1 << 20, RequestTimeout: time.Second, Agents: noAgents(),
	}
	if change != nil {
		change(&c)
	}

	s, err := New(c)
	require.NoError(t, err)

	return s
}

// noAgents returns handlers for the operations of agents that find no agent.
func noAgents() map[string]func(http.ResponseWriter, *http.Request) error {
	absent := func(http.ResponseWriter, *http.Request) error { return fault.Absent() }

	return map[string]func(http.ResponseWriter, *http.Request) error{
		"listAgents": absent, "getAgent": absent, "callAgent": absent, "getAgentCard": absent, "callTool": absent,
	}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()

	for _, code := range fault.Codes() {
		require.NotZero(t, statuses()[code], code)
	}

	require.Len(t, statuses(), len(fault.Codes()))
}

// TestEveryCodeIsInTheContract checks that the document and the program define the same codes.
func TestEveryCodeIsInTheContract(t *testing.T) {
	t.Parallel()

	c, err := loadContract()
	require.NoError(t, err)

	var documented []fault.Code
	for _, value := range c.document.Components.Schemas["ErrorCode"].Value.Enum {
		documented = append(documented, fault.Code(fmt.Sprint(value)))
	}

	require.ElementsMatch(t, fault.Codes(), documented)
}

func TestFail(t *testing.T) {
	t.Parallel()

	overloaded := fault.New(fault.RateLimited, "Slow down.")
	overloaded.RetryAfter = 1200 * time.Millisecond

	for name, test := range map[string]struct {
		err    error
		status int
		body   string
		header map[string]string
	}{
		"foreign": {
			errors.New("pq: password hunter2"), 500,
			`{"error_code":"INTERNAL","error_message":"","message":"The server had an internal error. Try again. If the error remains, report the X-Request-Id."}`, nil,
		},
		"fields": {
			fault.Invalid("name", "is required"), 422,
			`{"error_code":"VALIDATION_FAILED","error_message":"","message":"The request is not valid.","sub_errors":[{"code":"name","message":"is required"}]}`, nil,
		},
		"absent":    {fault.Absent(), 404, `{"error_code":"NOT_FOUND","error_message":"","message":"Nothing was found at this address. Check the names and ids in it. What is not shared with you looks absent; /api/v1/docs lists the operations."}`, nil},
		"too often": {overloaded, 429, `{"error_code":"RATE_LIMITED","error_message":"","message":"Slow down."}`, map[string]string{"Retry-After": "2"}},
		"deadline":  {context.DeadlineExceeded, 504, `{"error_code":"TIMEOUT","error_message":"","message":"The request took too long."}`, nil},
	} {
		var log strings.Builder

		s := newServer(t, &log, nil)
		recorder := httptest.NewRecorder()
		s.observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, test.err) })).
			ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", nil))

		require.Equal(t, test.status, recorder.Code, name)
		require.Equal(t, test.body+"\n", recorder.Body.String(), name)

		for key, value := range test.header {
			require.Equal(t, value, recorder.Header().Get(key), name)
		}
	}
}

func TestPanicBecomesInternal(t *testing.T) {
	t.Parallel()

	var log strings.Builder

	s := newServer(t, &log, nil)
	recorder := httptest.NewRecorder()
	s.observe(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("hunter2") })).
		ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/api/v1/user/me", nil))

	require.Equal(t, http.StatusInternalServerError, recorder.Code)
	require.NotContains(t, recorder.Body.String(), "hunter2")

	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(log.String()), &line), "one line for a request")
	require.Equal(t, "ERROR", line["level"])
	require.Contains(t, line["error"], "server_test.go:", "the stack")
	require.NotContains(t, log.String(), "hunter2", "the text of a panic can quote a cell")
	require.Equal(t, recorder.Header().Get("X-Request-Id"), line["request_id"])
}

// TestPanicAfterTheAnswerBegan checks that the connection is broken, the only signal that still reaches the client.
func TestPanicAfterTheAnswerBegan(t *testing.T) {
	t.Parallel()

	var log strings.Builder

	s := newServer(t, &log, nil)

	require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() {
		s.observe(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			panic("halfway")
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	})
}

func TestClientAddressAndRequestID(t *testing.T) {
	t.Parallel()

	var log strings.Builder

	s := newServer(t, &log, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	})

	for name, test := range map[string]struct {
		peer, forwarded, want string
		trusted               bool
	}{
		"nobody to trust":        {"203.0.113.9:1", "198.51.100.1", "203.0.113.9", false},
		"through our proxy":      {"10.0.0.1:1", "198.51.100.1", "198.51.100.1", true},
		"through two of ours":    {"10.0.0.1:1", "198.51.100.1, 10.0.0.2", "198.51.100.1", true},
		"forged before ours":     {"10.0.0.1:1", "127.0.0.1, 198.51.100.1", "198.51.100.1", true},
		"nothing forwarded":      {"10.0.0.1:1", "", "10.0.0.1", true},
		"garbage forwarded":      {"10.0.0.1:1", "198.51.100.1, x", "10.0.0.1", true},
		"version 6":              {"[::1]:1", "2001:db8::1", "2001:db8::1", true},
		"version 4 in version 6": {"[::ffff:10.0.0.1]:1", "198.51.100.1", "198.51.100.1", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = test.peer
		r.Header.Set("X-Forwarded-For", test.forwarded)
		r.Header.Set("X-Request-Id", "from-the-proxy")

		require.Equal(t, test.want, s.clientAddress(r), name)
		require.Equal(t, test.trusted, s.requestID(r) == "from-the-proxy", name)

		r.Header.Set("X-Request-Id", "not\none")
		require.NotEqual(t, "not\none", s.requestID(r), name)
	}
}

func TestLimiter(t *testing.T) {
	t.Parallel()

	l := newLimiter(0.001, 2)
	one, two, header := uuid.New(), uuid.New(), http.Header{}

	require.NoError(t, l.allow(one, header))
	require.Equal(t, `"requests";q=2;w=2000`, header.Get("RateLimit-Policy"))
	require.Equal(t, `"requests";r=1;t=1000`, header.Get("RateLimit"))
	require.NoError(t, l.allow(one, header))

	err := l.allow(one, header)
	require.True(t, fault.Is(err, fault.RateLimited))
	require.Positive(t, fault.From(err).RetryAfter)
	require.Equal(t, `"requests";r=0;t=2000`, header.Get("RateLimit"))
	require.NoError(t, l.allow(two, header), "another caller has a bucket of their own")

	header = http.Header{}
	require.NoError(t, newLimiter(0, 0).allow(one, header), "no limit")
	require.Empty(t, header)
}

func TestReadiness(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		checks []Check
		status int
		word   string
	}{
		"all well":           {[]Check{{Required: true, OK: true}, {OK: true}}, 200, "ok"},
		"without an issuer":  {[]Check{{Required: true, OK: true}, {OK: false}}, 200, "degraded"},
		"without a database": {[]Check{{Required: true, OK: false, Problem: "secret host"}, {OK: true}}, 503, "unavailable"},
	} {
		var log strings.Builder

		s := newServer(t, &log, func(c *Config) { c.Ready = func(context.Context) []Check { return test.checks } })
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))

		require.Equal(t, test.status, recorder.Code, name)
		require.Equal(t, `{"status":"`+test.word+`"}`+"\n", recorder.Body.String(), name)
	}
}
