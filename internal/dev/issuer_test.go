package dev

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newIssuer(t *testing.T, key ed25519.PrivateKey) *Issuer {
	t.Helper()

	issuer, err := ListenIssuer(t.Context(), "127.0.0.1:0", key, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { _ = issuer.listener.Close() })

	return issuer
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()

	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)

	return key
}

// send sends a request from this machine, unless change alters it.
func (i *Issuer) send(t *testing.T, method, path string, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()

	request := httptest.NewRequestWithContext(t.Context(), method, i.URL+path, strings.NewReader(form.Encode()))
	request.RemoteAddr = "127.0.0.1:40000"
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	if change != nil {
		change(request)
	}

	answer := httptest.NewRecorder()
	i.Handler().ServeHTTP(answer, request)

	return answer
}

func (i *Issuer) form(t *testing.T, path string, status int, fields ...string) map[string]any {
	t.Helper()

	form := url.Values{}
	for n := 0; n < len(fields); n += 2 {
		form.Set(fields[n], fields[n+1])
	}

	answer := i.send(t, http.MethodPost, path, form, nil)
	require.Equal(t, status, answer.Code, answer.Body.String())

	var body map[string]any
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &body))

	return body
}

// TestDevIssuer checks that the issuer serves only this machine, whatever the path of a request.
func TestDevIssuer(t *testing.T) {
	t.Parallel()

	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "localhost:0", "[::ffff:192.0.2.1]:0", "example.com:80", ""} {
		_, err := ListenIssuer(t.Context(), address, newKey(t), time.Now)
		require.ErrorContains(t, err, "loopback only", address)
	}

	issuer := newIssuer(t, newKey(t))
	require.True(t, netip.MustParseAddrPort(issuer.listener.Addr().String()).Addr().IsLoopback())

	port := issuer.URL[strings.LastIndex(issuer.URL, ":"):]

	for name, try := range map[string]struct {
		status int
		change func(*http.Request)
	}{
		"from here":           {http.StatusOK, func(*http.Request) {}},
		"by its other name":   {http.StatusOK, func(r *http.Request) { r.Host = "localhost" + port }},
		"here by IPv6":        {http.StatusOK, func(r *http.Request) { r.RemoteAddr = "[::1]:1" }},
		"here, mapped":        {http.StatusOK, func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:1" }},
		"from elsewhere":      {http.StatusForbidden, func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" }},
		"elsewhere, mapped":   {http.StatusForbidden, func(r *http.Request) { r.RemoteAddr = "[::ffff:192.0.2.7]:1" }},
		"elsewhere by IPv6":   {http.StatusForbidden, func(r *http.Request) { r.RemoteAddr = "[2001:db8::1]:1" }},
		"own network":         {http.StatusForbidden, func(r *http.Request) { r.RemoteAddr = "10.0.0.2:1" }},
		"no address":          {http.StatusForbidden, func(r *http.Request) { r.RemoteAddr = "@" }},
		"rebound name":        {http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "evil.example" }},
		"rebound, with port":  {http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "evil.example" + port }},
		"name of an address":  {http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "127.0.0.1.evil.example" + port }},
		"another port":        {http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "127.0.0.1:1" }},
		"no host":             {http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "" }},
		"through a proxy":     {http.StatusForbidden, func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") }},
		"proxy, the new way":  {http.StatusForbidden, func(r *http.Request) { r.Header.Set("Forwarded", "for=192.0.2.7") }},
		"proxy without a for": {http.StatusForbidden, func(r *http.Request) { r.Header.Set("Via", "1.1 tunnel") }},
	} {
		for _, path := range []string{"/.well-known/openid-configuration", "/jwks", "/activate"} {
			require.Equal(t, try.status, issuer.send(t, http.MethodGet, path, nil, try.change).Code, "%s %s", name, path)
		}

		if try.status != http.StatusOK {
			require.Equal(t, try.status, issuer.send(t, http.MethodPost, "/token", nil, try.change).Code, name)
		}
	}

	// A web page cannot submit the form.
	for name, change := range map[string]func(*http.Request){
		"by origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"by fetch":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		for _, path := range []string{"/authorize", "/device", "/activate", "/token"} {
			require.Equal(t, http.StatusForbidden, issuer.send(t, http.MethodPost, path, nil, change).Code, name)
		}
	}

	page := issuer.send(t, http.MethodGet, "/activate", nil, nil)
	require.Contains(t, page.Body.String(), "no passwords")
	require.Contains(t, page.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
}

