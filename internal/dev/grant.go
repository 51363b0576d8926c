package dev

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
	codeLife    = time.Minute
	deviceLife  = 10 * time.Minute
	maxPending  = 1000 // limit of unused codes
)

// code is an authorization code that a browser returns to the client.
type code struct {
	who                 signedIn
	redirect, challenge string
	expires             time.Time
}

// device is a sign-in that a client without a browser waits for.
type device struct {
	userCode string
	who      signedIn // without a username until a user signs in
	expires  time.Time
}

// authorize shows the sign-in page, and redirects a user who submitted it back to the client with a code (RFC 6749,
// 7636, 8252).
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	wish := r.FormValue
	back, valid := loopbackRedirect(wish("redirect_uri"))

	switch {
	case !valid:
		refusePage(w, "redirect_uri must be an http address on loopback")
	case wish("response_type") != "code":
		refusePage(w, "response_type must be code")
	case wish("code_challenge_method") != "S256" || len(wish("code_challenge")) != 43:
		refusePage(w, "PKCE with S256 is required: code_challenge and code_challenge_method")
	case wish("client_id") == "":
		refusePage(w, "client_id is missing")
	case r.Method == http.MethodGet && wish("prompt") == "none":
		if username := i.remembered(r); username != "" && i.ofConsole(back) {
			i.sendBack(w, r, back, username)
		} else {
			redirect(w, r, back, url.Values{"error": {"login_required"}, "error_description": {"nobody has signed in with this browser"}, "iss": {i.URL}})
		}
	case r.Method == http.MethodGet:
		showPage(w, page{Client: wish("client_id"), Action: "/authorize", Username: cmp.Or(i.remembered(r), SampleFor), Hidden: kept(r,
			"response_type", "client_id", "redirect_uri", "state", "nonce", "scope", "code_challenge", "code_challenge_method")})
	case !possible(wish("username")):
		refusePage(w, badName)
	default:
		if i.ofConsole(back) {
			i.remember(w, wish("username"))
		}

		i.sendBack(w, r, back, wish("username"))
	}
}

// sendBack sends the browser back to the client, with a code for the user.
func (i *Issuer) sendBack(w http.ResponseWriter, r *http.Request, back *url.URL, username string) {
	value := rand.Text()
	made := code{
		who:      signedIn{username, r.FormValue("client_id"), r.FormValue("nonce")},
		redirect: r.FormValue("redirect_uri"), challenge: r.FormValue("code_challenge"), expires: i.signer.now().Add(codeLife),
	}

	i.mutex.Lock()
	i.forget()
	i.codes[value] = made
	i.mutex.Unlock()

	redirect(w, r, back, url.Values{"code": {value}, "iss": {i.URL}})
}

// loopbackRedirect accepts only addresses on this machine, because anyone can get a code for any username.
func loopbackRedirect(text string) (*url.URL, bool) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "http" || parsed.User != nil || parsed.Fragment != "" {
		return nil, false
	}

	address, err := netip.ParseAddr(parsed.Hostname())

	return parsed, parsed.Hostname() == "localhost" || err == nil && address.IsLoopback()
}

// startDevice begins a sign-in for a client without a browser (RFC 8628).
func (i *Issuer) startDevice(w http.ResponseWriter, r *http.Request) {
	client := r.PostFormValue("client_id")
	if client == "" {
		refuse(w, "invalid_request", "client_id is missing")

		return
	}

	value, letters := rand.Text(), rand.Text()
	waiting := &device{userCode: letters[:4] + "-" + letters[4:8], who: signedIn{client: client}, expires: i.signer.now().Add(deviceLife)}

	i.mutex.Lock()
	i.forget()
	i.devices[value] = waiting
	i.mutex.Unlock()

	writeJSON(w, http.StatusOK, map[string]any{
		"device_code": value, "user_code": waiting.userCode, "verification_uri": i.URL + "/activate",
		"verification_uri_complete": i.URL + "/activate?user_code=" + waiting.userCode, "expires_in": int(deviceLife / time.Second), "interval": 1,
	})
}

