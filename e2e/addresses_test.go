package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// addresses is an HTTPS server with files, whose certificate is of a private authority.
type addresses struct {
	t      *testing.T
	server *httptest.Server
	host   string // with the port
	ca     string // PEM

	mu       sync.Mutex
	files    map[string]served
	wanted   string         // value of Authorization, if not empty
	answered map[string]int // number of answers by path and status
}

// served is a file of the server.
type served struct {
	content string
	header  http.Header // nil for a strong ETag
	answer  http.HandlerFunc
}

func newAddresses(t *testing.T, protocol string) *addresses {
	t.Helper()

	a := &addresses{t: t, files: map[string]served{}, answered: map[string]int{}}
	a.server = httptest.NewUnstartedServer(a)
	ca, certificate := newAuthority(t)
	a.ca, a.server.TLS = ca, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	a.server.EnableHTTP2 = protocol == "h2"
	a.server.StartTLS()
	a.host = strings.TrimPrefix(a.server.URL, "https://")
	t.Cleanup(a.server.Close)

	return a
}

// newAuthority returns a private authority, and a certificate of it for 127.0.0.1.
func newAuthority(t *testing.T) (ca string, certificate tls.Certificate) {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)

	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	require.NoError(t, err)

	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)

	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	issued, err := x509.CreateCertificate(rand.Reader, leaf, root, own.Public(), key)
	require.NoError(t, err)

	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})), tls.Certificate{Certificate: [][]byte{issued}, PrivateKey: own}
}

func (a *addresses) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/data/")
	recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}

	a.mu.Lock()
	found, isThere := a.files[path]
	isAllowed := a.wanted == "" || r.Header.Get("Authorization") == a.wanted
	a.mu.Unlock()

	defer func() {
		a.mu.Lock()
		a.answered[fmt.Sprintf("%s %d", path, recorder.status)]++
		a.mu.Unlock()
	}()

	switch {
	case !isAllowed:
		http.Error(recorder, "who are you?", http.StatusUnauthorized)
	case !isThere:
		http.NotFound(recorder, r)
	case found.answer != nil:
		found.answer(recorder, r)
	default:
		header := found.header
		if header == nil {
			sum := sha256.Sum256([]byte(found.content))
			header = http.Header{"Etag": {`"` + hex.EncodeToString(sum[:8]) + `"`}}
		}

		maps.Copy(recorder.Header(), header)

		if tag := header.Get("ETag"); tag != "" && r.Header.Get("If-None-Match") == tag ||
			tag == "" && header.Get("Last-Modified") != "" && r.Header.Get("If-Modified-Since") == header.Get("Last-Modified") {
			recorder.WriteHeader(http.StatusNotModified)

			return
		}

		_, _ = recorder.Write([]byte(found.content))
	}
}

// statusRecorder remembers the status of an answer.
type statusRecorder struct {
	http.ResponseWriter

	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// serve puts a file on the server.
func (a *addresses) serve(path string, file served) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.files[path] = file
}

func (a *addresses) put(path, content string) { a.serve(path, served{content: content}) }

func (a *addresses) remove(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()

	delete(a.files, path)
}

// count returns the number of answers since the last call, as "PATH STATUS".
func (a *addresses) count() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()

	defer func() { a.answered = map[string]int{} }()

	return a.answered
}

// settings returns the settings of a connection to the server, with other values for some of them.
func (a *addresses) settings(others map[string]any) string {
	a.t.Helper()

	all := map[string]any{"baseUrl": a.server.URL + "/data", "caCertificate": a.ca}
	maps.Copy(all, others)

	text, err := json.Marshal(all)
	require.NoError(a.t, err)

	return string(text)
}

// hosts is the setting with which a service may reach the server.
func (a *addresses) hosts() string { return "QUERN_SOURCE_HOSTS=" + a.host }

// connectAddresses makes a connection to a server and returns its id.
func (s *service) connectAddresses(t *testing.T, bearer string, to *addresses, others map[string]any) string {
	t.Helper()

	var made connected

	answer := call(t, http.MethodPost, s.url+"/connections", bearer, fmt.Sprintf(`{"name": "c-%s", "kind": "https", "https": %s}`, uuid.NewString(), to.settings(others)))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)
	require.Nil(t, made.Problem)

	return made.ID
}

// newAddressSource makes a source of addresses for a dataset that does not exist.
func newAddressSource(t *testing.T, s *service, to *addresses, owner, bearer, more string, paths ...string) *sourceOf {
	t.Helper()

	o := &sourceOf{filled: &filled{t, s, bearer, owner, "n-" + uuid.NewString(), "orders"}, web: to, model: map[int64]int{}, files: map[string][]int64{}}
	connection := s.connectAddresses(t, bearer, to, nil)

	list, err := json.Marshal(paths)
	require.NoError(t, err)

	var made sourced

	answer := call(t, http.MethodPost, s.url+"/sources", bearer,
		fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": %q, "datasetName": "orders", "paths": %s%s}`, uuid.NewString(), connection, o.namespace, list, more))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)

	o.id = made.ID

	return o
}
