package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

const (
	// Tokens with unknown keys may cause unknownKeyBurst reads of the issuer's keys at once, then one every
	// unknownKeyPause, so that bad tokens cannot overload the issuer.
	unknownKeyBurst = 5
	unknownKeyPause = 10 * time.Second

	retryAfterOutage = 15 * time.Second
	maxKeysDocument  = 1 << 20
)

var (
	errBadToken    = errors.New("the token is not valid")
	errKeysUnknown = errors.New("the keys of the issuer cannot be read")

	errTooManyReads = errors.New("too many reads for unknown keys")
)

// keySet holds the issuer's keys. It reads them again every refreshEvery and drops keys that the issuer no longer
// publishes. While the issuer does not answer, it uses the last keys that it read, for up to maxAge.
type keySet struct {
	issuer       string
	algorithms   []jose.SignatureAlgorithm
	client       *http.Client
	refreshEvery time.Duration
	maxAge       time.Duration
	clockSkew    time.Duration
	now          func() time.Time
	log          *slog.Logger

	current atomic.Pointer[issuerKeys]
	failed  atomic.Bool // the last read failed
	limiter *rate.Limiter
	fetches singleflight.Group
}

type issuerKeys struct {
	keys             []jose.JSONWebKey
	authorizationURL string
	readAt           time.Time // start of the read: keys published later may be missing
}

// run reads the keys now and then repeatedly, until ctx ends.
func (s *keySet) run(ctx context.Context) {
	for {
		pause := s.refreshEvery

		if err := s.refresh(ctx, always); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "the issuer's keys could not be read", "issuer", s.issuer, "error", err)
			pause = min(pause, retryAfterOutage)
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// VerifySignature implements oidc.KeySet. Its error is errBadToken or errKeysUnknown. It accepts only the compact
// form, because the JSON forms can carry headers outside the signature.
func (s *keySet) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	token, err := jose.ParseSignedCompact(raw, s.algorithms)
	if err != nil || len(token.Signatures) != 1 {
		return nil, errBadToken
	}

	header := token.Signatures[0].Protected
	if !isAccessTokenType(header) {
		return nil, errBadToken
	}

	arrived := s.now()

	payload, known := s.verify(token, header.KeyID)
	for !known && err == nil {
		err = s.refreshForUnknownKey(ctx, arrived, token.UnsafePayloadWithoutVerification())
		payload, known = s.verify(token, header.KeyID)
	}

	switch {
	case !known:
		return nil, err
	case payload == nil:
		return nil, errBadToken
	default:
		return payload, nil
	}
}

// usable returns the current keys, or nil if there are none or they are older than maxAge.
func (s *keySet) usable() *issuerKeys {
	current := s.current.Load()
	if current == nil || s.now().Sub(current.readAt) > s.maxAge {
		return nil
	}

	return current
}

// verify checks the signature with the current keys. known is false if no key fits the token's key id.
func (s *keySet) verify(token *jose.JSONWebSignature, keyID string) (payload []byte, known bool) {
	current := s.usable()
	if current == nil {
		return nil, false
	}

	for _, key := range current.keys {
		if keyID != "" && key.KeyID != keyID {
			continue
		}

		if payload, err := token.Verify(key.Key); err == nil {
			return payload, true
		}

		known = keyID != ""
	}

	return nil, known
}

// refreshForUnknownKey reads the keys for a token that no key fits. Its error, errBadToken or errKeysUnknown, applies
// if no key fits afterwards. The error is nil if the read that it joined began before the token arrived: the token's
// key may be newer than that read, so another read is needed.
func (s *keySet) refreshForUnknownKey(ctx context.Context, arrived time.Time, payload []byte) error {
	err := s.refresh(ctx, s.limiter.Allow)
	current := s.current.Load()

	switch {
	case errors.Is(err, errTooManyReads) && !s.failed.Load() && current.isYoungerThan(payload, s.clockSkew):
		return errBadToken
	case err != nil:
		return fmt.Errorf("%w: %w", errKeysUnknown, err)
	case current.readAt.Before(arrived):
		return nil
	default:
		return errBadToken
	}
}

// isYoungerThan reports whether the keys were read after the token was issued, according to its own claim. If so, the
// issuer did not publish the token's key, and reading again would not help.
func (k *issuerKeys) isYoungerThan(payload []byte, skew time.Duration) bool {
	var claims struct {
		IssuedAt float64 `json:"iat"`
	}

	return k != nil && json.Unmarshal(payload, &claims) == nil && claims.IssuedAt > 0 &&
		k.readAt.After(time.Unix(int64(claims.IssuedAt), 0).Add(time.Second+skew))
}

// always is the limit of reads that are never refused.
func always() bool { return true }

// refresh reads the discovery document and the keys, if limit allows another read. Concurrent callers share one read,
// which continues if a caller leaves.
func (s *keySet) refresh(ctx context.Context, limit func() bool) error {
	done := s.fetches.DoChan("", func() (any, error) {
		if !limit() {
			return nil, errTooManyReads
		}

		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.client.Timeout)
		defer cancel()

		read, err := s.read(ctx)
		s.failed.Store(err != nil)

		if err == nil {
			s.current.Store(read)
		}

		return nil, err
	})

	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *keySet) read(ctx context.Context) (*issuerKeys, error) {
	began := s.now()

	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.issuer)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}

	var discovered struct {
		KeysURL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&discovered); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}

	keys, err := s.readKeys(ctx, discovered.KeysURL)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}

	return &issuerKeys{keys: keys, authorizationURL: provider.Endpoint().AuthURL, readAt: began}, nil
}

func (s *keySet) readKeys(ctx context.Context, address string) ([]jose.JSONWebKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}

	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()

	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the issuer answered %s", response.Status)
	}

	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxKeysDocument)).Decode(&document); err != nil {
		return nil, err
	}

	keys := signatureKeys(document.Keys)
	if len(keys) == 0 {
		return nil, errors.New("the issuer has no key to verify signatures with")
	}

	return keys, nil
}

// signatureKeys returns the public keys for signatures. It skips keys of unknown kinds.
func signatureKeys(documents []json.RawMessage) []jose.JSONWebKey {
	var keys []jose.JSONWebKey

	for _, document := range documents {
		var key jose.JSONWebKey
		if json.Unmarshal(document, &key) == nil && key.Use != "enc" && key.IsPublic() {
			keys = append(keys, key)
		}
	}

	return keys
}

// isAccessTokenType checks the header typ (RFC 9068). Many issuers omit it or use JWT.
func isAccessTokenType(header jose.Header) bool {
	kind, given := header.ExtraHeaders[jose.HeaderType].(string)

	return !given || slices.Contains([]string{"JWT", "at+jwt", "application/at+jwt"}, kind)
}
