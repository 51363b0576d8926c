package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// manySteps returns a script that reads rows repeatedly for some seconds.
func manySteps() string {
	step := `{"instruction": "read", "queries": ["SELECT region FROM orders"]}`

	return `{"pause": 50, "response": "Done.", "steps": [` + strings.Join(slices.Repeat([]string{step}, 60), ", ") + `]}`
}

// TestRevokedMidRun checks what happens to the runs of a token when its revocation has returned. No statement starts later than
// one second after it, no stream on any replica delivers events that were written after it, and the runs fail.
func TestRevokedMidRun(t *testing.T) {
	t.Parallel()

	rounds := loops(1000)
	if rounds < 1000 {
		rounds /= 12 // keeps the test short, unless it runs in full
	}

	replicas := streaming(t, 2)

	for user := range 4 {
		t.Run(fmt.Sprintf("user %d", user), func(t *testing.T) {
			t.Parallel()

			for i := range (rounds + 3) / 4 {
				revokeMidRun(t, replicas[0].s, replicas[i%2].in(t), replicas[(i+1)%2].in(t))
			}
		})
	}
}

// TestRevokedStreamEnds checks the last line of an A2A stream whose token was revoked: it has an error and no result.
func TestRevokedStreamEnds(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	id, value := newToken(t, s, d.bearer, "viewer")
	p := newPeer(d.by(value), "assistant")
	stream := openStream(t, p.request("SendStreamingMessage", p.ask(uuid.NewString(), waiting, "")))

	for planned := false; !planned; {
		event, more := stream.next()
		require.True(t, more)

		planned = event.String() == "plan"
	}

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/user/tokens/"+id, d.bearer, "").status)

	rest, err := io.ReadAll(stream.lines)
	require.NoError(t, err)

	last := string(rest[bytes.LastIndex(rest, []byte("data: ")):])
	require.Contains(t, last, `"error":{"code":-32000`)
	require.Contains(t, last, `"reason":"UNAUTHORIZED"`)
	require.NotContains(t, last, `"result"`)
}

// TestRevokedMidRunKilled is TestRevokedMidRun with separate workers, one of which is killed every few seconds. A worker that
// takes over a run of a revoked token must start no statement.
func TestRevokedMidRunKilled(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	users, rounds := loops(20), 1
	if full() {
		rounds = loops(50)
	}

	replicas := streaming(t, 2, "QUERN_RUN_WORKERS=0")
	first := replicas[0].s
	workers := []*service{another(t, first, scripted), another(t, first, scripted)}
	dying, enough := context.WithCancel(t.Context())

	var killing, asking sync.WaitGroup

	killing.Go(func() {
		for dying.Err() == nil {
			pause(3 * time.Second)

			victim := workers[rand.IntN(len(workers))]
			victim.kill()
			victim.restart()
		}
	})

	for range users {
		asking.Go(func() {
			for i := range rounds {
				kill.Round(t)
				revokeMidRun(t, first, replicas[i%2].in(t), replicas[(i+1)%2].in(t))
			}
		})
	}

	asking.Wait()
	enough()
	killing.Wait()
}

// in returns the peer for another test.
func (p *peer) in(t *testing.T) *peer {
	t.Helper()

	d := *p.filled
	d.t = t

	return newPeer(&d, p.agent)
}

// revokeMidRun creates a token and starts two runs with it, one over REST and one over A2A. It resumes the REST run at the
// other replica and revokes the token at that replica. The parameter first is the service whose database is read.
func revokeMidRun(t *testing.T, first *service, here, there *peer) {
	t.Helper()

	id, value := newToken(t, here.s, here.bearer, "viewer")
	holder := newPeer(here.by(value), "nl2ql")

	rest := watch(t, newRequest(t, http.MethodPost, here.s.url+"/query/ask", value, holder.script("nl2ql", manySteps(), "")))
	run := runOf(t, rest.await(1))
	other := watch(t, holder.as("assistant").request("SendStreamingMessage", holder.ask(uuid.NewString(), manySteps(), "")))
	resumed := watch(t, newRequest(t, http.MethodGet, there.s.url+"/query/runs/"+run.RunID+"/events", value, "", "Last-Event-ID: 1"))

	rest.await(7)
	other.await(64) // the task, its state working, the plan, an instruction for each step, and rows
	resumed.await(6)

	began := time.Now()
	revoked := call(t, http.MethodDelete, there.s.url+"/user/tokens/"+id, there.bearer, "")
	require.Equal(t, http.StatusNoContent, revoked.status, revoked.body)

	returned := time.Now()

	for name, stream := range map[string]*watched{"REST": rest, "A2A": other, "resumed": resumed} {
		require.Less(t, stream.ended().Sub(returned), 5*time.Second, "the stream ends: "+name)
		require.Less(t, stream.lastContent().Sub(returned), time.Second, "nothing but what was on the wire: "+name)
	}

	for _, s := range []*service{here.s, there.s} {
		again := newRequest(t, http.MethodGet, s.url+"/query/runs/"+run.RunID+"/events", value, "", "Last-Event-ID: 1")
		require.Equal(t, http.StatusUnauthorized, send(t, again).status)
	}

	for _, one := range runsOf(t, first, id) {
		got := &asked{}

		await(t, "the run has ended", func() bool {
			call(t, http.MethodGet, here.s.url+"/query/runs/"+one, here.bearer, "").json(t, got)

			return got.Status != "running"
		})
		require.Equal(t, "failed", got.Status)
		require.Equal(t, "UNAUTHORIZED", got.Error.Code, got.Error.Message)
	}

	require.Zero(t, tally(t, first, `SELECT count(*) FROM audit WHERE token_id = $1 AND action = 'query.run' AND at > $2`, id, returned.Add(time.Second)),
		"statements that began later than a second after it")

	late := tally(t, first, `SELECT coalesce(max(seq), 0) FROM run_events WHERE run_id = $1 AND at <= $2`, run.RunID, returned)
	for name, stream := range map[string]*watched{"REST": rest, "resumed": resumed} {
		for _, e := range stream.await(0) {
			require.LessOrEqual(t, e.id, late, "%s delivered what was written after the revocation, which took %v", name, returned.Sub(began))
		}
	}
}

