package dev

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const consoleOrigin = "http://127.0.0.1:8080"

// wish returns the request of a client for a code, and the verifier of the code.
func wish(redirect string) (url.Values, string) {
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))

	return url.Values{
		"response_type": {"code"}, "client_id": {"quern-console"}, "redirect_uri": {redirect}, "state": {"here"}, "nonce": {"once"}, "scope": {"openid profile"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}, verifier
}

// TestBrowserSignIn signs in as the console does: with the page at first, then without it, until the session ends.
func TestBrowserSignIn(t *testing.T) {
	t.Parallel()

	issuer := newIssuer(t, newKey(t))
	issuer.Console = []string{consoleOrigin}
	form, verifier := wish(consoleOrigin + "/callback")
	silent, _ := wish(consoleOrigin + "/callback")
	silent.Set("prompt", "none")

	silently := func(query url.Values, change func(*http.Request)) url.Values {
		back := issuer.send(t, http.MethodGet, "/authorize?"+query.Encode(), nil, change)
		require.Equal(t, http.StatusFound, back.Code)

		at, err := back.Result().Location()
		require.NoError(t, err)
		require.Equal(t, "here", at.Query().Get("state"))

		return at.Query()
	}
	require.Equal(t, "login_required", silently(silent, nil).Get("error"))

	form.Set("username", "carol")
	back := issuer.send(t, http.MethodPost, "/authorize", form, nil)
	require.Equal(t, http.StatusFound, back.Code)
	require.Len(t, back.Result().Cookies(), 1)

	cookie := back.Result().Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, cookie.SameSite)

	again := func(r *http.Request) { r.AddCookie(cookie) }
	code := silently(silent, again).Get("code")

	redeemed := issuer.send(t, http.MethodPost, "/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "client_id": {"quern-console"}, "redirect_uri": {consoleOrigin + "/callback"},
	}, fromPage(consoleOrigin))
	require.Equal(t, http.StatusOK, redeemed.Code, redeemed.Body.String())
	require.Equal(t, consoleOrigin, redeemed.Header().Get("Access-Control-Allow-Origin"))

	var given Granted
	require.NoError(t, json.Unmarshal(redeemed.Body.Bytes(), &given))

	identity, err := issuer.signer.verify(identityToken, given.Identity)
	require.NoError(t, err)
	require.Equal(t, "carol", identity.Subject)
	require.Equal(t, "once", identity.Nonce)

	// A session signs nobody in for another client, and a token is no session.
	other, _ := wish("http://127.0.0.1:5555/")
	other.Set("prompt", "none")
	require.Equal(t, "login_required", silently(other, again).Get("error"))
	require.Equal(t, "login_required", silently(silent, func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: given.Refresh})
	}).Get("error"))

	_, err = issuer.signer.verify(refreshToken, cookie.Value)
	require.ErrorIs(t, err, errToken)

	form.Set("redirect_uri", "http://127.0.0.1:5555/")
	require.Empty(t, issuer.send(t, http.MethodPost, "/authorize", form, nil).Result().Cookies(), "only the console has a session")

	requireUserInfo(t, issuer, given)
	requireSignOut(t, issuer, cookie.Name)
}

func requireUserInfo(t *testing.T, issuer *Issuer, given Granted) {
	t.Helper()

	ask := func(token string) (int, string) {
		answer := issuer.send(t, http.MethodGet, "/userinfo", nil, func(r *http.Request) {
			fromPage(consoleOrigin)(r)
			r.Header.Set("Authorization", "Bearer "+token)
		})

		return answer.Code, answer.Body.String()
	}

	status, body := ask(given.Access)
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"sub": "carol", "preferred_username": "carol", "name": "Carol", "email": "carol@example.com", "groups": ["dev"]}`, body)

	status, _ = ask(given.Identity)
	require.Equal(t, http.StatusUnauthorized, status)
}

func requireSignOut(t *testing.T, issuer *Issuer, cookie string) {
	t.Helper()

	for address, want := range map[string]string{consoleOrigin + "/": consoleOrigin + "/?state=x", "https://evil.example/": "", "http://127.0.0.1:5555/": "", "": ""} {
		out := issuer.send(t, http.MethodGet, "/logout?"+url.Values{"post_logout_redirect_uri": {address}, "state": {"x"}}.Encode(), nil, nil)
		require.Equal(t, want, out.Header().Get("Location"), address)
		require.Len(t, out.Result().Cookies(), 1)
		require.Equal(t, cookie, out.Result().Cookies()[0].Name)
		require.Negative(t, out.Result().Cookies()[0].MaxAge)
	}
}

// fromPage makes a request one of a script of a page.
func fromPage(origin string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Origin", origin)
		r.Header.Set("Sec-Fetch-Site", "same-site")
		r.Header.Set("Sec-Fetch-Mode", "cors")
	}
}

// TestBrowserOrigins checks that only pages of the console can read answers of the issuer, and that pages cannot submit its forms.
func TestBrowserOrigins(t *testing.T) {
	t.Parallel()

	issuer := newIssuer(t, newKey(t))
	issuer.Console = []string{consoleOrigin}

	for _, origin := range []string{consoleOrigin, "http://127.0.0.1:8081", "https://evil.example", "null", "http://127.0.0.1:80800"} {
		allowed := map[bool]string{true: origin}[origin == consoleOrigin]

		for path, method := range map[string]string{"/.well-known/openid-configuration": http.MethodGet, "/jwks": http.MethodGet, "/userinfo": http.MethodGet, "/token": http.MethodPost} {
			answer := issuer.send(t, method, path, nil, fromPage(origin))
			require.Equal(t, allowed, answer.Header().Get("Access-Control-Allow-Origin"), "%s %s", origin, path)
			require.Equal(t, "Origin", answer.Header().Get("Vary"))

			if path == "/token" && allowed == "" {
				require.Equal(t, http.StatusForbidden, answer.Code, origin)
			}

			asked := issuer.send(t, http.MethodOptions, path, nil, fromPage(origin))
			require.Equal(t, allowed, asked.Header().Get("Access-Control-Allow-Origin"), "%s %s", origin, path)
			require.Equal(t, http.StatusNoContent, asked.Code)
		}

		for _, path := range []string{"/authorize", "/activate", "/device", "/logout"} {
			answer := issuer.send(t, http.MethodPost, path, nil, fromPage(origin))
			require.Equal(t, http.StatusForbidden, answer.Code, "%s %s", origin, path)
			require.Empty(t, answer.Header().Get("Access-Control-Allow-Origin"))
		}
	}
}
