package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	maxTokenBytes = 16 << 10
	maxGroups     = 1000
	maxClaimRunes = 256
)

// identity is what an access token says about a person.
type identity struct {
	issuer, subject       string
	username, name, email string
	groups                []string // shared by requests: must not be changed
	issuedAt              time.Time
}

// verifier checks access tokens of one issuer. It caches accepted tokens, because clients send the same token with
// every request. A cached result is valid only with the keys that the token was checked with.
type verifier struct {
	keys          *keySet
	verified      *lru.Cache[[sha256.Size]byte, verified]
	audiences     []string
	usernameClaim string
	groupsClaim   string
	clockSkew     time.Duration
	now           func() time.Time
}

type verified struct {
	identity identity
	expiry   time.Time
	keys     *issuerKeys
}

// verifiedCacheSize limits the memory for cached tokens, one or two kilobytes each.
const verifiedCacheSize = 20_000

// verify returns the identity in a token. Its error is errBadToken or errKeysUnknown.
func (v *verifier) verify(ctx context.Context, raw string) (identity, error) {
	if len(raw) > maxTokenBytes {
		return identity{}, errBadToken
	}

	hash := sha256.Sum256([]byte(raw))
	keys := v.keys.usable()

	if known, ok := v.verified.Get(hash); ok && known.keys == keys && !v.now().After(known.expiry.Add(v.clockSkew)) {
		return known.identity, nil
	}

	id, expiry, err := v.verifyAnew(ctx, raw)
	if err != nil {
		return identity{}, err
	}

	// If the keys were read again in the meantime, it is not known which keys the token was checked with.
	if keys != nil && keys == v.keys.usable() {
		v.verified.Add(hash, verified{identity: id, expiry: expiry, keys: keys})
	}

	return id, nil
}

func (v *verifier) verifyAnew(ctx context.Context, raw string) (identity, time.Time, error) {
	// go-oidc keeps only the text of the key set's error; the wrapper keeps the error itself.
	keys := &rememberError{keys: v.keys}
	config := &oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: names(v.keys.algorithms)}

	token, err := oidc.NewVerifier(v.keys.issuer, keys, config).Verify(ctx, raw)
	if errors.Is(keys.err, errKeysUnknown) {
		return identity{}, time.Time{}, keys.err
	}

	if err != nil {
		return identity{}, time.Time{}, fmt.Errorf("%w: %w", errBadToken, err)
	}

	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return identity{}, time.Time{}, fmt.Errorf("%w: %w", errBadToken, err)
	}

	if problem := v.check(token, claims); problem != "" {
		return identity{}, time.Time{}, fmt.Errorf("%w: %s", errBadToken, problem)
	}

	return v.identify(token, claims), token.Expiry, nil
}

func (v *verifier) check(token *oidc.IDToken, claims map[string]any) string {
	now := v.now()
	notBefore := time.Unix(int64(number(claims["nbf"])), 0)
	accepted := func(audience string) bool { return slices.Contains(v.audiences, audience) }

	switch {
	case !slices.ContainsFunc(token.Audience, accepted):
		return "audience"
	case now.After(token.Expiry.Add(v.clockSkew)): // a token without exp expired in 1970
		return "expired"
	case notBefore.After(now.Add(v.clockSkew)), token.IssuedAt.After(now.Add(v.clockSkew)):
		return "not yet valid"
	case isIDToken(claims):
		return "an ID token is not an access token"
	case token.Subject == "" || len(token.Subject) > 255 || strings.ContainsRune(token.Subject, 0):
		return "subject"
	default:
		return ""
	}
}

// isIDToken recognises ID tokens of an issuer that gives them an accepted audience. Only ID tokens have the hash
// claims. Keycloak writes the kind of a token into the payload.
func isIDToken(claims map[string]any) bool {
	kind, _ := claims["typ"].(string)

	return claims["at_hash"] != nil || claims["c_hash"] != nil || slices.Contains([]string{"ID", "Refresh", "Offline", "Logout"}, kind)
}

func (v *verifier) identify(token *oidc.IDToken, claims map[string]any) identity {
	id := identity{
		issuer: token.Issuer, subject: token.Subject,
		username: strings.ToLower(text(claims[v.usernameClaim])),
		name:     text(claims["name"]),
		email:    text(claims["email"]),
		groups:   []string{},
		issuedAt: token.IssuedAt,
	}

	// An email address that was not verified must not become a username.
	if v.usernameClaim == "email" && claims["email_verified"] != true {
		id.username = ""
	}

	switch groups := claims[v.groupsClaim].(type) {
	case string:
		id.groups = []string{text(groups)}
	case []any:
		for _, group := range groups[:min(len(groups), maxGroups)] {
			if name := text(group); name != "" {
				id.groups = append(id.groups, name)
			}
		}
	}

	slices.Sort(id.groups)
	id.groups = slices.Compact(id.groups)

	return id
}

// text returns a claim as text that PostgreSQL accepts, cut to maxClaimRunes.
func text(claim any) string {
	s, _ := claim.(string)
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")

	if runes := []rune(s); len(runes) > maxClaimRunes {
		return string(runes[:maxClaimRunes])
	}

	return s
}

func number(claim any) float64 {
	switch n := claim.(type) {
	case float64:
		return n
	case json.Number:
		f, _ := n.Float64()

		return f
	default:
		return 0
	}
}

func names(algorithms []jose.SignatureAlgorithm) []string {
	var list []string
	for _, algorithm := range algorithms {
		list = append(list, string(algorithm))
	}

	return list
}

type rememberError struct {
	keys *keySet
	err  error
}

func (r *rememberError) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := r.keys.VerifySignature(ctx, raw)
	r.err = err

	return payload, err
}
