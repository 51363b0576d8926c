package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoForeignRows creates and revokes grants at random, and sends random statements of all callers. Every cell and one column
// name of a dataset contain its mark. No mark of a dataset that the caller may not see may be returned, in rows, errors or plans.
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

// askers is the number of statements that are sent at the same time, between two changes of grants.
const askers = 4

// world is all datasets, callers and grants of the test.
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
	mark                   string // in texts and in the name of a column
	number                 string // in numbers
}

type caller struct {
	name   string
	groups []string
	bearer string
}

// grant is an active grant on a namespace, or on a dataset in it.
type grant struct{ owner, namespace, dataset, grantee string }

func newWorld(t *testing.T) *world {
	t.Helper()

	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	s := start(t, "QUERN_QUERY_MAX_RUNNING=4", "QUERN_SANDBOX_IDLE_PROCESSES=4")
	key := s.newKey()
	w := &world{service: s, t: t, seed: rand.New(rand.NewPCG(seed, 0)), grants: map[grant]bool{}, statuses: map[int]int{}}

	for i, name := range []string{"anna", "bert", "cleo", "dora", "emil"} {
		claims := key.claims(name)
		c := &caller{name: name, groups: [][]string{{}, {"red"}, {"blue"}, {"red", "blue"}, {}}[i]}
		claims["groups"] = c.groups
		// An API token stays valid for all rounds of the test. It has the groups that the user had at sign-in.
		c.bearer = value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.sign(claims), `{"name": "asker", "role": "owner"}`))
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

// add creates a dataset with two data files.
func (w *world) add(owner *caller, namespace, name string) {
	w.t.Helper()

	d := &markedDataset{owner: owner.name, namespace: namespace, name: name, number: strconv.Itoa(4_100_000 + 11_111*len(w.datasets))}
	for range 10 {
		d.mark += string(rune('g' + w.seed.IntN(20))) // letters that do not occur in ids
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

// sees reports whether the caller may see a dataset.
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

// turn creates or revokes a grant.
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

	// Keep the number of grants small, so that most datasets are hidden from most callers.
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

// question is one request and the datasets that it names.
type question struct {
	request *http.Request
	by      *caller
	text    string
	names   []*markedDataset
	plain   bool // the statement succeeds if the caller can see all named datasets
}

// askAll sends statements of some callers at the same time, and checks the answers.
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

// question returns a random question.
func (w *world) question() question {
	w.t.Helper()

	q := question{by: pick(w.seed, w.callers)}
	here := w.dataset(q.by) // the request is about the namespace of this dataset

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

	// A subquery's name hides a dataset with the same name.
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

	// The request also names its namespace, which is hidden if the caller sees no dataset in it.
	if !slices.ContainsFunc(w.datasets, func(d *markedDataset) bool {
		return d.owner == here.owner && d.namespace == here.namespace && w.sees(q.by, d)
	}) {
		q.names = append(q.names, here)
	}

	return q
}

// dataset returns a random dataset, more often one that the caller sees.
func (w *world) dataset(by *caller) *markedDataset {
	for range 3 {
		if d := pick(w.seed, w.datasets); w.sees(by, d) {
			return d
		}
	}

	return pick(w.seed, w.datasets)
}

// name returns one of the names that a statement can use for a dataset, in a request about a namespace.
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

// form returns a statement with placeholders for datasets, and whether the statement is valid.
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
