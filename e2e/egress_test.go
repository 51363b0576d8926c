package e2e

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoEgress checks that the service connects only to the configured servers. The addresses are read from the system calls of
// the process.
func TestNoEgress(t *testing.T) {
	t.Parallel()

	const issuerHost = "issuer.test" // no name server resolves it, so only the proxy leads there

	realm := newRealm(t)
	configured, foreign := newProxy(t, realm.base), newProxy(t, realm.base)
	settings := []string{
		"QUERN_OIDC_ISSUER=" + realm.through(issuerHost).issuer(), "QUERN_OIDC_KEYS_REFRESH=1s",
		"QUERN_OIDC_PROXY=http://quern:proxy-password@" + configured.address,
	}

	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		settings = append(settings, name+"=http://"+foreign.address)
	}

	s := start(t, settings...)
	s.stop()
	trace := s.runTraced()

	ada := signInAt(realm, issuerHost, "ada")
	await(t, "the issuer's keys are read", func() bool { return me(t, s, ada).status == http.StatusOK })

	ours := call(t, http.MethodPost, s.url+"/user/tokens", ada, `{"name":"ours"}`, "Idempotency-Key: ours")
	require.Equal(t, http.StatusOK, me(t, s, value(t, ours)).status)

	for _, path := range []string{"/user/tokens", "/openapi.json", "/docs", "/nowhere"} {
		call(t, http.MethodGet, s.url+path, ada, "")
	}

	stranger := newStranger(t, realm.through(issuerHost))
	requireRefused(t, me(t, s, stranger.token("ada")))
	// An address in a token or a request is never contacted.
	elsewhere := newStranger(t, realm.through("elsewhere.test"))
	require.Equal(t, http.StatusUnauthorized, me(t, s, elsewhere.token("ada")).status)
	call(t, http.MethodGet, s.url+"/user/me", ada, "", "Origin: http://elsewhere.test", "X-Forwarded-For: 192.0.2.1")

	configured.set(behaviour{refuse: true})
	requireUnavailable(t, me(t, s, stranger.token("ada")))
	require.Equal(t, http.StatusOK, me(t, s, ada).status)
	s.stop()

	database, err := url.Parse(s.databaseURL)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{database.Host, configured.address, strings.TrimPrefix(s.place.endpoint, "http://")}, trace.destinations(t))

	_, connections := foreign.record()
	require.Zero(t, connections, "the environment's proxies are not for us")

	addresses, _ := configured.record()
	for _, address := range addresses {
		require.True(t, strings.HasPrefix(address, issuerHost+"/"), address)
	}

	require.NotContains(t, s.log(), "proxy-password")
}

// signInAt gets a token from Keycloak under another host name, which Keycloak accepts as its own.
func signInAt(r *realm, host, user string) string {
	r.t.Helper()

	form := url.Values{"grant_type": {"password"}, "client_id": {client}, "username": {user}, "password": {user + "-pw"}}
	request := newForm(r.t, r.endpoint("token"), form)
	request.Host = host

	var got tokens
	r.ask(request, http.StatusOK).json(r.t, &got)

	return got.Access
}

// runTraced starts the service again under strace, which records the addresses that the process connects or sends to.
func (s *service) runTraced() systemCalls {
	s.t.Helper()

	strace, err := exec.LookPath("strace")
	require.NoError(s.t, err, "the Debian package strace is needed")

	calls := systemCalls{file: filepath.Join(s.t.TempDir(), "strace")}

	// -D keeps quernd as the child of the test, and strace as a detached process.
	s.settings = append(s.settings, "QUERN_LISTEN_ADDR="+strings.TrimPrefix(s.root, "http://"))
	s.process = exec.Command(strace, "-D", "-f", "-q", "-e", "signal=none", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", calls.file,
		binary(), "serve")
	s.process.Env = s.settings
	s.process.Stderr = s.written
	s.exited = make(chan struct{})
	require.NoError(s.t, s.process.Start())

	go func() {
		defer close(s.exited)

		_ = s.process.Wait()
	}()

	s.awaitReady()

	return calls
}

// systemCalls is the output of strace for one process.
type systemCalls struct{ file string }

var (
	socketFamily  = regexp.MustCompile(`sa_family=(AF_\w+)`)
	socketAddress = regexp.MustCompile(`sin6?_port=htons\((\d+)\).*(?:inet_addr\(|AF_INET6, )"([^"]+)"`)
)

// destinations returns the network addresses of the process, without duplicates.
func (c systemCalls) destinations(t *testing.T) []string {
	t.Helper()

	var record string

	await(t, "strace has written all", func() bool {
		content, err := os.ReadFile(c.file)
		record = string(content)

		return err == nil && strings.HasSuffix(strings.TrimSpace(record), "+++ exited with 0 +++")
	})

	seen := map[string]bool{}

	for line := range strings.Lines(record) {
		family := socketFamily.FindStringSubmatch(line)
		if family == nil || family[1] == "AF_UNIX" || family[1] == "AF_NETLINK" {
			continue // no address, or an address inside this machine's kernel
		}

		address := socketAddress.FindStringSubmatch(line)
		require.NotNil(t, address, "an address that this test cannot read: %s", line)
		seen[net.JoinHostPort(address[2], address[1])] = true
	}

	var list []string
	for address := range seen {
		list = append(list, address)
	}

	return list
}
