package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIssuerOutage(t *testing.T) {
	t.Parallel()

	t.Run("from the start", func(t *testing.T) {
		t.Parallel()

		o := newOutage(t)
		token := o.seen.password("ada")
		o.between.set(behaviour{refuse: true})

		s := start(t, o.issuer(), "QUERN_OIDC_KEYS_REFRESH=1s")
		requireReady(t, s, "degraded")
		requireUnavailable(t, me(t, s, token))

		o.between.set(behaviour{})
		await(t, "the issuer is found without a restart", func() bool { return me(t, s, token).status == http.StatusOK })
		await(t, "readiness says so", func() bool { return s.ready("ok") })
	})

	t.Run("while running", func(t *testing.T) {
		t.Parallel()

		o := newOutage(t)
		s := start(t, o.issuer(), "QUERN_OIDC_TIMEOUT=1s", "QUERN_OIDC_KEYS_REFRESH=1s")
		token := o.seen.password("ada")
		require.Equal(t, http.StatusOK, me(t, s, token).status)

		ours := value(t, call(t, http.MethodPost, s.url+"/user/tokens", token, `{"name":"ours"}`))
		stranger := newStranger(t, o.seen)
		// A busy Keycloak may need longer than the timeout.
		await(t, "the issuer is up and does not know the key", func() bool { return me(t, s, stranger.token("ada")).status == http.StatusUnauthorized })

		for name, down := range map[string]behaviour{"refused": {refuse: true}, "silent": {blackhole: true}} {
			t.Log(name)
			o.between.set(down)

			began := time.Now()

			requireUnavailable(t, me(t, s, stranger.token("ada")))
			require.Less(t, time.Since(began), 10*time.Second, "much longer than its timeout for discovery and keys")

			require.Equal(t, http.StatusOK, me(t, s, token).status, "its key is known")
			require.Equal(t, http.StatusOK, me(t, s, ours).status, "our own tokens do not need the issuer")
			await(t, "readiness says so", func() bool { return s.ready("degraded") })
			requireReady(t, s, "degraded")

			o.between.set(behaviour{})
			await(t, "the issuer is found again", func() bool { return s.ready("ok") })
			// A busy Keycloak may need longer than the timeout.
			await(t, "the issuer says that it does not know the key", func() bool {
				return me(t, s, stranger.sign(issuedEarlier(stranger))).status == http.StatusUnauthorized
			})
		}
	})

	t.Run("bad tokens do not make one", func(t *testing.T) {
		t.Parallel()

		o := newOutage(t)
		s := start(t, o.issuer())
		token := o.seen.password("ada")
		require.Equal(t, http.StatusOK, me(t, s, token).status)

		forged := o.realm.importKey(t)
		forged.realm = o.seen
		require.Equal(t, http.StatusOK, me(t, s, forged.token("bob")).status)
		forged.key = newStranger(t, o.seen).key // a known key id with a signature of another key

		before := o.between.requests("/certs")
		l := runLoad(t, s.url, token)

		for range 100 {
			require.Equal(t, http.StatusUnauthorized, me(t, s, forged.token("bob")).status)
		}

		require.Equal(t, before, o.between.requests("/certs"), "the key is known, so there is nothing to read")

		stranger := newStranger(t, o.seen)
		unknown := func(int) *http.Request {
			stranger.keyID = rand.Text()

			return newRequest(t, http.MethodGet, s.url+"/user/me", stranger.token("bob"), "")
		}

		for i := range 500 {
			requireRefused(t, send(t, unknown(i)))
		}

		for range 10 {
			for _, answer := range atOnce(t, 50, unknown) {
				requireRefused(t, answer)
			}
		}

		l.end(t)
		t.Logf("1000 tokens of unknown keys made %d reads", o.between.requests("/certs")-before)
		require.LessOrEqual(t, o.between.requests("/certs")-before, 10)
		require.LessOrEqual(t, o.between.requests("/openid-configuration"), 2+10)
	})
}

// outage is an issuer behind a proxy.
type outage struct {
	realm, seen *realm // the realm itself, and as the service sees it
	between     *proxy
}

func newOutage(t *testing.T) outage {
	t.Helper()

	realm := newRealm(t)
	between := newProxy(t, realm.base)

	return outage{realm: realm, seen: realm.through(between.address), between: between}
}

func (o outage) issuer() string { return "QUERN_OIDC_ISSUER=" + o.seen.issuer() }

// newStranger returns a signer with a key that the realm does not have.
func newStranger(t *testing.T, r *realm) *signer {
	t.Helper()

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)

	return &signer{realm: r, key: key, keyID: rand.Text()}
}

// issuedEarlier returns the claims of a token that is older than the service's last read of the keys.
func issuedEarlier(s *signer) map[string]any {
	claims := s.claims("ada")
	claims["iat"] = time.Now().Add(-2 * time.Minute).Unix()

	return claims
}

func me(t *testing.T, s *service, token string) *answer {
	t.Helper()

	return call(t, http.MethodGet, s.url+"/user/me", token, "")
}

func requireUnavailable(t *testing.T, answer *answer) {
	t.Helper()
	require.Equal(t, http.StatusServiceUnavailable, answer.status, answer.body)
	require.NotEmpty(t, answer.header.Get("Retry-After"))
	require.NotRegexp(t, tokenPattern, answer.body)
}

// requireRefused checks that a bad token is refused, or that the service is unavailable because it cannot decide before it reads
// the keys again.
func requireRefused(t *testing.T, answer *answer) {
	t.Helper()

	if answer.status != http.StatusUnauthorized {
		requireUnavailable(t, answer)
	}
}

func requireReady(t *testing.T, s *service, word string) {
	t.Helper()

	answer := call(t, http.MethodGet, s.root+"/readyz", "", "")
	require.Equal(t, http.StatusOK, answer.status)
	require.JSONEq(t, `{"status":"`+word+`"}`, answer.body)
}
