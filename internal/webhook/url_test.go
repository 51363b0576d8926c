package webhook

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestURLs(t *testing.T) {
	t.Parallel()

	w := New(Config{Transport: &http.Transport{}, Timeout: time.Second})

	for _, text := range []string{
		"", "example.com", "http://example.com", "ftp://example.com", "https://", "https://user:secret@example.com", "https://example.com/#x", "https://127.0.0.1", "https://[::1]/", "https://[fe80::1%25lo]/",
		"https://169.254.169.254/latest", "https://[::ffff:127.0.0.1]/", "javascript:alert(1)", "https://exa mple.com",
	} {
		require.Error(t, w.checkURL(text), text)
	}

	for _, text := range []string{"https://example.com", "https://example.com:8443/hooks?a=b", "https://8.8.8.8/x"} {
		require.NoError(t, w.checkURL(text), text)
	}
}
