package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

const browserAccepts = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// TestConsole checks how quernd serves the web pages, those that are built into it and the page that stands for them.
func TestConsole(t *testing.T) {
	t.Parallel()

	t.Run("built", func(t *testing.T) {
		t.Parallel()

		script := strings.Repeat("console.log('quern');\n", 200)
		s := start(t, "QUERN_TEST_PROGRAM="+withConsole(t, map[string]string{
			"index.html": `<!DOCTYPE html><title>Quern</title><script type="module" src="/assets/app-1a2b3c.js"></script>`, ".vite/manifest.json": "{}",
			"assets/app-1a2b3c.js": script, "assets/app-1a2b3c.js.gz": zipped(t, script), "assets/_chunk-4d5e6f.css": "body{}",
		}))
		requirePages(t, s)
		requireAssets(t, s, script)
		requireSettings(t, s)
	})

	t.Run("not built", func(t *testing.T) {
		t.Parallel()

		s := start(t, "QUERN_TEST_PROGRAM="+withConsole(t, nil))

		page := call(t, http.MethodGet, s.root+"/", "", "", browserAccepts)
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, "not built into this program")
		require.Contains(t, page.body, "make web")
		require.NotContains(t, page.body, "<script")
		requirePages(t, s)
		requireSettings(t, s)
	})

	t.Run("turned off", func(t *testing.T) {
		t.Parallel()

		s := start(t, "QUERN_CONSOLE=false")
		for _, path := range []string{"/", "/signin", "/console.json", "/assets/app.js"} {
			requireNoPage(t, s, path, browserAccepts)
		}
	})

	t.Run("sign-in", func(t *testing.T) {
		t.Parallel()

		requireConsoleSignIn(t, start(t))
	})
}

// withConsole builds a quernd that contains these files of the console. Without files it is as in a clean clone.
func withConsole(t *testing.T, files map[string]string) string {
	t.Helper()

	folder := t.TempDir()
	dist, err := filepath.Abs("../web/dist")
	require.NoError(t, err)

	var overlay struct{ Replace map[string]string }

	overlay.Replace = map[string]string{filepath.Join(dist, "index.html"): ""} // as if it did not exist

	for name, content := range files {
		path := filepath.Join(folder, strings.ReplaceAll(name, "/", "|"))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))

		overlay.Replace[filepath.Join(dist, name)] = path
	}

	content, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "overlay.json"), content, 0o600))

	program := filepath.Join(folder, "quernd")
	require.NoError(t, stack.BuildServer(t.Context(), program, "-tags", "scripted", "-overlay", filepath.Join(folder, "overlay.json")))
	require.NoError(t, os.Symlink(filepath.Join(common.folder, "quern-engine"), filepath.Join(folder, "quern-engine")))

	return program
}

func zipped(t *testing.T, text string) string {
	t.Helper()

	var packed bytes.Buffer

	writer := gzip.NewWriter(&packed)
	_, err := writer.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, writer.Close())

	return packed.String()
}

// requirePages checks that addresses of the console show the page, with all headers, and that addresses of the API do not.
func requirePages(t *testing.T, s *service) {
	t.Helper()

	issuer, err := url.Parse(s.realm.issuer())
	require.NoError(t, err)

	for _, path := range []string{"/", "/signin", "/callback?code=x", "/data/ada/shop/orders.v2/columns", "/ask/0199"} {
		page := call(t, http.MethodGet, s.root+path, "", "", browserAccepts)
		require.Equal(t, http.StatusOK, page.status, path)
		require.Contains(t, page.body, "<title>Quern</title>", path)

		for name, value := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self' http://" + issuer.Host + " " +
				stack.Env(t, "QUERN_TEST_S3_ENDPOINT") + "; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		} {
			require.Equal(t, value, page.header.Get(name), "%s: %s", path, name)
		}

		require.NotEmpty(t, page.header.Get("ETag"))
		again := call(t, http.MethodGet, s.root+path, "", "", browserAccepts, "If-None-Match: "+page.header.Get("ETag"))
		require.Equal(t, http.StatusNotModified, again.status, path)
		require.Empty(t, again.body)
	}

	for _, path := range []string{"/api/v1/nothing", "/api/v2/x", "/api", "/.well-known/nothing", "/healthz/x", "/assets/gone-1a2b3c.js"} {
		requireNoPage(t, s, path, browserAccepts)
	}

	requireNoPage(t, s, "/data/ada", "Accept: application/json")
	requireNoPage(t, s, "/data/ada", "Accept: */*")
	require.Contains(t, call(t, http.MethodGet, s.url+"/docs", "", "", browserAccepts).header.Get("Content-Security-Policy"), "style-src 'sha256-")
	require.JSONEq(t, `{"status": "ok"}`, call(t, http.MethodGet, s.root+"/healthz", "", "", browserAccepts).body)
}

