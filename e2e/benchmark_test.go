package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// benchmarked is a benchmark as the API returns it.
type benchmarked struct {
	ID, Status, Mode, Model, Release, Author, ComparedTo               string
	Questions, Right, Wrong, Refused, AskedBack, Failed, Better, Worse int
	Outdated                                                           []string
	Error                                                              struct{ Code, Message string }
}

// benchmarkResult is the result of one question.
type benchmarkResult struct {
	VerifiedID, Question, Outcome, Detail, RunID, Before, Change string
	Rows, ExpectedRows                                           int
	Why                                                          []string
}

func (d *filled) benchmarks(method, rest, body string, headers ...string) *answer {
	d.t.Helper()

	return call(d.t, method, d.s.url+"/benchmarks/"+d.owner+"/"+d.namespace+rest, d.bearer, body, headers...)
}

// benchmark starts a benchmark and waits until it ends.
func (d *filled) benchmark(body string) benchmarked {
	d.t.Helper()

	return d.awaitBenchmark(d.startBenchmark(body).ID)
}

func (d *filled) startBenchmark(body string) (made benchmarked) {
	d.t.Helper()

	answer := d.benchmarks(http.MethodPost, "", body)
	require.Equal(d.t, http.StatusAccepted, answer.status, answer.body)
	require.NotEmpty(d.t, answer.header.Get("Location"))
	answer.json(d.t, &made)
	require.Equal(d.t, "running", made.Status)

	return made
}

func (d *filled) getBenchmark(id string) (found benchmarked) {
	d.t.Helper()

	answer := d.benchmarks(http.MethodGet, "/"+id, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &found)

	return found
}

func (d *filled) awaitBenchmark(id string) (found benchmarked) {
	d.t.Helper()
	awaitFor(d.t, 2*time.Minute, "the benchmark", func() bool {
		found = d.getBenchmark(id)

		return found.Status != "running"
	})

	return found
}

// results returns the results of a benchmark by question, page by page.
func (d *filled) benchmarkResults(id, query string) map[string]benchmarkResult {
	d.t.Helper()

	found := map[string]benchmarkResult{}

	for cursor := ""; ; {
		var page struct {
			Data       []benchmarkResult
			NextCursor string
		}

		answer := d.benchmarks(http.MethodGet, "/"+id+"/results?limit=2"+query+cursor, "")
		require.Equal(d.t, http.StatusOK, answer.status, answer.body)
		answer.json(d.t, &page)

		for _, one := range page.Data {
			require.NotContains(d.t, found, one.Question)
			found[one.Question] = one
		}

		if page.NextCursor == "" {
			return found
		}

		cursor = "&cursor=" + page.NextCursor
	}
}

