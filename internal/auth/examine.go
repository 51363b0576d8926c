package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Discovered is what an issuer publishes about itself.
type Discovered struct {
	Issuer string    // the name in its discovery document
	Usable int       // keys whose algorithm is accepted or not stated
	Keys   int       // keys for signatures
	Claims []string  // supported claims; empty if the issuer lists none
	Date   time.Time // Date header of the response; zero if there is none
}

const discoveryPath = "/.well-known/openid-configuration"

// Discover reads the issuer's discovery document and keys, without the cache. It does not judge them.
func (a *Authenticator) Discover(ctx context.Context) (found Discovered, err error) {
	s := a.verifier.keys

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.issuer, "/")+discoveryPath, http.NoBody)
	if err != nil {
		return found, err
	}

	response, err := s.client.Do(request)
	if err != nil {
		return found, err
	}
	defer func() { _ = response.Body.Close() }()

	if found.Date, err = http.ParseTime(response.Header.Get("Date")); err != nil {
		found.Date = time.Time{}
	}

	if response.StatusCode != http.StatusOK {
		return found, fmt.Errorf("discovery document: status %d", response.StatusCode)
	}

	var document struct {
		Issuer  string   `json:"issuer"`
		KeysURL string   `json:"jwks_uri"`
		Claims  []string `json:"claims_supported"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxKeysDocument)).Decode(&document); err != nil {
		return found, fmt.Errorf("discovery document is not JSON: %w", err)
	}

	found.Issuer, found.Claims = document.Issuer, document.Claims

	keys, err := s.readKeys(ctx, document.KeysURL)
	if err != nil {
		return found, fmt.Errorf("keys: %w", err)
	}

	found.Keys = len(keys)
	found.Usable = len(slices.DeleteFunc(keys, func(key jose.JSONWebKey) bool {
		return key.Algorithm != "" && !slices.Contains(s.algorithms, jose.SignatureAlgorithm(key.Algorithm))
	}))

	return found, nil
}

// Examined is the result of checking an access token.
type Examined struct {
	Problem  string // one of the Token… constants, or "" if the token is accepted
	Issuer   string
	Audience []string
	Expiry   time.Time
	Username string // "" if the claim is missing or cannot be used
	Groups   bool   // whether the groups claim is present
}

// The reasons why a token is refused.
const (
	TokenMalformed = "malformed"
	TokenIssuer    = "issuer"
	TokenAudience  = "audience"
	TokenExpired   = "expired"
	TokenEarly     = "not yet valid"
	TokenKind      = "kind"
	TokenSubject   = "subject"
	TokenSignature = "signature"
)

// Examine returns why a token is refused, which responses to callers never contain. It fails only if the issuer's
// keys cannot be read.
func (a *Authenticator) Examine(ctx context.Context, raw string) (e Examined, err error) {
	claims, ok := payloadOf(raw)
	if !ok {
		e.Problem = TokenMalformed

		return e, nil
	}

	v := a.verifier
	e.Issuer, e.Audience = text(claims["iss"]), textsOf(claims["aud"])
	e.Expiry = time.Unix(int64(number(claims["exp"])), 0)
	_, e.Groups = claims[v.groupsClaim]

	if e.Issuer != v.keys.issuer { // a token of another issuer is signed with other keys
		e.Problem = TokenIssuer

		return e, nil
	}

	id, err := v.verify(ctx, raw)
	e.Username = id.username

	switch {
	case errors.Is(err, errKeysUnknown):
		return e, err
	case err != nil:
		e.Problem = v.problem(e, claims)
	}

	return e, nil
}

// problem returns why verify refused a token, in the order of the checks in check.
func (v *verifier) problem(e Examined, claims map[string]any) string {
	now := v.now().Add(v.clockSkew)
	later := func(claim string) bool { return time.Unix(int64(number(claims[claim])), 0).After(now) }

	switch {
	case !slices.ContainsFunc(e.Audience, func(audience string) bool { return slices.Contains(v.audiences, audience) }):
		return TokenAudience
	case v.now().After(e.Expiry.Add(v.clockSkew)):
		return TokenExpired
	case later("nbf"), later("iat"):
		return TokenEarly
	case isIDToken(claims):
		return TokenKind
	case text(claims["sub"]) == "":
		return TokenSubject
	default:
		return TokenSignature
	}
}

// payloadOf decodes the claims of a token without verifying them.
func payloadOf(raw string) (claims map[string]any, ok bool) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 || len(raw) > maxTokenBytes {
		return nil, false
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}

	return claims, err == nil
}

// textsOf returns the values of a claim that is one text or a list of texts.
func textsOf(claim any) (found []string) {
	list, several := claim.([]any)
	if !several {
		list = []any{claim}
	}

	for _, one := range list {
		if name := text(one); name != "" {
			found = append(found, name)
		}
	}

	return found
}
