package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// askLoop is two replicas that accept questions, two workers that answer them, and the clients that ask.
type askLoop struct {
	t        *testing.T
	replicas []*service
	workers  []*service
	filled   *filled
	count    int // number of questions
	askers   int
	steps    int
	write    func(asker, i int) (kind, agent, question string)

	mutex  sync.Mutex
	killed map[string]int
	cuts   int // number of streams that lost their connection
	asked  []*followed
}

// followed is a question with the events that its client has received.
type followed struct {
	asker  int
	kind   string
	run    asked
	events []event
}

const (
	honest    = "UNAVAILABLE"    // code with which the agent fails on request
	loopTime  = 3 * time.Minute  // longest duration of a run
	overtime  = 10 * time.Second // longest time until an exceeded deadline is noticed
	tokenName = `{"name": "asker"}`
)

// TestRunKillLoop sends questions to two replicas, and two workers answer them. Replicas and workers are killed at random. Every
// acknowledged question must end in time and with the expected outcome. A client that loses its connection resumes at a random
// replica, and must receive every event once and in order, as in the final log. A statement whose rows are recorded must not run
// again. To prove this, each step reads a dataset of its own, and the audit must show a single read of it.
func TestRunKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	l := &askLoop{t: t, count: loops(300), askers: 6, steps: 3}
	l.write = l.script
	l.run(scripted)
}

// run sends all questions to services with these settings, and checks the results.
func (l *askLoop) run(settings ...string) {
	l.t.Helper()

	takes := append(slices.Clone(settings),
		"QUERN_RUN_MAX_PER_USER=1000", "QUERN_RUN_TIMEOUT="+loopTime.String(), "QUERN_QUERY_MAX_PER_USER=100", "QUERN_QUERY_WAIT_TIMEOUT=1m", "QUERN_DATABASE_MAX_CONNS=10")
	noWork := append(slices.Clone(takes), "QUERN_RUN_WORKERS=0")
	one := start(l.t, noWork...)
	l.killed = map[string]int{}
	l.replicas = []*service{one, another(l.t, one, noWork...)}
	l.workers = []*service{another(l.t, one, takes...), another(l.t, one, takes...)}
	// An API token outlives the loop and does not need the issuer.
	l.filled = newFilled(l.t, one, "ada", value(l.t, call(l.t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), tokenName)))

	for asker := range l.askers {
		for step := range l.steps {
			l.filled.beside(stepDataset(asker, step), `{"data": [{"n": 1}, {"n": 2}]}`)
		}
	}

	dying, enough := context.WithCancel(l.t.Context())

	var killing, asking sync.WaitGroup

	killing.Go(func() { l.kill(dying) })

	for asker := range l.askers {
		asking.Go(func() {
			for i := range l.count / l.askers {
				l.ask(asker, i)
			}
		})
	}

	asking.Wait()
	enough()
	killing.Wait()

	l.checkEnds()
	l.checkLogs()
	l.checkWork()
}

func stepDataset(asker, step int) string { return fmt.Sprintf("a%d_s%d", asker, step) }

// kill kills one of the four services every few seconds.
func (l *askLoop) kill(dying context.Context) {
	for round := 0; dying.Err() == nil; round++ {
		time.Sleep(500 * time.Millisecond)
		pause(2500 * time.Millisecond)

		of, name := l.replicas, "replica"
		if round%3 != 1 { // a worker first, in case all questions are answered soon
			of, name = l.workers, "worker"
		}

		victim := of[rand.IntN(len(of))]
		victim.kill()
		victim.restart()

		l.mutex.Lock()
		l.killed[name]++
		l.mutex.Unlock()
	}
}

