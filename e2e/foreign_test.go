package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoForeignRows gives and takes rights at random, and lets everybody ask random statements. Every cell and one
// column's name of a dataset carry its mark: no mark of a dataset that the caller may not see comes back, in rows,
// errors or plans.
func TestNoForeignRows(t *testing.T) {
	t.Parallel()

	w := newWorld(t)

	for step := range rounds(2000 / askers) {
		if step%2 == 0 {
			w.turn()
		}

		w.askAll()
	}

	t.Logf("%d statements: %v; %d named something that their caller may not see; %d answers have marks that they may have", w.asked, w.statuses, w.forbidden, w.marked)
	require.Greater(t, w.marked, w.asked/10, "statements that see something")
	require.Greater(t, w.forbidden, w.asked/5, "statements that may not")
	require.Zero(t, w.statuses[http.StatusInternalServerError])
}

// askers ask at the same time, between two changes of rights.
const askers = 4

// world is everybody and everything, and who may see what.
type world struct {
	*service

	t        *testing.T
	seed     *rand.Rand
	datasets []*markedDataset
	callers  []*caller
	grants   map[grant]bool

	asked, forbidden, marked int
	statuses                 map[int]int
}

type markedDataset struct {
	owner, namespace, name string
	mark                   string // in texts and the name of a column
	number                 string // in numbers
}

type caller struct {
	name   string
	groups []string
	bearer string
}

// grant is one that is in force: of a namespace, or of a dataset in it.
type grant struct{ owner, namespace, dataset, grantee string }

func newWorld(t *testing.T) *world {
	t.Helper()

	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	s := start(t, "QUERN_QUERY_RUNNING=4", "QUERN_SANDBOX_READY=4")
	key := s.newKey()
	w := &world{service: s, t: t, seed: rand.New(rand.NewPCG(seed, 0)), grants: map[grant]bool{}, statuses: map[int]int{}}

	for i, name := range []string{"anna", "bert", "cleo", "dora", "emil"} {
		claims := key.claims(name)
		c := &caller{name: name, groups: [][]string{{}, {"red"}, {"blue"}, {"red", "blue"}, {}}[i]}
		claims["groups"] = c.groups
		// An API token outlives the rounds, and acts with the groups of the sign-in.
		c.bearer = value(t, call(t, http.MethodPost, s.url+"/user/token", key.sign(claims), `{"name": "asker", "role": "owner"}`))
		w.callers = append(w.callers, c)
	}

	for _, owner := range w.callers[:3] {
		for _, namespace := range []string{"shop", "lab"} {
			for _, name := range []string{"orders", "items", "Notes"} {
				w.add(owner, namespace, name)
			}
		}
	}

	return w
}

// add makes a dataset of two files.
func (w *world) add(owner *caller, namespace, name string) {
	w.t.Helper()

	d := &markedDataset{owner: owner.name, namespace: namespace, name: name, number: strconv.Itoa(4_100_000 + 11_111*len(w.datasets))}
	for range 10 {
		d.mark += string(rune('g' + w.seed.IntN(20))) // nothing of it is in an id
	}

	made := call(w.t, http.MethodPost, w.url+"/ingest/new/"+namespace+"/"+name, owner.bearer, "")
	require.Equal(w.t, http.StatusCreated, made.status, made.body)

	for file := range 2 {
		var rows []string
		for i := range 3 {
			rows = append(rows, fmt.Sprintf(`{"text": "%s %d", "n": %s%03d, "c_%s": "%s"}`, d.mark, i, d.number, file*3+i, d.mark, d.mark))
		}

		postRows(w.t, w.service, owner.bearer, d.path(), `{"data": [`+strings.Join(rows, ", ")+`]}`)
	}

	w.datasets = append(w.datasets, d)
}

func (d *markedDataset) path() string { return d.owner + "/" + d.namespace + "/" + d.name }

// sees says whether the caller may see a dataset.
func (w *world) sees(c *caller, d *markedDataset) bool {
	if c.name == d.owner {
		return true
	}

	for _, grantee := range append([]string{c.name}, c.groups...) {
		if grantee != c.name {
			grantee = "@" + grantee
		}

		if w.grants[grant{d.owner, d.namespace, "", grantee}] || w.grants[grant{d.owner, d.namespace, d.name, grantee}] {
			return true
		}
	}

	return false
}

