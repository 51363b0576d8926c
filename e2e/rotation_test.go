package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeyRotation(t *testing.T) {
	t.Parallel()

	t.Run("under load", func(t *testing.T) {
		t.Parallel()

		const (
			refresh = 2 * time.Second
			// Tokens with unknown keys cause at most one read of the keys in 10 seconds. A round needs up to three such reads,
			// one of them for the removed key.
			pace = 30 * time.Second
		)

		realm := newRealm(t)
		old := realm.rotate(t)
		oldToken := realm.password("ada")
		s := start(t, "QUERN_OIDC_ISSUER="+realm.issuer(), "QUERN_OIDC_KEYS_REFRESH="+refresh.String())
		l := runLoad(t, s.url, oldToken)

		for round := range loops(10) {
			if round > 0 {
				time.Sleep(pace)
			}

			next := realm.rotate(t)
			nextToken := realm.password("ada")
			l.use(t, oldToken, nextToken) // both keys are published, so both are valid

			l.await(t, 300)
			l.use(t, nextToken)
			realm.removeKey(t, old)

			removed := time.Now()

			await(t, "the removed key's token is refused", func() bool {
				return call(t, http.MethodGet, s.url+"/user/me", oldToken, "").status == http.StatusUnauthorized
			})
			require.Less(t, time.Since(removed), refresh+time.Second)
			t.Logf("refused %v after its key was removed", time.Since(removed).Round(time.Millisecond))

			old, oldToken = next, nextToken
		}

		l.end(t)
	})

	// One read of the keys serves all requests that bring a token of a new key at the same time.
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()

		s := start(t)
		token := s.realm.importKey(t).token("ada")

		for _, answer := range atOnce(t, 50, func(int) *http.Request { return newRequest(t, http.MethodGet, s.url+"/user/me", token, "") }) {
			require.Equal(t, http.StatusOK, answer.status, answer.body)
		}
	})

	// A read of the keys that is in progress may return the keys from before the rotation.
	t.Run("while keys are being read", func(t *testing.T) {
		t.Parallel()

		realm := newRealm(t)
		between := newProxy(t, realm.base)
		seen := realm.through(between.address)
		s := start(t, "QUERN_OIDC_ISSUER="+seen.issuer())
		// The next read must not be shared with the first one.
		await(t, "the keys are read", func() bool { return s.ready("ok") })

		between.set(behaviour{delay: 2 * time.Second})

		reads := between.answers("/certs")
		unknown := newRequest(t, http.MethodGet, s.url+"/user/me", newStranger(t, seen).token("ada"), "")
		bad := make(chan struct{})

		go func() {
			defer close(bad)

			_, _ = try(unknown)
		}()

		await(t, "Keycloak has answered and the proxy holds the answer back", func() bool { return between.answers("/certs") > reads })

		fresh := realm.importKey(t)
		fresh.realm = seen
		require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", fresh.token("ada"), "").status)
		<-bad
	})

	// Bad tokens use up the reads that tokens may cause. A valid token of a new key may then get 503, but must not be refused.
	t.Run("amid bad tokens", func(t *testing.T) {
		t.Parallel()

		s := start(t)
		stranger := newStranger(t, s.realm)

		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // iat has a resolution of seconds

		for range 20 {
			require.NotEqual(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", stranger.token("ada"), "").status)
		}

		answer := call(t, http.MethodGet, s.url+"/user/me", s.realm.importKey(t).token("ada"), "")
		require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, answer.status, answer.body)
	})
}

// load is a group of clients that request /user/me with tokens that must be accepted.
type load struct {
	*crowd

	mutex  sync.Mutex
	tokens []string
}

func runLoad(t *testing.T, url string, tokens ...string) *load {
	t.Helper()

	l := &load{crowd: newCrowd(t), tokens: tokens}
	l.add(16, func() error {
		answer, err := try(newRequest(t, http.MethodGet, url+"/user/me", l.pick(), ""))
		if err == nil && answer.status != http.StatusOK {
			err = fmt.Errorf("%d: %s", answer.status, answer.body)
		}

		return err
	})

	return l
}

func (l *load) pick() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return l.tokens[rand.N(len(l.tokens))]
}

// use replaces the tokens. When it returns, requests with the earlier tokens have ended.
func (l *load) use(t *testing.T, tokens ...string) {
	t.Helper()
	l.mutex.Lock()
	l.tokens = tokens
	l.mutex.Unlock()
	l.await(t, 2*16)
}

// crowd is a group of clients that send requests until they are stopped or one of them fails.
type crowd struct {
	clients sync.WaitGroup
	stop    chan struct{}

	mutex   sync.Mutex
	done    int
	failure error
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()

	c := &crowd{stop: make(chan struct{})}
	t.Cleanup(c.leave)

	return c
}

func (c *crowd) add(clients int, ask func() error) {
	for range clients {
		c.clients.Go(func() {
			for !c.stopped() {
				c.note(ask())
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
}

func (c *crowd) note(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	if err == nil {
		c.done++
	} else if c.failure == nil {
		c.failure = fmt.Errorf("after %d that went well: %w", c.done, err)
	}
}

func (c *crowd) state() (done int, failure error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	return c.done, c.failure
}

func (c *crowd) stopped() bool {
	select {
	case <-c.stop:
		return true
	default:
		_, failure := c.state()

		return failure != nil
	}
}

// await waits until this number of further requests succeeded.
func (c *crowd) await(t *testing.T, more int) {
	t.Helper()

	before, _ := c.state()

	await(t, "more requests go well", func() bool {
		done, failure := c.state()
		require.NoError(t, failure)

		return done >= before+more
	})
}

// end stops the clients. None of them may have failed.
func (c *crowd) end(t *testing.T) {
	t.Helper()
	c.leave()

	done, failure := c.state()
	require.NoError(t, failure)
	t.Logf("%d requests went well", done)
}

func (c *crowd) leave() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}

	c.clients.Wait()
}