// script returns one of several kinds of questions.
func (l *askLoop) script(asker, i int) (kind, agent, script string) {
	rows, more := "count(*) AS n", ""

	switch kind = []string{"plain", "repaired", "failing", "plain", "large"}[i%5]; kind {
	case "failing":
		more = `, "fail": true`
	case "large": // its rows are stored as an object in the object store
		rows = "n, repeat('x', 60000) AS x"
	}

	var steps []string

	for step := range l.steps {
		query := fmt.Sprintf("SELECT %s FROM %s", rows, stepDataset(asker, step))

		queries := []string{query}
		if kind == "repaired" {
			queries = []string{strings.Replace(query, "SELECT ", "SELECT nothing, ", 1), query}
		}

		steps = append(steps, fmt.Sprintf(`{"instruction": "step %d", "queries": %s}`, step, encode(l.t, queries)))
	}

	agent = "assistant"
	if i%2 == 1 {
		agent = "nl2ql"
	}

	return kind, agent, fmt.Sprintf(`{"pause": 50, "response": "Done.", "steps": [%s]%s}`, strings.Join(steps, ", "), more)
}

// ask repeats the question until a replica accepts it, and follows the run to its end.
func (l *askLoop) ask(asker, i int) {
	kill.Round(l.t)

	kind, agent, script := l.write(asker, i)
	key, one := "Idempotency-Key: "+uuid.NewString(), &followed{asker: asker, kind: kind}
	deadline := time.Now().Add(loopTime + patience)

	for one.run.RunID == "" {
		if time.Now().After(deadline) {
			l.t.Error("nobody accepts a question")

			return
		}

		request := newRequest(l.t, http.MethodPost, l.replicas[rand.IntN(2)].url+"/query/ask", l.filled.bearer, l.filled.script(agent, script, ""), key, "Accept: text/event-stream")
		if i%3 == 0 {
			request.Header.Set("Prefer", "respond-async")
		}

		l.read(request, one)
	}

	l.mutex.Lock()
	l.asked = append(l.asked, one)
	l.mutex.Unlock()

	for !one.ended() {
		if time.Now().After(deadline) {
			l.t.Errorf("the run %s does not end", one.run.RunID)

			return
		}

		l.read(newRequest(l.t, http.MethodGet, l.replicas[rand.IntN(2)].url+"/query/runs/"+one.run.RunID+"/events", l.filled.bearer, "",
			"Last-Event-ID: "+strconv.Itoa(len(one.events))), one)
	}
}

// read reads events until the connection is lost.
func (l *askLoop) read(request *http.Request, one *followed) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		pause(200 * time.Millisecond)

		return
	}

	defer func() { _ = response.Body.Close() }()

	switch response.StatusCode {
	case http.StatusAccepted:
		_ = json.NewDecoder(response.Body).Decode(&one.run) // the response may be incomplete; then the question is repeated
	case http.StatusOK:
		one.events = append(one.events, readEvents(response.Body, 1000)...)

		if len(one.events) > 0 && one.run.RunID == "" {
			(&answer{body: one.events[0].data}).json(l.t, &one.run)
		}

		if !one.ended() {
			l.mutex.Lock()
			l.cuts++
			l.mutex.Unlock()
		}
	default:
		pause(200 * time.Millisecond)
	}
}

func (f *followed) ended() bool {
	return len(f.events) > 0 && slices.Contains([]string{"runCompleted", "runCancelled", "runFailed"}, f.events[len(f.events)-1].name)
}

