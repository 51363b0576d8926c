package auth

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/go-jose/go-jose/v4"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// issuer is an OIDC issuer whose keys, responses and clock the test controls.
type issuer struct {
	*httptest.Server

	key      *rsa.PrivateKey
	down     atomic.Bool
	reads    atomic.Int32 // reads of the key document
	now      time.Time
	provider *oidctest.Server
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)

	is := &issuer{key: key, now: time.Now().Truncate(time.Second), provider: &oidctest.Server{}}
	is.publish("first", key)

	is.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if is.down.Load() {
			w.WriteHeader(http.StatusInternalServerError)

			return
		}

		if strings.Contains(r.URL.Path, "keys") {
			is.reads.Add(1)
		}

		is.provider.ServeHTTP(w, r)
	}))
	t.Cleanup(is.Close)
	is.provider.SetIssuer(is.URL)

	return is
}

func (is *issuer) publish(id string, key *rsa.PrivateKey) {
	is.provider.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: id, Algorithm: oidc.RS256}}
}

// sign returns a valid access token, changed by the given claims; nil removes a claim.
func (is *issuer) sign(t *testing.T, key crypto.PrivateKey, keyID, algorithm string, changes map[string]any) string {
	t.Helper()

	claims := map[string]any{
		"iss": is.URL, "aud": []string{"quern"}, "sub": "subject", "preferred_username": "Ada", "name": "Ada L.",
		"email": "ada@quern.test", "groups": []string{"b", "a", "b", ""}, "typ": "Bearer",
		"iat": is.now.Unix(), "exp": is.now.Add(5 * time.Minute).Unix(),
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })

	text, err := json.Marshal(claims)
	require.NoError(t, err)

	return oidctest.SignIDToken(key, keyID, algorithm, string(text))
}

func (is *issuer) verifier(t *testing.T, change func(*Config)) *verifier {
	t.Helper()

	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)

	c := Config{
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return is.now }, Client: client, Issuer: is.URL, Audiences: []string{"quern"},
		UsernameClaim: "preferred_username", GroupsClaim: "groups", Algorithms: []string{"RS256"},
		ClockSkew: time.Minute, KeysRefresh: time.Minute, KeysMaxAge: time.Hour,
	}
	if change != nil {
		change(&c)
	}

	authenticator, err := New(c)
	require.NoError(t, err)

	return authenticator.verifier
}

