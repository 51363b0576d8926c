package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Words of the answers. The word in the rows occurs in no statement and in no dataset, because the statement concatenates it.
const (
	rowWord    = "heliotrope-"
	answerWord = "amaranthine"
	// The rows are too large to be stored in the database.
	wordy = `{"reasoning": "amaranthine", "response": "amaranthine", "steps": [{"instruction": "amaranthine",
		"queries": ["SELECT concat('helio', 'trope-', n, repeat('.', 200)) AS word FROM orders WHERE 'amaranthine' <> '' LIMIT 1000"]}]}`
)

// newWordy creates a dataset with enough rows for wordy.
func newWordy(t *testing.T, s *service, owner, bearer string) *filled {
	t.Helper()

	d := newFilled(t, s, owner, bearer)

	rows := make([]string, 500)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n": %d}`, i)
	}

	require.Equal(t, http.StatusOK, d.post(`{"data": [`+strings.Join(rows, ", ")+`]}`).status)

	return d
}

// answered asks a question and waits for the answer.
func (d *filled) answered(script, more string) (run asked) {
	d.t.Helper()

	got := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script("assistant", script, more), "Accept: application/json")
	require.Equal(d.t, http.StatusOK, got.status, got.body)
	got.json(d.t, &run)
	require.Equal(d.t, "completed", run.Status, got.body)

	return run
}

