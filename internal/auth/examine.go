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

// Discovered is what an issuer says of itself.
type Discovered struct {
	Issuer string    // as it calls itself
	Usable int       // keys that sign with an algorithm that is accepted
	Keys   int       // for signatures
	Claims []string  // that it lists; empty if it lists none
	Date   time.Time // of its answer; zero if it has none
}

const discoveryPath = "/.well-known/openid-configuration"

// Discover reads the issuer's document and keys, past what is remembered. It judges nothing.
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
		return found, fmt.Errorf("its discovery document: status %d", response.StatusCode)
	}

	var document struct {
		Issuer  string   `json:"issuer"`
		KeysURL string   `json:"jwks_uri"`
		Claims  []string `json:"claims_supported"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxKeysDocument)).Decode(&document); err != nil {
		return found, fmt.Errorf("its discovery document is not JSON: %w", err)
	}

	found.Issuer, found.Claims = document.Issuer, document.Claims

	keys, err := s.readKeys(ctx, document.KeysURL)
	if err != nil {
		return found, fmt.Errorf("its keys: %w", err)
	}

	found.Keys = len(keys)
	found.Usable = len(slices.DeleteFunc(keys, func(key jose.JSONWebKey) bool {
		return key.Algorithm != "" && !slices.Contains(s.algorithms, jose.SignatureAlgorithm(key.Algorithm))
	}))

	return found, nil
}

// Examined is what the service makes of an access token.
type Examined struct {
	Problem  string // why it is refused: one of the Token… words, or empty
	Issuer   string
	Audience []string
	Expiry   time.Time
	Username string // empty: the claim is missing or of no use
	Groups   bool   // the claim is there
}

// Why a token is refused.
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

// Examine says why a token is refused, which callers are never told. Its error means that the issuer's keys are not to be had.
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

	if e.Issuer != v.keys.issuer { // its keys are another's
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

// problem tells what verify leaves open, in the order in which it looks.
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

// payloadOf reads what a token claims, without believing it.
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

// textsOf is a claim that is one text or several.
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