func TestClaims(t *testing.T) {
	t.Parallel()

	is := newIssuer(t)
	v := is.verifier(t, nil)

	at := func(d time.Duration) int64 { return is.now.Add(d).Unix() }

	for name, test := range map[string]struct {
		claims map[string]any
		good   bool
	}{
		"good":                        {nil, true},
		"audience as text":            {map[string]any{"aud": "quern"}, true},
		"one audience of several":     {map[string]any{"aud": []string{"account", "quern"}}, true},
		"wrong audience":              {map[string]any{"aud": "other"}, false},
		"no audience":                 {map[string]any{"aud": nil}, false},
		"wrong issuer":                {map[string]any{"iss": "http://other.test"}, false},
		"no subject":                  {map[string]any{"sub": nil}, false},
		"NUL in the subject":          {map[string]any{"sub": "a\x00b"}, false},
		"expired within the skew":     {map[string]any{"exp": at(-50 * time.Second)}, true},
		"expired":                     {map[string]any{"exp": at(-70 * time.Second)}, false},
		"no expiry":                   {map[string]any{"exp": nil}, false},
		"valid soon, within the skew": {map[string]any{"nbf": at(50 * time.Second)}, true},
		"not yet valid":               {map[string]any{"nbf": at(70 * time.Second)}, false},
		"issued in the future":        {map[string]any{"iat": at(70 * time.Second)}, false},
		"ID token by its hash":        {map[string]any{"at_hash": "x"}, false},
		"ID token by its kind":        {map[string]any{"typ": "ID"}, false},
		"refresh token":               {map[string]any{"typ": "Refresh"}, false},
		"access token with a nonce":   {map[string]any{"nonce": "x"}, true},
	} {
		_, err := v.verify(t.Context(), is.sign(t, is.key, "first", oidc.RS256, test.claims))
		if test.good {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, errBadToken, name)
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()

	is := newIssuer(t)
	v := is.verifier(t, nil)
	good := is.sign(t, is.key, "first", oidc.RS256, nil)
	parts := strings.Split(good, ".")

	for name, token := range map[string]string{
		"empty":             "",
		"garbage":           "garbage",
		"two parts":         parts[0] + "." + parts[1],
		"no signature":      parts[0] + "." + parts[1] + ".",
		"algorithm none":    "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + ".",
		"too long":          good + strings.Repeat("x", maxTokenBytes),
		"another algorithm": is.sign(t, is.key, "first", oidc.RS512, nil),
		"bad signature":     parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
	} {
		_, err := v.verify(t.Context(), token)
		require.ErrorIs(t, err, errBadToken, name)
	}

	require.LessOrEqual(t, is.reads.Load(), int32(1), "none of them is a reason to read the keys again")
}

func TestIdentity(t *testing.T) {
	t.Parallel()

	is := newIssuer(t)

	got, err := is.verifier(t, nil).verify(t.Context(), is.sign(t, is.key, "first", oidc.RS256, map[string]any{
		"name": "A\x00da " + strings.Repeat("ä", 300),
	}))
	require.NoError(t, err)
	require.Equal(t, identity{
		issuer: is.URL, subject: "subject", username: "ada", name: "Ada " + strings.Repeat("ä", maxClaimRunes-4),
		email: "ada@quern.test", groups: []string{"a", "b"}, issuedAt: is.now,
	}, got)

	byEmail := is.verifier(t, func(c *Config) { c.UsernameClaim = "email" })
	got, err = byEmail.verify(t.Context(), is.sign(t, is.key, "first", oidc.RS256, map[string]any{"groups": "solo"}))
	require.NoError(t, err)
	require.Empty(t, got.username, "an address that was not verified gives no name")
	require.Equal(t, []string{"solo"}, got.groups)

	got, err = byEmail.verify(t.Context(), is.sign(t, is.key, "first", oidc.RS256, map[string]any{"email_verified": true, "groups": 7}))
	require.NoError(t, err)
	require.Equal(t, "ada@quern.test", got.username)
	require.Empty(t, got.groups)
}

func TestKeysThroughRotationAndOutage(t *testing.T) {
	t.Parallel()

	is := newIssuer(t)
	v := is.verifier(t, nil)
	verify := func(key *rsa.PrivateKey, id string) error {
		_, err := v.verify(t.Context(), is.sign(t, key, id, oidc.RS256, nil))

		return err
	}

	is.down.Store(true)
	require.ErrorIs(t, verify(is.key, "first"), errKeysUnknown, "nothing is known yet")
	is.down.Store(false)
	require.NoError(t, verify(is.key, "first"))

	second, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	is.publish("second", second)
	require.NoError(t, verify(second, "second"), "a new key is read at once")
	require.ErrorIs(t, verify(is.key, "first"), errBadToken, "the key that the issuer dropped is gone")

	is.down.Store(true)
	require.NoError(t, verify(second, "second"), "known keys go on")
	require.ErrorIs(t, verify(is.key, "third"), errKeysUnknown, "an unknown one cannot be judged")

	is.now = is.now.Add(2 * time.Hour)
	require.ErrorIs(t, verify(second, "second"), errKeysUnknown, "the last good keys are too old")
}

// TestRememberedTokens checks that a cached token does not stay valid for ever.
func TestRememberedTokens(t *testing.T) {
	t.Parallel()

	is := newIssuer(t)
	v := is.verifier(t, nil)
	token := is.sign(t, is.key, "first", oidc.RS256, nil)

	for range 3 {
		_, err := v.verify(t.Context(), token)
		require.NoError(t, err)
	}

	require.Equal(t, 1, v.verified.Len())

	is.now = is.now.Add(5*time.Minute + 59*time.Second)
	_, err := v.verify(t.Context(), token)
	require.NoError(t, err, "expired, within the skew")

	is.now = is.now.Add(2 * time.Second)
	_, err = v.verify(t.Context(), token)
	require.ErrorIs(t, err, errBadToken, "expired")

	token = is.sign(t, is.key, "first", oidc.RS256, nil)
	_, err = v.verify(t.Context(), token)
	require.NoError(t, err)

	second, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	is.publish("second", second)
	require.NoError(t, v.keys.refresh(t.Context(), always))
	_, err = v.verify(t.Context(), token)
	require.ErrorIs(t, err, errBadToken, "its key was removed")
}

func TestBadTokensDoNotHammerTheIssuer(t *testing.T) {
	t.Parallel()

	is := newIssuer(t)
	v := is.verifier(t, nil)
	require.NoError(t, v.keys.refresh(t.Context(), always))

	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)

	old := is.sign(t, other, "unknown", oidc.RS256, map[string]any{"iat": is.now.Add(-2 * time.Minute).Unix()})
	young := is.sign(t, other, "unknown", oidc.RS256, nil)

	for range 100 {
		_, err := v.verify(t.Context(), old)
		require.ErrorIs(t, err, errBadToken)
	}

	require.LessOrEqual(t, is.reads.Load(), int32(1+unknownKeyBurst))

	_, err = v.verify(t.Context(), young)
	require.ErrorIs(t, err, errKeysUnknown, "a key that may be younger than ours cannot be judged")
}

