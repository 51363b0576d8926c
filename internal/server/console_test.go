package server

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const pageRequest = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func withConsole(c *Config) {
	c.Issuer = "https://id.test:8443/realms/quern"
	c.Console = &Console{
		ClientID: "the-console", Scope: "openid profile", Store: "https://store.test", Model: true,
		Files: fstest.MapFS{
			"index.html":            {Data: []byte("<!DOCTYPE html><title>the console</title>")},
			"favicon.svg":           {Data: []byte("<svg/>")},
			"assets/_app-1a2b.js":   {Data: []byte("plain script")},
			"assets/app-1a2b.js":    {Data: []byte("plain script")},
			"assets/app-1a2b.js.gz": {Data: []byte("packed script")},
			".vite/manifest.json":   {Data: []byte("{}")},
		},
	}
}

func get(t *testing.T, s *Server, address string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()

	return request(t, s, http.MethodGet, address, headers...)
}

func request(t *testing.T, s *Server, method, address string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()

	r := httptest.NewRequestWithContext(t.Context(), method, address, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}

	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)

	return w
}

func TestConsolePages(t *testing.T) {
	t.Parallel()

	s := newServer(t, &strings.Builder{}, withConsole)

	for _, address := range []string{"/", "/signin", "/data/ada/shop/orders.v2/columns", "/callback?code=1", "/data/", "/index.html", "/ask/api/v1"} {
		w := get(t, s, address, "Accept", pageRequest)
		require.Equal(t, http.StatusOK, w.Code, address)
		require.Contains(t, w.Body.String(), "the console")
		require.Equal(t, "no-cache", w.Header().Get("Cache-Control"))
		require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"))
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "+
			"connect-src 'self' https://id.test:8443 https://store.test; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "+
			"require-trusted-types-for 'script'; trusted-types 'none'", w.Header().Get("Content-Security-Policy"))

		again := get(t, s, address, "Accept", pageRequest, "If-None-Match", w.Header().Get("ETag"))
		require.Equal(t, http.StatusNotModified, again.Code)
		require.Empty(t, again.Body.String())
	}

	require.Equal(t, http.StatusOK, get(t, s, "/").Code, "also for a client that names no type")
	require.Equal(t, http.StatusOK, get(t, s, "/", "Accept", "*/*").Code)
	require.Empty(t, request(t, s, http.MethodHead, "/", "Accept", pageRequest).Body.String())
}

// TestNoConsolePages checks that addresses of programs stay errors that programs can read.
func TestNoConsolePages(t *testing.T) {
	t.Parallel()

	s := newServer(t, &strings.Builder{}, withConsole)

	for _, address := range []string{
		"/api", "/api/v1/nothing", "/api/v2", "//api/v1/nothing", "/signin/../api/v1/nothing", "/.well-known/nothing", "/healthz/x", "/assets/gone.js", "/assets/",
		"/assets/app-1a2b.js.gz",
	} {
		requireError(t, get(t, s, address, "Accept", pageRequest), address)
	}

	requireError(t, get(t, s, "/data/ada", "Accept", "application/json"), "a program that mistyped an address")
	requireError(t, get(t, s, "/data/ada", "Accept", "*/*"), "a program that mistyped an address")
	requireError(t, get(t, s, "/", "Accept", "application/json"), "the root as JSON")
	requireError(t, request(t, s, http.MethodPost, "/data/ada", "Accept", pageRequest), "a form")
	require.NotContains(t, get(t, s, "/.vite/manifest.json").Body.String(), "{}", "hidden files are for the build")

	off := newServer(t, &strings.Builder{}, nil)
	requireError(t, get(t, off, "/", "Accept", pageRequest), "turned off")
	requireError(t, get(t, off, "/console.json"), "turned off")
}

func requireError(t *testing.T, w *httptest.ResponseRecorder, what string) {
	t.Helper()
	require.Equal(t, http.StatusNotFound, w.Code, what)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"), what)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"), what)
	require.Contains(t, w.Body.String(), "NOT_FOUND", what)
}

func TestConsoleAssets(t *testing.T) {
	t.Parallel()

	s := newServer(t, &strings.Builder{}, withConsole)

	plain := get(t, s, "/assets/app-1a2b.js", "Accept-Encoding", "br, gzip;q=0")
	require.Equal(t, "plain script", plain.Body.String())
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	require.Equal(t, "public, max-age=31536000, immutable", plain.Header().Get("Cache-Control"))
	require.Equal(t, "text/javascript; charset=utf-8", plain.Header().Get("Content-Type"))
	require.Contains(t, plain.Header().Values("Vary"), "Accept-Encoding")

	packed := get(t, s, "/assets/app-1a2b.js", "Accept-Encoding", "br, GZIP;q=0.5", "Range", "bytes=0-2")
	require.Equal(t, "packed script", packed.Body.String())
	require.Equal(t, "gzip", packed.Header().Get("Content-Encoding"))
	require.Equal(t, "13", packed.Header().Get("Content-Length"))
	require.NotEqual(t, plain.Header().Get("ETag"), packed.Header().Get("ETag"))

	require.Equal(t, "plain script", get(t, s, "/assets/_app-1a2b.js", "Accept-Encoding", "gzip").Body.String(), "no packed form")
	require.Equal(t, "image/svg+xml", get(t, s, "/favicon.svg").Header().Get("Content-Type"))
	require.Equal(t, "no-cache", get(t, s, "/favicon.svg").Header().Get("Cache-Control"))
}

func TestConsoleSettings(t *testing.T) {
	t.Parallel()

	w := get(t, newServer(t, &strings.Builder{}, withConsole), "/console.json")
	require.Equal(t, http.StatusOK, w.Code)

	var settings map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &settings))
	require.NotEmpty(t, settings["version"])
	delete(settings, "version")
	require.Equal(t, map[string]any{
		"issuer": "https://id.test:8443/realms/quern", "clientId": "the-console", "scope": "openid profile", "storeOrigin": "https://store.test", "model": true,
		"apiBase": "/api/v1", "mcpUrl": "https://quern.test/api/v1/mcp", "a2aUrl": "https://quern.test/api/v1/a2a",
	}, settings)
}

func TestConsoleWithoutIndex(t *testing.T) {
	t.Parallel()

	_, err := readFiles(fstest.MapFS{"assets/app.js": {}})
	require.ErrorContains(t, err, "index.html is missing")

	_, err = readFiles(failing{})
	require.ErrorIs(t, err, context.Canceled)
}

type failing struct{}

func (failing) Open(string) (fs.File, error) { return nil, context.Canceled }
