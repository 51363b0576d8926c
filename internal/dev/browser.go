package dev

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Only the console signs in from a web page. Its origins may read what the issuer answers to scripts, and only it can sign a person in
// without showing a page.

// open lets pages of the console call a handler. A request of any other page is refused, unless reading it changes nothing.
func (i *Issuer) open(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		origin, header := r.Header.Get("Origin"), w.Header()
		header.Add("Vary", "Origin")

		switch allowed := slices.Contains(i.Console, origin); {
		case allowed:
			header.Set("Access-Control-Allow-Origin", origin)
		case r.Method == http.MethodPost && (origin != "" && origin != i.URL || r.Header.Get("Sec-Fetch-Site") == "cross-site"):
			http.Error(w, "only pages of the console may send this request", http.StatusForbidden)

			return
		}

		if r.Method != http.MethodOptions {
			next(w, r)

			return
		}

		header.Set("Access-Control-Allow-Methods", "GET, POST")
		header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		w.WriteHeader(http.StatusNoContent)
	}
}

// ofConsole reports whether an address is one of the console.
func (i *Issuer) ofConsole(address *url.URL) bool {
	return slices.Contains(i.Console, address.Scheme+"://"+address.Host)
}

// cookieName returns the name of the session's cookie. Browsers keep cookies for a host and not for a port, so it contains the port.
func (i *Issuer) cookieName() string {
	return "quern_dev_session_" + i.URL[strings.LastIndexByte(i.URL, ':')+1:]
}

// remember keeps who signed in, so that a page of the console that is loaded again gets its tokens without a sign-in page.
func (i *Issuer) remember(w http.ResponseWriter, username string) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // the issuer has no TLS, so the cookie cannot be Secure
		Name: i.cookieName(), Value: i.signer.sign(sessionToken, claims{Issuer: i.URL, Audience: i.URL, Subject: username}, refreshLife),
		Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// remembered returns the user who signed in with this browser, or an empty text.
func (i *Issuer) remembered(r *http.Request) string {
	cookie, err := r.Cookie(i.cookieName())
	if err != nil {
		return ""
	}

	session, err := i.signer.verify(sessionToken, cookie.Value)
	if err != nil || session.Issuer != i.URL {
		return ""
	}

	return session.Subject
}

// endSession signs the browser out (OpenID Connect RP-Initiated Logout) and returns to the console.
func (i *Issuer) endSession(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // as in remember
		Name: i.cookieName(), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})

	back, err := url.Parse(r.FormValue("post_logout_redirect_uri"))
	if err != nil || !i.ofConsole(back) {
		showPage(w, page{SignedOut: true})

		return
	}

	redirect(w, r, back, nil)
}

// userInfo returns the claims of the person whose access token the request has.
func (i *Issuer) userInfo(w http.ResponseWriter, r *http.Request) {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")

	person, err := i.signer.verify(accessToken, bearer)
	if err != nil || person.Issuer != i.URL {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token", "error_description": errToken.Error()})

		return
	}

	writeJSON(w, http.StatusOK, map[string]any{
		"sub": person.Subject, "preferred_username": person.Username, "name": person.Name, "email": person.Email, "groups": person.Groups,
	})
}

// redirect sends the browser to an address with further parameters, and with the state of its request.
func redirect(w http.ResponseWriter, r *http.Request, to *url.URL, parameters url.Values) {
	query := to.Query()
	maps.Copy(query, parameters)

	if state := r.FormValue("state"); state != "" {
		query.Set("state", state)
	}

	to.RawQuery = query.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}