func requireNoPage(t *testing.T, s *service, path, accept string) {
	t.Helper()

	answer := call(t, http.MethodGet, s.root+path, "", "", accept)
	require.Equal(t, http.StatusNotFound, answer.status, path)
	require.Equal(t, "application/json", answer.header.Get("Content-Type"), path)
	require.Contains(t, answer.body, `"error_code":"NOT_FOUND"`, path)
	require.Equal(t, "no-store", answer.header.Get("Cache-Control"), path)
	require.Equal(t, "default-src 'none'; frame-ancestors 'none'", answer.header.Get("Content-Security-Policy"), path)
}

func requireAssets(t *testing.T, s *service, script string) {
	t.Helper()

	plain := call(t, http.MethodGet, s.root+"/assets/app-1a2b3c.js", "", "", "Accept-Encoding: identity")
	require.Equal(t, script, plain.body)
	require.Equal(t, "public, max-age=31536000, immutable", plain.header.Get("Cache-Control"))
	require.Equal(t, "text/javascript; charset=utf-8", plain.header.Get("Content-Type"))
	require.Contains(t, plain.header.Values("Vary"), "Accept-Encoding")

	packed := call(t, http.MethodGet, s.root+"/assets/app-1a2b3c.js", "", "", "Accept-Encoding: gzip, deflate, br")
	require.Equal(t, "gzip", packed.header.Get("Content-Encoding"))
	require.Equal(t, zipped(t, script), packed.body, "the bytes of the file beside it")

	require.Equal(t, "body{}", call(t, http.MethodGet, s.root+"/assets/_chunk-4d5e6f.css", "", "").body, "also a name with an underscore")
	requireNoPage(t, s, "/assets/app-1a2b3c.js.gz", "Accept: */*")
	requireNoPage(t, s, "/.vite/manifest.json", "Accept: */*")
}

// requireSettings checks what the page learns before anybody has signed in.
func requireSettings(t *testing.T, s *service) {
	t.Helper()

	var got map[string]any

	answer := call(t, http.MethodGet, s.root+"/console.json", "", "")
	answer.json(t, &got)
	require.NotEmpty(t, got["version"])
	delete(got, "version")
	require.Equal(t, map[string]any{
		"issuer": s.realm.issuer(), "clientId": client, "scope": "openid profile", "storeOrigin": stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "model": false,
		"apiBase": "/api/v1", "mcpUrl": "http://quern.test/api/v1/mcp", "a2aUrl": "http://quern.test/api/v1/a2a",
	}, got)
}

// requireConsoleSignIn checks that a page of the service can sign a person in at Keycloak: the login page redirects to /callback, and the
// token endpoint lets the page read its answer.
func requireConsoleSignIn(t *testing.T, s *service) {
	t.Helper()

	signedIn := s.realm.codePKCE("ada")
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", signedIn.Access, "").status)

	page, err := try(newRequest(t, http.MethodGet, s.realm.endpoint("auth")+"?"+url.Values{
		"client_id": {client}, "response_type": {"code"}, "scope": {"openid profile"}, "redirect_uri": {s.root + "/callback"},
		"code_challenge_method": {"S256"}, "code_challenge": {strings.Repeat("x", 43)},
	}.Encode(), "", ""))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, page.status, page.body)
	require.Regexp(t, formAction, page.body)

	request := newForm(t, s.realm.endpoint("token"), url.Values{"client_id": {client}, "grant_type": {"authorization_code"}, "code": {"none"}, "redirect_uri": {s.root + "/callback"}})
	request.Header.Set("Origin", s.root)

	refused, err := try(request)
	require.NoError(t, err)
	require.Contains(t, refused.body, "invalid_grant")
	require.Equal(t, s.root, refused.header.Get("Access-Control-Allow-Origin"))
}