func (d *filled) listBenchmarks() []benchmarked {
	d.t.Helper()

	var page struct{ Data []benchmarked }

	answer := d.benchmarks(http.MethodGet, "", "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &page)

	return page.Data
}

const (
	howLate  = "How many orders are late?"
	howNorth = "How many orders in the north are late since 2026?"
	regions  = "Which regions have orders, in their order?"

	selectLate    = "SELECT count(*) AS n FROM orders WHERE status = 'Late'"
	selectRegions = "SELECT DISTINCT region FROM orders ORDER BY region"
)

// pupil is a model that answers the questions of benchmarks.
type pupil struct {
	*model

	slow atomic.Bool // it takes its time
}

func newPupil(t *testing.T, wrong *atomic.Bool) *pupil {
	t.Helper()

	p := &pupil{}
	p.model = newModel(t, func(said conversation) any {
		question := said.question()
		if strings.Contains(question, "slowly") && p.slow.Load() {
			<-time.After(500 * time.Millisecond)
		}

		switch {
		case question == howLate && wrong.Load():
			return selects("SELECT count(*) AS n FROM orders WHERE status <> 'Late'")
		case question == howLate:
			return selects("SELECT count(id) + 0.001 AS late, 1 AS more FROM orders WHERE status = 'Late'")
		case question == howNorth:
			return selects("SELECT count(*) AS n FROM orders WHERE status = 'Late' AND region = 'north' AND ordered >= DATE '2026-01-01'")
		case question == regions:
			return selects("SELECT region FROM orders GROUP BY region ORDER BY region")
		case strings.HasPrefix(question, "Which regions descend"):
			return selects("SELECT DISTINCT region FROM orders ORDER BY region")
		case strings.HasPrefix(question, "Which year"):
			return drafted{Outcome: "clarification", Interpretation: "Either.", Clarification: map[string]any{"question": "Which year?", "options": []string{"2025", "2026"}}}
		case strings.HasPrefix(question, "What weather"):
			return drafted{Outcome: "no_data", Interpretation: "The weather."}
		case strings.HasPrefix(question, "What never"):
			return selects("SELECT nothing FROM orders")
		default:
			return selects(selectLate)
		}
	})

	return p
}

func (p *pupil) settings() []string {
	return append(p.model.settings(), "QUERN_MODELS=here/small,here/large", "QUERN_RUN_SECOND_OPINION=false", "QUERN_RUN_MAX_PER_USER=100",
		"QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
}

// TestBenchmarkRun asks the verified questions of namespaces again, with rules and with a scripted model.
func TestBenchmarkRun(t *testing.T) {
	t.Parallel()

	wrong := &atomic.Bool{}
	p := newPupil(t, wrong)
	p.slow.Store(true)
	s := start(t, p.settings()...)
	key := s.newKey()

	t.Run("better, worse and why", func(t *testing.T) {
		t.Parallel()
		benchmarkChanges(t, s, key, wrong)
	})

	for name, play := range map[string]func(*testing.T, *service, *signer){"outcomes": benchmarkOutcomes, "who may": benchmarkRights, "how it ends": benchmarkEnds} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}

	t.Run("a worker is killed", func(t *testing.T) {
		t.Parallel()
		benchmarkKilled(t, p)
	})
}

func benchmarkChanges(t *testing.T, s *service, key *signer, wrong *atomic.Bool) {
	t.Helper()

	d := newTrade(t, s, "bea", key.token("bea"))
	late := d.verify(fmt.Sprintf(`{"question": %q, "query": %q}`, howLate, selectLate))
	d.verify(lateIn)
	d.verify(fmt.Sprintf(`{"question": %q, "query": %q}`, regions, selectRegions))
	require.Equal(t, "verified", d.by(d.bearer).asks(howLate, "").Result.Basis)

	// All are right. No verified question answers.
	first := d.benchmark("")
	require.Equal(t, "completed", first.Status, "%+v", first)
	require.Equal(t, []any{"model", "small", 3, 3, 0, 0, "bea", ""}, []any{first.Mode, first.Model, first.Questions, first.Right, first.Wrong, first.Worse, first.Author, first.ComparedTo})

	results := d.benchmarkResults(first.ID, "")
	require.Len(t, results, 3)

	for _, question := range []string{howLate, howNorth, regions} {
		one := results[question]
		require.Equal(t, []string{"right", "new", ""}, []string{one.Outcome, one.Change, one.Detail}, "%s: %+v", question, one)

		var run concluded

		call(t, http.MethodGet, s.url+"/query/runs/"+one.RunID, d.bearer, "").json(t, &run)
		require.Equal(t, "small", run.Result.Model)
		require.Nil(t, run.Result.Verified)
	}

	require.Equal(t, late.ID, results[howLate].VerifiedID)
	require.Contains(t, call(t, http.MethodGet, s.url+"/query/conversations", d.bearer, "").body, `"Benchmark of bea/`+d.namespace+`"`)
	require.Empty(t, d.listBenchmarks()[0].Outdated)

	// A definition changes, and with it an answer.
	saved := d.call(http.MethodPut, "/inferDefinition", `{"dataDescription": "Orders of another kind."}`)
	require.Equal(t, http.StatusCreated, saved.status, saved.body)
	require.Equal(t, []string{"definition"}, d.getBenchmark(first.ID).Outdated)

	wrong.Store(true)

	second := d.benchmark(`{"mode": "model"}`)
	require.Equal(t, []any{first.ID, 2, 1, 0, 1}, []any{second.ComparedTo, second.Right, second.Wrong, second.Better, second.Worse})
	require.Empty(t, second.Outdated)
	require.Nil(t, d.getBenchmark(first.ID).Outdated, "it is history")

	results = d.benchmarkResults(second.ID, "")
	require.Equal(t, "same", results[regions].Change)
	require.Empty(t, results[regions].Why)

	worse := results[howLate]
	require.Equal(t, []string{"wrong", "right", "worse", "The number of rows is right, but not their values."}, []string{worse.Outcome, worse.Before, worse.Change, worse.Detail})
	require.Equal(t, []string{"definition"}, worse.Why)

	// A verified question that is changed or new makes the benchmark outdated. At the terminal, another model is better again.
	require.Equal(t, http.StatusOK, d.verified(http.MethodPatch, late.ID, `{"wordings": ["Count of late orders"]}`).status)
	require.Equal(t, []string{"question"}, d.getBenchmark(second.ID).Outdated)

	c := s.signedIn(t, d.apiToken())
	about := "bea/" + d.namespace

	fails := c.try("benchmark", "run", about, "--compare", first.ID, "--fail-on-worse")
	require.Equal(t, 11, fails.code, fails.err)
	require.Contains(t, fails.err, "1 question got worse")
	require.Contains(t, fails.out, "wrong")
	require.Contains(t, fails.out, "question, definition")

	wrong.Store(false)

	require.Contains(t, c.run("benchmark", "run", about, "--if-outdated"), "Nothing has changed since the last benchmark.")

	shown := c.run("benchmark", "run", about, "--model", "large", "--fail-on-worse")
	require.Contains(t, shown, "model", "why it is better")
	require.Contains(t, shown, "3 right, 0 wrong")
	require.Contains(t, shown, "1 better, 0 worse")

	list := c.run("benchmark", "list", about)
	for _, part := range []string{"large", "small", "completed", "changed since"} {
		require.Contains(t, list, part)
	}

	last := d.listBenchmarks()[0]
	require.Equal(t, []string{"model"}, last.Outdated, "the default is another model")
	require.Contains(t, c.run("benchmark", "show", about, last.ID, "--compare", first.ID), "0 better, 0 worse")

	// Other rows: nothing is worse, because the verified statement reads the same snapshot.
	postRows(t, s, d.bearer, d.path(), `{"data": [{"id": 900, "status": "Late"}]}`)

	rules := c.run("benchmark", "run", about, "--mode", "rules", "--output", "csv")
	require.Contains(t, rules, howLate+",right,,new")

	again := d.benchmark("")
	require.Equal(t, []int{3, 0}, []int{again.Right, again.Worse}, "%+v", again)

	wrong.Store(true)
	postRows(t, s, d.bearer, d.path(), `{"data": [{"id": 901, "status": "Late"}]}`)

	data := d.benchmark("")
	require.Equal(t, []string{"data"}, d.benchmarkResults(data.ID, "")[howLate].Why)
	require.Equal(t, []string{"data", "mode"}, d.benchmarkResults(data.ID, "&compare="+d.lastOf("rules"))[howLate].Why)
}

// lastOf returns the last benchmark of a mode.
func (d *filled) lastOf(mode string) string {
	d.t.Helper()

	list := d.listBenchmarks()

	return list[slices.IndexFunc(list, func(b benchmarked) bool { return b.Mode == mode })].ID
}

func benchmarkOutcomes(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newTrade(t, s, "ben", key.token("ben"))

	require.Zero(t, d.benchmark("").Questions, "no verified questions")

	want := map[string]string{}

	for _, one := range []struct{ question, query, outcome string }{
		{"Which regions descend from orders?", "SELECT DISTINCT region FROM orders ORDER BY region DESC", "wrong: The rows are right, but their order is not."},
		{"Which year had late orders?", selectLate, "asked_back: "},
		{"What weather had late orders?", selectLate, "refused: The outcome of the run is no_data."},
		{"What never works with orders?", selectLate, "refused: The outcome of the run is refused."},
		{"How many customers are there?", "SELECT city, count(*) AS n FROM customers GROUP BY city", "wrong: The answer has 1 different row, the verified statement 3 different rows."},
		{`How many <b>"orders"</b> are 'late'); DROP TABLE runs; --?`, selectLate, "right: "},
	} {
		d.verify(fmt.Sprintf(`{"question": %s, "query": %s}`, encode(t, one.question), encode(t, one.query)))
		want[one.question] = one.outcome
	}

	done := d.benchmark("")
	require.Equal(t, "completed", done.Status, "%+v", done)

	results := d.benchmarkResults(done.ID, "")
	require.Len(t, results, len(want))

	for question, outcome := range want {
		require.Equal(t, outcome, results[question].Outcome+": "+results[question].Detail, question)
	}

	require.Equal(t, []int{6, 1, 2, 2, 1, 0}, []int{done.Questions, done.Right, done.Wrong, done.Refused, done.AskedBack, done.Failed})
	require.Contains(t, call(t, http.MethodGet, s.url+"/audit?limit=100", d.bearer, "").body, `"kind":"benchmark"`)

	// What cannot be.
	for body, field := range map[string]string{
		`{"mode": "guess"}`: "mode", `{"model": "unknown"}`: "model", `{"mode": "rules", "model": "small"}`: "model", `{"provider": "nowhere"}`: "provider", `{"kind": "small"}`: "kind",
	} {
		require.Equal(t, []string{field}, requireFault(t, body, d.benchmarks(http.MethodPost, "", body), http.StatusUnprocessableEntity, "VALIDATION_FAILED"))
	}

	for _, other := range []string{uuid.NewString(), "x"} {
		requireFault(t, other, d.benchmarks(http.MethodGet, "/"+done.ID+"?compare="+other, ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED")
		requireFault(t, other, d.benchmarks(http.MethodGet, "/"+done.ID+"/results?compare="+other, ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED")
	}

	for _, name := range []string{"/" + uuid.NewString(), "/x", "/..%2F..", "/%00"} {
		require.Equal(t, http.StatusNotFound, d.benchmarks(http.MethodGet, name, "").status, name)
	}
}

func benchmarkRights(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newTrade(t, s, "bob", key.token("bob"))
	d.verify(fmt.Sprintf(`{"question": %q, "query": %q}`, howLate, "SELECT count(*) AS n FROM orders WHERE status IN ('Late')"))
	d.verify(`{"question": "How many orders of retail customers are there?",
		"query": "SELECT count(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.segment = 'retail'"}`)

	done := d.benchmark(`{"mode": "rules"}`)
	require.Equal(t, 2, done.Questions)

	partly, whole, editor, nobody := d.by(key.token("bpart")), d.by(key.token("bwhole")), d.by(key.token("bedit")), d.by(key.token("bnone"))
	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/orders", "bpart", "editor")
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "bwhole", "viewer")
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "bedit", "editor")

	for _, c := range []struct {
		who                           *filled
		list, get, post, cancel, seen int
	}{
		{d, 200, 200, 202, 422, 1}, {editor, 200, 200, 202, 422, 2}, {whole, 200, 200, 403, 403, 3}, {partly, 200, 404, 403, 404, 0}, {nobody, 404, 404, 404, 404, 0},
	} {
		require.Equal(t, c.get, c.who.benchmarks(http.MethodGet, "/"+done.ID, "").status)
		require.Equal(t, c.get, c.who.benchmarks(http.MethodGet, "/"+done.ID+"/results", "").status)
		require.Equal(t, c.cancel, c.who.benchmarks(http.MethodPost, "/"+done.ID+"/cancel", "").status)

		listed := c.who.benchmarks(http.MethodGet, "", "")
		require.Equal(t, c.list, listed.status)

		if c.list == http.StatusOK {
			require.Len(t, c.who.listBenchmarks(), c.seen)
		}

		made := c.who.benchmarks(http.MethodPost, "", `{"mode": "rules"}`)
		require.Equal(t, c.post, made.status, made.body)

		if c.post == http.StatusAccepted {
			var one benchmarked

			made.json(t, &one)
			require.Equal(t, 2, c.who.awaitBenchmark(one.ID).Questions)
		}
	}

	// Only who asked sees the runs.
	require.NotEmpty(t, d.benchmarkResults(done.ID, "")[howLate].RunID)
	require.Empty(t, whole.benchmarkResults(done.ID, "")[howLate].RunID)
	require.Empty(t, editor.benchmarkResults(done.ID, "")[howLate].RunID)
	require.Len(t, nobody.benchmarks(http.MethodGet, "/"+done.ID, "").body, len(nobody.benchmarks(http.MethodGet, "/"+uuid.NewString(), "").body))
}

// slowly keeps questions that the pupil answers slowly.
func (d *filled) slowly(count int) {
	d.t.Helper()

	for i := range count {
		d.verify(fmt.Sprintf(`{"question": "How many orders of kind %c are slowly late?", "query": %q}`, 'a'+i, selectLate))
	}
}

func benchmarkEnds(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newTrade(t, s, "bud", key.token("bud"))
	d.slowly(12)

	// One at a time. A repeated request starts nothing.
	once := "Idempotency-Key: " + uuid.NewString()
	one, two := d.benchmarks(http.MethodPost, "", `{}`, once), d.benchmarks(http.MethodPost, "", `{}`, once)
	require.Equal(t, []int{http.StatusAccepted, http.StatusAccepted}, []int{one.status, two.status}, one.body+two.body)

	var made, repeated benchmarked

	one.json(t, &made)
	two.json(t, &repeated)
	require.Equal(t, made.ID, repeated.ID)
	requireFault(t, "another", d.benchmarks(http.MethodPost, "", ""), http.StatusConflict, "CONFLICT")

	// It is cancelled, with its questions.
	await(t, "an answer", func() bool { return d.getBenchmark(made.ID).Right > 0 })
	require.LessOrEqual(t, tally(t, s, `SELECT count(*) FROM runs r JOIN benchmark_results b ON b.run_id = r.id WHERE b.benchmark_id = $1 AND r.status = 'running'`, made.ID), 2)

	for range 2 {
		cancelled := d.benchmarks(http.MethodPost, "/"+made.ID+"/cancel", "")
		require.Equal(t, http.StatusOK, cancelled.status, cancelled.body)
		require.Contains(t, cancelled.body, `"status":"cancelled"`)
	}

	await(t, "its questions", func() bool {
		return tally(t, s, `SELECT count(*) FROM runs r JOIN benchmark_results b ON b.run_id = r.id WHERE b.benchmark_id = $1 AND r.status = 'running'`, made.ID) == 0
	})
	require.Less(t, d.getBenchmark(made.ID).Right, 12)

	// The token that started it is revoked.
	id, token := newToken(t, s, d.bearer, "owner")
	revoked := d.by(token).startBenchmark("")
	await(t, "an answer", func() bool { return d.getBenchmark(revoked.ID).Right > 0 })
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/user/tokens/"+id, d.bearer, "").status)

	ended := d.awaitBenchmark(revoked.ID)
	require.Equal(t, []string{"failed", "UNAUTHORIZED"}, []string{ended.Status, ended.Error.Code}, "%+v", ended)
	require.Less(t, ended.Right, 12)

	// The editor who started it is no longer one.
	editor := d.by(key.token("budedit"))
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "budedit", "editor")
	lost := editor.startBenchmark("")
	await(t, "an answer", func() bool { return d.getBenchmark(lost.ID).Right > 0 })
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "budedit", "viewer")

	ended = d.awaitBenchmark(lost.ID)
	require.Equal(t, []string{"failed", "FORBIDDEN"}, []string{ended.Status, ended.Error.Code}, "%+v", ended)
}

func benchmarkKilled(t *testing.T, p *pupil) {
	t.Helper()

	first := start(t, append(p.settings(), "QUERN_RUN_WORKERS=0")...)
	worker := another(t, first, p.settings()...)
	d := newTrade(t, first, "bix", first.newKey().token("bix"))
	d.slowly(8)

	made := d.startBenchmark("")

	for right := range 3 {
		await(t, "some answers", func() bool { return d.getBenchmark(made.ID).Right > right })
		worker.kill()
		worker.restart()
	}

	done := d.awaitBenchmark(made.ID)
	require.Equal(t, []any{"completed", 8, 8}, []any{done.Status, done.Questions, done.Right}, "%+v", done)
	require.Equal(t, 8, tally(t, first, `SELECT count(*) FROM runs`), "no question is asked twice")
	require.Equal(t, 8, tally(t, first, `SELECT count(DISTINCT run_id) FROM benchmark_results WHERE outcome = 'right'`))
	require.Equal(t, 1, tally(t, first, `SELECT count(*) FROM conversations`))
}