// TestNewKeyForManyAtOnce checks that a token with a new key waits for a read that includes the key, even if a read
// is in progress that began before the key was published.
func TestNewKeyForManyAtOnce(t *testing.T) {
	t.Parallel()

	is := newIssuer(t)
	v := is.verifier(t, func(c *Config) { c.Now = time.Now })
	require.NoError(t, v.keys.refresh(t.Context(), always))

	for range 3 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		require.NoError(t, err)

		id := rand.Text()
		is.publish(id, key)

		var requests errgroup.Group
		for range 50 {
			token := is.sign(t, key, id, oidc.RS256, nil)
			requests.Go(func() error {
				_, err := v.verify(t.Context(), token)

				return err
			})
		}

		require.NoError(t, requests.Wait())
	}
}

func TestConfigurationFailsClosed(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]Config{
		"no issuer":   {Audiences: []string{"quern"}, Algorithms: []string{"RS256"}},
		"no audience": {Issuer: "https://issuer.test", Algorithms: []string{"RS256"}},
		"symmetric":   {Issuer: "https://issuer.test", Audiences: []string{"quern"}, Algorithms: []string{"RS256", "HS256"}},
		"none":        {Issuer: "https://issuer.test", Audiences: []string{"quern"}, Algorithms: []string{"none"}},
	} {
		_, err := New(c)
		require.Error(t, err, name)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.e30.")
	f.Add("a.b.c")

	// {"alg":"RS256"} and {"iss":"http://127.0.0.1:1"}: valid enough to request keys that cannot be read.
	f.Add("eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwOi8vMTI3LjAuMC4xOjEifQ.AA")

	none, err := lru.New[[32]byte, verified](1)
	if err != nil {
		f.Fatal(err)
	}

	v := &verifier{now: time.Now, verified: none, keys: &keySet{
		issuer: "http://127.0.0.1:1", now: time.Now, algorithms: []jose.SignatureAlgorithm{jose.RS256}, limiter: rate.NewLimiter(0, 0),
	}}

	f.Fuzz(func(t *testing.T, token string) {
		if _, err := v.verify(t.Context(), token); !errors.Is(err, errBadToken) && !errors.Is(err, errKeysUnknown) {
			t.Fatalf("%q: %v", token, err)
		}
	})
}

// TestCompactOnly checks that a bearer token must be a JWS in the compact form; other forms are refused even with a
// valid signature.
func TestCompactOnly(t *testing.T) {
	t.Parallel()

	is := newIssuer(t)
	v := is.verifier(t, nil)
	compact := is.sign(t, is.key, "first", oidc.RS256, nil)

	_, err := v.verify(t.Context(), compact)
	require.NoError(t, err)

	parts := strings.Split(compact, ".")
	flattened := `{"payload": "` + parts[1] + `", "protected": "` + parts[0] + `", "signature": "` + parts[2] + `"}`
	general := `{"payload": "` + parts[1] + `", "signatures": [{"protected": "` + parts[0] + `", "signature": "` + parts[2] + `"}]}`

	for name, token := range map[string]string{
		"flattened": flattened, "general": general, "unsigned headers": strings.Replace(flattened, `"signature"`, `"header": {"typ": "JWT"}, "signature"`, 1),
		"with dots": strings.Replace(flattened, `{`, `{"x": ".`+parts[1]+`.", `, 1), "detached": parts[0] + ".." + parts[2], "two tokens": compact + "." + compact, "padded": compact + "=", "with spaces": " " + compact,
	} {
		_, err := v.keys.VerifySignature(t.Context(), token)
		require.ErrorIs(t, err, errBadToken, name)
		_, err = v.verify(t.Context(), token)
		require.ErrorIs(t, err, errBadToken, name)
	}
}
