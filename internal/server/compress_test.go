package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompress checks that only large JSON is compressed, and only for clients that accept it.
func TestCompress(t *testing.T) {
	t.Parallel()

	compress, err := newCompressor()
	require.NoError(t, err)

	send := func(media, body, accepts string) *http.Response {
		handler := compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = io.WriteString(w, body)
		}))

		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Header.Set("Accept-Encoding", accepts)

		recorded := httptest.NewRecorder()
		handler.ServeHTTP(recorded, request)

		return recorded.Result()
	}

	large := `["` + strings.Repeat("x", 2*compressedBytes) + `"]`

	got := send("application/json", large, "gzip")
	require.Equal(t, "gzip", got.Header.Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", got.Header.Get("Vary"))

	text, err := gzip.NewReader(got.Body)
	require.NoError(t, err)
	read, err := io.ReadAll(text)
	require.NoError(t, err)
	require.Equal(t, large, string(read))

	for name, plain := range map[string]*http.Response{
		"small":        send("application/json", `[]`, "gzip"),
		"not accepted": send("application/json", large, "identity"),
		"refused":      send("application/json", large, "gzip;q=0"),
		"a file":       send("text/csv", large, "gzip"),
	} {
		require.Empty(t, plain.Header.Get("Content-Encoding"), name)
	}
}