// runsOf returns the runs that a token started.
func runsOf(t *testing.T, s *service, token string) (runs []string) {
	t.Helper()
	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		rows, err := connection.Query(ctx, `SELECT id::text FROM runs WHERE caller->'Token'->>'ID' = $1`, token)
		require.NoError(t, err)

		runs, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
	})
	require.Len(t, runs, 2)

	return runs
}

func tally(t *testing.T, s *service, statement string, args ...any) (number int) {
	t.Helper()
	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		require.NoError(t, connection.QueryRow(ctx, statement, args...).Scan(&number))
	})

	return number
}

// watched is a stream that is read as it arrives, with the time of the last rows.
type watched struct {
	t *testing.T

	mutex sync.Mutex
	text  bytes.Buffer
	last  time.Time
	done  chan struct{}
}

func watch(t *testing.T, request *http.Request) *watched {
	t.Helper()

	request.Header.Set("Accept", "text/event-stream")

	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))

	w := &watched{t: t, done: make(chan struct{})}

	go func() {
		defer close(w.done)
		defer func() { _ = response.Body.Close() }()

		_, _ = io.Copy(w, response.Body) // the received text shows how the stream ended
	}()

	return w
}

// Write implements io.Writer.
func (w *watched) Write(text []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	if bytes.Contains(text, []byte("north")) {
		w.last = time.Now()
	}

	return w.text.Write(text)
}

// await waits until this number of events arrived, and returns all events so far.
func (w *watched) await(number int) (events []event) {
	w.t.Helper()

	// A run whose workers die one after the other takes minutes.
	awaitFor(w.t, 5*patience, fmt.Sprintf("%d events", number), func() bool {
		w.mutex.Lock()
		defer w.mutex.Unlock()

		events = readEvents(bytes.NewReader(w.text.Bytes()), 1000)

		return len(events) >= number
	})

	return events
}

// ended waits for the end of the stream.
func (w *watched) ended() time.Time {
	w.t.Helper()

	select {
	case <-w.done:
	case <-time.After(patience):
		require.Fail(w.t, "the stream does not end")
	}

	return time.Now()
}

func (w *watched) lastContent() time.Time {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	return w.last
}

// TestRevokedMidStatement checks that a long statement returns no row to a token that was revoked meanwhile.
func TestRevokedMidStatement(t *testing.T) {
	t.Parallel()

	s := start(t)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)

	for _, media := range []string{"application/json", "text/csv", "application/vnd.apache.arrow.stream"} {
		id, value := newToken(t, s, d.bearer, "viewer")
		question := d.by(value).question("SELECT count(DISTINCT hash(i) % 100000) AS n FROM range(10000000) t(i), orders", "", "Accept: "+media)
		status := make(chan int, 1)

		go func() {
			if got, err := try(question); err != nil { // the connection was closed
				status <- http.StatusUnauthorized
			} else {
				status <- got.status
			}
		}()

		await(t, "the statement runs", func() bool {
			return tally(t, s, `SELECT count(*) FROM audit WHERE token_id = $1 AND action = 'query.run'`, id) == 1
		})
		require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/user/tokens/"+id, d.bearer, "").status)

		returned := time.Now()
		got := <-status

		if time.Since(returned) > time.Second { // otherwise the statement had ended when the token was revoked
			require.Contains(t, []int{http.StatusUnauthorized, http.StatusGatewayTimeout}, got, media)
		}
	}
}
