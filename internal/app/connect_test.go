package app

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/config"
)

func get(t *testing.T, client *http.Client, url string) (int, error) {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)

	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}

	return response.StatusCode, response.Body.Close()
}

func TestPrivateAuthority(t *testing.T) {
	t.Parallel()

	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)

	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, block, 0o600))

	client, err := httpClient(config.Connection{CAFile: file, Timeout: 5 * time.Second})
	require.NoError(t, err)
	status, err := get(t, client, server.URL)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, status)

	client, err = httpClient(config.Connection{Timeout: 5 * time.Second})
	require.NoError(t, err)
	_, err = get(t, client, server.URL)
	require.ErrorContains(t, err, "certificate", "the system's authorities do not know it")

	_, err = httpClient(config.Connection{CAFile: file + "-absent"})
	require.Error(t, err)

	require.NoError(t, os.WriteFile(file, []byte("nothing"), 0o600))
	_, err = httpClient(config.Connection{CAFile: file})
	require.ErrorContains(t, err, "contains no certificate")
}

func TestProxyOfTheConnectionAlone(t *testing.T) {
	var seen string

	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.URL.String()
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(proxy.Close)

	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")

	client, err := httpClient(config.Connection{Proxy: config.URL(proxy.URL), Timeout: 5 * time.Second})
	require.NoError(t, err)
	status, err := get(t, client, "http://issuer.test/keys")
	require.NoError(t, err)
	require.Equal(t, http.StatusTeapot, status)
	require.Equal(t, "http://issuer.test/keys", seen)

	client, err = httpClient(config.Connection{Timeout: 5 * time.Second})
	require.NoError(t, err)
	status, err = get(t, client, other.URL)
	require.NoError(t, err, "the environment's proxy is not used")
	require.Equal(t, http.StatusNotFound, status)
}