// holding returns all tables that have a row with a text.
func (s *service) holding(text string) (tables []string) {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		rows, err := connection.Query(ctx, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`)
		require.NoError(s.t, err)

		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(s.t, err)
		require.Contains(s.t, all, "run_events_default")
		require.Greater(s.t, len(all), 30)

		for _, table := range all {
			var found bool

			require.NoError(s.t, connection.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+` r WHERE r::text LIKE '%' || $1 || '%')`, text).Scan(&found))

			if found && !strings.HasPrefix(table, "audit") {
				tables = append(tables, table)
			}
		}
	})

	return tables
}

// namesOnly removes the tables that may have the id of a deleted run for a while.
func namesOnly(tables []string) (others []string) {
	for _, table := range tables {
		if table != "river_job" && table != "idempotency" {
			others = append(others, table)
		}
	}

	return others
}

// runObjects returns the keys of the objects with rows of steps.
func (p *place) runObjects() (keys []string) {
	p.t.Helper()

	for key := range p.objects() {
		if strings.HasPrefix(key, "runs/") {
			keys = append(keys, key)
		}
	}

	return keys
}

// requireAbsent checks that no route returns the run.
func (d *filled) requireAbsent(run asked) {
	d.t.Helper()

	address := d.s.url + "/query/runs/" + run.RunID
	for _, request := range []*http.Request{
		newRequest(d.t, http.MethodGet, address, d.bearer, ""),
		newRequest(d.t, http.MethodGet, address+"/events", d.bearer, ""),
		newRequest(d.t, http.MethodGet, address+"/events", d.bearer, "", "Last-Event-ID: 3"),
		newRequest(d.t, http.MethodGet, address+"/feedback", d.bearer, ""),
		newRequest(d.t, http.MethodPost, address+"/feedback", d.bearer, `{"thumbsUp": true}`),
		newRequest(d.t, http.MethodDelete, address+"/feedback", d.bearer, ""),
		newRequest(d.t, http.MethodPost, address+"/cancel", d.bearer, ""),
		newRequest(d.t, http.MethodPost, address+"/choose", d.bearer, `{"option": 1}`),
		newRequest(d.t, http.MethodDelete, address, d.bearer, ""),
	} {
		got := send(d.t, request)
		require.Equal(d.t, http.StatusNotFound, got.status, "%s %s: %s", request.Method, request.URL.Path, got.body)
	}

	for _, path := range []string{"/query/conversations", "/query/conversations/" + run.ConversationID} {
		require.NotContains(d.t, call(d.t, http.MethodGet, d.s.url+path, d.bearer, "").body, run.RunID)
	}
}

// TestRunsDeleted checks that no route returns deleted runs, and that they are soon removed from all tables and from the object
// store.
func TestRunsDeleted(t *testing.T) {
	t.Parallel()

	t.Run("by their asker", runsDeleted)
	t.Run("with their dataset, and when their time is over", runsErased)
}

func runsDeleted(t *testing.T) {
	t.Parallel()

	between, settings := newStoreProxy(t)
	s := start(t, append(settings, scripted, "QUERN_DELETE_GRACE=2s")...)
	d := newWordy(t, s, "ada", s.newKey().token("ada"))

	stays := d.answered(strings.ReplaceAll(wordy, answerWord, "celadon"), "")
	gone := d.answered(wordy, "")
	turn := fmt.Sprintf(`"conversationId": %q`, gone.ConversationID)
	next := d.answered(strings.ReplaceAll(wordy, answerWord, "vermilion"), turn)
	last := d.answered(strings.ReplaceAll(wordy, answerWord, "vermilion"), turn)
	require.Len(t, s.place.runObjects(), 4)

	d.rated(gone.RunID, `{"thumbsUp": false, "comment": "not amaranthine"}`)
	require.Contains(t, s.holding(answerWord), "runs", "the search works")

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/query/runs/"+gone.RunID, d.bearer, "").status)
	d.requireAbsent(gone)
	require.NotContains(t, call(t, http.MethodGet, s.url+"/query/conversations", d.bearer, "").body, answerWord, "nor has the conversation its words")
	require.Contains(t, call(t, http.MethodGet, s.url+"/query/conversations/"+gone.ConversationID, d.bearer, "").body, next.RunID)
	await(t, "the run is gone", func() bool {
		return len(s.holding(answerWord)) == 0 && len(namesOnly(s.holding(gone.RunID))) == 0 && len(s.place.runObjects()) == 3
	})

	// The process dies right after the object store has removed an object, and the next process right before.
	deletes := func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/runs/")
	}
	kill := sync.OnceFunc(s.kill)
	between.set(behaviour{cuts: deletes, cut: kill})
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/query/conversations/"+gone.ConversationID, d.bearer, "").status)
	s.awaitExit()
	require.Equal(t, 2, s.count(`SELECT count(*) FROM run_objects WHERE state = 'removing' OR remove_at IS NOT NULL`), "it died in between")

	kill = sync.OnceFunc(s.kill)
	between.set(behaviour{cuts: deletes, cut: kill, early: true})
	s.restart()
	s.awaitExit()
	between.set(behaviour{})
	s.restart()

	d.requireAbsent(next)
	d.requireAbsent(last)
	require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/query/conversations/"+gone.ConversationID, d.bearer, "").status)
	await(t, "the conversation is gone", func() bool {
		return len(s.holding("vermilion")) == 0 && len(namesOnly(s.holding(gone.ConversationID))) == 0 && len(s.place.runObjects()) == 1
	})

	require.Contains(t, call(t, http.MethodGet, s.url+"/query/runs/"+stays.RunID, d.bearer, "").body, rowWord)
	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck", "--age", "0s"))

	// Deleting the only run of a conversation also deletes the conversation with its title.
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/query/runs/"+stays.RunID, d.bearer, "").status)
	await(t, "nothing is left", func() bool {
		return len(s.holding("celadon")) == 0 && len(namesOnly(s.holding(stays.ConversationID))) == 0 && len(s.place.runObjects()) == 0
	})
}

// withheld is a result that the reader may not see.
const withheld = `{"response":"","steps":[],"outcome":"withheld"}`

// told returns everything that the routes return about a run.
func (d *filled) told(run asked) map[string]string {
	d.t.Helper()

	bodies := map[string]string{}
	for _, path := range []string{"/query/runs/" + run.RunID, "/query/conversations/" + run.ConversationID} {
		bodies[path] = call(d.t, http.MethodGet, d.s.url+path, d.bearer, "").body
	}

	for after := range 12 { // also after the last event, and beyond it
		var stream strings.Builder

		request := newRequest(d.t, http.MethodGet, d.s.url+"/query/runs/"+run.RunID+"/events", d.bearer, "", fmt.Sprintf("Last-Event-ID: %d", after))
		for _, e := range follow(d.t, request, 1000) {
			stream.WriteString(e.name + " " + e.data + "\n")
		}

		if stream.Len() > 0 {
			bodies[fmt.Sprintf("events after %d", after)] = stream.String()
		}
	}

	require.Greater(d.t, len(bodies), 5)

	return bodies
}

// requireWithheld checks that the routes return only the question.
func (d *filled) requireWithheld(run asked, question string) {
	d.t.Helper()

	for route, body := range d.told(run) {
		body = strings.ReplaceAll(body, strings.Trim(encode(d.t, question), `"`), "")
		body = strings.ReplaceAll(body, strings.Trim(encode(d.t, question[:80]), `"`), "") // the title of the conversation
		require.NotContains(d.t, body, rowWord, route)
		require.NotContains(d.t, body, answerWord, route)
		require.NotContains(d.t, body, "concat(", route)
		require.Contains(d.t, body, withheld, route)
	}
}

