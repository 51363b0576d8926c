package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

const (
	thinking    = 9 * time.Second        // how long the agents send no event
	firstByte   = 100 * time.Millisecond // maximum, in addition to the time of a plain request
	readTimeout = 5 * time.Second        // the read timeout of many clients
)

// thought returns a question whose agent waits for several seconds before it answers.
func thought() string {
	return fmt.Sprintf(`{"pause": %d, "reasoning": "Slow.", "response": "Done.", "steps": [{"instruction": "x", "queries": ["SELECT 1 AS n"]}]}`, thinking.Milliseconds())
}

// impatient returns a client that fails when nothing arrives for readTimeout.
func impatient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := new(net.Dialer).DialContext(ctx, network, address)

			return impatientConn{connection}, err
		},
	}}
}

type impatientConn struct{ net.Conn }

// Read implements io.Reader.
func (c impatientConn) Read(into []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
		return 0, err
	}

	return c.Conn.Read(into)
}

// clocked is a stream with the arrival time of each part.
type clocked struct {
	headers, first time.Duration // after the request
	longest        time.Duration // longest time without data
	text           string
	at             []arrival
	err            error
}

// arrival is the length of the received text at a time.
type arrival struct {
	length int
	after  time.Duration
}

// clock opens a stream; wait reads it to its end.
func clock(t *testing.T, request *http.Request) (wait func() clocked) {
	t.Helper()

	var c clocked

	request.Header.Set("Accept", "text/event-stream")

	began := time.Now()
	response, err := impatient().Do(request)
	require.NoError(t, err)

	c.headers = time.Since(began)
	opened := make(chan struct{})
	done := make(chan struct{})

	go func() {
		defer close(done)
		defer func() { _ = response.Body.Close() }()

		buffer := make([]byte, 64<<10)

		for last := began; ; {
			n, err := response.Body.Read(buffer)
			now := time.Now()

			if c.text += string(buffer[:n]); len(c.at) == 0 {
				c.first = now.Sub(began)
				close(opened)
			}

			c.longest, last = max(c.longest, now.Sub(last)), now
			c.at = append(c.at, arrival{len(c.text), now.Sub(began)})

			if err != nil {
				if !errors.Is(err, io.EOF) {
					c.err = err
				}

				return
			}
		}
	}()

	<-opened // streams open one after the other, so that none waits for another

	return func() clocked {
		<-done

		return c
	}
}

// when returns the time at which the words arrived.
func (c clocked) when(t *testing.T, words string) time.Duration {
	t.Helper()

	place := strings.Index(c.text, words)
	require.GreaterOrEqual(t, place, 0, "%s is not in %s", words, c.text)

	for _, one := range c.at {
		if one.length > place {
			return one.after
		}
	}

	return 0
}

// TestFirstByte checks that every stream opens at once, regardless of what its agent does, and is never silent for long. So a
// client with a read timeout of five seconds reads it to its end. Over A2A, a task is in the state working as soon as a worker
// has taken it.
func TestFirstByte(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_MAX_PER_USER=100")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	ask := func(agent string) *http.Request {
		return newRequest(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script(agent, thought(), ""))
	}
	events := func(run string, headers ...string) *http.Request {
		return newRequest(t, http.MethodGet, s.url+"/query/runs/"+run+"/events", d.bearer, "", headers...)
	}

	var (
		opened = map[string]func() clocked{}
		plain  time.Duration // the slowest of the plain requests
	)

	for _, agent := range []string{"nl2ql", "assistant"} {
		p := newPeer(d, agent)

		began := time.Now()
		run := d.accept(agent, thought()).RunID
		plain = max(plain, time.Since(began))

		opened[agent+": POST /query/ask"] = clock(t, ask(agent))
		opened[agent+": GET events"] = clock(t, events(run))
		opened[agent+": GET events, resumed"] = clock(t, events(run, "Last-Event-ID: 3"))
		opened[agent+": SendStreamingMessage"] = clock(t, p.request("SendStreamingMessage", p.ask(uuid.NewString(), thought(), "")))
		opened[agent+": SubscribeToTask"] = clock(t, p.request("SubscribeToTask", `{"id": "`+run+`"}`))
	}

	var waiting sync.WaitGroup

	for name, wait := range opened {
		waiting.Go(func() {
			stream := wait()
			t.Logf("%s: headers after %v, first byte after %v, silent for %v at most", name, stream.headers, stream.first, stream.longest)

			if stream.err != nil || stream.first > firstByte+3*plain || stream.longest > readTimeout-readTimeout/10 {
				t.Errorf("%s: %v", name, stream.err)
			}

			if !strings.Contains(stream.text, "runCompleted") && !strings.Contains(stream.text, "TASK_STATE_COMPLETED") {
				t.Errorf("%s: it does not come to its end: %s", name, stream.text)
			}
		})
	}

	waiting.Wait()
	t.Logf("a plain request took %v", plain)

	for agent, result := range map[string]string{"nl2ql": "generated-query", "assistant": "step-0"} {
		for _, method := range []string{"SendStreamingMessage", "SubscribeToTask"} {
			stream := opened[agent+": "+method]()
			require.Greater(t, stream.when(t, result)-stream.when(t, "TASK_STATE_WORKING"), thinking/2, "%s: %s", agent, method)
		}
	}
}