// checkEnds checks that every question was accepted once and ended in time and as expected.
func (l *askLoop) checkEnds() {
	l.t.Helper()

	one, ends := l.replicas[0], map[string]int{}

	for _, f := range l.asked {
		got := call(l.t, http.MethodGet, one.url+"/query/runs/"+f.run.RunID, l.filled.bearer, "")
		got.json(l.t, &f.run)

		ends[f.kind+" "+f.run.Status]++

		switch {
		case f.run.Status == "expired":
		case f.kind == "failing":
			require.Equal(l.t, "failed", f.run.Status, got.body)
			require.Equal(l.t, honest, f.run.Error.Code, got.body)
		default:
			require.Equal(l.t, "completed", f.run.Status, got.body)
			require.Len(l.t, f.run.Result.Steps, l.steps)
		}
	}

	l.t.Logf("%d questions: %v; killed: %v; %d streams were cut off", len(l.asked), ends, l.killed, l.cuts)
	require.Len(l.t, l.asked, l.count/l.askers*l.askers)
	require.Equal(l.t, len(l.asked), one.count(`SELECT count(*) FROM runs`), "no question is there twice")
	require.Zero(l.t, one.count(`SELECT count(*) FROM runs WHERE status = 'running' OR finished_at > deadline_at + $1::interval`, overtime))
	require.Zero(l.t, one.count(`SELECT count(*) FROM runs WHERE status = 'expired' AND finished_at < deadline_at`))
	require.Positive(l.t, l.killed["worker"])
}

// checkLogs checks that the events that a client received while processes died are those of the log, and that the log has each
// event once.
func (l *askLoop) checkLogs() {
	l.t.Helper()

	one := l.replicas[0]
	require.Zero(l.t, one.count(`
		SELECT count(*) FROM runs r WHERE last_seq <> (SELECT count(*) FROM run_events e WHERE e.run_id = r.id)
			OR last_seq <> (SELECT max(seq) FROM run_events e WHERE e.run_id = r.id)`))

	for _, f := range l.asked {
		log := follow(l.t, newRequest(l.t, http.MethodGet, l.replicas[1].url+"/query/runs/"+f.run.RunID+"/events", l.filled.bearer, ""), 1000)
		require.Equal(l.t, log, f.events, f.run.RunID)

		times, last := map[string]int{}, log[len(log)-1]

		for i, e := range log {
			require.Equal(l.t, i+1, e.id)

			var about struct{ Index, Attempt int }

			(&answer{body: e.data}).json(l.t, &about)
			times[fmt.Sprint(e.name, about)]++
		}

		for what, n := range times {
			require.Equal(l.t, 1, n, "%s of %s", what, f.run.RunID)
		}

		if f.run.Status == "completed" {
			var said, kept struct{ Result map[string]any }

			(&answer{body: last.data}).json(l.t, &said)
			call(l.t, http.MethodGet, one.url+"/query/runs/"+f.run.RunID, l.filled.bearer, "").json(l.t, &kept)
			require.NotEmpty(l.t, said.Result)
			require.Equal(l.t, kept, said)
		}
	}
}

// checkWork checks that no dataset of a step was read again after the run had recorded the step.
func (l *askLoop) checkWork() {
	l.t.Helper()

	one, again := l.replicas[0], 0

	withDatabase(l.t, one.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, f := range l.asked {
			rows, err := connection.Query(ctx, `
				SELECT s.step, count(a.id), count(a.id) FILTER (WHERE a.at > s.at)
				FROM run_events s JOIN runs r ON r.account_id = s.account_id AND r.id = s.run_id
				LEFT JOIN audit a ON a.action = 'query.run' AND a.dataset = 'a' || $2 || '_s' || s.step AND a.at >= r.created_at AND a.at <= r.finished_at
				WHERE s.run_id = $1 AND s.kind = 'step' GROUP BY s.step ORDER BY s.step`, f.run.RunID, strconv.Itoa(f.asker))
			require.NoError(l.t, err)

			var step, times, late int

			_, err = pgx.ForEachRow(rows, []any{&step, &times, &late}, func() error {
				require.Zero(l.t, late, "step %d of %s was done again", step, f.run.RunID)
				require.Positive(l.t, times)

				if again += times - 1; f.kind == "repaired" {
					again-- // the first attempt
				}

				return nil
			})
			require.NoError(l.t, err)
		}
	})
	l.t.Logf("%d statements ran again because nothing of them was recorded", again)
	require.Contains(l.t, one.quernd("fsck"), "0 lost, ")
}