// turn gives or takes a right.
func (w *world) turn() {
	w.t.Helper()

	d := pick(w.seed, w.datasets)
	g := grant{owner: d.owner, namespace: d.namespace, grantee: pick(w.seed, []string{"anna", "bert", "cleo", "dora", "emil", "@red", "@blue"})}
	path := "namespaces/self/" + d.namespace

	if w.seed.IntN(3) > 0 {
		g.dataset = d.name
		path = "datasets/self/" + d.namespace + "/" + d.name
	}

	if g.grantee == d.owner {
		return
	}

	owner := w.callers[slices.IndexFunc(w.callers, func(c *caller) bool { return c.name == d.owner })]

	// Few at a time, so that most is hidden from most.
	if len(w.grants) > 12 {
		for old := range w.grants {
			if old.owner == d.owner {
				g = old
				path = "namespaces/self/" + old.namespace

				if old.dataset != "" {
					path = "datasets/self/" + old.namespace + "/" + old.dataset
				}
			}
		}
	}

	if w.grants[g] {
		unshare(w.t, w.service, owner.bearer, path, g.grantee)
		delete(w.grants, g)
	} else {
		share(w.t, w.service, owner.bearer, path, g.grantee, pick(w.seed, []string{"viewer", "editor"}))
		w.grants[g] = true
	}
}

func pick[T any](seed *rand.Rand, from []T) T { return from[seed.IntN(len(from))] }

// question is one request and what it names.
type question struct {
	request *http.Request
	by      *caller
	text    string
	names   []*markedDataset
	plain   bool // if all that it names can be seen, it succeeds
}

// askAll lets some callers ask, and looks at their answers.
func (w *world) askAll() {
	w.t.Helper()

	questions := make([]question, askers)
	for i := range questions {
		questions[i] = w.question()
	}

	answers := atOnce(w.t, askers, func(i int) *http.Request { return questions[i].request })
	for i, answer := range answers {
		w.look(questions[i], answer)
	}
}

var identifiers = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func (w *world) look(q question, answer *answer) {
	w.t.Helper()

	w.asked++
	w.statuses[answer.status]++

	may := !slices.ContainsFunc(q.names, func(d *markedDataset) bool { return !w.sees(q.by, d) })
	said := identifiers.ReplaceAllString(answer.body+fmt.Sprint(answer.header), "")
	marked := false

	for _, d := range w.datasets {
		has := strings.Contains(said, d.mark) || strings.Contains(said, d.number)
		require.False(w.t, has && !w.sees(q.by, d), "%s sees %s\n%s\n%d %s\n%v", q.by.name, d.path(), q.text, answer.status, answer.body, w.grants)

		marked = marked || has
	}

	if marked {
		w.marked++
	}

	if !may {
		w.forbidden++
		require.Contains(w.t, []int{http.StatusNotFound, http.StatusUnprocessableEntity}, answer.status, "%s: %s\n%s", q.by.name, q.text, answer.body)
	} else if q.plain {
		require.Equal(w.t, http.StatusOK, answer.status, "%s: %s\n%s\n%v", q.by.name, q.text, answer.body, w.grants)
	}
}

// question makes one up.
func (w *world) question() question {
	w.t.Helper()

	q := question{by: pick(w.seed, w.callers)}
	here := w.dataset(q.by) // whose namespace the request is in

	if w.seed.IntN(10) == 0 {
		q.names, q.plain = []*markedDataset{here}, true
		q.text = pick(w.seed, []string{"/rows", "/rows?limit=1&columns=text", "/export", "/export?format=ndjson"})
		q.request = newRequest(w.t, http.MethodGet, w.url+"/data/"+here.path()+q.text, q.by.bearer, "")

		return q
	}

	var form string

	form, q.plain = w.form()
	q.text = regexp.MustCompile(`\$[AB]`).ReplaceAllStringFunc(form, func(string) string {
		d := w.dataset(q.by)
		q.names = append(q.names, d)

		return w.name(d, here)
	})

	// A name of a subquery that is the name of a dataset is no longer that dataset.
	q.text = strings.ReplaceAll(q.text, "$SHADOW", w.name(pick(w.seed, w.datasets), here))

	body := map[string]any{"username": pick(w.seed, []string{here.owner, strings.ToUpper(here.owner)}), "namespace": here.namespace, "query": q.text}
	if q.by.name == here.owner && w.seed.IntN(2) == 0 {
		body["username"] = "self"
	}

	headers := []string{}

	switch w.seed.IntN(10) {
	case 0, 1:
		body["explain"] = true
	case 2:
		headers = append(headers, "Accept: text/csv")
	case 3:
		body["dataset"] = here.name
		q.names, q.plain = append(q.names, here), false
	}

	q.text = encode(w.t, body)
	q.request = newRequest(w.t, http.MethodPost, w.url+"/query", q.by.bearer, q.text, headers...)

	// The namespace of the request counts too, unless a bare name already says that it can be seen.
	if !slices.ContainsFunc(w.datasets, func(d *markedDataset) bool {
		return d.owner == here.owner && d.namespace == here.namespace && w.sees(q.by, d)
	}) {
		q.names = append(q.names, here)
	}

	return q
}

