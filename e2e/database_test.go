package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestDatabaseRestart(t *testing.T) {
	t.Parallel()

	database := newPostgres(t)
	s := database.serve(t)
	token := value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.realm.password("ada"), `{"name":"caller"}`))
	w := runWriters(t, s.url, token)

	for range loops(10) {
		w.await(t, 20)
		database.run("restart")
		w.recover(t)

		// down stops the server in order, stop ends it as a crash does.
		for _, stop := range []string{"down", "stop"} {
			w.await(t, 20)
			database.run(stop)
			requireUnready(t, s)
			requireUnavailable(t, me(t, s, token))
			requireUnavailable(t, send(t, creation(t, s.url, token, uuid.NewString(), uuid.NewString())))

			w.awaitFailures(t, 20)
			database.run("up")
			w.recover(t)
			await(t, "readiness says so", func() bool { return s.ready("ok") })
		}
	}

	w.end(t)
	t.Logf("%d times unavailable, the slowest answer took %v", w.unavailable, w.slowest)
	require.Less(t, w.slowest, 5*time.Second)

	made := names(t, s.url, token)

	for name, answer := range w.acked {
		require.Equal(t, 1, made[name], "an acknowledged write is there, once")
		requireWorks(t, s.url, answer)
	}

	require.Len(t, made, len(w.acked)+1, "and nothing but those")
	require.NotContains(t, s.log(), database.password(), "errors of the driver hold no password")
}

func TestDatabaseBusy(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_DATABASE_MAX_CONNS=1", "QUERN_DATABASE_ACQUIRE_TIMEOUT=200ms")
	slow := s.slowRequest(t) // it holds the only connection
	requireUnavailable(t, me(t, s, slow.token))
	slow.release()
	require.Equal(t, http.StatusCreated, (<-slow.answered).status)
	// The service itself uses the connection too.
	await(t, "there is a connection", func() bool { return me(t, s, slow.token).status == http.StatusOK })
}

func TestStartWithoutDatabase(t *testing.T) {
	t.Parallel()

	database := newPostgres(t)
	s := database.serve(t)
	token := value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.realm.password("ada"), `{"name":"caller"}`))
	s.stop()
	database.run("stop")

	s.settings = append(s.settings, "QUERN_LISTEN_ADDR="+strings.TrimPrefix(s.root, "http://"))
	s.run()
	await(t, "quernd answers", func() bool {
		_, err := try(newRequest(t, http.MethodGet, s.root+"/healthz", "", ""))

		return err == nil
	})
	requireUnready(t, s)
	requireUnavailable(t, me(t, s, token))

	database.run("up")
	s.awaitReady()
	require.Equal(t, http.StatusOK, me(t, s, token).status)
}

func TestStartOnOldSchema(t *testing.T) {
	t.Parallel()

	serve := exec.CommandContext(t.Context(), binary(), "serve")
	serve.Env = append(newPlace(t).settings(),
		"QUERN_DATABASE_URL="+createDatabase(t), "QUERN_SECRET="+strings.Repeat("x", 32), "QUERN_PUBLIC_URL=http://quern.test",
		"QUERN_OIDC_ISSUER=http://127.0.0.1:9", "QUERN_OIDC_AUDIENCE=quern",
		"QUERN_LISTEN_ADDR=127.0.0.1:0", "QUERN_ADMIN_ADDR=127.0.0.1:0",
	)
	written, err := serve.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(written), "quernd migrate")
}

// postgres is a server that belongs to the test, which may stop and start it.
type postgres struct {
	t   *testing.T
	dir string
	url string
}

func newPostgres(t *testing.T) *postgres {
	t.Helper()

	p := &postgres{t: t, dir: t.TempDir()}

	t.Cleanup(func() { p.run("remove") })
	p.run("up")

	for line := range strings.Lines(p.run("env")) {
		if url, ok := strings.CutPrefix(line, "QUERN_DATABASE_URL="); ok {
			p.url = strings.TrimSpace(url)
		}
	}

	require.NoError(t, makeRoles(t.Context(), p.url, "ALTER DATABASE quern_dev OWNER TO "+ownerRole))
	p.url = asRole(t, p.url, ownerRole)

	return p
}

