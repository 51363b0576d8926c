package dev

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Audience is the audience of the access tokens.
const Audience = "quern"

const (
	accessLife  = 15 * time.Minute
	refreshLife = 30 * 24 * time.Hour
)

// Issuer is an OpenID Connect issuer that accepts every username without a password. Therefore it serves only this
// machine: it listens on loopback, refuses requests from other machines or through a proxy, and refuses every Host
// header but its own, because a web page can make its own host name resolve to loopback.
type Issuer struct {
	URL     string   // as in the tokens
	Console []string // origins of the console; set them before Serve

	listener net.Listener
	server   *http.Server
	signer   signer

	mutex   sync.Mutex
	codes   map[string]code
	devices map[string]*device // by device code
}

// ListenIssuer binds the address, which must be on loopback, but does not serve yet. Tokens of an earlier issuer stay
// valid if the key is the same.
func ListenIssuer(ctx context.Context, address string, key ed25519.PrivateKey, now func() time.Time) (*Issuer, error) {
	if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("the issuer requires no password, so it listens on loopback only, not on %s", address)
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}

	i := &Issuer{
		URL: "http://" + listener.Addr().String(), listener: listener, signer: signer{key: key, now: now},
		codes: map[string]code{}, devices: map[string]*device{},
	}
	i.server = &http.Server{Handler: i.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second}

	return i, nil
}

// Serve serves until Close.
func (i *Issuer) Serve() error {
	if err := i.server.Serve(i.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}

// Close stops the issuer at once.
func (i *Issuer) Close() { _ = i.server.Close() }

// Handler returns the issuer without its listener.
func (i *Issuer) Handler() http.Handler {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /authorize", i.authorize)
	pages.HandleFunc("POST /authorize", i.authorize)
	pages.HandleFunc("POST /device", i.startDevice)
	pages.HandleFunc("GET /activate", i.activate)
	pages.HandleFunc("POST /activate", i.activate)
	pages.HandleFunc("GET /logout", i.endSession)
	pages.HandleFunc("POST /logout", i.endSession)

	mux := http.NewServeMux()
	mux.Handle("/", http.NewCrossOriginProtection().Handler(pages))

	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /.well-known/openid-configuration": func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, i.discovery()) },
		"GET /jwks":                             func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, i.signer.keySet()) },
		"GET /userinfo":                         i.userInfo,
		"POST /token":                           i.token,
	} {
		_, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(pattern, i.open(handler))
		mux.HandleFunc("OPTIONS "+path, i.open(handler))
	}

	return i.onlyHere(mux)
}

func (i *Issuer) discovery() any {
	return map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/jwks",
		"device_authorization_endpoint": i.URL + "/device", "userinfo_endpoint": i.URL + "/userinfo", "end_session_endpoint": i.URL + "/logout",
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", deviceGrant, "refresh_token"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"EdDSA"},
		"scopes_supported": []string{"openid", "profile", "offline_access"}, "prompt_values_supported": []string{"none"},
	}
}

// proxied lists headers that proxies and tunnels add: the sender of such a request is not on this machine, although the
// connection is.
var proxied = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"} //nolint:gochecknoglobals // a list

func (i *Issuer) onlyHere(next http.Handler) http.Handler {
	host := strings.TrimPrefix(i.URL, "http://")
	_, port, _ := net.SplitHostPort(host)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !from.Addr().Unmap().IsLoopback() {
			http.Error(w, "this issuer serves only this machine", http.StatusForbidden)

			return
		}

		if r.Host != host && r.Host != "localhost:"+port {
			http.Error(w, "this issuer serves only the address "+i.URL, http.StatusMisdirectedRequest)

			return
		}

		for _, name := range proxied {
			if r.Header.Get(name) != "" {
				http.Error(w, "this issuer accepts only requests that come directly from this machine, not through a proxy", http.StatusForbidden)

				return
			}
		}

		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// Granted is a response of the token endpoint.
type Granted struct {
	Access    string `json:"access_token"`
	Kind      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"`
	Refresh   string `json:"refresh_token"`
	Identity  string `json:"id_token,omitempty"`
}

// Grant signs a user in without a page: for this process itself, and for the command line of the person who started it.
func (i *Issuer) Grant(username, client string) Granted {
	return i.grant(signedIn{username: username, client: client})
}

// TokenEndpoint returns the address at which Granted is renewed.
func (i *Issuer) TokenEndpoint() string { return i.URL + "/token" }

// signedIn is the user who signed in, the client, and the nonce of the request.
type signedIn struct{ username, client, nonce string }

var usernamePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// The service uses "self" for the caller.
func possible(username string) bool {
	return usernamePattern.MatchString(username) && username != "self"
}

func (i *Issuer) grant(who signedIn) Granted {
	person := claims{
		Issuer: i.URL, Subject: who.username, Client: who.client, Username: who.username,
		Name: strings.ToUpper(who.username[:1]) + who.username[1:], Email: who.username + "@example.com",
	}

	access, identity := person, person
	access.Audience, access.Groups = Audience, []string{"dev"}
	identity.Audience, identity.Nonce = who.client, who.nonce

	return Granted{
		Access: i.signer.sign(accessToken, access, accessLife), Kind: "Bearer", ExpiresIn: int64(accessLife / time.Second),
		Refresh:  i.signer.sign(refreshToken, claims{Issuer: i.URL, Audience: i.URL, Subject: who.username, Client: who.client}, refreshLife),
		Identity: i.signer.sign(identityToken, identity, accessLife),
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // whoever does not read it has left
}
