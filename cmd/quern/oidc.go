package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// issuer is the discovery document of an OpenID Connect issuer.
type issuer struct {
	Issuer                      string `json:"issuer"`
	AuthorizationEndpoint       string `json:"authorization_endpoint"`
	TokenEndpoint               string `json:"token_endpoint"`
	DeviceAuthorizationEndpoint string `json:"device_authorization_endpoint"`
}

// issuerOf returns the issuer of the service (RFC 9728).
func issuerOf(ctx context.Context, server string) (string, error) {
	var resource struct {
		AuthorizationServers []string `json:"authorization_servers"`
	}

	if err := getJSON(ctx, server+"/.well-known/oauth-protected-resource", &resource); err != nil {
		return "", err
	}

	if len(resource.AuthorizationServers) == 0 {
		return "", errors.New("the server does not publish its issuer; use --issuer")
	}

	return resource.AuthorizationServers[0], nil
}

func discover(ctx context.Context, address string) (found issuer, err error) {
	if err := getJSON(ctx, strings.TrimSuffix(address, "/")+"/.well-known/openid-configuration", &found); err != nil {
		return found, err
	}

	if found.Issuer != address {
		return found, fmt.Errorf("the issuer at %s identifies itself as %s", address, found.Issuer)
	}

	for _, endpoint := range []string{found.AuthorizationEndpoint, found.TokenEndpoint, found.DeviceAuthorizationEndpoint} {
		if endpoint != "" && !confidential(endpoint) {
			return found, fmt.Errorf("the issuer has an endpoint without encryption: %s", endpoint)
		}
	}

	return found, nil
}

// confidential reports whether data sent to the address is protected on the way: it uses https or is on this machine.
func confidential(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}

	ip := net.ParseIP(parsed.Hostname())

	return parsed.Scheme == "https" || parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// granted is a response of the token endpoint.
type granted struct {
	Access    string `json:"access_token"`
	Refresh   string `json:"refresh_token"`
	ExpiresIn int64  `json:"expires_in"`
}

// oauthError is a refusal by the issuer.
type oauthError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (e *oauthError) Error() string {
	if e.Description != "" {
		return "the issuer refused: " + e.Description
	}

	return "the issuer refused: " + e.Code
}

func (s signIn) with(given granted) signIn {
	s.Access, s.ExpiresAt = given.Access, time.Now().Add(time.Duration(given.ExpiresIn)*time.Second)
	if given.Refresh != "" {
		s.Refresh = given.Refresh
	}

	return s
}

// renew requests a new access token.
func (s signIn) renew(ctx context.Context) (signIn, error) {
	again := exitError{exitSignIn, "your sign-in has expired", "Sign in again with `quern login`."}
	if s.Refresh == "" {
		return s, again
	}

	var given granted

	err := postForm(ctx, s.TokenEndpoint, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.Refresh}, "client_id": {s.ClientID}}, &given)
	if _, refused := errors.AsType[*oauthError](err); refused {
		return s, again
	}

	return s.with(given), err
}

// clientAs is the client ID and the scope that this program uses at the issuer.
type clientAs struct{ id, scope string }

// byDevice signs the user in on any device, with a code (RFC 8628). It calls show with the address and the code.
func (i issuer) byDevice(ctx context.Context, as clientAs, show func(address, code string)) (given granted, err error) {
	var started struct {
		DeviceCode              string `json:"device_code"`
		UserCode                string `json:"user_code"`
		VerificationURI         string `json:"verification_uri"`
		VerificationURIComplete string `json:"verification_uri_complete"`
		ExpiresIn               int64  `json:"expires_in"`
		Interval                int64  `json:"interval"`
	}

	err = postForm(ctx, i.DeviceAuthorizationEndpoint, url.Values{"client_id": {as.id}, "scope": {as.scope}}, &started)
	if err != nil {
		return given, err
	}

	if started.VerificationURIComplete == "" {
		started.VerificationURIComplete = started.VerificationURI
	}

	show(started.VerificationURIComplete, started.UserCode)

	pause := time.Duration(max(1, started.Interval)) * time.Second
	if started.Interval == 0 {
		pause = 5 * time.Second
	}

	for deadline := time.Now().Add(time.Duration(started.ExpiresIn) * time.Second); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return given, ctx.Err()
		case <-time.After(pause):
		}

		err = postForm(ctx, i.TokenEndpoint, url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {started.DeviceCode}, "client_id": {as.id},
		}, &given)

		switch refusal, refused := errors.AsType[*oauthError](err); {
		case refused && refusal.Code == "authorization_pending":
		case refused && refusal.Code == "slow_down":
			pause += 5 * time.Second
		default:
			return given, err
		}
	}

	return given, errors.New("the code expired before it was used")
}

// byBrowser signs the user in with a browser on this machine, which is redirected to a port on loopback (RFC 8252,
// PKCE).
func (i issuer) byBrowser(ctx context.Context, as clientAs, show func(address string)) (given granted, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return given, err
	}

	back := fmt.Sprintf("http://%s/", listener.Addr())
	state, verifier := rand.Text(), rand.Text()+rand.Text()
	challenge := sha256.Sum256([]byte(verifier))
	answers := make(chan url.Values, 1)

	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("state") != state { // not from our request
			http.NotFound(w, r)

			return
		}

		select {
		case answers <- query:
		default:
		}

		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "You can close this window and go back to the terminal.\n")
	})}

	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Shutdown(context.WithoutCancel(ctx)) }()

	show(i.AuthorizationEndpoint + "?" + url.Values{
		"response_type": {"code"}, "client_id": {as.id}, "redirect_uri": {back}, "scope": {as.scope}, "state": {state},
		"code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])},
	}.Encode())

	select {
	case <-ctx.Done():
		return given, ctx.Err()
	case <-time.After(10 * time.Minute):
		return given, errors.New("no sign-in within ten minutes")
	case answer := <-answers:
		if code := answer.Get("error"); code != "" {
			return given, &oauthError{code, answer.Get("error_description")}
		}

		err = postForm(ctx, i.TokenEndpoint, url.Values{
			"grant_type": {"authorization_code"}, "code": {answer.Get("code")}, "redirect_uri": {back}, "client_id": {as.id}, "code_verifier": {verifier},
		}, &given)

		return given, err
	}
}

func getJSON(ctx context.Context, address string, value any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}

	return doJSON(request, value)
}

func postForm(ctx context.Context, address string, form url.Values, value any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}

	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	return doJSON(request, value)
}

func doJSON(request *http.Request, value any) error {
	client := &http.Client{Timeout: 30 * time.Second}

	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()

	content, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}

	if response.StatusCode != http.StatusOK {
		refusal := &oauthError{}
		if json.Unmarshal(content, refusal) == nil && refusal.Code != "" {
			return refusal
		}

		return fmt.Errorf("%s responded with %s", request.URL.Redacted(), response.Status)
	}

	if err := json.Unmarshal(content, value); err != nil {
		return fmt.Errorf("the response of %s is not JSON", request.URL.Redacted())
	}

	return nil
}