func (p *postgres) run(verb string) (printed string) {
	p.t.Helper()

	script, err := filepath.Abs("../stack/postgres")
	require.NoError(p.t, err)

	// Cleanup functions call this after the context of the test has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), 2*patience)
	defer cancel()

	command := exec.CommandContext(ctx, script, verb)
	command.Env = append(os.Environ(), "QUERN_STACK_DIR="+p.dir)
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoError(p.t, err, "stack/postgres %s", verb)

	return string(output)
}

func (p *postgres) password() string {
	address, err := url.Parse(p.url)
	require.NoError(p.t, err)

	password, _ := address.User.Password()
	require.NotEmpty(p.t, password)

	return password
}

// serve starts quernd with a database on this server.
func (p *postgres) serve(t *testing.T, settings ...string) *service {
	t.Helper()

	migrate(t, p.url)

	return start(t, append(settings, "QUERN_DATABASE_URL="+p.url)...)
}

func requireUnready(t *testing.T, s *service) {
	t.Helper()

	// Readiness is up to a second old: it is the result of the last check of the database.
	await(t, "readiness says so", func() bool { return readiness(t, s) == http.StatusServiceUnavailable })
	require.JSONEq(t, `{"status":"unavailable"}`, call(t, http.MethodGet, s.root+"/readyz", "", "").body)
}

// writers is a group of clients that create tokens, each with an idempotency key, and of clients that list them. All repeat a
// request while the service is unavailable.
type writers struct {
	*crowd

	mutex       sync.Mutex
	acked       map[string]*answer // by the token's name
	unavailable int
	slowest     time.Duration
}

func runWriters(t *testing.T, url, token string) *writers {
	t.Helper()

	w := &writers{crowd: newCrowd(t), acked: map[string]*answer{}}
	w.add(8, func() error {
		name, key := uuid.NewString(), uuid.NewString()
		answer, err := w.insist(func() *http.Request { return creation(t, url, token, name, key) })

		w.mutex.Lock()
		defer w.mutex.Unlock()

		w.acked[name] = answer

		return err
	})
	w.add(2, func() error {
		_, err := w.insist(func() *http.Request { return newRequest(t, http.MethodGet, url+"/user/tokens?limit=5", token, "") })

		return err
	})

	return w
}

// insist repeats a request until it succeeds. Every response except success and 503 with Retry-After is an error.
func (w *writers) insist(request func() *http.Request) (*answer, error) {
	for {
		began := time.Now()

		answer, err := try(request())
		if err != nil {
			return nil, err
		}

		w.measure(time.Since(began), answer.status)

		switch {
		case answer.status/100 == 2:
			return answer, nil
		case answer.status != http.StatusServiceUnavailable, answer.header.Get("Retry-After") == "", w.stopped():
			return nil, fmt.Errorf("%d: %s", answer.status, answer.body)
		}

		time.Sleep(50 * time.Millisecond)
	}
}

func (w *writers) measure(took time.Duration, status int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	w.slowest = max(w.slowest, took)
	if status/100 != 2 {
		w.unavailable++
	}
}

func (w *writers) failures() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	return w.unavailable
}

// awaitFailures waits until more further requests were refused.
func (w *writers) awaitFailures(t *testing.T, more int) {
	t.Helper()

	before := w.failures()

	await(t, "requests are refused", func() bool { return w.failures() >= before+more })
}

// recover checks that all requests succeed again within a few seconds after the database started, and continue to succeed.
func (w *writers) recover(t *testing.T) {
	t.Helper()

	began := time.Now()

	w.await(t, 20)
	require.Less(t, time.Since(began), 5*time.Second)

	before := w.failures()

	w.await(t, 20)
	require.Equal(t, before, w.failures(), "it goes on failing")
}