// signInPage signs in at quernd dev as a browser with the console does, and sends a part of a file to the object store.
func (d *development) signInPage() {
	d.t.Helper()

	var settings struct{ Issuer, ClientID, StoreOrigin string }

	get(d.t, d.url()+"/console.json").json(d.t, &settings)
	require.Contains(d.t, d.written.String(), "\nOpen "+d.url()+" in a browser and sign in")
	require.Contains(d.t, get(d.t, d.url()+"/").header.Get("Content-Security-Policy"), "connect-src 'self' "+settings.Issuer+" "+settings.StoreOrigin+";")

	verifier := strings.Repeat("verifier", 6)
	challenge := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"client_id": {settings.ClientID}, "response_type": {"code"}, "scope": {"openid profile"}, "redirect_uri": {d.url() + "/callback"}, "state": {"x"},
		"code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])},
	}
	page := get(d.t, settings.Issuer+"/authorize?"+query.Encode())
	require.Contains(d.t, page.body, `value="ada"`, "the sample is of this person")

	query.Set("username", "ada")
	signedIn, err := try(newForm(d.t, settings.Issuer+"/authorize", query))
	require.NoError(d.t, err)
	require.Equal(d.t, http.StatusFound, signedIn.status)

	// A reload: the session signs in without a page.
	query.Del("username")
	query.Set("prompt", "none")
	request := newRequest(d.t, http.MethodGet, settings.Issuer+"/authorize?"+query.Encode(), "", "")

	for _, cookie := range (&http.Response{Header: signedIn.header}).Cookies() {
		request.AddCookie(cookie)
	}

	again, err := try(request)
	require.NoError(d.t, err)

	back, err := url.Parse(again.header.Get("Location"))
	require.NoError(d.t, err)

	redeem := newForm(d.t, settings.Issuer+"/token", url.Values{
		"client_id": {settings.ClientID}, "grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "code_verifier": {verifier}, "redirect_uri": {d.url() + "/callback"},
	})
	redeem.Header.Set("Origin", d.url())
	redeem.Header.Set("Sec-Fetch-Site", "same-site")

	var given tokens

	redeemed, err := try(redeem)
	require.NoError(d.t, err)
	require.Equal(d.t, d.url(), redeemed.header.Get("Access-Control-Allow-Origin"))
	redeemed.json(d.t, &given)

	var session prepared

	call(d.t, http.MethodPost, d.url()+"/api/v1/file-upload/prepare", given.Access, prepareBody(1)).json(d.t, &session)
	address := session.Files[0].PresignedURLs[0].URL
	require.True(d.t, strings.HasPrefix(address, settings.StoreOrigin+"/"), address)

	asked := call(d.t, http.MethodOptions, address, "", "", "Origin: "+d.url(), "Access-Control-Request-Method: PUT")
	require.Equal(d.t, d.url(), asked.header.Get("Access-Control-Allow-Origin"))
	require.Contains(d.t, asked.header.Get("Access-Control-Allow-Methods"), "PUT")

	sent := call(d.t, http.MethodPut, address, "", "x", "Content-Type: ", "Origin: "+d.url())
	require.Equal(d.t, http.StatusOK, sent.status, sent.body)
	require.Equal(d.t, d.url(), sent.header.Get("Access-Control-Allow-Origin"))

	refused := call(d.t, http.MethodOptions, address, "", "", "Origin: https://evil.example", "Access-Control-Request-Method: PUT")
	require.Empty(d.t, refused.header.Get("Access-Control-Allow-Origin"))
}

func get(t *testing.T, address string) *answer {
	t.Helper()

	return call(t, http.MethodGet, address, "", "")
}