func runsErased(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_DELETE_GRACE=2s", "QUERN_RUN_RETENTION=1h")
	key := s.newKey()
	d := newWordy(t, s, "ada", key.token("ada"))
	kept := d.beside("kept", `{"data": [{"n": 1}]}`)

	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "viewer")

	reader := d.by(key.token("bob"))

	var runs []asked
	for range 6 {
		runs = append(runs, reader.answered(wordy, ""))
	}

	stays := kept.answered(strings.ReplaceAll(wordy, "FROM orders", "FROM kept"), "")
	failed := reader.failed(quoting)

	require.Len(t, s.place.runObjects(), len(runs))
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.url(), d.bearer, "").status)

	for _, run := range runs {
		reader.requireWithheld(run, wordy)
	}

	// The job that erases the results waits for the last run, and is killed there.
	free := s.hold(`SELECT 1 FROM runs WHERE id = $1 FOR UPDATE`, runs[len(runs)-1].RunID)
	erased := func() int { return s.count(`SELECT count(*) FROM runs WHERE result LIKE '%"outcome":"withheld"%'`) }
	await(t, "some are erased", func() bool {
		s.sweep()

		return erased() > 0
	})
	s.kill()
	require.Less(t, erased(), len(runs), "it died in between")
	free()
	s.restart()
	s.exec(`UPDATE river_job SET attempted_at = attempted_at - interval '1 hour' WHERE kind = 'run.erase' AND state = 'running'`)

	await(t, "all are erased", func() bool { return erased() == len(runs) && len(s.place.runObjects()) == 0 })

	for _, run := range append(runs, failed) {
		require.Zero(t, s.count(`SELECT count(*) FROM run_reads WHERE run_id = $1`, run.RunID))
		require.Zero(t, s.count(`SELECT count(*) FROM run_events WHERE run_id = $1 AND kind IN ('plan', 'stepStarted', 'queryExecuting', 'step', 'answer')`, run.RunID))
		require.Zero(t, s.count(`SELECT count(*) FROM runs WHERE id = $1 AND (result LIKE '%amaranthine%' OR error_message LIKE '%trope%')`, run.RunID))
	}

	require.Equal(t, 1, s.count(`SELECT count(*) FROM run_events WHERE body LIKE '%heliotrope-%'`), "the rows of the other dataset")
	require.Contains(t, call(t, http.MethodGet, s.url+"/query/runs/"+stays.RunID, kept.bearer, "").body, rowWord)

	for _, run := range runs {
		reader.requireWithheld(run, wordy)
	}

	require.NotContains(t, fmt.Sprint(reader.told(failed)), rowWord)

	// The retention of a run ends.
	s.exec(`UPDATE runs SET finished_at = finished_at - interval '2 hours' WHERE id = $1`, stays.RunID)
	await(t, "the run is gone", func() bool {
		return len(namesOnly(s.holding(stays.RunID))) == 0 && len(namesOnly(s.holding(stays.ConversationID))) == 0
	})
	kept.requireAbsent(stays)
	require.Equal(t, len(runs)+1, s.count(`SELECT count(*) FROM runs`), "the others stay")
	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck", "--age", "0s"))
}

// awaitExit waits until the process has ended.
func (s *service) awaitExit() {
	s.t.Helper()
	await(s.t, "the process is gone", func() bool { return !s.running() })
}

// hold runs a statement in a transaction that stays open until free is called.
func (s *service) hold(statement string, args ...any) (free func()) {
	s.t.Helper()

	ctx := context.WithoutCancel(s.t.Context())
	connection, err := pgx.Connect(ctx, s.databaseURL)
	require.NoError(s.t, err)

	tx, err := connection.Begin(ctx)
	require.NoError(s.t, err)

	_, err = tx.Exec(ctx, statement, args...)
	require.NoError(s.t, err)

	free = sync.OnceFunc(func() { _ = connection.Close(ctx) })
	s.t.Cleanup(free)

	return free
}

// sweep makes the periodic jobs run now, unless a job that erases results is already queued.
func (s *service) sweep() {
	s.t.Helper()
	await(s.t, "what is due is looked for", func() bool {
		return s.count(`SELECT count(*) FROM river_job WHERE kind = 'run.erase' OR (kind = 'run.clean' AND state = 'completed')`) > 0
	})

	if s.count(`SELECT count(*) FROM river_job WHERE kind = 'run.erase'`) > 0 {
		return
	}

	s.stop()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range []string{`DELETE FROM river_job WHERE kind <> 'run.erase'`, `DELETE FROM river_leader`} {
			_, err := connection.Exec(ctx, statement)
			require.NoError(s.t, err)
		}
	})
	s.restart()
}

// quoting fails with an error message that contains a value of the data.
const quoting = `{"steps": [{"instruction": "amaranthine", "queries": ["SELECT CAST(concat('helio', 'trope-', n) AS INTEGER) AS n FROM orders"]}]}`

// failed asks a question whose run fails.
func (d *filled) failed(script string) (run asked) {
	d.t.Helper()

	got := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script("assistant", script, ""), "Accept: application/json")
	require.Equal(d.t, http.StatusOK, got.status, got.body)
	got.json(d.t, &run)
	require.Equal(d.t, "failed", run.Status, got.body)
	require.Contains(d.t, run.Error.Message, rowWord, "it quotes the data")

	return run
}