// dataset picks one, more often one that the caller sees.
func (w *world) dataset(by *caller) *markedDataset {
	for range 3 {
		if d := pick(w.seed, w.datasets); w.sees(by, d) {
			return d
		}
	}

	return pick(w.seed, w.datasets)
}

// name is one of those that a statement can use for a dataset, in a request about a namespace.
func (w *world) name(d, here *markedDataset) string {
	names := []string{d.path()}

	if d.owner == here.owner {
		names = append(names, d.namespace+"/"+d.name)

		if d.namespace == here.namespace {
			names = append(names, d.name, d.name)
		}
	}

	name := pick(w.seed, names)
	if w.seed.IntN(4) == 0 {
		name = strings.ToUpper(name)
	}

	return `"` + name + `"`
}

// form is a statement with places for datasets, and whether it can be run at all.
func (w *world) form() (text string, plain bool) {
	runs := []string{
		`SELECT * FROM $A`,
		`FROM $A`,
		`TABLE $A`,
		`SELECT text FROM $A WHERE n % 2 = 0 ORDER BY 1 LIMIT 3`,
		`SELECT max(n), min(text), count(*), list(text), string_agg(text, ',') FROM $A`,
		`SELECT a FROM $A a`,
		`SELECT * FROM $A a JOIN $B b ON a.n % 1000 = b.n % 1000`,
		`SELECT a.text, b.text FROM $A a LEFT JOIN $B b ON a.text = b.text`,
		`SELECT * FROM $A a, $B b LIMIT 5`,
		`SELECT * FROM $A a POSITIONAL JOIN $B b`,
		`SELECT text, n FROM $A UNION ALL SELECT text, n FROM $B`,
		`SELECT n FROM $A EXCEPT SELECT n FROM $B`,
		`FROM $A UNION ALL BY NAME FROM $B`,
		`WITH x AS (SELECT * FROM $A) SELECT * FROM x`,
		`WITH $SHADOW AS (SELECT * FROM $A) SELECT * FROM $SHADOW`,
		`WITH x AS (FROM $A), $SHADOW AS (SELECT 1) SELECT * FROM x, $SHADOW`,
		`SELECT * FROM (WITH $SHADOW AS (SELECT 1) FROM $SHADOW) q, $A`,
		`SELECT * FROM $A WHERE n > (WITH $SHADOW AS (SELECT 1 AS n) SELECT max(n) FROM $SHADOW)`,
		`WITH RECURSIVE r AS (SELECT min(n) AS n FROM $A UNION ALL SELECT n + 1 FROM r WHERE n % 1000 < 3) SELECT * FROM r`,
		`SELECT (SELECT max(text) FROM $B) AS m, * FROM $A`,
		`SELECT * FROM $A a WHERE EXISTS (FROM $B b WHERE b.n > 0 AND a.n > 0)`,
		`SELECT * FROM $A WHERE n IN (SELECT n FROM $B)`,
		`SELECT * FROM $A a, LATERAL (SELECT b.text || a.text AS two FROM $B b) l`,
		`SELECT text, row_number() OVER (ORDER BY n), lag(text) OVER (ORDER BY n) FROM $A`,
		`SELECT * FROM (SELECT * FROM (SELECT * FROM $A))`,
		`SELECT text FROM $A GROUP BY ALL HAVING count(*) > (SELECT count(*) FROM $B) - 100`,
		`DESCRIBE $A`,
		`SUMMARIZE $A`,
		`SELECT * FROM (DESCRIBE $A), (SUMMARIZE $B)`,
		`SELECT TRY_CAST(text AS int), * FROM $A`,
	}
	fails := []string{
		`SELECT text::int FROM $A`,
		`SELECT * FROM $A a, $B b WHERE b.text::date > a.text::date`,
		`SELECT CAST(string_agg(text) AS bigint) FROM $A`,
		`SELECT CASE WHEN n > 0 THEN error(text) ELSE '' END || 'x' FROM $A`,
		`SELECT strptime(text, '%Y') FROM $A`,
		`SELECT (n * 10000000000000000)::tinyint FROM $A`,
		`SELECT (SELECT text FROM $B) FROM $A`,
		`SELECT json_extract(text, '$.x') FROM $A WHERE text::json IS NOT NULL`,
		`SELECT text::struct(a int) FROM $A`,
		`SELECT c_ FROM $A, $B`,
		`SELECT texts FROM $A`,
		`SELECT b.c FROM $A a, $B b`,
		`SELECT text FROM $A, $B`,
		`SELECT * FROM $A JOIN nothing USING (n)`,
		`SELECT * FROM $A; SELECT * FROM $B`,
		`SELECT * FROM $A, '0.parquet'`,
		`SELECT * FROM read_parquet('in/*.parquet'), $A`,
		`SELECT * FROM read_parquet(['in/0.parquet', 'in/1.parquet', 'in/2.parquet'])`,
		`SELECT * FROM parquet_metadata('in/0.parquet'), $A`,
		`SELECT * FROM query_table('orders'), $A`,
		`SELECT * FROM query('FROM orders'), $A`,
		`SELECT * FROM duckdb_columns(), $A`,
		`SELECT * FROM duckdb_views(), $A`,
		`SELECT * FROM information_schema.columns`,
		`SELECT * FROM sqlite_master, $A`,
		`SELECT * FROM memory.main.orders`,
		`SELECT * FROM anna.shop.orders`,
		`SELECT * FROM "anna/shop"."orders"`,
		`SELECT * FROM "anna/shop/orders/x"`,
		`SELECT * FROM "../lab/orders"`,
		`SELECT * FROM "/shop/orders"`,
		`SELECT * FROM "anna//orders"`,
		`EXPLAIN ANALYZE SELECT * FROM $A`,
		`PIVOT $A ON text`,
		`COPY $A TO '/tmp/x'`,
		`SHOW ALL TABLES`,
		`SELECT * FROM (SHOW TABLES), $A`,
	}

	if w.seed.IntN(3) > 0 {
		return pick(w.seed, runs), true
	}

	return pick(w.seed, fails), false
}

