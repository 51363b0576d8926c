package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

func TestIdempotency(t *testing.T) {
	t.Parallel()

	s := start(t)
	ada, bob := s.realm.password("ada"), s.realm.password("bob")

	t.Run("parallel repeats make one", func(t *testing.T) {
		t.Parallel()

		name, key := uuid.NewString(), uuid.NewString()
		answers := atOnce(t, 50, func(int) *http.Request { return creation(t, s.url, ada, name, key) })
		requireSame(t, answers)
		require.Equal(t, 1, names(t, s.url, ada)[name])
		requireWorks(t, s.url, answers[0])
	})

	t.Run("on two replicas", func(t *testing.T) {
		t.Parallel()

		secret := "QUERN_SECRET=" + strings.Repeat(uuid.NewString(), 2)
		one := start(t, secret)
		two := another(t, one, secret)
		ada := one.realm.password("ada")

		for range rounds(50) {
			name, key := uuid.NewString(), uuid.NewString()
			answers := atOnce(t, 8, func(i int) *http.Request {
				return creation(t, []string{one.url, two.url}[i%2], ada, name, key)
			})
			requireSame(t, answers)
			require.Equal(t, 1, names(t, two.url, ada)[name])
			requireWorks(t, one.url, answers[0])
		}
	})

	t.Run("the same request in another spelling", func(t *testing.T) {
		t.Parallel()

		name, key := uuid.NewString(), "Idempotency-Key: "+uuid.NewString()
		first := call(t, http.MethodPost, s.url+"/user/tokens", ada, fmt.Sprintf(`{"name":%q,"role":"viewer"}`, name), key)
		again := call(t, http.MethodPost, s.url+"/user/tokens", ada, fmt.Sprintf("{ \"role\" : \"viewer\",\n\t\"name\":%q }\n", name), key)
		requireSame(t, []*answer{first, again})
		require.Equal(t, 1, names(t, s.url, ada)[name])
	})

	t.Run("another request", func(t *testing.T) {
		t.Parallel()

		key := uuid.NewString()
		first := send(t, creation(t, s.url, ada, "first", key))
		require.Equal(t, http.StatusCreated, first.status, first.body)

		other := send(t, creation(t, s.url, ada, uuid.NewString(), key))
		require.Equal(t, http.StatusUnprocessableEntity, other.status, other.body)
		require.Contains(t, other.body, "Idempotency-Key")
	})

	t.Run("another caller", func(t *testing.T) {
		t.Parallel()

		name, key := uuid.NewString(), uuid.NewString()
		first := send(t, creation(t, s.url, ada, name, key))
		other := send(t, creation(t, s.url, bob, name, key))
		require.Equal(t, http.StatusCreated, other.status, other.body)
		require.NotEqual(t, first.body, other.body)
		require.Equal(t, 1, names(t, s.url, ada)[name])
		require.Equal(t, 1, names(t, s.url, bob)[name])
	})

	t.Run("a key is forgotten after a day", func(t *testing.T) {
		t.Parallel()

		name, key := uuid.NewString(), uuid.NewString()
		first := send(t, creation(t, s.url, ada, name, key))
		s.exec(`UPDATE idempotency SET created_at = created_at - interval '25 hours' WHERE key = $1`, key)

		later := send(t, creation(t, s.url, ada, name, key))
		require.Equal(t, http.StatusCreated, later.status, later.body)
		require.NotEqual(t, first.body, later.body)
		require.Equal(t, 2, names(t, s.url, ada)[name])
		requireSame(t, []*answer{later, send(t, creation(t, s.url, ada, name, key))})
	})
}

