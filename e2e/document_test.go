package e2e

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

func TestServedDocument(t *testing.T) {
	t.Parallel()

	s := start(t)
	answer := call(t, http.MethodGet, s.url+"/openapi.json", "", "")
	require.Equal(t, http.StatusOK, answer.status)
	require.NotContains(t, answer.body, `"x-quern`, "a mark, which only our own code reads")

	document, err := openapi3.NewLoader().LoadFromData([]byte(answer.body))
	require.NoError(t, err)
	require.NoError(t, document.Validate(t.Context()))

	require.Equal(t, "2.2.3", document.Info.Version)
	require.Len(t, document.Servers, 1)
	require.Equal(t, "http://quern.test/api/v1", document.Servers[0].URL)

	schemes := document.Components.SecuritySchemes
	require.Len(t, schemes, 2)
	require.Equal(t, "http", schemes["bearerAuth"].Value.Type)
	require.Equal(t, "bearer", schemes["bearerAuth"].Value.Scheme)
	require.Equal(t, "oauth2", schemes["openId"].Value.Type)

	implicit := schemes["openId"].Value.Flows.Implicit
	require.Equal(t, s.realm.endpoint("auth"), implicit.AuthorizationURL)
	require.Contains(t, implicit.Scopes, "openid")

	public := []string{"GET /docs", "GET /openapi.json", "GET /a2a", "GET /a2a/{agent}", "GET /a2a/{agent}/.well-known/agent-card.json"}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			name := method + " " + path
			security := document.Security
			if operation.Security != nil {
				security = *operation.Security
			}

			if len(security) == 0 {
				require.Contains(t, public, name, "it asks for no token")

				continue
			}

			require.ElementsMatch(t, openapi3.SecurityRequirements{{"bearerAuth": {}}, {"openId": {"openid"}}}, security, name)
			require.NotNil(t, operation.Responses.Status(http.StatusUnauthorized), name)
		}
	}
}

// TestDocumentationPage checks that the page is self-contained: it fetches nothing and runs no script.
func TestDocumentationPage(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_OIDC_ISSUER=http://127.0.0.1:9/nobody")
	page := call(t, http.MethodGet, s.url+"/docs", "", "")
	require.Equal(t, http.StatusOK, page.status)
	require.Equal(t, "text/html; charset=utf-8", page.header.Get("Content-Type"))
	require.Regexp(t, `^default-src 'none'; style-src 'sha256-[^']{44}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$`,
		page.header.Get("Content-Security-Policy"))

	require.NotRegexp(t, `(?i)<(script|link|img|iframe|object|embed|form|base)\b`, page.body)
	require.NotRegexp(t, `(?i)\s(on\w+|style|src|srcset|action)\s*=`, page.body)
	require.NotRegexp(t, `(?i)@import|url\(|javascript:`, page.body)

	for _, link := range regexp.MustCompile(`(?i)href="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
		require.NotContains(t, link[1], "//", "an address elsewhere")
	}

	for path := range contract().Paths.Map() {
		require.Contains(t, page.body, path)
	}

	// The service runs without its issuer. Until the issuer is known, its own address is the authorization URL.
	document, err := openapi3.NewLoader().LoadFromData([]byte(call(t, http.MethodGet, s.url+"/openapi.json", "", "").body))
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:9/nobody", document.Components.SecuritySchemes["openId"].Value.Flows.Implicit.AuthorizationURL)
}

func TestMetrics(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_OIDC_ISSUER=http://127.0.0.1:9/nobody")
	call(t, http.MethodGet, s.url+"/user/me", "", "")
	call(t, http.MethodGet, s.url+"/some/secret/path", "", "")

	metrics := call(t, http.MethodGet, s.admin+"/metrics", "", "")
	require.Equal(t, http.StatusOK, metrics.status)

	for _, line := range []string{
		`quern_server_requests_total{operation="getMe",status="401"} 1`,
		`quern_server_requests_total{operation="none",status="404"} 1`,
		`quern_server_request_seconds_count{operation="getMe"} 1`,
		`quern_postgres_connections_limit 20`,
		`go_goroutines `,
	} {
		require.Contains(t, metrics.body, "\n"+line)
	}

	require.NotContains(t, metrics.body, "secret", "a label that callers choose")
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.admin+"/debug/pprof/", "", "").status)
}
