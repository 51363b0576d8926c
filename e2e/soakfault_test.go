//go:build soak

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// soakFault is something that goes wrong. happen returns when it is over, with the moment from which recovery counts.
type soakFault struct {
	name   string
	happen func() time.Time
}

// faults returns one fault of each kind.
func (k *soak) faults() (list []soakFault) {
	for _, part := range []string{"database", "store", "issuer", "model", "front"} {
		latency := map[string]int{"database": 100, "front": 300}[part]
		if latency == 0 {
			latency = 1000
		}

		for _, one := range []struct{ name, toxic string }{
			{"down", ""},
			{"blackhole", `{"name": "fault", "type": "timeout", "attributes": {"timeout": 0}}`},
			{"reset", `{"name": "fault", "type": "reset_peer", "attributes": {"timeout": 0}}`},
			{"latency", fmt.Sprintf(`{"name": "fault", "type": "latency", "attributes": {"latency": %d, "jitter": %d}}`, latency, latency/4)},
		} {
			list = append(list, soakFault{part + " " + one.name, func() time.Time { return k.toxic.during(part, one.toxic, faultLasts) }})
		}
	}

	still := k.random.IntN(2)

	return append(list,
		soakFault{"api SIGKILL", func() time.Time { return k.killed(k.apis[1]) }}, soakFault{"worker SIGKILL", func() time.Time { return k.killed(k.workers[1]) }},
		soakFault{"api SIGSTOP", func() time.Time { return stopped(k.t, k.apis[still]) }}, soakFault{"worker SIGSTOP", func() time.Time { return stopped(k.t, k.workers[still]) }},
		soakFault{"api children", func() time.Time { return killChildren(k.apis[still]) }}, soakFault{"worker children", func() time.Time { return killChildren(k.workers[still]) }})
}

// killed kills a process and starts it again at once, as a supervisor does.
func (k *soak) killed(s *service) time.Time {
	k.t.Helper()

	began := time.Now()

	s.kill()
	s.restart()

	return began
}

// killChildren kills the sealed processes of a process.
func killChildren(s *service) time.Time {
	process, _ := s.current()
	for _, child := range childrenOf(process.Process.Pid) {
		_ = kill.ID(s.t, child) // it may have ended
	}

	return time.Now()
}

// stopped halts a process for longer than its leases last.
func stopped(t *testing.T, s *service) time.Time {
	t.Helper()

	process, _ := s.current()
	require.NoError(t, process.Process.Signal(syscall.SIGSTOP))
	time.Sleep(2 * faultLasts)
	require.NoError(t, process.Process.Signal(syscall.SIGCONT))

	return time.Now()
}

// toxiproxy is a process of Shopify's proxy that causes faults of the network. QUERN_TEST_TOXIPROXY is the path of the program.
type toxiproxy struct {
	t       *testing.T
	address string
}

func newToxiproxy(t *testing.T) *toxiproxy {
	t.Helper()

	program := os.Getenv("QUERN_TEST_TOXIPROXY")
	require.NotEmpty(t, program, "run it with: make soak")

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, listener.Close())

	written := &output{}
	process := exec.Command(program, "-host", host, "-port", port)
	process.Stderr = written
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()

		if said := written.String(); t.Failed() && said != "" {
			t.Logf("toxiproxy wrote at the end: %s", said[max(0, len(said)-4000):])
		}
	})

	p := &toxiproxy{t, "http://" + net.JoinHostPort(host, port)}
	await(t, "toxiproxy answers", func() bool {
		_, err := try(newRequest(t, http.MethodGet, p.address+"/version", "", ""))

		return err == nil
	})

	return p
}

// between places a proxy in front of an address, and returns the address of the proxy.
func (p *toxiproxy) between(name, upstream string) (address string) {
	p.t.Helper()

	var made struct{ Listen string }

	p.call(http.MethodPost, "/proxies", fmt.Sprintf(`{"name": %q, "listen": "127.0.0.1:0", "upstream": %q, "enabled": true}`, name, upstream)).json(p.t, &made)

	return made.Listen
}

// during applies a toxic for a time, in both directions. An empty one closes all connections and refuses new ones.
func (p *toxiproxy) during(name, toxic string, lasting time.Duration) time.Time {
	p.t.Helper()

	if toxic == "" {
		p.call(http.MethodPost, "/proxies/"+name, `{"enabled": false}`)
		time.Sleep(lasting)
		p.call(http.MethodPost, "/proxies/"+name, `{"enabled": true}`)

		return time.Now()
	}

	p.call(http.MethodPost, "/proxies/"+name+"/toxics", toxic) // downstream: what the service answers

	if strings.Contains(toxic, `"timeout": 0`) {
		p.call(http.MethodPost, "/proxies/"+name+"/toxics", strings.Replace(toxic, `"name": "fault"`, `"name": "fault-up", "stream": "upstream"`, 1))
		time.Sleep(lasting)
		p.call(http.MethodDelete, "/proxies/"+name+"/toxics/fault-up", "")
	} else {
		time.Sleep(lasting)
	}

	p.call(http.MethodDelete, "/proxies/"+name+"/toxics/fault", "")

	return time.Now()
}

func (p *toxiproxy) call(method, path, body string) *answer {
	p.t.Helper()

	request := newRequest(p.t, method, p.address+path, "", body)
	request.Close = true // toxiproxy closes connections that were idle

	answer, err := try(request)
	require.NoError(p.t, err)
	require.Less(p.t, answer.status, http.StatusBadRequest, answer.body)

	return answer
}

// balancer passes requests to the replicas in turn, and to none that is not ready. It repeats a request at the next replica only if the
// connection was refused.
type balancer struct {
	address  string
	replicas []*backend
	turn     atomic.Int64
}

type backend struct {
	host string
	up   atomic.Bool
}

func newBalancer(t *testing.T, replicas []*service) *balancer {
	t.Helper()

	b := &balancer{}
	for _, one := range replicas {
		b.replicas = append(b.replicas, &backend{host: strings.TrimPrefix(one.root, "http://")})
	}

	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetXForwarded()
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "replica"
		},
		Transport: b, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	b.address = strings.TrimPrefix(server.URL, "http://")

	ctx, enough := context.WithCancel(context.Background())

	var checking sync.WaitGroup

	for _, one := range b.replicas {
		checking.Go(func() { one.check(ctx) })
	}

	t.Cleanup(func() {
		enough()
		checking.Wait()
		server.CloseClientConnections()
		server.Close()
	})

	return b
}

// check asks twice a second whether the replica is ready.
func (r *backend) check(ctx context.Context) {
	for ; ctx.Err() == nil; waitFor(ctx, 500*time.Millisecond) {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		request, err := http.NewRequestWithContext(asking, http.MethodGet, "http://"+r.host+"/readyz", http.NoBody)

		if err == nil {
			answer, failed := try(request)
			r.up.Store(failed == nil && answer.status == http.StatusOK)
		}

		cancel()
	}
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte

	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}

		request.ContentLength = int64(len(body))
	}

	failure := errors.New("no replica is ready")

	for range len(b.replicas) {
		next := b.replicas[int(b.turn.Add(1))%len(b.replicas)]
		if !next.up.Load() {
			continue
		}

		sent := request.Clone(request.Context())
		sent.URL.Host = next.host

		if sent.Body = http.NoBody; len(body) > 0 {
			sent.Body = io.NopCloser(bytes.NewReader(body))
		}

		answer, err := http.DefaultTransport.RoundTrip(sent)
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) {
			return answer, err
		}

		failure = err
	}

	return nil, failure
}