// TestIdempotencyAfterKill kills the process while a client waits for the answer, so that the client does not know what happened.
func TestIdempotencyAfterKill(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	s := start(t)
	between := newProxy(t, s.root)
	through := "http://" + between.address + "/api/v1"
	// An API token outlives the loop and does not need the issuer.
	caller := value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.realm.password("ada"), `{"name":"caller"}`))
	made := map[string]int{"caller": 1}
	acknowledged := 0

	for i := range rounds(100) {
		kill.Round(t)

		name, key := fmt.Sprintf("token %d", i), uuid.NewString()
		made[name] = 1

		var first *answer
		if i%2 == 0 {
			process := s.process.Process
			between.set(behaviour{cut: func() { _ = kill.Process(t, process) }})

			_, err := try(creation(t, through, caller, name, key))
			require.Error(t, err, "the proxy keeps the answer back")
			<-s.exited
		} else {
			first = killAmid(s, creation(t, s.url, caller, name, key), rand.N(1+rand.N(20*time.Millisecond))) // most answers take a few milliseconds
		}

		s.restart()

		again := send(t, creation(t, s.url, caller, name, key))
		require.Equal(t, http.StatusCreated, again.status, again.body)
		requireWorks(t, s.url, again)

		if first != nil {
			acknowledged++
			requireSame(t, []*answer{first, again})
		}
	}

	require.Equal(t, made, names(t, s.url, caller))
	t.Logf("%d of %d were acknowledged before the kill", acknowledged, len(made)-1)
}

// killAmid kills the service some time after it sent the request. It returns nil if no answer arrived.
func killAmid(s *service, request *http.Request, after time.Duration) *answer {
	answered := make(chan *answer, 1)

	go func() {
		first, _ := try(request)
		answered <- first
	}()

	time.Sleep(after)
	s.kill()

	return <-answered
}

// creation returns a request for a new token with an Idempotency-Key.
func creation(t *testing.T, url, token, name, key string) *http.Request {
	t.Helper()

	return newRequest(t, http.MethodPost, url+"/user/tokens", token, fmt.Sprintf(`{"name":%q}`, name), "Idempotency-Key: "+key)
}

// atOnce sends n requests at the same time and returns their answers.
func atOnce(t *testing.T, n int, request func(i int) *http.Request) []*answer {
	t.Helper()

	var (
		sending  sync.WaitGroup
		requests = make([]*http.Request, n)
		answers  = make([]*answer, n)
		failures = make([]error, n)
	)

	for i := range n {
		requests[i] = request(i)
		sending.Go(func() { answers[i], failures[i] = try(requests[i]) })
	}

	sending.Wait()

	for i := range n {
		require.NoError(t, failures[i])
		validate(t, requests[i], answers[i])
	}

	return answers
}

// requireSame checks that every answer is a success and equal to the first one, byte by byte.
func requireSame(t *testing.T, answers []*answer) {
	t.Helper()

	for _, answer := range answers {
		require.Equal(t, http.StatusCreated, answer.status, answer.body)
		require.Equal(t, answers[0].body, answer.body)
	}
}

// requireWorks checks that the token in the answer to a creation is valid.
func requireWorks(t *testing.T, url string, created *answer) {
	t.Helper()
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, url+"/user/me", value(t, created), "").status)
}

// value returns the token in the answer to its creation.
func value(t *testing.T, created *answer) string {
	t.Helper()
	require.Equal(t, http.StatusCreated, created.status, created.body)

	var token struct{ Token string }
	created.json(t, &token)
	require.NotEmpty(t, token.Token)

	return token.Token
}

// names returns the number of the caller's tokens by name, over all pages.
func names(t *testing.T, url, token string) map[string]int {
	t.Helper()

	count := map[string]int{}

	for cursor := ""; ; {
		var page struct {
			Data       []struct{ Name string }
			NextCursor string
		}

		listed := call(t, http.MethodGet, url+"/user/tokens?limit=100"+cursor, token, "")
		require.Equal(t, http.StatusOK, listed.status, listed.body)
		listed.json(t, &page)

		for _, token := range page.Data {
			count[token.Name]++
		}

		if page.NextCursor == "" {
			return count
		}

		cursor = "&cursor=" + page.NextCursor
	}
}
