package e2e

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy forwards requests between a client and an HTTP server, counts them, and fails as its behaviour says.
type proxy struct {
	address string // host:port

	mutex       sync.Mutex
	behaviour   behaviour
	changed     chan struct{} // closed when the behaviour changes
	addresses   []string      // host and path of each request
	answered    []string      // path of each answer that came from the target
	connections int
}

// behaviour says what happens to requests. The zero value forwards them.
type behaviour struct {
	refuse    bool                     // connections are closed at once
	blackhole bool                     // requests are read and never answered
	delay     time.Duration            // answers are held back for this time
	status    int                      // requests are answered with this status
	cut       func()                   // runs at the first byte of an answer, which is not forwarded
	cuts      func(*http.Request) bool // the requests whose answers are cut; nil means all
	early     bool                     // the cut happens before the request is forwarded
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()

	to, err := url.Parse(target)
	require.NoError(t, err)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)

	p := &proxy{address: listener.Addr().String(), changed: make(chan struct{})}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // Keycloak takes its issuer from it
		},
		// On a reused connection the transport might repeat a request by itself.
		Transport: &http.Transport{DisableKeepAlives: true},
		ModifyResponse: func(answer *http.Response) error {
			b, changed := p.current()
			if b.cut != nil && (b.cuts == nil || b.cuts(answer.Request)) {
				b.cut()
				panic(http.ErrAbortHandler)
			}

			p.noteAnswer(answer.Request.URL.Path)
			hold(answer.Request, changed, b.delay)

			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}

	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.note(r.Host + r.URL.Path)

			switch b, changed := p.current(); {
			case b.refuse:
				panic(http.ErrAbortHandler)
			case b.blackhole:
				hold(r, changed, time.Hour)
				panic(http.ErrAbortHandler)
			case b.early && b.cuts(r):
				b.cut()
				panic(http.ErrAbortHandler)
			case b.status != 0:
				w.WriteHeader(b.status)
			default:
				// The forwarding transport may still read the body after the request was aborted, which is a race on the
				// connection. So read it here.
				body, err := io.ReadAll(r.Body)
				if err != nil {
					panic(http.ErrAbortHandler)
				}

				r.Body = io.NopCloser(bytes.NewReader(body))
				forward.ServeHTTP(w, r)
			}
		}),
		ConnState: func(conn net.Conn, state http.ConnState) {
			if state == http.StateNew && p.connected() {
				_ = conn.Close()
			}
		},
	}

	go func() { _ = server.Serve(listener) }()

	t.Cleanup(func() { _ = server.Close() })

	return p
}

// set changes the behaviour from now on. Requests that are held back continue.
func (p *proxy) set(b behaviour) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.behaviour = b
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *proxy) current() (behaviour, <-chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	return p.behaviour, p.changed
}

// record returns the requests, each as host and path, and the number of connections.
func (p *proxy) record() (addresses []string, connections int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	return slices.Clone(p.addresses), p.connections
}

// requests returns the number of requests to paths with this suffix.
func (p *proxy) requests(suffix string) int {
	addresses, _ := p.record()

	return len(slices.DeleteFunc(addresses, func(address string) bool { return !strings.HasSuffix(address, suffix) }))
}

// answers returns the number of answers that came from the target for paths with this suffix, including those that are held back.
func (p *proxy) answers(suffix string) (count int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	for _, path := range p.answered {
		if strings.HasSuffix(path, suffix) {
			count++
		}
	}

	return count
}

func (p *proxy) noteAnswer(path string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.answered = append(p.answered, path)
}

func (p *proxy) note(address string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.addresses = append(p.addresses, address)
}

func (p *proxy) connected() (refuse bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.connections++

	return p.behaviour.refuse
}

// hold returns after the time, when the client disconnects, or when the behaviour changes.
func hold(r *http.Request, changed <-chan struct{}, long time.Duration) {
	select {
	case <-r.Context().Done():
	case <-changed:
	case <-time.After(long):
	}
}