// TestStreamsRefused checks that a refused request gets an ordinary response and never a stream. A refused question creates no
// run.
func TestStreamsRefused(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_MAX_STREAMS_PER_USER=2", "QUERN_RUN_MAX_PER_USER=100", "QUERN_RUN_WORKERS=0")
	key := s.newKey()
	d, other := newFilled(t, s, "ada", key.token("ada")), newFilled(t, s, "bob", key.token("bob"))
	run := d.accept("nl2ql", `{}`).RunID
	p, stranger := newPeer(d, "nl2ql"), newPeer(other, "nl2ql")

	ask := func(bearer, body string) *http.Request {
		return newRequest(t, http.MethodPost, s.url+"/query/ask", bearer, body, "Accept: text/event-stream")
	}
	events := func(bearer, run string, headers ...string) *http.Request {
		return newRequest(t, http.MethodGet, s.url+"/query/runs/"+run+"/events", bearer, "", headers...)
	}
	refuse := func(name string, status int, request *http.Request) *answer {
		t.Helper()

		got := send(t, request)
		require.Equal(t, status, got.status, "%s: %s", name, got.body)
		require.Equal(t, "application/json", got.header.Get("Content-Type"), name)

		return got
	}
	subscribe := `{"id": "` + run + `"}`
	message := p.ask(uuid.NewString(), `{}`, "")

	refuse("no token", http.StatusUnauthorized, ask("", d.script("nl2ql", `{}`, "")))
	refuse("no token", http.StatusUnauthorized, events("", run))
	refuse("no token", http.StatusUnauthorized, newPeer(d.by(""), "nl2ql").request("SendStreamingMessage", message))
	refuse("no namespace", http.StatusNotFound, ask(other.bearer, d.script("nl2ql", `{}`, "")))
	refuse("no run", http.StatusNotFound, events(d.bearer, uuid.NewString()))
	refuse("another's run", http.StatusNotFound, events(other.bearer, run))
	refuse("no agent", http.StatusNotFound, newPeer(d, "nobody").request("SendStreamingMessage", message))
	refuse("not valid", http.StatusUnprocessableEntity, ask(d.bearer, `{"username": "ada"}`))
	refuse("not valid", http.StatusUnprocessableEntity, events(d.bearer, run, "Last-Event-ID: x"))

	for name, answer := range map[string]*answer{
		"-32001": refuse("another's task", http.StatusOK, stranger.request("SubscribeToTask", subscribe)),
		"-32602": refuse("no message", http.StatusOK, p.request("SendStreamingMessage", `{}`)),
	} {
		require.Contains(t, answer.body, name)
	}

	for range 2 {
		response, err := http.DefaultClient.Do(events(d.bearer, run))
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		require.Equal(t, http.StatusOK, response.StatusCode)
	}

	runs := func() int { return tally(t, s, `SELECT count(*) FROM runs`) }
	before := runs()

	require.NotEmpty(t, refuse("too many", http.StatusTooManyRequests, ask(d.bearer, d.script("nl2ql", `{}`, ""))).header.Get("Retry-After"))
	require.NotEmpty(t, refuse("too many", http.StatusTooManyRequests, events(d.bearer, run)).header.Get("Retry-After"))
	require.Contains(t, refuse("too many", http.StatusOK, p.request("SendStreamingMessage", message)).body, `"RATE_LIMITED"`)
	require.Contains(t, refuse("too many", http.StatusOK, p.request("SubscribeToTask", subscribe)).body, `"RATE_LIMITED"`)
	require.Equal(t, before, runs(), "a question that was refused made a run")

	// GetTask is not a stream and does not count as one.
	require.Equal(t, http.StatusAccepted, call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("nl2ql", `{}`, ""), "Prefer: respond-async").status)
	require.Equal(t, run, p.task("GetTask", run).ID)
}