func TestCodeGrant(t *testing.T) {
	t.Parallel()

	issuer := newIssuer(t, newKey(t))
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	wish := url.Values{
		"response_type": {"code"}, "client_id": {"quern-cli"}, "redirect_uri": {"http://127.0.0.1:5555/"}, "state": {"s<>"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "username": {"ada"},
	}
	with := func(name, value string) url.Values {
		changed := url.Values{}
		for name := range wish {
			changed.Set(name, wish.Get(name))
		}

		changed.Set(name, value)

		return changed
	}

	for name, value := range map[string]string{
		"redirect_uri": "https://evil.example/", "response_type": "token", "code_challenge_method": "plain", "code_challenge": "", "client_id": "", "username": "self",
	} {
		require.Equal(t, http.StatusBadRequest, issuer.send(t, http.MethodPost, "/authorize", with(name, value), nil).Code, name)
	}

	for _, address := range []string{"http://127.0.0.1@evil.example/", "http://127.0.0.1.evil.example/", "javascript:alert(1)", "//evil.example", "http://192.0.2.1/"} {
		require.Equal(t, http.StatusBadRequest, issuer.send(t, http.MethodPost, "/authorize", with("redirect_uri", address), nil).Code, address)
	}

	shown := issuer.send(t, http.MethodGet, "/authorize?"+wish.Encode(), nil, nil)
	require.Equal(t, http.StatusOK, shown.Code)
	require.Contains(t, shown.Body.String(), `value="s&lt;&gt;"`)

	code := func() string {
		back := issuer.send(t, http.MethodPost, "/authorize", wish, nil)
		require.Equal(t, http.StatusFound, back.Code)

		at, err := back.Result().Location()
		require.NoError(t, err)
		require.Equal(t, "s<>", at.Query().Get("state"))

		return at.Query().Get("code")
	}
	redeem := func(code, verifier string, status int) map[string]any {
		return issuer.form(t, "/token", status, "grant_type", "authorization_code", "code", code, "code_verifier", verifier,
			"client_id", "quern-cli", "redirect_uri", "http://127.0.0.1:5555/")
	}

	spoilt := code()
	require.Equal(t, "invalid_grant", redeem(spoilt, "wrong", http.StatusBadRequest)["error"])
	require.Equal(t, "invalid_grant", redeem(spoilt, verifier, http.StatusBadRequest)["error"])

	good := code()
	given := redeem(good, verifier, http.StatusOK)
	require.Equal(t, "invalid_grant", redeem(good, verifier, http.StatusBadRequest)["error"])

	access, err := issuer.signer.verify(accessToken, text(t, given["access_token"]))
	require.NoError(t, err)
	require.Equal(t, "ada", access.Subject)
	require.Equal(t, Audience, access.Audience)
}

func TestDeviceGrant(t *testing.T) {
	t.Parallel()

	issuer := newIssuer(t, newKey(t))
	started := issuer.form(t, "/device", http.StatusOK, "client_id", "quern-cli")
	redeem := func(status int) map[string]any {
		return issuer.form(t, "/token", status, "grant_type", deviceGrant, "client_id", "quern-cli", "device_code", text(t, started["device_code"]))
	}
	require.Equal(t, "authorization_pending", redeem(http.StatusBadRequest)["error"])

	enter := func(code, username string) int {
		return issuer.send(t, http.MethodPost, "/activate", url.Values{"user_code": {code}, "username": {username}}, nil).Code
	}
	require.Equal(t, http.StatusBadRequest, enter("AAAA-AAAA", "bob"))
	require.Equal(t, http.StatusBadRequest, enter(text(t, started["user_code"]), "Not A Name"))
	require.Equal(t, "authorization_pending", redeem(http.StatusBadRequest)["error"])
	require.Equal(t, http.StatusOK, enter(strings.ToLower(text(t, started["user_code"])), "bob"))
	require.Equal(t, http.StatusBadRequest, enter(text(t, started["user_code"]), "eve"), "it is decided")

	given := redeem(http.StatusOK)
	require.Equal(t, "invalid_grant", redeem(http.StatusBadRequest)["error"])

	access, err := issuer.signer.verify(accessToken, text(t, given["access_token"]))
	require.NoError(t, err)
	require.Equal(t, "bob", access.Username)
}

// TestRefresh checks that an issuer with the same key renews a refresh token, and no other token.
func TestRefresh(t *testing.T) {
	t.Parallel()

	key := newKey(t)
	issuer := newIssuer(t, key)
	given := issuer.Grant("ada", "quern-cli")
	renew := func(at *Issuer, token, client string, status int) map[string]any {
		return at.form(t, "/token", status, "grant_type", "refresh_token", "refresh_token", token, "client_id", client)
	}

	again := newIssuer(t, key)
	again.URL = issuer.URL // the same port, as after a restart
	renewed := renew(again, given.Refresh, "quern-cli", http.StatusOK)
	require.NotEmpty(t, renewed["access_token"])

	stranger := newIssuer(t, newKey(t))
	stranger.URL = issuer.URL

	renew(stranger, given.Refresh, "quern-cli", http.StatusBadRequest)
	renew(issuer, given.Refresh, "another", http.StatusBadRequest)
	renew(issuer, given.Access, "quern-cli", http.StatusBadRequest)
	renew(issuer, "", "quern-cli", http.StatusBadRequest)

	_, err := issuer.signer.verify(accessToken, given.Refresh)
	require.ErrorIs(t, err, errToken)

	issuer.signer.now = func() time.Time { return time.Now().Add(refreshLife + time.Second) }
	renew(issuer, given.Refresh, "quern-cli", http.StatusBadRequest)
}

func text(t *testing.T, value any) string {
	t.Helper()

	s, is := value.(string)
	require.True(t, is)

	return s
}
