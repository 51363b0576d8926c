package connection

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/extract"
	"quern.dev/quern/internal/fault"
)

// buffer is a place in memory.
type buffer struct{ bytes.Buffer }

func (b *buffer) Empty() error {
	b.Reset()

	return nil
}

// TestFetch checks what becomes of answers that are late or not whole.
func TestFetch(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex

	requests := map[string]int{}
	asked := func(path string, more int) int {
		mu.Lock()
		defer mu.Unlock()

		requests[path] += more

		return requests[path]
	}
	content := strings.Repeat("n\n1\n", 1000)
	begin := func(w http.ResponseWriter) {
		_, _ = w.Write([]byte(content))
		_ = http.NewResponseController(w).Flush()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		times := asked(r.URL.Path, 1)

		switch r.URL.Path {
		case "/whole.csv":
			begin(w)
		case "/short.csv", "/once.csv":
			if r.URL.Path == "/short.csv" || times == 1 {
				w.Header().Set("Content-Length", "100000")
			}

			begin(w)
		case "/aborted.csv":
			begin(w)
			panic(http.ErrAbortHandler)
		case "/silent.csv":
			<-r.Context().Done()
		case "/stalled.csv":
			begin(w)
			<-r.Context().Done()
		case "/drips.csv":
			for r.Context().Err() == nil {
				begin(w)
				time.Sleep(50 * time.Millisecond)
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)

	client := func(longest, whole time.Duration) *Web {
		c := New(Config{
			Now: time.Now, Hosts: []string{strings.TrimPrefix(server.URL, "http://")}, Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Transport: &http.Transport{}, Timeout: longest, Extract: extract.Limits{Duration: whole},
		})

		web, done, err := c.web(HTTPS{BaseURL: server.URL + "/", Auth: NoAuth}, "")
		require.NoError(t, err)
		t.Cleanup(done)

		return web
	}
	patient, hasty := client(time.Minute, time.Minute), client(300*time.Millisecond, time.Second)

	var to buffer

	fetch := func(path string, most int64) (Fetched, error) {
		return patient.Fetch(t.Context(), path, Validator{}, most, &to)
	}

	for _, path := range []string{"whole.csv", "once.csv"} {
		found, err := fetch(path, 1<<20)
		require.NoError(t, err, path)
		require.EqualValues(t, len(content), found.Size)
		require.Equal(t, content, to.String())
	}

	found, err := fetch("whole.csv", 10)
	require.NoError(t, err)
	require.EqualValues(t, 11, found.Size, "enough to know that it is too large")

	for _, path := range []string{"short.csv", "aborted.csv"} {
		_, err := fetch(path, 1<<20)
		_, isUnfit := errors.AsType[*UnfitError](err)
		require.True(t, isUnfit, "%s: %v", path, err)
		require.Equal(t, 2, asked("/"+path, 0))
	}

	for _, path := range []string{"silent.csv", "stalled.csv", "drips.csv"} {
		began := time.Now()
		_, err := hasty.Fetch(t.Context(), path, Validator{}, 1<<30, &to)
		require.Equal(t, ProblemTimeout, ProblemHTTPS(err), "%s: %v", path, err)
		require.Equal(t, 1, asked("/"+path, 0))
		require.Less(t, time.Since(began), 20*time.Second)
	}

	_, err = fetch("none.csv", 1<<20)
	require.True(t, fault.Is(err, fault.NotFound))
}

// TestFetchStalled checks that an answer that stalls is never taken for a whole one, although the server ends it properly when it notices that nobody waits for it.
func TestFetchStalled(t *testing.T) {
	t.Parallel()

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("n\n1\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)

	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	c := New(Config{
		Now: time.Now, Hosts: []string{strings.TrimPrefix(server.URL, "https://")}, Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Transport: &http.Transport{}, Timeout: time.Second, Extract: extract.Limits{Duration: time.Minute},
	})

	var group sync.WaitGroup

	problems := make([]string, 200)
	for i := range problems {
		group.Go(func() {
			web, done, err := c.web(HTTPS{BaseURL: server.URL + "/", CA: authority, Auth: NoAuth}, "")
			if err != nil {
				problems[i] = err.Error()

				return
			}
			defer done()

			var to buffer

			time.Sleep(time.Duration(i) * 10 * time.Millisecond)

			if found, err := web.Fetch(t.Context(), "a.csv", Validator{}, 1<<20, &to); err != nil {
				problems[i] = ProblemHTTPS(err)
			} else {
				problems[i] = fmt.Sprintf("%d bytes", found.Size)
			}
		})
	}

	group.Wait()

	for _, problem := range problems {
		require.Equal(t, ProblemTimeout, problem)
	}
}
