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
)

// askLoop is two replicas that take questions, two workers that answer them, and those who ask.
type askLoop struct {
	t        *testing.T
	replicas []*service
	workers  []*service
	filled   *filled
	count    int // of questions
	askers   int
	steps    int
	write    func(asker, i int) (kind, agent, question string)

	mutex  sync.Mutex
	killed map[string]int
	cuts   int // of streams, by which a client lost its connection
	asked  []*followed
}

// followed is a question with what its asker has seen of it.
type followed struct {
	asker  int
	kind   string
	run    asked
	events []event
}

const (
	honest    = "UNAVAILABLE"    // how the agent fails when it is told to
	loopTime  = 3 * time.Minute  // that a run may take
	overtime  = 10 * time.Second // in which it is seen that it took longer
	tokenName = `{"name": "asker"}`
)

// TestRunKillLoop: questions are asked of two replicas and answered by two workers, and any of them dies at random. Every
// question that was acknowledged ends in time as it must. Its asker, who comes again at the other replica whenever a
// connection is lost, has seen every event once and in order, and that is what the log says later. No statement runs
// again whose rows are recorded: each step of an asker reads a dataset of its own, and the audit says when it was read.
func TestRunKillLoop(t *testing.T) {
	t.Parallel()

	l := &askLoop{t: t, count: loops(300), askers: 6, steps: 3}
	l.write = l.script
	l.run(scripted)
}

// run lets all questions be asked and answered by a service that has these settings, and checks what became of them.
func (l *askLoop) run(settings ...string) {
	l.t.Helper()

	takes := append(slices.Clone(settings),
		"QUERN_RUN_PER_USER=1000", "QUERN_RUN_TIME="+loopTime.String(), "QUERN_QUERY_PER_USER=100", "QUERN_QUERY_WAIT=1m", "QUERN_DATABASE_MAX_CONNS=10")
	noWork := append(slices.Clone(takes), "QUERN_RUN_WORKERS=0")
	one := start(l.t, noWork...)
	l.killed = map[string]int{}
	l.replicas = []*service{one, another(l.t, one, noWork...)}
	l.workers = []*service{another(l.t, one, takes...), another(l.t, one, takes...)}
	// An API token outlives the loop and needs nobody but us.
	l.filled = newFilled(l.t, one, "ada", value(l.t, call(l.t, http.MethodPost, one.url+"/user/token", one.newKey().token("ada"), tokenName)))

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

// kill ends one of the four every few seconds.
func (l *askLoop) kill(dying context.Context) {
	for round := 0; dying.Err() == nil; round++ {
		time.Sleep(500 * time.Millisecond)
		pause(2500 * time.Millisecond)

		of, name := l.replicas, "replica"
		if round%3 != 1 { // a worker first, however soon all is answered
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

// script is one of several kinds of questions.
func (l *askLoop) script(asker, i int) (kind, agent, script string) {
	rows, more := "count(*) AS n", ""

	switch kind = []string{"plain", "repaired", "failing", "plain", "large"}[i%5]; kind {
	case "failing":
		more = `, "fail": true`
	case "large": // its rows are an object in the store
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

// ask asks until somebody says that the question is accepted, and follows the run to its end.
func (l *askLoop) ask(asker, i int) {
	kind, agent, script := l.write(asker, i)
	key, one := "Idempotency-Key: "+uuid.NewString(), &followed{asker: asker, kind: kind}
	deadline := time.Now().Add(loopTime + patience)

	for one.run.RunID == "" {
		if time.Now().After(deadline) {
			l.t.Error("nobody accepts a question")

			return
		}

		request := newRequest(l.t, http.MethodPost, l.replicas[rand.IntN(2)].url+"/query/ask", l.filled.bearer, l.filled.script(agent, script, ""), key)
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

// read takes what comes until the connection is lost.
func (l *askLoop) read(request *http.Request, one *followed) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		pause(200 * time.Millisecond)

		return
	}

	defer func() { _ = response.Body.Close() }()

	switch response.StatusCode {
	case http.StatusAccepted:
		_ = json.NewDecoder(response.Body).Decode(&one.run) // or the answer was cut off, and is asked for again
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
	return len(f.events) > 0 && slices.Contains([]string{"run-completed", "run-cancelled", "error"}, f.events[len(f.events)-1].name)
}

// checkEnds: every question was taken once and ended in time, as it must.
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

// checkLogs: what an asker saw while processes died is what the log says, and the log says it once.
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

// checkWork: no dataset of a step was read again for a run that had recorded the step.
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