// activate shows the page on which a person enters the code that the client displays, and accepts the form.
func (i *Issuer) activate(w http.ResponseWriter, r *http.Request) {
	userCode := strings.ToUpper(strings.TrimSpace(r.FormValue("user_code")))

	i.mutex.Lock()
	defer i.mutex.Unlock()

	waiting := i.waiting(userCode)

	switch {
	case r.Method == http.MethodGet:
		shown := page{Action: "/activate", AskCode: waiting == nil}
		if waiting != nil {
			shown.Client, shown.Code, shown.Hidden = waiting.who.client, userCode, map[string]string{"user_code": userCode}
		}

		showPage(w, shown)
	case waiting == nil:
		refusePage(w, "This code is unknown or has expired. Start the sign-in again.")
	case !possible(r.FormValue("username")):
		refusePage(w, badName)
	default:
		waiting.who.username = r.FormValue("username")
		showPage(w, page{Done: waiting.who.username})
	}
}

func (i *Issuer) waiting(userCode string) *device {
	for _, candidate := range i.devices {
		if candidate.userCode == userCode && candidate.who.username == "" && i.signer.now().Before(candidate.expires) {
			return candidate
		}
	}

	return nil
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		i.tokenForCode(w, r)
	case deviceGrant:
		i.tokenForDevice(w, r)
	case "refresh_token":
		old, err := i.signer.verify(refreshToken, r.PostFormValue("refresh_token"))
		if err != nil || old.Issuer != i.URL || old.Client != r.PostFormValue("client_id") {
			refuse(w, "invalid_grant", errToken.Error())

			return
		}

		writeJSON(w, http.StatusOK, i.grant(signedIn{username: old.Subject, client: old.Client}))
	default:
		refuse(w, "unsupported_grant_type", "the supported grants are authorization_code, "+deviceGrant+" and refresh_token")
	}
}

func (i *Issuer) tokenForCode(w http.ResponseWriter, r *http.Request) {
	i.mutex.Lock()
	used, known := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code")) // valid for one attempt only
	i.mutex.Unlock()

	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	proof := base64.RawURLEncoding.EncodeToString(sum[:])

	if !known || i.signer.now().After(used.expires) || used.who.client != r.PostFormValue("client_id") ||
		used.redirect != r.PostFormValue("redirect_uri") || subtle.ConstantTimeCompare([]byte(proof), []byte(used.challenge)) != 1 {
		refuse(w, "invalid_grant", "the code does not match this request, or was already used")

		return
	}

	writeJSON(w, http.StatusOK, i.grant(used.who))
}

func (i *Issuer) tokenForDevice(w http.ResponseWriter, r *http.Request) {
	i.mutex.Lock()
	defer i.mutex.Unlock()

	value := r.PostFormValue("device_code")
	found := i.devices[value]

	switch {
	case found == nil || found.who.client != r.PostFormValue("client_id"):
		refuse(w, "invalid_grant", "the device code is unknown, or was already used")
	case i.signer.now().After(found.expires):
		refuse(w, "expired_token", "the code has expired")
	case found.who.username == "":
		refuse(w, "authorization_pending", "the user has not signed in yet")
	default:
		delete(i.devices, value)
		writeJSON(w, http.StatusOK, i.grant(found.who))
	}
}

// forget deletes expired codes, and arbitrary ones while there are more than maxPending, to limit a flood of requests.
func (i *Issuer) forget() {
	now := i.signer.now()

	for value, made := range i.codes {
		if now.After(made.expires) || len(i.codes) > maxPending {
			delete(i.codes, value)
		}
	}

	for value, made := range i.devices {
		if now.After(made.expires) || len(i.devices) > maxPending {
			delete(i.devices, value)
		}
	}
}

func refuse(w http.ResponseWriter, code, description string) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": description})
}