// TestForbiddenLooksAbsent: what the caller may not see and what is not there get the same bytes and, which only `make torture` judges, after
// the same time.
func TestForbiddenLooksAbsent(t *testing.T) { //nolint:tparallel // times are compared
	t.Parallel()

	s := start(t, "QUERN_SANDBOX_READY=4")
	key := s.newKey()
	owner := newFilled(t, s, "holder", value(t, call(t, http.MethodPost, s.url+"/user/token", key.token("holder"), `{"name": "x", "role": "owner"}`)))
	require.Equal(t, http.StatusOK, owner.post(`{"data": [{"n": 1}]}`).status)

	hidden := owner.beside("secret", `{"data": [{"n": 2}]}`)
	guest := newFilled(t, s, "guest", value(t, call(t, http.MethodPost, s.url+"/user/token", key.token("guest"), `{"name": "x", "role": "owner"}`)))
	require.Equal(t, http.StatusOK, guest.post(`{"data": [{"n": 3}]}`).status)

	part := newFilled(t, s, "holder", owner.bearer) // of it one dataset can be seen
	require.Equal(t, http.StatusOK, part.post(`{"data": [{"n": 4}]}`).status)
	unseen := part.beside("secret", `{"data": [{"n": 5}]}`)
	share(t, s, owner.bearer, "datasets/self/"+part.namespace+"/orders", "guest", "viewer")

	ask := func(owner, namespace, statement, more string) *http.Request {
		about := *guest
		about.owner, about.namespace = owner, namespace

		return about.question(statement, more)
	}
	get := func(address string) *http.Request {
		return newRequest(t, http.MethodGet, s.url+"/data/"+address, guest.bearer, "")
	}

	// Each with the name of something that the caller may not see, and of something that is not there.
	ways := map[string]func(d *filled) *http.Request{
		"its namespace":         func(d *filled) *http.Request { return ask(d.owner, d.namespace, "SELECT 1", "") },
		"a bare name":           func(d *filled) *http.Request { return ask(d.owner, d.namespace, "FROM "+d.name, "") },
		"limited to it":         func(d *filled) *http.Request { return ask(d.owner, d.namespace, "SELECT 1", `"dataset": "`+d.name+`"`) },
		"its full name":         func(d *filled) *http.Request { return ask("guest", guest.namespace, `FROM "`+d.path()+`"`, "") },
		"joined with one's own": func(d *filled) *http.Request { return ask("guest", guest.namespace, `FROM orders, "`+d.path()+`"`, "") },
		"with the plan": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `FROM "`+d.path()+`"`, `"explain": true`)
		},
		"at an earlier time": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `FROM "`+d.path()+`"`, `"asOf": "2026-01-01T00:00:00Z"`)
		},
		"one of its columns": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `SELECT n FROM "`+d.path()+`"`, "")
		},
		"one that it has not": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `SELECT m FROM "`+d.path()+`"`, "")
		},
		"with a cast that fails": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `SELECT n::date FROM "`+d.path()+`"`, "")
		},
		"DESCRIBE":               func(d *filled) *http.Request { return ask("guest", guest.namespace, `DESCRIBE "`+d.path()+`"`, "") },
		"a page of its rows":     func(d *filled) *http.Request { return get(d.path() + "/rows") },
		"columns of its rows":    func(d *filled) *http.Request { return get(d.path() + "/rows?columns=n") },
		"a whole file":           func(d *filled) *http.Request { return get(d.path() + "/export") },
		"a file in another form": func(d *filled) *http.Request { return get(d.path() + "/export?format=parquet") },
		"its namespace, in part": func(d *filled) *http.Request { return ask(part.owner, part.namespace, "FROM "+d.name, "") },
		"part of it, by its path": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `FROM "`+part.owner+"/"+part.namespace+"/"+d.name+`"`, "")
		},
	}

	before := map[string]*answer{}
	for what, request := range ways {
		before[what] = send(t, request(hidden))
	}

	t.Run("after the same time", func(t *testing.T) {
		if !full() {
			return
		}

		for _, what := range []string{"a bare name", "its full name", "its namespace, in part", "a page of its rows"} {
			missing := *hidden
			missing.name = "secreq"

			if what == "a bare name" || what == "its full name" || what == "a page of its rows" {
				missing.namespace = "n-" + strings.Repeat("0", len(hidden.namespace)-2)
			}

			requireSameTime(t, what, func() *http.Request { return ways[what](hidden) }, func() *http.Request { return ways[what](&missing) })
		}
	})

	// The same request when it is really not there.
	for _, d := range []*filled{hidden, unseen, owner} {
		require.Equal(t, http.StatusNoContent, d.call(http.MethodDelete, "", "").status)
	}

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/schema/self/namespaces/"+owner.namespace, owner.bearer, "").status)

	for what, request := range ways {
		after := send(t, request(hidden))
		require.Contains(t, []int{http.StatusNotFound, http.StatusUnprocessableEntity}, after.status, what)
		require.Equal(t, after.status, before[what].status, what)
		require.Equal(t, after.body, before[what].body, what)

		for _, header := range []http.Header{after.header, before[what].header} {
			maps.DeleteFunc(header, func(name string, _ []string) bool { return name == "X-Request-Id" || name == "Date" })
		}

		require.Equal(t, after.header, before[what].header, what)
	}
}

// requireSameTime compares the medians of two requests that take turns. A busy machine is asked more often.
func requireSameTime(t *testing.T, what string, one, two func() *http.Request) {
	t.Helper()

	const (
		tries    = 10
		fraction = 0.2
	)

	var (
		first, second time.Duration
		took          [2][]time.Duration
	)

	for range tries {
		for range max(40, loops(200)) {
			// Which comes first must not matter.
			for _, i := range rand.Perm(2) {
				request := []func() *http.Request{one, two}[i]()
				began := time.Now()
				answer := send(t, request)
				took[i] = append(took[i], time.Since(began))
				require.GreaterOrEqual(t, answer.status, http.StatusBadRequest)
			}
		}

		slices.Sort(took[0])
		slices.Sort(took[1])

		first, second = took[0][len(took[0])/2], took[1][len(took[1])/2]
		t.Logf("%s: p50 of %d tries %v if forbidden, %v if absent: %.2f", what, len(took[0]), first, second, float64(first)/float64(second))

		if difference := float64(first-second) / float64(second); difference > -fraction && difference < fraction {
			return
		}
	}

	require.Fail(t, "forbidden and absent take different times", "%s: %v and %v", what, first, second)
}
